#!/usr/bin/env python3
"""One training step of GPT-2 124M or of a Llama of 110M whose query heads share key
heads (random weights, AdamW, clipping; float32 and bfloat16 with float32 weights): acc
beside PyTorch eager, torch.compile and JAX on one rank, and, with the states whole and
shared (ZeRO-3), beside DDP, FSDP2 (gloo) and JAX with two devices on two ranks of half
the threads, in one run. Those that are compared run at the same time and take turns (a
group: a precision on a number of ranks). Every peer's first losses are compared with
PyTorch's before a time is believed. Prints the tables and writes them, with versions
and environment, to benchmarks/results/."""
import argparse
import datetime
import json
import os
import pathlib
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

import harness
import models
import train_peers

HERE = pathlib.Path(__file__).resolve().parent
# A loss of the first three steps, relative to PyTorch's eager one in float32.
TOLERANCE = {"fp32": 1e-4, "bf16": 5e-3}
SETTINGS = models.TRAINING
# acc's layouts by their names, which begin so: the flags of each. ZeRO-3 shares the states
# as FSDP2 does.
ONE_RANK = {"acc": []}
TWO_RANKS = {"acc": ["--mesh=dp=2"], "acc ZeRO-3": ["--mesh=dp=2", "--set=zero_stage=3"]}


class Peer(harness.Process):
    """Processes of train_peers.py, or of another script (and its first words) like it."""

    def __init__(self, name, script, folder, options, precision, ranks, scratch):
        # Of two devices JAX makes one process, whose pool has all threads.
        threads = options.threads if name.startswith("JAX") else options.threads // ranks
        variables = {"OMP_NUM_THREADS": str(threads), "TORCHINDUCTOR_CACHE_DIR": str(scratch / "inductor")}
        if name.startswith("JAX"):
            variables["XLA_FLAGS"] = (
                "--xla_cpu_multi_thread_eigen=true "
                f"intra_op_parallelism_threads={threads} --xla_force_host_platform_device_count={ranks}")
        super().__init__(name, [HERE / script[0], *script[1:], name, options.model, folder, precision,
                                threads], scratch / f"{name}-{precision}.log", variables)
        self.times = []
        self.facts = self.answer()

    def run(self, count):
        answer = self.ask(f"run {count + 1}")
        self.times += answer["times_s"][1:]  # the first one warms the caches again
        self.facts["peak_resident_bytes"] = answer["peak_resident_bytes"]


class Acc:
    """acc-opt and acc-run. Each round is a process of its own, as a user starts it."""

    def __init__(self, name, flags, folder, options, precision, ranks, scratch, optimizer="adamw"):
        self.name, self.times, self.options, self.ranks = name, [], options, ranks
        self.inputs = folder / "inputs"
        self.file = folder / f"{precision}-{ranks}-{re.sub('[^a-zA-Z0-9]+', '-', name)}.accx"
        # A cache of its own and empty: the first compilation is a user's first.
        self.environment = harness.environment(ACCEL_CACHE=str(scratch / f"cache-{precision}-{ranks}"))
        self.threads = options.threads // ranks
        first, second = SETTINGS["betas"]
        settings = {"optimizer.lr": SETTINGS["lr"], "optimizer.betas": f"{first},{second}",
                    "optimizer.eps": SETTINGS["eps"], "optimizer.weight_decay": SETTINGS["weight_decay"],
                    "gradient_clipping": SETTINGS["clip"]}
        command = [options.tools / "acc-opt", folder / "model.onnx", "--train", "--loss=loss",
                   f"--optimizer={optimizer}", *(f"--set={k}={v}" for k, v in settings.items()),
                   f"--threads-per-rank={self.threads}",
                   *(["--mixed-precision=bf16"] if precision == "bf16" else []),
                   *flags, "-o", self.file]
        command = [str(word) for word in command]
        seconds = []
        for _ in range(2):
            start = time.perf_counter()
            subprocess.run(command, check=True, env=self.environment)
            seconds.append(time.perf_counter() - start)
        self.facts = {"version": harness.acc_version(), "command": " ".join(command),
                      "compile_s": seconds[0], "compile_again_s": seconds[1]}
        lines, report = self.call(train_peers.CHECKED)
        self.facts["losses"] = [line["loss"] for line in lines]
        self.facts["to_first_step_s"] = seconds[0] + report["load_s"] + lines[0]["time_s"]

    def call(self, steps):
        command = [str(self.options.tools / "acc-run"), str(self.file), "-n", str(self.ranks),
                   "--inputs", str(self.inputs), "--steps", str(steps),
                   "--threads", str(self.threads), "--json"]
        result = subprocess.run(command, check=True, env=self.environment,
                                stdout=subprocess.PIPE, text=True)
        *lines, report = [json.loads(line) for line in result.stdout.splitlines()]
        return lines, report

    def run(self, count):
        lines, report = self.call(count + 1)
        self.times += [line["time_s"] for line in lines[1:]]
        self.facts.update({k: report[k] for k in ("planned_peak_bytes", "measured_peak_bytes", "load_s")})
        # Of the worst rank.
        self.facts["peak_resident_bytes"] = [report["resident_bytes"]] * self.ranks

    def close(self):
        self.file.unlink()


