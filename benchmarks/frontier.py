#!/usr/bin/env python3
"""Whether what `--report=memory --what-if` says of less memory is so: each of its points for GPT-2 124M
(random weights, AdamW, clipping) is compiled with its bytes as --memory-budget and run in turns with the
step that keeps everything. Writes the table of predicted and measured peaks and times to
benchmarks/results/."""
import datetime
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

import harness
import models
import train


class Point:
    """An executable of one budget; each call of it is a process of its own."""

    def __init__(self, folder, scratch, options, flags, name):
        self.options, self.inputs, self.times = options, folder / "inputs", []
        self.file = scratch / f"{name}.accx"
        subprocess.run([*command(folder, options), *flags, "-o", self.file], check=True, env=harness.environment(),
                       stderr=subprocess.DEVNULL)

    def run(self, count):
        done = subprocess.run([self.options.tools / "acc-run", self.file, "--inputs", self.inputs, "--steps",
                               str(count + 1), "--threads", str(self.options.threads), "--json"],
                              check=True, stdout=subprocess.PIPE, text=True, env=harness.environment())
        *lines, report = [json.loads(line) for line in done.stdout.splitlines()]
        self.times += [line["time_s"] for line in lines[1:]]
        self.planned, self.loss = report["planned_peak_bytes"], lines[-1]["loss"]


def command(folder, options):
    return [options.tools / "acc-opt", folder / "model.onnx", "--train", "--loss=loss", "--entries=step",
            "--set=gradient_clipping=1", f"--threads-per-rank={options.threads}"]


def frontier(folder, options):
    text = subprocess.run([*command(folder, options), "--report=memory", "--what-if", "--json"], check=True,
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                          env=harness.environment()).stdout.strip()
    decoder, points = json.JSONDecoder(), []
    while text:
        part, end = decoder.raw_decode(text)
        points += part.get("frontier", [])
        text = text[end:].strip()
    return points


def measure(options, folder):
    points = frontier(folder, options)
    with tempfile.TemporaryDirectory(prefix="acc-bench-") as scratch:
        scratch = pathlib.Path(scratch)
        tried = [Point(folder, scratch, options, [f"--memory-budget={point['peak_bytes']}"], number)
                 for number, point in enumerate(points)]
        for _ in range(options.rounds):
            for each in tried:
                time.sleep(0.2)  # lets the pool of the one before go to sleep
                each.run(options.repeat)
    base = statistics.median(tried[0].times)
    for point, each in zip(points, tried):
        if abs(each.loss - tried[0].loss) > 1e-5 * abs(tried[0].loss):
            raise SystemExit(f"expected the loss {tried[0].loss} with {point}, found {each.loss}")
        median = statistics.median(each.times)
        point.update(name=point["computed_again"], planned_bytes=each.planned, times_s=each.times, median_s=median,
                     minimum_s=min(each.times), measured=median / base, off=point["time"] / (median / base) - 1)
    return points


def table(result):
    mib = lambda bytes: f"{bytes / 2**20:,.0f}"
    lines = [f"# What less memory takes, predicted and measured, {models.title(result['model'])}, {result['batch']} x "
             f"{result['sequence']}, {result['threads']} threads", "",
             f"{harness.describe(result['date'], result['machine'])} {result['rounds']} rounds of "
             f"{result['repeat']} steps each, taking turns; medians. Losses differ by 1e-5 at most.", "",
             "| computed again | peak MiB, predicted | planned | work, predicted | time, predicted | measured | "
             "off by | step s |", "|---|---|---|---|---|---|---|---|"]
    for row in result["rows"]:
        lines.append(f"| {row['computed_again']} | {mib(row['peak_bytes'])} | {mib(row['planned_bytes'])} | "
                     f"+{100 * row['more_work']:.1f} % | {row['time']:.3f} | {row['measured']:.3f} | "
                     f"{100 * row['off']:+.1f} % | {row['median_s']:.3f} |")
    return "\n".join(lines) + "\n"


def main():
    options = train.parser(__doc__).parse_args()
    cpus = sorted(os.sched_getaffinity(0))[: options.threads]
    os.sched_setaffinity(0, cpus)
    result = {"benchmark": "frontier", "model": options.model, "sequence": options.sequence, "batch": options.batch,
              "date": datetime.datetime.now().isoformat(timespec="seconds"), "threads": options.threads,
              "rounds": options.rounds, "repeat": options.repeat, "machine": harness.machine(cpus)}
    harness.warn_if_busy(result["machine"])
    folder = train.training_folder(options.model, options.batch, options.sequence)
    result["rows"] = measure(options, folder)
    harness.write(options.results, f"{models.family(options.model)}-frontier", result, table(result))


if __name__ == "__main__":
    sys.exit(main())
