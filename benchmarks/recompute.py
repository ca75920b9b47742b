#!/usr/bin/env python3
"""What computing activations again costs and saves: steps of GPT-2 124M (random weights, AdamW,
clipping) by acc with several policies of --recompute, and by PyTorch, eager and compiled, that keeps
them and that checkpoints each layer (torch.utils.checkpoint), in one run. Writes the table to
benchmarks/results/."""
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
import train
import train_peers

POLICIES = {"acc": "none", "acc layernorm": "selective:layernorm", "acc mlp": "selective:layernorm,mlp",
            "acc block:6": "full:block:6", "acc full": "full"}


class Checkpointed(train_peers.Torch):
    def wrap(self, model):
        from torch.utils.checkpoint import checkpoint

        for block in models.blocks(model):
            forward = block.forward

            def again(*args, forward=forward, **kwargs):
                return checkpoint(forward, *args, use_reentrant=False, **kwargs)
            block.forward = again
        return model


class CheckpointedCompiled(Checkpointed):
    def wrap(self, model):
        return self.torch.compile(super().wrap(model))


PEERS = {"PyTorch": train_peers.Torch, "PyTorch compiled": train_peers.Compiled,
         "PyTorch checkpoint": Checkpointed, "PyTorch compiled checkpoint": CheckpointedCompiled}


def kept_bytes(runner):
    """What is kept for the backward, and the peak of the plan, by its report."""
    command = [word for word in runner.facts["command"].split() if not word.endswith(".accx") and word != "-o"]
    text = subprocess.run([*command, "--report=memory"], check=True, env=runner.environment,
                          stdout=subprocess.PIPE, text=True).stdout
    return max(int(bytes) for bytes in re.findall(r"keeps activations of [^(]*\((\d+)\)", text))


def measure(options, folder, precision):
    scratch = pathlib.Path(tempfile.mkdtemp(prefix="acc-bench-"))
    wanted = [name for name in options.only.split(",") if name] or [*POLICIES, *PEERS]
    expected = json.loads((folder / models.LOSSES).read_text())
    runners = []
    try:
        for name, policy in POLICIES.items():
            if name not in wanted:
                continue
            print(f"starting {name}", file=sys.stderr)
            runners.append(train.Acc(name, [f"--recompute={policy}", "--entries=step"], folder, options,
                                     precision, 1, scratch))
            runners[-1].facts["kept_bytes"] = kept_bytes(runners[-1])
        for name in PEERS:
            if name not in wanted:
                continue
            print(f"starting {name}", file=sys.stderr)
            runners.append(train.Peer(name, ("recompute.py", "--serve"), folder, options, precision, 1, scratch))
        for runner in runners:
            train.check_losses(runner, expected, train.TOLERANCE[precision])
        for _ in range(options.rounds):
            for runner in runners:
                time.sleep(0.2)  # lets the pools of the one before go to sleep
                runner.run(options.repeat)
        return [{"name": r.name, "minimum_s": min(r.times), "median_s": statistics.median(r.times),
                 "times_s": r.times, **r.facts} for r in runners]
    finally:
        for runner in runners:
            runner.close()
        shutil.rmtree(scratch, ignore_errors=True)


def table(result):
    mib = lambda row, key: f"{row[key] / 2**20:,.0f}" if key in row else ""
    lines = [f"# Activations computed again, {models.title(result['model'])}, {result['batch']} x "
             f"{result['sequence']}, {result['precision']}, {result['threads']} threads", "",
             f"{harness.describe(result['date'], result['machine'])} {result['rounds']} rounds of "
             f"{result['repeat']} steps each, taking turns.", "",
             "| | step s, median (minimum) | of acc's without | kept MiB | planned peak MiB | resident peak MiB |",
             "|---|---|---|---|---|---|"]
    base = result["rows"][0]["median_s"]
    for row in result["rows"]:
        lines.append(f"| {row['name']} | {row['median_s']:.3f} ({row['minimum_s']:.3f}) | "
                     f"{row['median_s'] / base:.2f} | {mib(row, 'kept_bytes')} | "
                     f"{mib(row, 'planned_peak_bytes')} | {max(row['peak_resident_bytes']) / 2**20:,.0f} |")
    return "\n".join(lines) + "\n"


def main():
    arguments = train.parser(__doc__)
    arguments.add_argument("--precision", default="fp32")
    options = arguments.parse_args()
    cpus = sorted(os.sched_getaffinity(0))[: options.threads]
    os.sched_setaffinity(0, cpus)
    result = {"benchmark": f"{models.family(options.model)}-recompute", "model": options.model, "sequence": options.sequence,
              "batch": options.batch, "precision": options.precision,
              "date": datetime.datetime.now().isoformat(timespec="seconds"), "threads": options.threads,
              "rounds": options.rounds, "repeat": options.repeat, "settings": models.TRAINING,
              "machine": harness.machine(cpus)}
    harness.warn_if_busy(result["machine"])
    folder = train.training_folder(options.model, options.batch, options.sequence)
    result["rows"] = measure(options, folder, options.precision)
    harness.write(options.results, f"{models.family(options.model)}-recompute", result, table(result))


if __name__ == "__main__":
    if sys.argv[1:2] == ["--serve"]:
        train_peers.serve(PEERS, *sys.argv[2:])
    else:
        main()