def check_losses(runner, expected, tolerance):
    worst = max(abs(a - b) / b for a, b in zip(runner.facts["losses"], expected, strict=True))
    runner.facts["loss_difference"] = worst
    if not worst <= tolerance:
        raise SystemExit(f"the losses {runner.facts['losses']} of '{runner.name}' differ from "
                         f"PyTorch's {expected} by {worst:.1e}, expected at most {tolerance:.0e}")


def measure(folder, options, precision, ranks, layouts, peers, script=("train_peers.py",)):
    """The rows of one group, whose runners take turns."""
    wanted = [name for name in options.only.split(",") if name]
    scratch = pathlib.Path(tempfile.mkdtemp(prefix="acc-bench-"))
    expected = json.loads((folder / models.LOSSES).read_text())
    runners = []
    try:
        for name in (*layouts, *peers):
            if wanted and name not in wanted:
                continue
            print(f"{precision}, {ranks} ranks: starting {name}", file=sys.stderr)
            kind, what = (Acc, layouts[name]) if name in layouts else (Peer, script)
            runners.append(kind(name, what, folder, options, precision, ranks, scratch))
            check_losses(runners[-1], expected, TOLERANCE[precision])
        for _ in range(options.rounds):
            for runner in runners:
                time.sleep(0.2)  # lets the pools of the one before go to sleep
                runner.run(options.repeat)
        return summarise(runners)
    finally:
        for runner in runners:
            runner.close()
        shutil.rmtree(scratch, ignore_errors=True)


def summarise(runners):
    """One row per runner; ratios to the fastest peer, by its minimum and median."""
    rows = []
    for runner in runners:
        rows.append({"name": runner.name, "minimum_s": min(runner.times),
                     "median_s": statistics.median(runner.times), "times_s": runner.times, **runner.facts})
    peers = [row for row in rows if not row["name"].startswith("acc")]
    for row in rows:
        for kind in ("minimum", "median"):
            best = min((r[f"{kind}_s"] for r in peers), default=row[f"{kind}_s"])
            row[f"{kind}_over_best_peer"] = row[f"{kind}_s"] / best
    return rows


def table(result):
    lines = [f"# {models.title(result['model'])} training step, batch {result['batch']} x {result['sequence']}, "
             f"{result['threads']} threads", "",
             f"{harness.describe(result['date'], result['machine'])} {result['rounds']} rounds of "
             f"{result['repeat']} steps each, taking turns. AdamW (PyTorch: fused), gradients clipped "
             "to the norm 1, no dropout. bf16: PyTorch's autocast, the like in JAX, "
             "`--mixed-precision=bf16`. Two ranks: half of the threads each. To first step: from "
             "starting, compilation with empty caches included."]
    for group in result["groups"]:
        ranks = group["ranks"]
        beside = f", beside {group['beside']}" if "beside" in group else ""
        lines += ["", f"## {group['precision']}, {ranks} rank{'s' if ranks > 1 else ''}{beside}", "",
                  "| | version | minimum s | median s | of the best peer (minimum) | (median) | "
                  "to first step s | peak resident GB of each process | losses' difference |",
                  "|---|---|---|---|---|---|---|---|---|"]
        for row in sorted(group["rows"], key=lambda r: r["minimum_s"]):
            peak = ", ".join(f"{b / 1e9:.2f}" for b in row["peak_resident_bytes"])
            lines.append(
                f"| {row['name']} | {row['version']} | {row['minimum_s']:.3f} | {row['median_s']:.3f} | "
                f"{row['minimum_over_best_peer']:.2f} | {row['median_over_best_peer']:.2f} | "
                f"{row['to_first_step_s']:.1f} | {peak} | {row['loss_difference']:.1e} |")
        lines += [f"\n{row['name']} compiles in {row['compile_s']:.1f} s (again, with a filled kernel cache: "
                  f"{row['compile_again_s']:.1f} s); planned {row['planned_peak_bytes'] / 1e9:.2f} GB a "
                  f"rank, allocated {row['measured_peak_bytes'] / 1e9:.2f} GB."
                  for row in group["rows"] if row["name"].startswith("acc")]
    return "\n".join(lines) + "\n"


