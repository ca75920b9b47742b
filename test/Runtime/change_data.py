"""change_data.py FOLDER: changes data while a run of FOLDER/2,2 reads them, and goes on
from the checkpoint that is then there, once they are what they were."""
import filecmp
import pathlib
import random
import re
import struct
import subprocess
import sys

folder = pathlib.Path(sys.argv[1])
program, data = folder / "2,2", folder / "c.bin"
content = struct.pack("<80000H", *(random.Random(0).randrange(1000) for _ in range(80000)))


def run(*options):
    return ["acc-run", program / "m.accx", "--inputs", program, "--data", data,
            *map(str, options)]


def change(act, *options, seconds=60):
    """Acts after the first step; returns what the run then said, or nothing where it goes
    on for so many seconds."""
    data.write_bytes(content)
    process = subprocess.Popen(run("--steps", 100000000, "--json", *options), text=True,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    process.stdout.readline()
    act()
    try:
        _, said = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        return None
    assert process.returncode == 1, (process.returncode, said)
    return said.strip()


for name, act in (("truncated", lambda: open(data, "r+b").truncate(1000)),
                  ("written", lambda: open(data, "r+b").write(b"1"))):
    saved, found = folder / name, None
    while not found:  # in the middle of a step of some µs it is another error
        said = change(act, "--checkpoint", saved)
        found = re.search(r"after step (\d+) of", said)
        assert found or "found its end" in said, said
    print(f"{name}: {said}")
    step = int(found.group(1))
    data.write_bytes(content)
    for weights, options in (("resumed", ("--resume", saved)), ("whole", ())):
        subprocess.run(run("--steps", step + 3, "--save-weights", folder / weights, *options),
                       check=True, stdout=subprocess.DEVNULL)
    assert filecmp.cmp(folder / "resumed", folder / "whole", shallow=False)
    print(f"{name}: the weights of a whole run")
print("no checkpoints:", change(lambda: open(data, "r+b").truncate(1000)))
assert change(lambda: data.rename(folder / "moved.bin"), seconds=2) is None
print("moved: read on")
