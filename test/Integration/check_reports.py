#!/usr/bin/env python3
"""Holds `acc-opt --report` against arithmetic, for a step of the fixture on N ranks, or a mesh
of axes that all share states, with two micro-batches and each ZeRO stage: the states' bytes against the closed
forms of the ZeRO paper (float32: 4 bytes per parameter, 4 of accumulators, 8 of
moments, each divided by N from its stage on), rows against their sums, the sum
against what acc-run allocates; how often weights are gathered, and what gradients
are reduced by."""
import argparse
import json
import math
import pathlib
import sys

from acc import ROOT, Failed, bindings, report_of, run

FIXTURE = ROOT / "test" / "Fixtures" / "gpt2_train"
MODEL = FIXTURE / "default_dynamic" / "model.onnx"


def expect(what, found, expected):
    print(f"  {what}: {found}")
    if found != expected:
        raise Failed(f"{what}: expected {expected}, found {found}")


def local_bytes(shape):
    return 4 * math.prod(shape)


def check_states(stage, ranks, sharding, memory):
    trained = [row for row in sharding if row["moments"]]
    whole = sum(local_bytes(row["shape"]) for row in trained)
    padded = sum(local_bytes(row["local_shape"]) * math.prod(
        ranks if axes else 1 for axes in row["axes"]) for row in trained)
    padding = padded - whole if stage == 3 else None
    parts = {key: ranks if stage >= first else 1
             for key, first in (("parameters", 3), ("accumulators", 2), ("moments", 1))}
    found = {
        "parameters": sum(local_bytes(row["local_shape"]) for row in trained),
        "accumulators": sum(local_bytes(row["accumulator_local_shape"]) for row in trained),
        "moments": sum(local_bytes(m["local_shape"]) for row in trained for m in row["moments"])}
    states = memory["states"]
    for key, count in parts.items():
        extra = states["parameters"]["padding_bytes_of_all_ranks"]
        total = (whole + extra) * (2 if key == "moments" else 1)
        if total % count:
            raise Failed(f"{key}: {ranks} ranks cannot split {total} bytes")
        expect(f"ZeRO-{stage}, {key}", found[key], total // count)
    if padding is not None:
        expect("padding", states["parameters"]["padding_bytes_of_all_ranks"], padding)
    expect("the table of parameters", states["parameters"]["bytes"], found["parameters"])
    expect("the table of moments", states["moments"]["bytes"], found["moments"])


def check_sums(memory, executable, ranks):
    for arena in memory["arenas"]:
        expect(f"rows of arena '{arena['space']}'", sum(arena["roles"].values()), arena["bytes"])
        if min(arena["roles"].values()) < 0:
            raise Failed(f"expected no negative row, found {arena['roles']}")
    stdout, _ = run("acc-run", executable, "-n", ranks, "--steps", 1, "--inputs",
                    FIXTURE / "inputs", "--json")
    _, report = report_of(stdout, ranks)
    expect("allocated", report["measured_peak_bytes"], memory["planned_peak_bytes"])


def check_collectives(stage, micro_batches, parameters, collectives, memory, axes):
    # Of weights, gradients and numbers: those that share sequences exchange keys, too.
    rows = [row for row in collectives["collectives"]
            if len(row["axes"].split(",")) == axes]
    large = [row for row in rows if row["kind"] == "all_reduce" and row["bytes"] > 16]
    scattered = sum(row["tensors"] for row in rows if row["kind"] == "reduce_scatter")
    if stage == 0:
        expect("gradients reduced, and the loss with them",
               sum(row["tensors"] for row in large), parameters + 1)
        return
    expect("large all_reduces", large, [])
    # From ZeRO-2 on with their unit: the tied table is in two.
    expect("gradients scattered", scattered,
           parameters if stage == 1 else (parameters + 1) * micro_batches)
    if stage < 3:
        return
    gathers = [unit["gathers_per_micro_batch"] for unit in collectives["gather_units"]]
    print(f"  gathers of each unit: {gathers}, {memory['gather_units_in_flight']} in flight")
    if len(gathers) < 3 or max(gathers) > 2 or not 1 <= memory["gather_units_in_flight"] <= 2:
        raise Failed("expected at most two gathers of each unit, and two units in flight")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ranks", type=int, default=4)
    parser.add_argument("--mesh", help="dp=N where it is not said")
    parser.add_argument("--work", type=pathlib.Path, required=True)
    options = parser.parse_args()
    options.work.mkdir(parents=True, exist_ok=True)
    dims, _ = bindings(MODEL, FIXTURE / "inputs")
    if options.ranks != 4:
        dims = [f"batch={2 * options.ranks}" if dim.startswith("batch") else dim for dim in dims]
    try:
        # Without sharing, what ranks of a sequence exchange is another matter.
        for stage in range(1 if options.mesh else 0, 4):
            mesh = options.mesh or f"dp={options.ranks}"
            print(f"ZeRO-{stage} on {mesh}")
            command = ["acc-opt", MODEL, "--train", "--loss", "loss", *dims, "--mesh",
                       mesh, "--micro-batches", 2, "--set", f"zero_stage={stage}"]
            reports = {kind: json.loads(run(*command, f"--report={kind}", "--json")[0])
                       for kind in ("memory", "sharding", "collectives")}
            check_states(stage, options.ranks, reports["sharding"], reports["memory"])
            # Over cp alone gradients of keys are scattered as well.
            if not mesh.startswith("cp"):
                check_collectives(stage, 2, sum(bool(row["moments"]) for row in reports["sharding"]),
                                  reports["collectives"], reports["memory"],
                                  len(mesh.split(",")))
            if options.ranks == 4:
                executable = options.work / f"zero{stage}.accx"
                run(*command, "-o", executable)
                check_sums(reports["memory"], executable, options.ranks)
    except Failed as problem:
        print(f"error: {problem}", file=sys.stderr)
        return 1
    return 0


sys.exit(main())