def parser(description):
    """The options that all benchmarks of training have."""
    made = argparse.ArgumentParser(description=description)
    made.add_argument("--batch", type=int, default=4)
    made.add_argument("--sequence", type=int, default=128)
    made.add_argument("--threads", type=int, default=2, help="of all ranks together")
    made.add_argument("--rounds", type=int, default=4)
    made.add_argument("--repeat", type=int, default=3, help="timed steps of each in a round")
    made.add_argument("--only", default="", help="names of runners, as the table has them, by comma")
    made.add_argument("--model", choices=models.MODELS, default="gpt2-124m",
                      help="the tiny ones tell only whether this script works")
    made.add_argument("--tools", type=pathlib.Path, default=HERE.parent / "build" / "bin")
    made.add_argument("--results", type=pathlib.Path, default=HERE / "results")
    return made


def training_folder(model, batch, sequence):
    """Where the model lies with its inputs, made where it does not."""
    folder = HERE / ".cache" / f"{model}-train-{batch}x{sequence}"
    if not (folder / "done").exists():
        print(f"making {folder}", file=sys.stderr)
        subprocess.run([sys.executable, str(HERE / "models.py"), model, str(folder), str(batch),
                        str(sequence), "--training"],
                       check=True, env=harness.environment())
    return folder


def record(options, what, groups):
    """Measures groups, each of them the arguments of measure() by their names and, where there
    are several of a kind, who is in it (`beside`); writes the page of `what`."""
    cpus = sorted(os.sched_getaffinity(0))[: options.threads]
    os.sched_setaffinity(0, cpus)
    folder = training_folder(options.model, options.batch, options.sequence)
    family, size = options.model.split("-")
    result = {"benchmark": f"{family}-{what}", "model": options.model,
              "date": datetime.datetime.now().isoformat(timespec="seconds"),
              "size": size, "batch": options.batch, "sequence": options.sequence,
              "threads": options.threads, "rounds": options.rounds, "repeat": options.repeat,
              "settings": SETTINGS, "machine": harness.machine(cpus), "groups": []}
    harness.warn_if_busy(result["machine"])
    for group in groups:
        named = {k: group.pop(k) for k in ("beside",) if k in group}
        rows = measure(folder, options, **group)
        result["groups"].append({**named, **{k: group[k] for k in ("precision", "ranks")}, "rows": rows})
    cpu = re.sub(r"[^a-z0-9]+", "-", result["machine"]["cpu"].lower().replace("(r)", "")).strip("-")
    if "avx512f" not in result["machine"]["features"]:  # one name is of several processors
        cpu += "-avx2"
    harness.write(options.results, f"{options.model if size == 'tiny' else family}-{what}-{cpu}",
                  result, table(result))


def main():
    arguments = parser(__doc__)
    arguments.add_argument("--groups", default="fp32x1,bf16x1,fp32x2,bf16x2", help="PRECISIONxRANKS by comma")
    options = arguments.parse_args()
    groups = []
    for group in options.groups.split(","):
        precision, ranks = group.split("x")
        layouts, peers = ((ONE_RANK, train_peers.ONE_RANK) if ranks == "1" else
                          (TWO_RANKS, train_peers.TWO_RANKS))
        groups.append({"precision": precision, "ranks": int(ranks), "layouts": layouts, "peers": peers})
    record(options, "train", groups)


if __name__ == "__main__":
    main()
