#!/usr/bin/env python3
"""check_schedules.py WORK: trains GPT-2's fixture in eight micro-batches under every
schedule, on one rank and with ZeRO-3 on four. Losses and saved weights must have the
bits of `sequential`; what is kept in flight, by the memory report, must be that of one
micro-batch times as many as the schedule has in flight, and the planned peak may grow by little
more than that."""
import json
import pathlib
import random
import sys

from acc import ROOT, Failed, report_of, run, tensorfiles

FIXTURE = ROOT / "test" / "Fixtures" / "gpt2_train"
LAYOUTS = {"one rank": (1, []), "ZeRO-3": (4, ["--mesh", "dp=4", "--set", "zero_stage=3"])}
ROWS, PARTS, STEPS = 32, 8, 3
IN_FLIGHT = {"sequential": 1, "1f1b:1": 1, "1f1b:2": 2, "1f1b:4": 4, "gpipe": PARTS}


def make_inputs(folder):
    """Other rows in every micro-batch."""
    numbers = random.Random(7)
    folder.mkdir(parents=True, exist_ok=True)
    for file in (FIXTURE / "inputs").glob("*.npy"):
        (_, *row), kind, values = tensorfiles.read_npy(file)
        count = ROWS * row[0]
        tensorfiles.write_npy(folder / file.name, (
            [ROWS, *row], kind, [numbers.randint(0, max(values)) for _ in range(count)]))
    return folder


def train(work, inputs, ranks, flags, schedule):
    """The losses, the weights' bytes, and the memory report of a training."""
    executable, weights = work / "m.accx", work / "w.safetensors"
    compiles = ["acc-opt", FIXTURE / "default_dynamic" / "model.onnx", "--dim", "sequence=12",
                "--dim", f"batch={ROWS}", "--train", "--loss", "loss", "--optimizer", "adamw",
                "--threads-per-rank=1", f"--micro-batches={PARTS}", f"--schedule={schedule}", *flags]
    run(*compiles, "-o", executable)
    report = json.loads(run(*compiles, "--report=memory", "--json")[0])
    stdout, _ = run("acc-run", executable, "-n", ranks, "--inputs", inputs, "--steps", STEPS,
                    "--json", "--threads", 1, "--save-weights", weights)
    steps, _ = report_of(stdout, ranks)
    return [(step["loss"], step["grad_norm"]) for step in steps], weights.read_bytes(), report


def check(work, inputs, name):
    ranks, flags = LAYOUTS[name]
    expected, each, peaks = None, None, {}
    for schedule, count in IN_FLIGHT.items():
        losses, weights, report = train(work, inputs, ranks, flags, schedule)
        expected = expected or (losses, weights)
        if (losses, weights) != expected:
            raise Failed(f"{name}, {schedule}: other bits than sequential")
        kept = report["micro_batches_in_flight"]
        each = each or kept["activation_bytes_each"]
        if not each or kept != {"count": count, "activation_bytes_each": each}:
            raise Failed(f"{name}, {schedule}: expected {count} micro-batches in flight of "
                         f"{each} bytes each, found {kept}")
        peaks[schedule] = report["planned_peak_bytes"]
        print(f"{name}, {schedule}: the bits of sequential; {count} in flight, {each} bytes each; "
              f"planned peak {peaks[schedule]}")
    if peaks["sequential"] != peaks["1f1b:1"]:
        raise Failed(f"{name}: sequential and 1f1b:1 have other peaks: {peaks}")
    # One more in flight needs what it keeps, its inputs and gaps; the first one also what
    # a backward could write over before.
    for schedule, count in IN_FLIGHT.items():
        most = peaks["sequential"] + (1.25 * (count - 1) + 0.25) * each if count > 1 else \
            peaks["sequential"]
        if peaks[schedule] > most:
            raise Failed(f"{name}, {schedule}: expected a peak of at most {most}, found {peaks}")


def main():
    work = pathlib.Path(sys.argv[1])
    inputs = make_inputs(work / "inputs")
    for name in LAYOUTS:
        check(work, inputs, name)


if __name__ == "__main__":
    try:
        main()
    except Failed as error:
        sys.exit(f"check_schedules.py: {error}")
