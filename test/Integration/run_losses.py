#!/usr/bin/env python3
"""Trains the modules of a folder of test/Fixtures in many layouts, in float64, and compares
losses, gradient norms and final parameters with PyTorch's, and those of each layout
with the first one's.

  run_losses.py --work DIR [--fixture losses] [--modules A,B] [--layouts A,B] [--flags=…]

Prints each comparison."""
import argparse
import json
import pathlib
import sys

from acc import ROOT, Failed, run, sample, tensorfiles

FIXTURES = ROOT / "test" / "Fixtures"


def layout(ranks="", parts=1, stage=0, schedule=""):
    flags = ["--micro-batches", parts] + (["--mesh", ranks] if ranks else [])
    flags += [f"--schedule={schedule}"] if schedule else []
    return flags + (["--set", f"zero_stage={stage}"] if stage else [])


LAYOUTS = {
    "one": layout(), "dp2": layout("dp=2"), "dp4": layout("dp=4"), "mb2": layout(parts=2),
    "mb3": layout(parts=3), "dp2mb2": layout("dp=2", 2), "zero1": layout("dp=2", 2, 1),
    "zero2": layout("dp=2", 3, 2), "zero3": layout("dp=3", 1, 3), "zero3mb2": layout("dp=3", 2, 3),
    "zero3dp2mb2": layout("dp=2", 2, 3),
    "hybrid": layout("dp_replicate=2,dp_shard=2", 3, 1),
    "pp2": layout("pp=2"), "pp2mb3": layout("pp=2", 3),
    "pp2v": layout("pp=2", 3, 0, "zbv"), "pp2zero1": layout("dp=2,pp=2", 2, 1, "zb-h1"),
    "pp2zero3": layout("dp=2,pp=2", 3, 3, "interleaved:2")}
# The exporter rounds constants to float32: an AdamW of PyTorch's would not see it.
CLOSE = 2e-7
# Layouts agree to what the order of sums is worth.
EQUAL = 1e-10


def compare(found, steps, parameters):
    """The largest relative difference of losses, norms and parameters."""
    worst = 0.0
    for mine, theirs in zip(found["steps"], steps, strict=True):
        for key in ("loss", "grad_norm"):
            worst = max(worst, abs(mine[key] - theirs[key]) / abs(theirs[key]))
    for key, values in parameters.items():
        mine = found["parameters"][key]
        error = sum((a - b)**2 for a, b in zip(mine, values, strict=True))**0.5
        worst = max(worst, error / max(sum(b * b for b in values)**0.5, 1e-3))
    return worst


def check(fixture, name, expected, work, place, first, flags):
    """Returns what was trained."""
    work.mkdir(parents=True, exist_ok=True)
    executable, weights = work / f"{name}-{place}.accx", work / f"{name}-{place}.safetensors"
    run("acc-opt", fixture / name / "model.onnx", "--train", "--loss", "loss", "--dtype=f64",
        *expected["flags"], *flags, *LAYOUTS[place], "-o", executable)
    lines, _ = run("acc-run", executable, "--steps", len(expected["steps"]), "--inputs",
                   fixture / name / "inputs", "--json", "--save-weights", weights)
    saved = tensorfiles.read_safetensors(weights)
    found = {"steps": [json.loads(line) for line in lines.splitlines() if '"loss"' in line],
             "parameters": {key: saved[key][2] for key in expected["parameters"]}}
    worst = compare(found, expected["steps"], expected["parameters"])
    apart = compare(found, first["steps"], first["parameters"]) if first else 0.0
    print(f"{name}, {place}: {worst:.1e}, from the first layout {apart:.1e}")
    if not worst <= CLOSE:
        raise Failed(f"{name}, {place}: differs by {worst:.2e}, expected at most {CLOSE:.0e}")
    if not apart <= EQUAL:
        raise Failed(f"{name}, {place}: differs from the first layout by {apart:.2e}, "
                     f"expected at most {EQUAL:.0e}")
    return found


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work", type=pathlib.Path, required=True)
    parser.add_argument("--fixture", default="losses")
    parser.add_argument("--modules")
    parser.add_argument("--layouts", default=",".join(LAYOUTS))
    parser.add_argument("--flags", default="", help="more of acc-opt's")
    options = parser.parse_args()
    fixture = FIXTURES / options.fixture
    expected = json.loads((fixture / "expected.json").read_text())
    try:
        for name in options.modules.split(",") if options.modules else expected:
            first = None
            # The others are held against the first.
            whole, *split = options.layouts.split(",")
            for place in [whole, *sample(split, name)]:
                found = check(fixture, name, expected[name], options.work, place, first,
                              options.flags.split())
                first = first or found
    except Failed as problem:
        sys.exit(f"run_losses.py: {problem}")
