#!/usr/bin/env python3
"""Records how PyTorch's optimizers and transformers' schedules train the model of
optimizers/model.mlir in float64: inputs/x.npy, and expected.json with the flags of
acc-opt, loss, gradient norm (before clipping) and learning rate of each step, and the
parameters after the last. Run it with the versions of requirements.txt."""
import json
import math
import pathlib

import numpy as np
import torch
import transformers

FOLDER = pathlib.Path(__file__).resolve().parent / "optimizers"
STEPS = 4
X = [[1.0, -0.5], [0.25, 2.0], [-1.5, 0.75]]
W = [[0.5, -0.25], [1.0, 0.125], [-0.75, 2.0]]
B = [0.25, -0.5]

# name: flags, optimizer, clipping, schedule
RUNS = {
    "sgd": ("--optimizer sgd --set optimizer.lr=0.02",
            lambda p: torch.optim.SGD(p, lr=0.02), None, None),
    "momentum": ("--optimizer sgd --set optimizer.lr=0.02 --set optimizer.momentum=0.9 "
                 "--set optimizer.weight_decay=0.1",
                 lambda p: torch.optim.SGD(p, lr=0.02, momentum=0.9, weight_decay=0.1), None, None),
    "adam": ("--optimizer adam --set optimizer.lr=0.05 --set optimizer.betas=0.8,0.95 "
             "--set optimizer.eps=1e-3 --set optimizer.weight_decay=0.2",
             lambda p: torch.optim.Adam(p, lr=0.05, betas=(0.8, 0.95), eps=1e-3, weight_decay=0.2),
             None, None),
    "adam_defaults": ("--optimizer adam", torch.optim.Adam, None, None),
    "adamw_defaults": ("", torch.optim.AdamW, None, None),
    "adamw": ("--optimizer adamw --set optimizer.lr=0.05 --set optimizer.weight_decay=0.3 "
              "--set gradient_clipping=0.5",
              lambda p: torch.optim.AdamW(p, lr=0.05, weight_decay=0.3), 0.5, None),
    "warmup": ("--optimizer sgd --set optimizer.lr=0.02 --set scheduler.warmup_steps=2",
               lambda p: torch.optim.SGD(p, lr=0.02), None,
               lambda o: transformers.get_constant_schedule_with_warmup(o, 2)),
    "linear": ("--optimizer sgd --set optimizer.lr=0.02 --set scheduler.type=linear "
               "--set scheduler.warmup_steps=1 --set scheduler.total_steps=3",
               lambda p: torch.optim.SGD(p, lr=0.02), None,
               lambda o: transformers.get_linear_schedule_with_warmup(o, 1, 3)),
    # DeepSpeed's WarmupDecayLR, by its documented formula.
    "log_warmup": ("--optimizer sgd --set optimizer.lr=0.02 --set scheduler.type=linear "
                   "--set scheduler.warmup=log --set scheduler.warmup_steps=3 "
                   "--set scheduler.total_steps=5",
                   lambda p: torch.optim.SGD(p, lr=0.02), None,
                   lambda o: torch.optim.lr_scheduler.LambdaLR(
                       o, lambda done: math.log(done + 1) / math.log(3) if done < 3
                       else (5 - done) / (5 - 3))),
}


def train(flags, make_optimizer, clipping, make_schedule):
    x, w, b = (torch.tensor(v, dtype=torch.float64) for v in (X, W, B))
    w.requires_grad_(), b.requires_grad_()
    optimizer = make_optimizer([w, b])
    schedule = make_schedule(optimizer) if make_schedule else None
    steps = []
    for step in range(STEPS):
        optimizer.zero_grad()
        loss = torch.exp(x * w + b).sum()
        loss.backward()
        norm = torch.nn.utils.clip_grad_norm_([w, b], clipping or float("inf"))
        steps.append({"step": step + 1, "loss": loss.item(), "grad_norm": norm.item(),
                      "lr": optimizer.param_groups[0]["lr"]})
        optimizer.step()
        if schedule:
            schedule.step()
    return {"flags": flags.split(), "steps": steps, "w": w.flatten().tolist(), "b": b.tolist()}


if __name__ == "__main__":
    (FOLDER / "inputs").mkdir(exist_ok=True)
    np.save(FOLDER / "inputs" / "x.npy", np.array(X))
    runs = {name: train(*run) for name, run in RUNS.items()}
    (FOLDER / "expected.json").write_text(json.dumps(runs, indent=1) + "\n")
