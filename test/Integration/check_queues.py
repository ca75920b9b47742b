#!/usr/bin/env python3
"""Compiles pipelines for a target whose ranks exchange everything through one queue:

  check_queues.py MODEL --work DIR [--dim NAME=N]...

of every schedule, with and without tensor parallelism and ZeRO. Prints for each schedule how many
of its layouts are proved to end. Others must be refused with the cycle of streams that wait for
each other."""
import argparse
import pathlib
import sys

from acc import Failed, run

SCHEDULES = ("gpipe", "1f1b", "eager-1f1b", "interleaved:2", "zb-h1", "zb-h2", "zbv", "dualpipev")
LAYOUTS = [(axes + tensor, zero) for tensor in ("", "tp=2,")
           for axes, zero in (("", 0), ("dp_shard=2,", 1), ("dp_shard=2,", 2), ("dp_shard=2,", 3))]


def ends(model, dims, plan, schedule, axes, zero):
    """Whether the plan is proved to end; fails on any other error than a cycle that is named."""
    flags = ["--set", f"zero_stage={zero}"] if zero else []
    try:
        run("acc-opt", model, "--train", "--loss", "loss", "--entries=step", *dims, *flags,
            f"--mesh={axes}pp=2", "--micro-batches=4", f"--schedule={schedule}",
            "--target=null:queues=1", "--compile-to=plan", "-o", plan)
        return True
    except Failed as failed:
        lines = str(failed).splitlines()
        if (not any("waits for ever: the stages wait for each other" in line for line in lines)
                or not any("which is before it in their queue" in line for line in lines)):
            raise
        return False


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", type=pathlib.Path)
    parser.add_argument("--work", type=pathlib.Path, required=True)
    parser.add_argument("--dim", action="append", default=[])
    options = parser.parse_args()
    options.work.mkdir(parents=True, exist_ok=True)
    dims = [f"--dim={each}" for each in options.dim]
    for schedule in SCHEDULES:
        ending = sum(ends(options.model, dims, options.work / "plan.mlir", schedule, axes, zero)
                     for axes, zero in LAYOUTS)
        print(f"{schedule}: {ending} of {len(LAYOUTS)} end with one queue", flush=True)


if __name__ == "__main__":
    try:
        main()
    except Failed as failed:
        sys.exit(str(failed))
