#!/usr/bin/env python3
"""python/tests/test_recipes.py with larger data and models, and the distances themselves: each
recipe from its data set through acc-data to weights, in every layout in float64, in float32,
and after a kill in another layout, beside PyTorch in float64. Prints a table, and fails where
float64 is further than 1e-9.

  ACC_BIN=build/bin python test/PyTorch/check_recipes.py [--rows 700] [--layers 3] [--rate 1e-3] [NAME...]

Rates at which training is unstable tell nothing: PyTorch comes as far from itself, begun from
weights that differ in their last digit."""
import argparse
import pathlib
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "python" / "tests"))

import torch  # noqa: E402

import recipes  # noqa: E402
import test_recipes  # noqa: E402


def check(make, sizes):
    """Prints the rows of one recipe. Returns the largest distance in float64."""
    case = test_recipes.Recipes(f"test_{make.__name__.lower()}")
    case.setUp()
    try:
        recipe, module, data, held = case.prepare(make, **sizes)
        began = time.monotonic()
        exact = test_recipes.train_by_torch(recipe, module, data, held, case.steps)
        took = time.monotonic() - began
        rounded = test_recipes.train_by_torch(recipe, module, data, held, case.steps,
                                              torch.float32)
        evaluated = ["--eval-every", test_recipes.EVERY, "--eval-data",
                     test_recipes.acc_data.data_text(case.summary, "validation")]
        head = (f"| {make.__name__} | {case.rows} + {len(next(iter(held.values())))} | {case.steps} "
                f"| {exact[0][0]:.4f} → {exact[0][-1]:.4f} |")

        def line(what, distances, seconds=None):
            print(head, what, "|", " | ".join(f"{x:.1e}" for x in distances.values()), "|",
                  f"{seconds:.1f} |" if seconds else "|", flush=True)
            return max(distances.values())

        def run(program, *words):
            began = time.monotonic()
            said = case.tool("acc-run", program, "--steps", case.steps, *words,
                             *case.words_of(*evaluated))
            return said, time.monotonic() - began
        worst = 0.0
        for layout in test_recipes.LAYOUTS:
            said, seconds = run(case.compile(layout))
            worst = max(worst, line(layout, case.distances(said, exact), seconds))
        first = case.kill("dp2-f64")
        said, seconds = run(case.folder / "zero-f64.accx", "--resume", case.folder / "saved")
        worst = max(worst, line(f"dp2 killed after {first}, zero", case.distances(
            said, exact, first), seconds))
        said, seconds = run(case.compile("dp2", "f32"))
        line("dp2, float32", case.distances(said, exact), seconds)
        print(f"| | | | | PyTorch in float32 | {test_recipes.drift(rounded, exact):.1e} at most | | "
              f"| {took:.1f} |", flush=True)
        return worst
    finally:
        case.doCleanups()


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--rows", type=int, default=700)
    parser.add_argument("--layers", type=int, default=3)
    parser.add_argument("--rate", type=float, default=1e-3)
    parser.add_argument("names", nargs="*", metavar="NAME")
    options = parser.parse_args()
    test_recipes.UPDATE["lr"] = options.rate
    print("| recipe | rows | steps | loss | layout | losses | evaluations | weights | s |\n"
          "|---|---|---|---|---|---|---|---|---|", flush=True)
    worst = max(check(make, {"rows": options.rows, "layers": options.layers})
                for make in recipes.ALL if not options.names or make.__name__ in options.names)
    return worst > 1e-9


sys.exit(main())
