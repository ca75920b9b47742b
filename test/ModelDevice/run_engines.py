#!/usr/bin/env python3
"""Compiles a model for the model device (ModelDevice.h), trains the file there in several
orders, and compares the bits with those of the CPU's file: losses, outputs (gradients among
them) and weights. Prints what its report says of captures, and what the device has joined.

  run_engines.py MODEL INPUTS --work DIR --micro-batches M [--update-on-host]

--update-on-host: of the plan whose states the host updates (Compiler/HostUpdates.cpp)."""
import argparse
import os
import pathlib
import subprocess

from run_layouts import bindings, compare, flags_of, run, tensorfiles, train


def said(*command):
    """What the first line of errors of a command that must fail says."""
    result = subprocess.run([str(c) for c in command], capture_output=True, text=True)
    assert result.returncode != 0, command
    return next(line for line in result.stderr.splitlines() if "error: " in line)


def captures_of(*command):
    """The lines of `--report=commands` on captures."""
    stdout, _ = run("accel-model-opt", *command, "--report=commands")
    return stdout.split("captures of one call")[1].split("\n", 1)[1]


def move_updates(model, flags, work):
    """Returns the plan with another engine, and what it is proved against."""
    for phase in ("train", "local", "plan"):
        run("accel-model-opt", model, *flags, f"--compile-to={phase}", "-o", work / f"{phase}.mlir")
    run("accel-model-opt", work / "plan.mlir", "--model-update-on-host", "-o", work / "moved.mlir")
    return work / "moved.mlir", [f"--proved-against={work}/{phase}.mlir"
                                 for phase in ("train", "local")]


def refuse(moved, proved, work):
    lines = moved.read_text().splitlines()
    (work / "unordered.mlir").write_text("\n".join(
        line for line in lines if 'plan.wait "from_host"' not in line))
    print('without "from_host":', said("accel-model-opt", work / "unordered.mlir", "--target=cuda",
                                      *proved, "-o", work / "unordered.accx"))
    print("for the CPU:", said("accel-model-opt", moved, *proved, "-o", work / "none.accx"))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", type=pathlib.Path)
    parser.add_argument("inputs", type=pathlib.Path)
    parser.add_argument("--work", type=pathlib.Path, required=True)
    parser.add_argument("--micro-batches", required=True)
    parser.add_argument("--update-on-host", action="store_true")
    options = parser.parse_args()
    model, inputs, work = options.model, options.inputs, options.work
    dims, _ = bindings(model, inputs)
    flags = flags_of(model, dims + tensorfiles.folded_flags(model))
    flags += ["--mesh", "dp=1", "--micro-batches", options.micro_batches]
    run("acc-opt", model, *flags, "-o", work / "cpu.accx")
    expected = train("acc-run", work / "cpu.accx", inputs, work / "left", 1, "")

    flags += ["--target", "cuda"]
    source = [model, *flags]
    if options.update_on_host:
        moved, proved = move_updates(model, flags, work)
        source = [moved, "--target=cuda", *proved]
    executable = work / "model.accx"
    run("accel-model-opt", *source, "-o", executable)
    print(captures_of(*([moved] if options.update_on_host else source)))
    os.environ["ACCEL_MODEL_TELLS"] = "1"
    for order in ("seed:1", "last", "starve:0"):
        compare(model, order, expected,
                train("accel-model-run", executable, inputs, work / "left", 1, order, print))
    print(f"the CPU's bits in {len(expected)} files and losses")
    if options.update_on_host:
        refuse(moved, proved, work)


if __name__ == "__main__":
    main()
