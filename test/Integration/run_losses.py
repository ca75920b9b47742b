#!/usr/bin/env python3
"""Trains the modules of test/Fixtures/losses in many layouts, in float64, and compares
losses, gradient norms and final parameters with PyTorch's.

  run_losses.py --work DIR [--modules A,B] [--layouts A,B]

Prints each comparison."""
import argparse
import json
import pathlib
import sys

from acc import ROOT, Failed, run, tensorfiles

FIXTURE = ROOT / "test" / "Fixtures" / "losses"


def layout(ranks="", parts=1, stage=0):
    flags = ["--micro-batches", parts] + (["--mesh", ranks] if ranks else [])
    return flags + (["--set", f"zero_stage={stage}"] if stage else [])


LAYOUTS = {
    "one": layout(), "dp2": layout("dp=2"), "dp4": layout("dp=4"), "mb2": layout(parts=2),
    "mb3": layout(parts=3), "dp2mb2": layout("dp=2", 2), "zero1": layout("dp=2", 2, 1),
    "zero2": layout("dp=2", 3, 2), "zero3": layout("dp=3", 1, 3), "zero3mb2": layout("dp=3", 2, 3),
    "zero3dp2mb2": layout("dp=2", 2, 3),
    "hybrid": layout("dp_replicate=2,dp_shard=2", 3, 1)}
# The exporter rounds constants to float32: an AdamW of PyTorch's would not see it.
CLOSE = 2e-7


def check(name, expected, work, place):
    work.mkdir(parents=True, exist_ok=True)
    executable, weights = work / f"{name}-{place}.accx", work / f"{name}-{place}.safetensors"
    run("acc-opt", FIXTURE / name / "model.onnx", "--train", "--loss", "loss", "--dtype=f64",
        *expected["flags"], *LAYOUTS[place], "-o", executable)
    lines, _ = run("acc-run", executable, "--steps", len(expected["steps"]), "--inputs",
                   FIXTURE / name / "inputs", "--json", "--save-weights", weights)
    found = [json.loads(line) for line in lines.splitlines() if '"loss"' in line]
    worst = 0.0
    for mine, theirs in zip(found, expected["steps"], strict=True):
        for key in ("loss", "grad_norm"):
            worst = max(worst, abs(mine[key] - theirs[key]) / abs(theirs[key]))
    saved = tensorfiles.read_safetensors(weights)
    for key, values in expected["parameters"].items():
        _, _, mine = saved[key]
        error = sum((a - b)**2 for a, b in zip(mine, values, strict=True))**0.5
        worst = max(worst, error / max(sum(b * b for b in values)**0.5, 1e-3))
    print(f"{name}, {place}: {worst:.1e}")
    if not worst <= CLOSE:
        raise Failed(f"{name}, {place}: differs by {worst:.2e}, expected at most {CLOSE:.0e}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work", type=pathlib.Path, required=True)
    parser.add_argument("--modules")
    parser.add_argument("--layouts", default=",".join(LAYOUTS))
    options = parser.parse_args()
    expected = json.loads((FIXTURE / "expected.json").read_text())
    try:
        for name in options.modules.split(",") if options.modules else expected:
            for place in options.layouts.split(","):
                check(name, expected[name], options.work, place)
    except Failed as problem:
        sys.exit(f"run_losses.py: {problem}")
