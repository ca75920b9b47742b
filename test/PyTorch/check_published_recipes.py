#!/usr/bin/env python3
"""Runs the recipes of docs/Recipes.md as they stand there, on the texts of published_recipes.py, with
acc on one rank and in the page's other layout, and with PyTorch as the originals train; prints how
far the curves are apart, and writes them.

  ACC_BIN=build/bin python test/PyTorch/check_published_recipes.py -o curves.json [--keep DIR] [NAME...]

NAMEs are headings of the page (default: all); a file that is there keeps its other recipes. --keep DIR
leaves what they made in new folders DIR/NAME. scripts/recipes draws docs/recipes.svg of the curves."""
import argparse
import json
import pathlib
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "python" / "tests"))

import numpy as np  # noqa: E402
import torch  # noqa: E402

import published_recipes  # noqa: E402

FLOAT32 = 1e-4  # of losses: what rounding may come to in 1,260 steps


def distance(found, right):
    return max(abs(a - b) for a, b in zip(found, right, strict=True))


def train(recipe):
    """The curves of a recipe, by layout, and PyTorch's."""
    curves = recipe.by_acc(lambda line, seconds: print(f"{seconds:7.1f} s  {line}", flush=True))
    began = time.monotonic()
    curves["PyTorch"] = recipe.by_torch()
    curves["PyTorch"]["seconds"] = time.monotonic() - began
    return curves


def report(name, curves):
    """Prints a line for each layout; the largest distance of losses."""
    right, worst = curves["PyTorch"], 0.0
    for layout, each in curves.items():
        losses, steps = each["losses"], each["evaluations"]
        apart = [distance(losses, right["losses"]),
                 distance(steps.values(), right["evaluations"].values())]
        worst = max(worst, *apart)
        accuracy = list(each.get("accuracies", {}).values())
        print(f"| {name} | {layout} | {len(losses)} | {losses[0]:.4f} → {np.mean(losses[-20:]):.4f} | "
              f"{list(steps.values())[-1]:.4f} | {', '.join(f'{a:.4f}' for a in accuracy)} | "
              f"{apart[0]:.1e} | {apart[1]:.1e} | {each['seconds']:.0f} |", flush=True)
    return worst


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("-o", dest="file", type=pathlib.Path, required=True, metavar="FILE.json")
    parser.add_argument("--keep", type=pathlib.Path, metavar="DIR")
    parser.add_argument("names", nargs="*", metavar="NAME")
    options = parser.parse_args()
    torch.set_num_threads(1)  # of models this small threads are slower than none
    worst = 0.0
    for make in published_recipes.ALL:
        if options.names and make.heading not in options.names:
            continue
        with tempfile.TemporaryDirectory() as folder:
            recipe = make((options.keep or pathlib.Path(folder)) / make.heading)
            recipe.folder.mkdir(parents=True)
            recipe.write()
            curves = train(recipe)
        all_curves = json.loads(options.file.read_text()) if options.file.exists() else {}
        for each in curves.values():
            # As many digits as bring a float32 back.
            each["losses"] = [float(f"{loss:.9g}") for loss in each["losses"]]
        all_curves[make.heading] = curves
        options.file.write_text(json.dumps(all_curves) + "\n")
        worst = max(worst, report(make.heading, curves))
    return worst > FLOAT32


sys.exit(main())
