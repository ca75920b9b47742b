#!/usr/bin/env python3
"""A forward pass of GPT-2 124M or a Llama of 110M (random weights, float32): acc beside PyTorch eager,
torch.compile, JAX and ONNX Runtime, measured in one run whose calls alternate,
on the same processors with the same number of threads. Every peer's logits are
compared with PyTorch's before a time is believed. Prints the table and writes
it, with versions and environment, to benchmarks/results/."""
import argparse
import datetime
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

import numpy as np

import forward_peers
import harness
import models

HERE = pathlib.Path(__file__).resolve().parent
TOLERANCE = 1e-3


def difference(found, expected):
    """The largest |found - expected| / (1 + |expected|)."""
    return float(np.max(np.abs(found - expected) / (1 + np.abs(expected))))


class Peer(harness.Process):
    """A process of forward_peers.py."""

    def __init__(self, name, model, folder, threads, scratch):
        logits = scratch / (name.replace(" ", "_") + ".npy")
        flags = {"XLA_FLAGS": f"--xla_cpu_multi_thread_eigen=true intra_op_parallelism_threads={threads}"}
        super().__init__(name, [HERE / "forward_peers.py", name, model, folder, threads, logits],
                         scratch / "peers.log",
                         {**(flags if name == "JAX" else {}), "OMP_NUM_THREADS": str(threads)})
        self.times = []
        self.facts = self.answer()
        self.logits = np.load(logits)

    def run(self, count):
        answer = self.ask(f"run {count + 1}")
        self.times += answer["times_s"][1:]  # the first one warms the caches again
        self.facts["peak_resident_bytes"] = answer["peak_resident_bytes"]


class Acc:
    """acc-opt and acc-run. Each round is a process of its own, as a user starts it."""

    def __init__(self, tools, folder, dims, threads, scratch):
        self.name, self.times, self.tools = "acc", [], tools
        self.folder, self.scratch = folder, scratch
        self.file = folder / "model.accx"
        self.environment = harness.environment()
        # A cache of its own and empty: the first compilation is a user's first.
        self.environment["ACCEL_CACHE"] = str(scratch / "cache")
        self.threads = threads
        command = [str(tools / "acc-opt"), str(folder / "model.onnx"), *dims,
                   f"--threads-per-rank={threads}", "-o", str(self.file)]
        seconds = []
        for _ in range(2):
            start = time.perf_counter()
            subprocess.run(command, check=True, env=self.environment)
            seconds.append(time.perf_counter() - start)
        self.facts = {"version": harness.acc_version(), "load_s": None, "command": " ".join(command),
                      "compile_s": seconds[0], "compile_again_s": seconds[1]}
        self.run(0, ["--outputs", str(scratch / "acc")])
        self.logits = np.load(scratch / "acc" / models.REFERENCE)

    def run(self, count, options=()):
        command = [str(self.tools / "acc-run"), str(self.file), "--inputs", str(self.folder / "inputs"),
                   "--repeat", str(count + 1), "--threads", str(self.threads), "--json", *options]
        result = subprocess.run(command, check=True, env=self.environment,
                                stdout=subprocess.PIPE, text=True)
        report = json.loads(result.stdout.strip().splitlines()[-1])
        self.times += report["times_s"][1:]
        self.facts.update({k: report[k] for k in ("planned_peak_bytes", "measured_peak_bytes", "ranks")})
        self.facts["peak_resident_bytes"] = report["resident_bytes"]

    def close(self):
        self.file.unlink()


def summarise(runners, reference):
    """One row per runner; ratios to the fastest peer, by its minimum and median."""
    rows = []
    for runner in runners:
        rows.append({"name": runner.name, "version": runner.facts["version"],
                     "minimum_s": min(runner.times), "median_s": statistics.median(runner.times),
                     "times_s": runner.times, "difference": difference(runner.logits, reference),
                     **{k: v for k, v in runner.facts.items() if k != "version"}})
    peers = [r for r in rows if r["name"] != "acc"]
    for row in rows:
        for kind in ("minimum", "median"):
            if peers:
                best = min(r[f"{kind}_s"] for r in peers)
                row[f"{kind}_over_best_peer"] = row[f"{kind}_s"] / best
    return rows


def first_result_s(row):
    """Seconds from nothing to an executable: the compiler's, or load + first call."""
    return row["compile_s"] if "compile_s" in row else row["load_s"] + row["first_call_s"]


