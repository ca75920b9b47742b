#!/usr/bin/env python3
"""Holds what is promised of gradients against the reports, in each of {f32, bf16} x
{1, 2 micro-batches} x {clipping, none}. In ZeRO-2 and 3 none is all_reduced, be the
loss of the data alone or with a penalty on weights, and each is scattered in f32; the
gradients of two units are whole at once at most. In every stage the plan of bf16 is no
larger than that of f32, but for the scratch of its products, which is the machine's affair."""
import itertools
import json
import sys

from acc import ROOT, Failed, bindings, run

FIXTURES = ROOT / "test" / "Fixtures"
FIXTURE = FIXTURES / "gpt2_train"
MODEL = FIXTURE / "default_dynamic" / "model.onnx"
PENALTY = FIXTURES / "losses" / "regularised"
CASES = list(itertools.product(("no", "bf16"), (False, True)))


def report(kind, model, inputs, ranks, stage, precision, micro_batches, clips):
    dims, _ = bindings(model, inputs)
    command = ["acc-opt", model, "--train", "--loss", "loss", *dims, "--mesh", f"dp={ranks}",
               "--micro-batches", micro_batches, "--set", f"zero_stage={stage}",
               f"--mixed-precision={precision}"]
    if clips:
        command += ["--set", "gradient_clipping=1.0"]
    return json.loads(run(*command, f"--report={kind}", "--json")[0])


def check_sums(collectives):
    rows = collectives["collectives"]
    # The loss, the count of tokens and the norm are numbers.
    whole = [row for row in rows if row["kind"] == "all_reduce" and row["bytes"] > 16]
    if whole:
        raise Failed(f"expected no large all_reduce, found {whole}")
    scattered = [row for row in rows if row["kind"] == "reduce_scatter"]
    if not scattered or any(row["dtype"] != "f32" or row["task"] != "backward"
                            for row in scattered):
        raise Failed(f"expected sums in f32 in the backward, found {scattered}")


def check_memory(memory, stage):
    if memory["gradient_units_in_flight"] not in (1, 2):
        raise Failed(f"expected two units of whole gradients at most, found {memory}")
    if (memory["gather_units_in_flight"] not in (1, 2)) == (stage == 3):
        raise Failed(f"expected two units of gathered weights at most, found {memory}")
    roles = {role for arena in memory["arenas"] for role in arena["roles"]}
    if roles.isdisjoint({"whole gradients", "gradients", "accumulators"}):
        raise Failed(f"expected gradients by name at the peak, found {roles}")


def check(stage, micro_batches):
    planned = {}
    for precision, clips in CASES:
        setting = (stage, precision, micro_batches, clips)
        memory = report("memory", MODEL, FIXTURE / "inputs", 4, *setting)
        # The products' scratch is the machine's affair: bf16 may need more where it has no units.
        scratch = sum(arena["roles"].get("scratch", 0) for arena in memory["arenas"])
        planned[precision, clips] = memory["planned_peak_bytes"] - scratch * (precision == "bf16")
        print(f"ZeRO-{stage}, {micro_batches} micro-batches, {precision}, clipping {clips}: "
              f"{memory['planned_peak_bytes']} bytes, "
              f"{memory['gradient_units_in_flight']} units whole")
        if stage < 2:
            continue
        check_memory(memory, stage)
        check_sums(report("collectives", MODEL, FIXTURE / "inputs", 4, *setting))
        # Three ranks divide no weight: they are padded.
        for ranks in (2, 3):
            check_sums(report("collectives", PENALTY / "model.onnx", PENALTY / "inputs", ranks,
                              *setting))
    for clips in (False, True):
        if planned["bf16", clips] > planned["no", clips]:
            raise Failed(f"expected bf16 to need no more than f32, found {planned}")


def main():
    try:
        for stage, micro_batches in itertools.product(range(4), (1, 2)):
            check(stage, micro_batches)
    except Failed as problem:
        print(f"error: {problem}", file=sys.stderr)
        return 1
    return 0


sys.exit(main())
