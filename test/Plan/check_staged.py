#!/usr/bin/env python3
"""Compiles layouts for a target that has files read at the start of a call and written at its end:

  check_staged.py MODEL [--dim NAME=N]... MESH ZERO_STAGE SCHEDULE...

of each schedule with several micro-batches. Demands of each stage that its step is one capture, and
that each input is read, and each output written, by one command. Prints how many stages there
were."""
import argparse
import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "Integration"))
from acc import Failed, run, tensorfiles  # noqa: E402


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", type=pathlib.Path)
    parser.add_argument("mesh")
    parser.add_argument("zero_stage")
    parser.add_argument("schedules", nargs="+")
    parser.add_argument("--dim", action="append", default=[])
    options = parser.parse_args()
    inputs, outputs = tensorfiles.graph_values(options.model)
    reports = 3  # grad_norm and verdict beside the loss, and one more output than the model has
    for schedule in options.schedules:
        stdout, _ = run(
            "acc-opt", options.model, "--train", "--loss", "loss", "--entries=step",
            *(f"--dim={each}" for each in options.dim), "--set", f"zero_stage={options.zero_stage}",
            "--mesh", options.mesh, "--micro-batches=4", f"--schedule={schedule}",
            "--target=null:staged", "--report=commands", "--json")
        programs = json.loads(stdout)["programs"]
        for program in programs:
            step, kinds = program["captures"]["step"], program["entries"]["step"]["kinds"]
            reads, writes = (kinds.get(kind, {"commands": 0})["commands"] for kind in ("read", "write"))
            if step != {"count": 1, "split_by": []}:
                raise Failed(f"{schedule}: @{program['program']} is captured as {step}")
            if reads > len(inputs) or writes > len(outputs) + reports:
                raise Failed(f"{schedule}: @{program['program']} reads {reads} times, writes {writes}")
        print(f"{schedule}: {len(programs)} stages, each one capture", flush=True)


if __name__ == "__main__":
    try:
        main()
    except Failed as failed:
        sys.exit(str(failed))
