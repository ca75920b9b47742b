"""Holds what acc-opt says of each file of a folder against the table rows.txt in it
(the parts of a broken-*.test): every line of its rows, and no other; the file, the line,
the words, status 1, and less than a second."""

import pathlib
import shlex
import subprocess
import sys
import time

here = pathlib.Path(sys.argv[1])
failures = 0
runs = {}  # of a file and flags the lines that are expected, in order
for line in (here / "rows.txt").read_text().splitlines():
    if line.startswith("#"):
        continue
    name, number, message, flags = (part.strip() for part in
                                    (line + " ").split(" |", 3))
    runs.setdefault((name, flags), []).append((number, message))
listed = {name for name, flags in runs}


def fits(text, path, number, message):
    place = f"{path}:{number}: error: "
    if "'zero_optimization', which" in message:  # of a text in the file
        place = f"<JSON of {path}:{number}>:1: error: "
    return text.startswith(place) and message in text


for (name, flags), expected in runs.items():
    path = here / name
    start = time.monotonic()
    run = subprocess.run(["acc-opt", "--config", str(path), "--print-config",
                          *shlex.split(flags)], capture_output=True, text=True)
    seconds = time.monotonic() - start
    lines = run.stderr.splitlines()
    good = len(lines) == len(expected) and all(
        fits(text, path, *row) for text, row in zip(lines, expected))
    if run.returncode != 1 or not good or run.stdout:
        print(f"{name}: expected {expected}\n  found ({run.returncode}) "
              f"{run.stderr}{run.stdout[:200]}")
        failures += 1
    if seconds > 1:
        print(f"{name}: took {seconds:.1f} s")
        failures += 1

for path in sorted(here.iterdir()):
    if path.is_file() and path.name not in listed | {"rows.txt"}:
        print(f"{path.name}: not in rows.txt")
        failures += 1
print(f"{len(runs)} files, {failures} failures")
sys.exit(failures > 0)
