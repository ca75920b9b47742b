#!/usr/bin/env python3
"""What Muon costs beside AdamW: steps of GPT-2 124M (random weights, clipping) with either, by acc
and by PyTorch (torch.optim.Muon for the matrices of hidden layers, fused AdamW for the rest), in one
run. Newton and Schulz's iterations take as long whatever the batch, so that the ratio is of a number
of tokens: --batches says how many rows a step has, four of which are computed at a time. Writes the
table to benchmarks/results/."""
import datetime
import os
import pathlib
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

# Losses of Muon's first steps: both round Newton and Schulz's iterations to bfloat16, not in the same places.
TOLERANCE = {"fp32": 1e-3, "bf16": 5e-3}


class AdamW(train_peers.Torch):
    """Eager, with the batch in micro-batches of `rows`."""

    rows = 4

    def step(self):
        torch = self.torch
        self.zero()
        parts = [each.split(self.rows) for each in self.inputs]
        total = 0
        for part in zip(*parts):
            with torch.autocast("cpu", torch.bfloat16, enabled=self.autocast):
                loss = self.model(*part) / len(parts[0])
            loss.backward()
            total += loss.detach()
        self.clip()
        self.update()
        return total

    def zero(self):
        self.optimizer.zero_grad(set_to_none=True)

    def update(self):
        self.optimizer.step()


class Muon(AdamW):
    def __init__(self, *arguments):
        super().__init__(*arguments)
        s = models.TRAINING
        hidden, rest = [], []
        for name, parameter in self.model.named_parameters():
            is_hidden = parameter.ndim == 2 and "wte" not in name and "wpe" not in name
            (hidden if is_hidden else rest).append(parameter)
        self.muon = self.torch.optim.Muon(hidden, lr=s["lr"], weight_decay=s["weight_decay"])
        self.optimizer = self.torch.optim.AdamW(rest, lr=s["lr"], betas=s["betas"], eps=s["eps"],
                                                weight_decay=s["weight_decay"], fused=True)

    def zero(self):
        super().zero()
        self.muon.zero_grad(set_to_none=True)

    def update(self):
        self.muon.step()
        self.optimizer.step()


PEERS = {"PyTorch AdamW": AdamW, "PyTorch Muon": Muon}
OURS = {"acc AdamW": "adamw", "acc Muon": "muon"}


def measure(options, folder, batch, precision):
    scratch = pathlib.Path(tempfile.mkdtemp(prefix="acc-bench-"))
    runners = []
    try:
        for name, optimizer in OURS.items():
            flags = [f"--micro-batches={batch // AdamW.rows}"]
            runners.append(train.Acc(name, flags, folder, options, precision, 1, scratch, optimizer))
        for name in PEERS:
            runners.append(train.Peer(name, ("muon.py", "--serve"), folder, options, precision, 1, scratch))
        for ours, theirs in zip(runners[:2], runners[2:]):
            train.check_losses(ours, theirs.facts["losses"], TOLERANCE[precision])
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
    lines = [f"# Muon's step beside AdamW's, {models.title(result['model'])}, {result['threads']} threads", "",
             f"{harness.describe(result['date'], result['machine'])} {result['rounds']} rounds of "
             f"{result['repeat']} steps each, taking turns; seconds are medians (minima). Micro-batches of "
             f"{result['rows']} x {result['sequence']}.", "",
             "| tokens a step | precision | acc AdamW s | acc Muon s | ratio | PyTorch AdamW s | PyTorch Muon s | ratio | "
             "what Muon adds, acc / PyTorch s |", "|---|---|---|---|---|---|---|---|---|"]
    for group in result["groups"]:
        ours, our_muon, theirs, their_muon = group["rows"]
        cell = lambda row: f"{row['median_s']:.3f} ({row['minimum_s']:.3f})"
        adds = lambda base, muon: muon["median_s"] - base["median_s"]
        lines.append(
            f"| {group['batch'] * result['sequence']:,} | {group['precision']} | {cell(ours)} | {cell(our_muon)} | "
            f"{our_muon['median_s'] / ours['median_s']:.2f} | {cell(theirs)} | {cell(their_muon)} | "
            f"{their_muon['median_s'] / theirs['median_s']:.2f} | "
            f"{adds(ours, our_muon):.2f} / {adds(theirs, their_muon):.2f} |")
    return "\n".join(lines) + "\n"


def main():
    arguments = train.parser(__doc__)
    arguments.add_argument("--batches", default="4,64", help="rows of a step, by comma")
    arguments.add_argument("--precisions", default="fp32,bf16")
    options = arguments.parse_args()
    cpus = sorted(os.sched_getaffinity(0))[: options.threads]
    os.sched_setaffinity(0, cpus)
    result = {"benchmark": "muon", "model": options.model, "sequence": options.sequence,
              "date": datetime.datetime.now().isoformat(timespec="seconds"), "threads": options.threads,
              "rounds": options.rounds, "repeat": options.repeat, "rows": AdamW.rows,
              "settings": models.TRAINING, "machine": harness.machine(cpus), "groups": []}
    harness.warn_if_busy(result["machine"])
    for batch in map(int, options.batches.split(",")):
        folder = train.training_folder(options.model, batch, options.sequence)
        for precision in options.precisions.split(","):
            rows = measure(options, folder, batch, precision)
            result["groups"].append({"batch": batch, "precision": precision, "rows": rows})
    harness.write(options.results, f"{models.family(options.model)}-muon", result, table(result))


if __name__ == "__main__":
    if sys.argv[1:2] == ["--serve"]:
        train_peers.serve(PEERS, *sys.argv[2:])
    else:
        main()
