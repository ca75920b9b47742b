#!/usr/bin/env python3
"""Trains a model (a folder as run_layouts.py takes it) whose loss is taken in chunks of its rows,
and whole:

  check_loss_chunks.py MODEL --chunks 2,4 --layouts A;B --work DIR [--single] [--flags FLAGS]

In each layout, as run_layouts.py takes it, so many chunks give what one gives after three steps
with SGD: losses, norms, gradients and weights to 1e-12 in float64, to 1e-5 with --single. The
planned peak is lower, unless it says "=" in front, and the planned bytes are those allocated.
--flags are acc-opt's, for all. Prints each."""
import argparse
import pathlib
import re
import sys

from acc import Failed, run, tensorfiles
from run_layouts import Model, largest, worst_number

CLOSE, CLOSE_SINGLE = 1e-12, 1e-5


def peak_bytes(model, layout, flags):
    """Of the rank that needs most, as planned."""
    given = layout.split()
    mesh, parts, stage, *settings = given + ["", "1", "0"][len(given):]
    words = ["--mesh", mesh] if mesh else []
    words += ["--set", f"zero_stage={stage}"] if stage != "0" else []
    for setting in settings:
        words += [f"--{setting}"] if setting.startswith("schedule=") else ["--set", setting]
    text, _ = run("acc-opt", model.file, "--train", "--loss", model.loss, "--entries=step",
                  *model.dims, *words, *flags, "--micro-batches", parts, "--report=memory")
    return max(int(bytes) for bytes in re.findall(r"peak[^(\n]*\((\d+)\)", text))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", type=pathlib.Path)
    parser.add_argument("--chunks", required=True)
    parser.add_argument("--layouts", default="")
    parser.add_argument("--single", action="store_true")
    parser.add_argument("--flags", default="")
    parser.add_argument("--work", type=pathlib.Path, required=True)
    options = parser.parse_args()
    model = Model(options.model, options.work)
    model.dims += options.flags.split()
    close = CLOSE_SINGLE if options.single else CLOSE
    for layout in options.layouts.split(";"):
        may_need_all = layout.startswith("=")
        layout = layout.removeprefix("=")
        model.flags = ["--set", "loss_chunks=none"]
        one, gradients, weights = model.train("sgd", layout, options.single)
        most = peak_bytes(model, layout, model.flags)
        print(f"{layout or 'one rank'}: {most} bytes")
        for chunks in options.chunks.split(","):
            model.flags = ["--set", f"loss_chunks={chunks}"]
            lines, found, saved = model.train("sgd", layout, options.single)
            peak = peak_bytes(model, layout, model.flags)
            what = f"{layout or 'one rank'}, {chunks} chunks"
            error, where = max(largest(found, gradients), largest(saved, weights),
                               worst_number(lines, one))
            if not error <= close:
                raise Failed(f"{what}: expected what the whole loss gives to {close:.0e}, found "
                             f"'{where}' off by {error:.1e}")
            if peak >= most and not may_need_all:
                raise Failed(f"{what}: expected less than {most} bytes, found {peak}")
            print(f"  {chunks}: {peak} bytes, differs by {error:.0e} at '{where}'", flush=True)


if __name__ == "__main__":
    try:
        main()
    except (Failed, tensorfiles.Mismatch) as problem:
        sys.exit(f"check_loss_chunks: {problem}")
