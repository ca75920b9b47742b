"""Holds what acc-opt says of each file of broken/ against the table broken.txt:
the file, the line, the words, status 1, and less than a second."""

import pathlib
import shlex
import subprocess
import sys
import time

here = pathlib.Path(__file__).parent
failures = 0
rows = 0
listed = set()
for line in (here / "broken.txt").read_text().splitlines():
    if line.startswith("#"):
        continue
    name, number, message, flags = (part.strip() for part in
                                    (line + " ").split(" |", 3))
    rows += 1
    listed.add(name)
    path = here / "broken" / name
    start = time.monotonic()
    run = subprocess.run(["acc-opt", "--config", str(path), "--print-config",
                          *shlex.split(flags)], capture_output=True, text=True)
    seconds = time.monotonic() - start
    text = run.stderr.strip()
    place = f"{path}:{number}: error: "
    if "'zero_optimization', which" in message:  # of a text in the file
        place = f"<JSON of {path}:{number}>:1: error: "
    if (run.returncode != 1 or not text.startswith(place) or
            message not in text or "\n" in text or run.stdout):
        print(f"{name}: expected {place}…{message}\n  found ({run.returncode}) "
              f"{text}{run.stdout[:200]}")
        failures += 1
    if seconds > 1:
        print(f"{name}: took {seconds:.1f} s")
        failures += 1

for path in sorted((here / "broken").iterdir()):
    if path.name not in listed:
        print(f"{path.name}: not in broken.txt")
        failures += 1
print(f"{rows} files, {failures} failures")
sys.exit(failures > 0)
