#!/usr/bin/env python3
"""Trains a model (a folder as run_layouts.py takes it) with activations that are computed again,
and without:

  check_recompute.py MODEL --policies A;B --layouts A;B --work DIR [--single] [--flags FLAGS]

In each layout, as run_layouts.py takes it, each policy of `--recompute` gives what none gives to
1e-12: losses, norms, gradients and weights after three steps with SGD, in float64, or with --single
to 4e-6 in float32: a sum that shares a kernel with other ops may be added up in another order. What is kept for
the backward is less with each policy, unless it says "=" in front, and the planned bytes are those
allocated. "budget:N" stands for N memory budgets from the least that acc-opt names to what none
takes: each is kept to, a larger one never does more work again, and one byte less than the least is
refused. With zero.gather_once=auto what is kept and the work are not compared, only the peak and the
results. --flags are acc-opt's, for all. Prints what each keeps."""
import argparse
import json
import pathlib
import re
import sys

from acc import Failed, run, tensorfiles
from run_layouts import Model, largest, worst_number

CLOSE, CLOSE_SINGLE = 1e-12, 4e-6
#: What Model.train compiles with beside.
TRAINED = ["--optimizer=sgd", "--set", "optimizer.lr=0.05", "--emit-gradients"]


def report(model, layout, flags, name="memory"):
    """What a report says, or the error of a compile that fails, and acc-opt's remarks."""
    given = layout.split()
    mesh, parts, stage, *settings = given + ["", "1", "0"][len(given):]
    words = ["--mesh", mesh] if mesh else []
    words += ["--set", f"zero_stage={stage}"] if stage != "0" else []
    for setting in settings:
        words += [f"--{setting}"] if setting.startswith("schedule=") else ["--set", setting]
    return run("acc-opt", model.file, "--train", "--loss", model.loss, "--entries=step", *TRAINED,
               *model.dims, *words, *flags, "--micro-batches", parts, f"--report={name}")


def kept_bytes(model, layout, flags):
    """Of the stage that keeps most, over the micro-batches that it has in flight."""
    text, _ = report(model, layout, flags)
    return max(int(bytes) for bytes in
               re.findall(r"keeps activations of [^(]*\((\d+)\)", text) or ["0"])


def peak_bytes(model, layout, flags):
    """Of a rank of the stage that has most."""
    text, _ = report(model, layout, flags)
    return max(int(bytes) for bytes in re.findall(r"^planned peak of[^(]*\((\d+)\)", text, re.M))


def work_again(model, layout, flags):
    """What is computed again takes so long, by estimate."""
    text, _ = report(model, layout, [*flags, "--json"], "decisions")
    return sum(each["seconds"] for each in json.loads(text) if each["decision"] == "recompute")


def find_budgets(model, layout, count):
    """From the least to what no recomputation takes."""
    def least(budget):
        try:
            report(model, layout, [f"--memory-budget={budget}"])
        except Failed as error:
            return int(re.search(r"memory budget of at least [^(]*\((\d+)\)|of at least (\d+) B",
                                 str(error))[1])
        raise Failed(f"{layout}: expected a budget of {budget} B to be refused")
    fewest, most = least(1), peak_bytes(model, layout, ["--recompute=none"])
    if least(fewest - 1) != fewest:
        raise Failed(f"{layout}: expected one least budget, found {fewest} and {least(fewest - 1)}")
    return [fewest + (most - fewest) * number // (count - 1) for number in range(count)]


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
    if not options.single:
        TRAINED.append("--dtype=f64")
    for layout in options.layouts.split(";"):
        one, gradients, weights = model.train("sgd", layout, options.single)
        most = kept_bytes(model, layout, [])
        print(f"{layout or 'one rank'}: keeps {most}")
        policies = []
        for policy in options.policies.split(";"):
            name, _, count = policy.partition("budget:")
            policies += [policy] if not count else [
                f"={name}{budget}" for budget in find_budgets(model, layout, int(count))]
        work = None
        # Weights that are gathered once are kept, too, for which more may be computed again with more bytes:
        # test/Search/check_gathers.py holds the time of both.
        gathers_open = "zero.gather_once=auto" in layout.split()
        for policy in policies:
            may_keep_all = policy.startswith("=")
            policy = policy.removeprefix("=")
            is_budget = policy.isdigit()
            model.flags = [f"--memory-budget={policy}" if is_budget else f"--recompute={policy}"]
            lines, found, saved = model.train("sgd", layout, options.single)
            kept = kept_bytes(model, layout, model.flags)
            if is_budget:
                peak, before = peak_bytes(model, layout, model.flags), work
                if peak > int(policy):
                    raise Failed(f"{layout}: expected at most {policy} bytes, found {peak}")
                work = work_again(model, layout, model.flags)
                if before is not None and work > before and not gathers_open:
                    raise Failed(f"{layout}: expected no more work with {policy} bytes than with less, "
                                 f"found {work}, not {before}")
            model.flags = []
            what = f"{layout or 'one rank'}, {policy}"
            error, where = max(largest(found, gradients), largest(saved, weights))
            norms, of = worst_number(lines, one)
            if max(error, norms) > (CLOSE_SINGLE if options.single else CLOSE):
                raise Failed(f"{what}: expected what no recomputation gives, found '{where}' off by "
                             f"{error:.1e}, {of} by {norms:.1e}")
            if not gathers_open and (kept > most or (kept == most and not may_keep_all)):
                raise Failed(f"{what}: expected less than {most} bytes to be kept, found {kept}")
            print(f"  {policy}: keeps {kept}, differs by {error:.0e}, {norms:.0e}", flush=True)


if __name__ == "__main__":
    try:
        main()
    except (Failed, tensorfiles.Mismatch) as problem:
        sys.exit(f"check_recompute: {problem}")
