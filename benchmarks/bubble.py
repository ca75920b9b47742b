#!/usr/bin/env python3
"""The bubbles of schedules, run and simulated: tasks of known length.

A chain of layers, one a chunk, is compiled for each schedule and run by acc-time-schedule, where
every product takes a given time, asleep: a forward of a chunk is one product, each part of its
backward another. What a step takes more than its tasks is its bubble, beside what the simulator
says of it, which test/Unit/Pipeline/ClosedFormsTest.cpp holds to what papers say. Needs
`ninja -C build acc-opt acc-time-schedule` and NumPy."""
import argparse
import datetime
import json
import os
import pathlib
import statistics
import subprocess
import tempfile

import numpy

import harness

ROOT = harness.HERE.parent
ROWS, WIDTH = 48, 8
SCHEDULES = {"gpipe": 1, "1f1b": 1, "eager-1f1b": 1, "interleaved:2": 2, "interleaved:4": 4,
             "zb-h1": 1, "zb-h2": 1, "zbv": 2, "dualpipev": 2}


def model(layers):
    """Each layer a product; what precedes the first has a weight, so that all chunks pass on gradients."""
    row, square, vector = f"tensor<{ROWS}x{WIDTH}xf32>", f"tensor<{WIDTH}x{WIDTH}xf32>", f"tensor<{WIDTH}xf32>"
    names = [f"w{i}" for i in range(layers)]
    lines = ['module attributes {accel.phase = "nn"} {', f"nn.state @g : {vector} = dense<1.0>"]
    lines += [f"nn.state @{name} : {square} = dense<0.1>" for name in names]
    arguments = [f'%x: {row} {{nn.input = "x"}}', f"%g: {vector} {{nn.state = @g}}"]
    arguments += [f"%{name}: {square} {{nn.state = @{name}}}" for name in names]
    lines += [f"func.func @main({', '.join(arguments)})",
              '    -> (tensor<f32> {nn.output = "loss"}) attributes {nn.entry} {',
              f"  %e = nn.broadcast %g : ({vector}) -> {row}",
              f"  %t = nn.mul %x, %e : {row}"]
    last = "%t"
    for i, name in enumerate(names):
        lines += [f"  %m{i} = nn.matmul {last}, %{name} : ({row}, {square}) -> {row}",
                  f"  %t{i} = nn.tanh %m{i} : {row}"]
        last = f"%t{i}"
    lines += [f"  %l = nn.reduce sum {last} dims [0, 1] : ({row}) -> tensor<f32>",
              "  return %l : tensor<f32>", "}", "}"]
    return "\n".join(lines) + "\n"


def measure(options, schedule, ranks, micro_batches, folder):
    chunks = ranks * SCHEDULES[schedule]
    text, file = folder / "model.mlir", folder / "model.accx"
    text.write_text(model(chunks))
    cuts = [f"--cut=m{i}" for i in range(1, chunks)]
    subprocess.run([options.tools / "acc-opt", text, "--train", "--loss=loss", "--optimizer=sgd",
                    "--entries=step", f"--mesh=pp={ranks}", f"--micro-batches={micro_batches}",
                    f"--schedule={schedule}", *cuts, "-o", file], check=True, env=harness.environment())
    found = json.loads(subprocess.run(
        [options.tools / "acc-time-schedule", file, folder, str(options.seconds), str(options.steps + 1),
         schedule, str(ranks), str(micro_batches)],
        check=True, capture_output=True, text=True, env=harness.environment()).stdout)
    # The first step meets cold pages.
    step = statistics.median(found["times_s"][1:])
    busy = 3 * SCHEDULES[schedule] * micro_batches * options.seconds
    return {"schedule": schedule, "ranks": ranks, "micro_batches": micro_batches,
            "step_s": step, "steps_s": found["times_s"], "simulated_step_s": found["simulated_s"],
            "bubble": 1 - busy / step, "simulated_bubble": found["bubble"],
            "ratio": step / found["simulated_s"]}


def table(result):
    lines = [f"# Bubbles, run and simulated, of tasks of {1000 * result['product_s']:g} ms",
             "", harness.describe(result["date"], result["machine"]), "",
             "A bubble is the part of all ranks' time in which no task runs; the last column is the step as it ran by the",
             "step as it was simulated.", "",
             "| schedule | ranks | micro-batches | bubble | simulated | step, s | simulated | ratio |",
             "|---|---|---|---|---|---|---|---|"]
    for row in result["rows"]:
        lines.append(f"| {row['schedule']} | {row['ranks']} | {row['micro_batches']} | {100 * row['bubble']:.1f} % "
                     f"| {100 * row['simulated_bubble']:.1f} % | {row['step_s']:.4f} "
                     f"| {row['simulated_step_s']:.4f} | {row['ratio']:.3f} |")
    ratios = [row["ratio"] for row in result["rows"]]
    lines += ["", f"{len(ratios)} steps, {min(ratios):.3f} to {max(ratios):.3f} of what was simulated.", ""]
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ranks", type=int, nargs="+", default=[2, 3, 4])
    parser.add_argument("--micro-batches", type=int, nargs="+", default=[1, 4, 8, 16])
    parser.add_argument("--schedules", nargs="+", default=list(SCHEDULES), choices=SCHEDULES)
    parser.add_argument("--seconds", type=float, default=0.02, help="of a product")
    parser.add_argument("--steps", type=int, default=3)
    parser.add_argument("--tools", type=pathlib.Path, default=ROOT / "build/bin")
    parser.add_argument("--results", type=pathlib.Path, default=harness.HERE / "results")
    options = parser.parse_args()
    host = harness.machine(os.sched_getaffinity(0))
    harness.warn_if_busy(host)
    rows = []
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        numpy.save(folder / "x.npy", numpy.random.default_rng(0).random((ROWS, WIDTH), dtype=numpy.float32))
        for schedule in options.schedules:
            for ranks in options.ranks:
                for micro_batches in options.micro_batches:
                    rows.append(measure(options, schedule, ranks, micro_batches, folder))
                    print(json.dumps({k: v for k, v in rows[-1].items() if k != "steps_s"}), flush=True)
    result = {"date": datetime.date.today().isoformat(), "acc": harness.acc_version(), "machine": host,
              "product_s": options.seconds, "rows": rows}
    harness.write(options.results, "bubble", result, table(result))


if __name__ == "__main__":
    main()
