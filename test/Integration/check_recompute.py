#!/usr/bin/env python3
"""Trains a model (a folder as run_layouts.py takes it) with activations that are computed again,
and without:

  check_recompute.py MODEL --policies A;B --layouts A;B --work DIR [--single] [--flags FLAGS]

In each layout, as run_layouts.py takes it, each policy of `--recompute` gives what none gives to
1e-12: losses, norms, gradients and weights after three steps with SGD, in float64, or with --single
in float32 the same bits, but for norms, whose terms may be added in another order. What is kept for
the backward is less with each policy, unless it says "=" in front, and the planned bytes are those
allocated. --flags are acc-opt's, for all. Prints what each keeps."""
import argparse
import pathlib
import re
import sys

from acc import Failed, run, tensorfiles
from run_layouts import Model, largest, worst_number

CLOSE = 1e-12


def kept_bytes(model, layout, flags):
    """Of the stage that keeps most, over the micro-batches that it has in flight."""
    given = layout.split()
    mesh, parts, stage, *settings = given + ["", "1", "0"][len(given):]
    words = ["--mesh", mesh] if mesh else []
    words += ["--set", f"zero_stage={stage}"] if stage != "0" else []
    for setting in settings:
        words += [f"--{setting}"] if setting.startswith("schedule=") else ["--set", setting]
    text, _ = run("acc-opt", model.file, "--train", "--loss", model.loss, "--entries=step",
                  *model.dims, *words, *flags, "--micro-batches", parts, "--report=memory")
    return max(int(bytes) for bytes in
               re.findall(r"keeps activations of [^(]*\((\d+)\)", text) or ["0"])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", type=pathlib.Path)
    parser.add_argument("--policies", required=True)
    parser.add_argument("--layouts", default="")
    parser.add_argument("--single", action="store_true")
    parser.add_argument("--flags", default="")
    parser.add_argument("--work", type=pathlib.Path, required=True)
    options = parser.parse_args()
    model = Model(options.model, options.work)
    model.dims += options.flags.split()
    for layout in options.layouts.split(";"):
        one, gradients, weights = model.train("sgd", layout, options.single)
        most = kept_bytes(model, layout, [])
        print(f"{layout or 'one rank'}: keeps {most}")
        for policy in options.policies.split(";"):
            may_keep_all = policy.startswith("=")
            policy = policy.removeprefix("=")
            model.flags = [f"--recompute={policy}"]
            lines, found, saved = model.train("sgd", layout, options.single)
            kept = kept_bytes(model, layout, model.flags)
            model.flags = []
            what = f"{layout or 'one rank'}, {policy}"
            error, where = max(largest(found, gradients), largest(saved, weights))
            norms, of = worst_number(lines, one)
            if error > (0 if options.single else CLOSE) or norms > (1e-6 if options.single else CLOSE):
                raise Failed(f"{what}: expected what no recomputation gives, found '{where}' off by "
                             f"{error:.1e}, {of} by {norms:.1e}")
            if kept > most or (kept == most and not may_keep_all):
                raise Failed(f"{what}: expected less than {most} bytes to be kept, found {kept}")
            print(f"  {policy}: keeps {kept}, differs by {error:.0e}, {norms:.0e}", flush=True)


if __name__ == "__main__":
    try:
        main()
    except (Failed, tensorfiles.Mismatch) as problem:
        sys.exit(f"check_recompute: {problem}")
