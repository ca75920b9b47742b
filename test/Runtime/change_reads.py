"""Runs acc-run again and again, a bit of one of its reads changed each time.

    change_reads.py PRELOAD FILE.safetensors COMMAND...

For the first and last byte of every tensor of FILE, and for every time that a
process reads it: the run must fail with an error that names the tensor and the
file: it is not what it was, or not what another name of it is. Without a changed read it must succeed. Prints the changed reads per tensor.
"""
import json
import os
import re
import struct
import subprocess
import sys

preload, path, command = sys.argv[1], sys.argv[2], sys.argv[3:]
with open(path, "rb") as file:
    (length,) = struct.unpack("<Q", file.read(8))
    header = json.loads(file.read(length))
header.pop("__metadata__", None)

for name, tensor in sorted(header.items()):
    changed = 0
    for byte in (tensor["data_offsets"][0], tensor["data_offsets"][1] - 1):
        for turn in range(1, 100):
            environment = dict(
                os.environ, LD_PRELOAD=preload,
                ACCEL_CHANGE_READ=f"{path}:{8 + length + byte}:{turn}")
            run = subprocess.run(command, env=environment, text=True,
                                 capture_output=True)
            said = run.stderr + run.stdout
            if "changed a bit of what was read" not in said:
                assert run.returncode == 0, said
                break
            changed += 1
            assert run.returncode == 1, f"{name}, read {turn}: believed: {said}"
            expected = (rf"weights of '{name}' as they were [a-z ]+, found other"
                        rf"|the same value of .*'{name}'")
            assert re.search(expected, said) and path in said, said
    print(f"{name}: {changed} changed reads refused")
