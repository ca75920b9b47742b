#!/usr/bin/env python3
"""Holds what ZeRO-2 and 3 promise of gradients against the reports, for the fixture on
four ranks in each of {f32, bf16} x {1, 2 micro-batches} x {clipping, none}: none is
all_reduced, each is scattered in f32, the gradients of two units are whole at once at
most, clipping costs nothing, and the plan of bf16 is no larger than that of f32."""
import itertools
import json
import sys

from acc import ROOT, Failed, bindings, run

FIXTURE = ROOT / "test" / "Fixtures" / "gpt2_train"
MODEL = FIXTURE / "default_dynamic" / "model.onnx"
RANKS = 4


def reports(stage, precision, micro_batches, clips, dims):
    command = ["acc-opt", MODEL, "--train", "--loss", "loss", *dims, "--mesh", f"dp={RANKS}",
               "--micro-batches", micro_batches, "--set", f"zero_stage={stage}",
               f"--mixed-precision={precision}"]
    if clips:
        command += ["--set", "gradient_clipping=1.0"]
    return [json.loads(run(*command, f"--report={kind}", "--json")[0])
            for kind in ("memory", "collectives")]


def check(memory, collectives, stage):
    rows = collectives["collectives"]
    # The loss, the count of tokens and the norm are numbers.
    whole = [row for row in rows if row["kind"] == "all_reduce" and row["bytes"] > 16]
    if whole:
        raise Failed(f"expected no large all_reduce, found {whole}")
    scattered = [row for row in rows if row["kind"] == "reduce_scatter"]
    if not scattered or any(row["dtype"] != "f32" or row["task"] != "backward"
                            for row in scattered):
        raise Failed(f"expected sums in f32 in the backward, found {scattered}")
    if memory["gradient_units_in_flight"] not in (1, 2):
        raise Failed(f"expected two units of whole gradients at most, found {memory}")
    if (memory["gather_units_in_flight"] not in (1, 2)) == (stage == 3):
        raise Failed(f"expected two units of gathered weights at most, found {memory}")
    roles = {role for arena in memory["arenas"] for role in arena["roles"]}
    if roles.isdisjoint({"whole gradients", "gradients", "accumulators"}):
        raise Failed(f"expected gradients by name at the peak, found {roles}")


def main():
    dims, _ = bindings(MODEL, FIXTURE / "inputs")
    try:
        for stage, micro_batches in itertools.product((2, 3), (1, 2)):
            planned = {}
            for precision, clips in itertools.product(("no", "bf16"), (False, True)):
                memory, collectives = reports(stage, precision, micro_batches, clips, dims)
                planned[precision, clips] = memory["planned_peak_bytes"]
                print(f"ZeRO-{stage}, {micro_batches} micro-batches, {precision}, "
                      f"clipping {clips}: {memory['planned_peak_bytes']} bytes, "
                      f"{memory['gradient_units_in_flight']} units whole")
                check(memory, collectives, stage)
            for clips in (False, True):
                if planned["bf16", clips] > planned["no", clips]:
                    raise Failed(f"expected bf16 to need no more than f32, found {planned}")
    except Failed as problem:
        print(f"error: {problem}", file=sys.stderr)
        return 1
    return 0


sys.exit(main())
