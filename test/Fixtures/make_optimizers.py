#!/usr/bin/env python3
"""Records how PyTorch's optimizers, with transformers' and DeepSpeed's schedules, train
the model of optimizers/model.mlir in float64: inputs/x.npy, and expected.json with the
flags of acc-opt, loss, gradient norm (before clipping) and learning rate of each step,
and the parameters after the last. Run it with the versions of requirements.txt, and
deepspeed 0.19.8 (DS_BUILD_OPS=0 pip install --no-build-isolation deepspeed==0.19.8)."""
import json
import math
import pathlib

import numpy as np
import torch
import transformers
from deepspeed.runtime import lr_schedules as deepspeed

FOLDER = pathlib.Path(__file__).resolve().parent / "optimizers"
STEPS = 4
MORE_STEPS = 10  # of what schedules are there for
X = [[1.0, -0.5], [0.25, 2.0], [-1.5, 0.75]]
W = [[0.5, -0.25], [1.0, 0.125], [-0.75, 2.0]]
B = [0.25, -0.5]



def groups(decayed, others, make, **settings):
    """An optimizer that decays some parameters and not the others."""
    return make([{"params": decayed}, {"params": others, "weight_decay": 0.0}], **settings)


def course(kind, settings, make):
    """A run of SGD, whose rate is DeepSpeed's class `kind` or a schedule of that name."""
    flags = "".join(f" --set scheduler.{key}={value}" for key, value in settings.items())
    return (f"--optimizer sgd --set optimizer.lr=0.02 --set scheduler.type={kind}{flags}",
            lambda p: torch.optim.SGD(p, lr=0.02), None, make)


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
    "no_decay_vectors": ("--set optimizer.lr=0.05 --set optimizer.weight_decay=0.3 "
                         "--set optimizer.no_decay=vectors",
                         lambda p: groups(p[:1], p[1:], torch.optim.AdamW, lr=0.05,
                                          weight_decay=0.3), None, None),
    "no_decay_name": ("--optimizer sgd --set optimizer.lr=0.02 --set optimizer.momentum=0.9 "
                      "--set optimizer.weight_decay=0.1 --set optimizer.no_decay=[v-w]",
                      lambda p: groups(p[1:], p[:1], torch.optim.SGD, lr=0.02, momentum=0.9,
                                       weight_decay=0.1), None, None),
    "no_decay_but": ("--optimizer adam --set optimizer.lr=0.05 --set optimizer.weight_decay=0.2 "
                     "--set optimizer.no_decay=vectors,* --set optimizer.decay=b",
                     lambda p: groups(p[1:], p[:1], torch.optim.Adam, lr=0.05, weight_decay=0.2),
                     None, None),
    "no_decay_all": ("--set optimizer.weight_decay=0.3 --set optimizer.no_decay=*",
                     lambda p: torch.optim.AdamW(p, weight_decay=0), None, None),
    "cosine": course("cosine", {"warmup_steps": 3, "total_steps": 10},
                     lambda o: transformers.get_cosine_schedule_with_warmup(o, 3, 10)),
    "cosine_least": course(
        "cosine", {"total_steps": 10, "min_lr": 0.004},
        lambda o: transformers.get_cosine_with_min_lr_schedule_with_warmup(o, 0, 10, min_lr=0.004)),
    # Megatron-LM's --lr-warmup-init and --min-lr, by their documented formulas.
    "linear_between": course(
        "linear", {"warmup_steps": 3, "total_steps": 7, "warmup_min_lr": 0.002, "min_lr": 0.01},
        lambda o: torch.optim.lr_scheduler.LambdaLR(
            o, lambda done: 0.1 + 0.9 * done / 3 if done < 3
            else 0.5 + 0.5 * max(0, 1 - (done - 3) / (7 - 3)))),
    "constant_from": course(
        "constant", {"warmup_steps": 3, "warmup_min_lr": 0.002},
        lambda o: torch.optim.lr_scheduler.LambdaLR(
            o, lambda done: min(1, 0.1 + 0.9 * done / 3))),
    "warmup_lr": course(
        "WarmupLR", {"warmup_steps": 4, "warmup_min_lr": 0.004},
        lambda o: deepspeed.WarmupLR(o, warmup_min_lr=0.004, warmup_num_steps=4)),
    "warmup_lr_linear": course(
        "WarmupLR", {"warmup_steps": 4, "warmup": "linear"},
        lambda o: deepspeed.WarmupLR(o, warmup_num_steps=4, warmup_type="linear")),
    "warmup_lr_short": course(
        "WarmupLR", {"warmup_steps": 1}, lambda o: deepspeed.WarmupLR(o, warmup_num_steps=1)),
    "warmup_lr_defaults": course("WarmupLR", {}, deepspeed.WarmupLR),
    "warmup_decay_lr": course(
        "WarmupDecayLR", {"warmup_steps": 3, "total_steps": 7, "warmup_min_lr": 0.004},
        lambda o: deepspeed.WarmupDecayLR(o, 7, 0.004, 0.02, 3)),
    "warmup_decay_lr_linear": course(
        "WarmupDecayLR", {"warmup_steps": 3, "total_steps": 7, "warmup": "linear"},
        lambda o: deepspeed.WarmupDecayLR(o, 7, 0, 0.02, 3, "linear")),
    "warmup_decay_lr_over": course(
        "WarmupDecayLR", {"warmup_steps": 6, "total_steps": 4},
        lambda o: deepspeed.WarmupDecayLR(o, 4, 0, 0.02, 6)),
    "warmup_cosine_lr": course(
        "WarmupCosineLR", {"warmup_steps": 3, "total_steps": 7},
        lambda o: deepspeed.WarmupCosineLR(o, 7, warmup_num_steps=3)),
    "warmup_cosine_lr_linear": course(
        "WarmupCosineLR", {"warmup_steps": 3, "total_steps": 7, "warmup": "linear",
                           "warmup_min_ratio": 0.25, "cos_min_ratio": 0.125},
        lambda o: deepspeed.WarmupCosineLR(o, 7, 0.25, 3, 0.125, "linear")),
    "warmup_cosine_lr_over": course(
        "WarmupCosineLR", {"warmup_steps": 1, "total_steps": 1, "cos_min_ratio": 0.5},
        lambda o: deepspeed.WarmupCosineLR(o, 1, warmup_num_steps=1, cos_min_ratio=0.5)),
    # DeepSpeed's way of rising, by the clock of transformers' linear schedule.
    "log_warmup": ("--optimizer sgd --set optimizer.lr=0.02 --set scheduler.type=linear "
                   "--set scheduler.warmup=log --set scheduler.warmup_steps=3 "
                   "--set scheduler.total_steps=5",
                   lambda p: torch.optim.SGD(p, lr=0.02), None,
                   lambda o: torch.optim.lr_scheduler.LambdaLR(
                       o, lambda done: math.log(done + 1) / math.log(3) if done < 3
                       else max(0, (5 - done) / (5 - 3)))),
}


def train(flags, make_optimizer, clipping, make_schedule):
    x, w, b = (torch.tensor(v, dtype=torch.float64) for v in (X, W, B))
    w.requires_grad_(), b.requires_grad_()
    optimizer = make_optimizer([w, b])
    schedule = make_schedule(optimizer) if make_schedule else None
    steps = []
    for step in range(MORE_STEPS if make_schedule else STEPS):
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
