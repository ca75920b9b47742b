#!/usr/bin/env python3
"""Compiles a model (a folder of model.onnx and inputs) in layouts, trains each on the CPU and
on the model device (ModelDevice.h) in several orders, and compares the bits: losses, outputs
(gradients among them) and the weights after two steps.

  run_layouts.py MODEL --layouts A;B [--orders O;O] [--mutants N] [--own] --work DIR

A layout is `mesh micro_batches zero_stage` and settings, as for test/Integration/run_layouts.py.
--own: the model device runs what is made for itself, whose steps are captured as a whole.
--mutants N: then every Nth wait, record and copy of the plan is lost (accel-model-mutants)."""
import argparse
import os
import pathlib
import shutil
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "Integration"))
from acc import Failed, bindings, report_of, run, tensorfiles  # noqa: E402

STEPS = 2


def flags_of(model, dims):
    """What every compilation is asked for."""
    (loss, _), *_ = tensorfiles.graph_values(model)[1]
    return ["--train", "--loss", loss, "--entries=step", "--optimizer=adamw", "--set",
            "gradient_clipping=0.5", "--emit-gradients", *dims]


def compile_layout(model, layout, executable, dims, tool="acc-opt", target="cpu"):
    mesh, parts, stage, *settings = layout.split()
    flags = ["--set", f"zero_stage={stage}"] if stage != "0" else []
    for setting in settings:
        flags += [f"--{setting}"] if setting.startswith("schedule=") else ["--set", setting]
    run(tool, model, *flags_of(model, dims), "--mesh", mesh, *flags, "--target", target,
        "--micro-batches", parts, "-o", executable)
    ranks = 1
    for axis in mesh.split(","):
        ranks *= int(axis.split("=")[1])
    return ranks


def train(tool, executable, inputs, work, ranks, order, hear=None):
    """What the run leaves: the bytes of each file by name, and the losses. `hear` gets what it
    says on stderr."""
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    os.environ.update({"ACCEL_POISON": "1", "ACCEL_MODEL_ORDER": order})
    stdout, stderr = run(tool, executable, "--steps", STEPS, "--threads", 1, "--inputs", inputs,
                    "--outputs", work / "outputs", "--save-weights", work / "weights.safetensors",
                    "--json")
    if hear:
        hear(stderr)
    steps, _ = report_of(stdout, ranks)
    left = {str(path.relative_to(work)): path.read_bytes()
            for path in sorted(work.rglob("*")) if path.is_file()}
    left["losses"] = [(step["loss"], step["grad_norm"]) for step in steps]
    return left


def compare(what, order, expected, found):
    differing = [name for name in expected | found if expected.get(name) != found.get(name)]
    if differing:
        raise Failed(f"{what}, order {order}: other bits than the CPU's in {differing}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", type=pathlib.Path)
    parser.add_argument("--layouts", required=True)
    parser.add_argument("--orders", default="seed:1;last;starve:1")
    parser.add_argument("--mutants", type=int)
    parser.add_argument("--own", action="store_true")
    parser.add_argument("--work", type=pathlib.Path, required=True)
    options = parser.parse_args()
    options.work.mkdir(parents=True, exist_ok=True)
    model, inputs = options.model / "model.onnx", options.model / "inputs"
    dims, _ = bindings(model, inputs)
    dims += tensorfiles.folded_flags(model)
    executable, left = options.work / "model.accx", options.work / "left"
    for layout in options.layouts.split(";"):
        ranks = compile_layout(model, layout, executable, dims)
        expected = train("acc-run", executable, inputs, left, ranks, "")
        if options.own:
            compile_layout(model, layout, executable, dims, "accel-model-opt", "cuda")
        for order in options.orders.split(";"):
            found = train("accel-model-run", executable, inputs, left, ranks, order)
            compare(layout, order, expected, found)
        print(f"{layout}: the CPU's bits in {len(expected)} files and losses", flush=True)
        if options.mutants:
            result = subprocess.run(
                ["accel-model-mutants", executable, inputs, left, f"--every={options.mutants}"],
                capture_output=True, text=True)
            print(result.stdout, flush=True)
            if result.returncode:
                raise Failed(f"{layout}: {result.stderr or 'a mutant was missed'}")


if __name__ == "__main__":
    try:
        main()
    except (Failed, tensorfiles.Mismatch) as problem:
        sys.exit(f"run_layouts: {problem}")