def table(result):
    host = result["machine"]
    lines = [f"# {models.title(result['model'])} forward, batch {result['batch']} x {result['sequence']}, float32, "
             f"{result['threads']} threads", "",
             f"{harness.describe(result['date'], host)} "
             f"{result['rounds']} rounds of {result['repeat']} calls each, alternating; "
             f"{result['export']} export.", "",
             "| | version | minimum s | median s | of the best peer (minimum) | (median) | "
             "compile or first call s | peak resident GB | difference from PyTorch |",
             "|---|---|---|---|---|---|---|---|---|"]
    for row in sorted(result["rows"], key=lambda r: r["minimum_s"]):
        peak = row.get("peak_resident_bytes")
        lines.append(
            f"| {row['name']} | {row['version']} | {row['minimum_s']:.3f} | {row['median_s']:.3f} | "
            f"{row.get('minimum_over_best_peer', 1):.2f} | {row.get('median_over_best_peer', 1):.2f} | "
            f"{first_result_s(row):.1f} | {f'{peak / 1e9:.2f}' if peak else ''} | {row['difference']:.1e} |")
    return "\n".join(lines) + "\n"


def arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", choices=models.MODELS, default="gpt2-124m",
                        help="the tiny ones tell only whether this script works")
    parser.add_argument("--batch", type=int, default=4)
    parser.add_argument("--sequence", type=int, default=128)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--repeat", type=int, default=4, help="timed calls of each in a round")
    parser.add_argument("--dynamic", action="store_true",
                        help="export with symbolic sizes, bound for acc with --dim")
    parser.add_argument("--only", default="", help="names by comma: acc, " + ", ".join(forward_peers.PEERS))
    parser.add_argument("--tools", type=pathlib.Path, default=HERE.parent / "build" / "bin")
    parser.add_argument("--results", type=pathlib.Path, default=HERE / "results")
    return parser.parse_args()


def main():
    options = arguments()
    cpus = sorted(os.sched_getaffinity(0))[: options.threads]
    os.sched_setaffinity(0, cpus)
    export = "dynamic" if options.dynamic else "static"
    folder = HERE / ".cache" / f"{options.model}-{export}-{options.batch}x{options.sequence}"
    if not (folder / "done").exists():
        print(f"making {folder}", file=sys.stderr)
        subprocess.run([sys.executable, str(HERE / "models.py"), options.model, str(folder), str(options.batch),
                        str(options.sequence), *(["--dynamic"] if options.dynamic else [])],
                       check=True, env=harness.environment())
    dims = []
    if options.dynamic:
        for name, size in zip(models.DIMENSION_NAMES, (options.batch, options.sequence)):
            dims += ["--dim", f"{name}={size}"]
    wanted = [n for n in options.only.split(",") if n] or ["acc", *forward_peers.PEERS]
    family, size = options.model.split("-")
    result = {"benchmark": f"{family}-forward", "model": options.model, "size": size, "date": datetime.datetime.now().isoformat(timespec="seconds"),
              "batch": options.batch, "sequence": options.sequence, "threads": options.threads,
              "rounds": options.rounds, "repeat": options.repeat, "export": export, "machine": harness.machine(cpus)}
    harness.warn_if_busy(result["machine"])
    scratch = pathlib.Path(tempfile.mkdtemp(prefix="acc-bench-"))
    runners = []
    try:
        for name in wanted:
            print(f"starting {name}", file=sys.stderr)
            if name == "acc":
                runners.append(Acc(options.tools, folder, dims, options.threads, scratch))
            else:
                runners.append(Peer(name, options.model, folder, options.threads, scratch))
        reference = np.load(folder / models.REFERENCE)
        for runner in runners:
            found = difference(runner.logits, reference)
            if not found <= TOLERANCE:
                raise SystemExit(f"'{runner.name}' differs from PyTorch by {found:.1e}, "
                                 f"expected at most {TOLERANCE:.0e}")
        for _ in range(options.rounds):
            for runner in runners:
                time.sleep(0.2)  # lets the pools of the one before go to sleep
                runner.run(options.repeat)
        result["rows"] = summarise(runners, reference)
    finally:
        for runner in runners:
            runner.close()
        shutil.rmtree(scratch, ignore_errors=True)
    harness.write(options.results, f"{options.model if size == 'tiny' else family}-forward", result, table(result))


if __name__ == "__main__":
    main()
