#!/usr/bin/env python3
"""Compiles a model for the model device (ModelDevice.h), has the host update its states
(Compiler/HostUpdates.cpp), trains the file on the model device in several orders, and compares
the bits with those of the CPU's file: losses, outputs (gradients among them) and weights.

  run_engines.py MODEL INPUTS --work DIR"""
import argparse
import pathlib
import subprocess

from run_layouts import bindings, compare, flags_of, run, tensorfiles, train

MICRO_BATCHES = 4


def said(*command):
    """What the first line of errors of a command that must fail says."""
    result = subprocess.run([str(c) for c in command], capture_output=True, text=True)
    assert result.returncode != 0, command
    return next(line for line in result.stderr.splitlines() if "error: " in line)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", type=pathlib.Path)
    parser.add_argument("inputs", type=pathlib.Path)
    parser.add_argument("--work", type=pathlib.Path, required=True)
    options = parser.parse_args()
    model, inputs, work = options.model, options.inputs, options.work
    dims, _ = bindings(model, inputs)
    flags = flags_of(model, dims + tensorfiles.folded_flags(model))
    flags += ["--mesh", "dp=1", "--micro-batches", MICRO_BATCHES]
    run("acc-opt", model, *flags, "-o", work / "cpu.accx")
    expected = train("acc-run", work / "cpu.accx", inputs, work / "left", 1, "")

    flags += ["--target", "cuda"]
    for phase in ("train", "local", "plan"):
        run("accel-model-opt", model, *flags, f"--compile-to={phase}", "-o", work / f"{phase}.mlir")
    proved = [f"--proved-against={work}/{phase}.mlir" for phase in ("train", "local")]
    moved, executable = work / "moved.mlir", work / "moved.accx"
    run("accel-model-opt", work / "plan.mlir", "--model-update-on-host", "-o", moved)
    run("accel-model-opt", moved, "--target=cuda", *proved, "-o", executable)
    for order in ("seed:1", "last", "starve:0"):
        compare("update on the host", order, expected,
                train("accel-model-run", executable, inputs, work / "left", 1, order))
    print(f"update on the host: the CPU's bits in {len(expected)} files and losses")

    text = moved.read_text()
    (work / "unordered.mlir").write_text("\n".join(
        line for line in text.splitlines() if 'plan.wait "from_host"' not in line))
    print('without "from_host":', said("accel-model-opt", work / "unordered.mlir", "--target=cuda",
                                      *proved, "-o", work / "unordered.accx"))
    print("for the CPU:", said("accel-model-opt", moved, *proved, "-o", work / "none.accx"))


if __name__ == "__main__":
    main()
