#!/usr/bin/env python3
"""Trains test/Fixtures/optimizers/model.mlir by its meaning with each optimizer and
schedule, and compares with PyTorch's steps and parameters (1e-12, relative to 1 + the
reference): check_optimizers.py FOLDER WORK. Those of RUN are compiled and run, too."""
import json
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "scripts"))
sys.dont_write_bytecode = True
import tensorfiles  # noqa: E402  (from scripts/)

# Of each function of the step one, and a group that is not decayed.
RUN = ("no_decay_vectors", "cosine_least", "linear_between", "warmup_lr", "warmup_cosine_lr_linear")

folder, work = map(pathlib.Path, sys.argv[1:])
work.mkdir(parents=True, exist_ok=True)
wrong = 0
for name, run in json.loads((folder / "expected.json").read_text()).items():
    subprocess.run(["acc-opt", folder / "model.mlir", "--train", "--loss", "y", *run["flags"],
                    "--compile-to=train", "-o", work / "step.mlir"], check=True)
    lines = subprocess.run(
        ["acc-eval", work / "step.mlir", "--inputs", folder / "inputs", "--outputs", work,
         "--steps", str(len(run["steps"]))], check=True, stdout=subprocess.PIPE, text=True).stdout
    found = [json.loads(line) for line in lines.splitlines()]
    pairs = [(f[key], e[key]) for f, e in zip(found, run["steps"]) for key in e]
    for state in ("w", "b"):
        pairs += zip(tensorfiles.read_npy(work / f"@{state}.npy")[2], run[state])
    error = max(abs(a - b) / (1 + abs(b)) for a, b in pairs)
    complete = len(pairs) == 4 * len(run["steps"]) + len(run["w"]) + len(run["b"])
    print(f"{name}: {error:.1e} of {len(pairs)} numbers")
    wrong += not (error <= 1e-12 and complete)
    if name not in RUN:
        continue
    subprocess.run(["acc-opt", folder / "model.mlir", "--train", "--loss", "y", "--entries=step",
                    *run["flags"], "-o", work / "m.accx"], check=True)
    lines = subprocess.run(
        ["acc-run", work / "m.accx", "--inputs", folder / "inputs", "--json", "--steps",
         str(len(run["steps"]))], check=True, stdout=subprocess.PIPE, text=True).stdout
    found = [json.loads(line) for line in lines.splitlines() if '"lr"' in line]
    pairs = [(f[key], e[key]) for f, e in zip(found, run["steps"]) for key in e]
    error = max(abs(a - b) / (1 + abs(b)) for a, b in pairs)
    print(f"{name}: {error:.1e} of {len(pairs)} numbers, run")
    wrong += not (error <= 1e-12 and len(pairs) == 4 * len(run["steps"]))
sys.exit(1 if wrong else 0)
