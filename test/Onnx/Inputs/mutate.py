"""Compiles truncated and mutated copies of a model: each must end in success or in
an error with exit code 1 that says what is wrong, and in nothing else.

    mutate.py MODEL FOLDER ROUNDS

The seed is fixed, so that a failure repeats; the copy that fails stays in FOLDER.
"""
import random
import subprocess
import sys

model, folder, rounds = sys.argv[1], sys.argv[2], int(sys.argv[3])
with open(model, "rb") as file:
    original = file.read()
random.seed(3)
refused = 0
for number in range(rounds):
    data = bytearray(original)
    if number % 4 == 0:
        del data[random.randrange(len(data)):]
    else:
        for _ in range(random.randint(1, 4)):
            data[random.randrange(len(data))] = random.randrange(256)
    path = f"{folder}/{number}.onnx"
    with open(path, "wb") as file:
        file.write(data)
    result = subprocess.run(["acc-opt", path, "--compile-to=nn", "-o", f"{folder}/out.mlir"],
                            stderr=subprocess.PIPE, timeout=60, check=False)
    if result.returncode not in (0, 1):
        sys.exit(f"{path}: exit code {result.returncode}\n{result.stderr.decode()}")
    if result.returncode == 1 and b"error: " not in result.stderr:
        sys.exit(f"{path}: failed without an error")
    refused += result.returncode
print(f"{refused} of {rounds} refused")
