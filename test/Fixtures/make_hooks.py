#!/usr/bin/env python3
"""Exports a small module (hooks/model.onnx, inputs beside it), and records how PyTorch's
DistributedDataParallel trains it in float32 on two processes, with each hook that
compresses gradients and without: hooks/expected.json has the losses, the gradients of the
first step as the optimizer sees them, and the parameters after the last. Run it with the
versions of requirements.txt."""
import copy
import json
import pathlib
import shutil
import tempfile

import numpy as np
import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks
from torch.nn.parallel import DistributedDataParallel

from exported import export

FOLDER = pathlib.Path(__file__).resolve().parent / "hooks"
RANKS, STEPS, RATE, BATCH, WIDTH, CLASSES = 2, 6, 0.5, 8, 12, 6


def bf16_hook(state, bucket):
    """PyTorch's own, under a name by which DDP does not ask for NCCL: Gloo adds bf16 up."""
    return default_hooks.bf16_compress_hook(state, bucket)


HOOKS = {"no": None, "fp16": default_hooks.fp16_compress_hook, "bf16": bf16_hook}


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.hidden = nn.Embedding(10, WIDTH), nn.Linear(WIDTH, 2 * WIDTH)
        self.head = nn.Linear(2 * WIDTH, CLASSES)

    def forward(self, ids, labels):
        return F.cross_entropy(self.head(torch.tanh(self.hidden(self.embed(ids)))), labels)


def train(rank, start, inputs, folder):
    """What one process sees of all hooks."""
    dist.init_process_group("gloo", init_method=f"file://{folder}/meet", rank=rank,
                            world_size=RANKS)
    mine = {name: values.chunk(RANKS)[rank] for name, values in inputs.items()}
    results = {}
    for name, hook in HOOKS.items():
        model = copy.deepcopy(start)
        parallel = DistributedDataParallel(model)
        if hook:
            parallel.register_comm_hook(None, hook)
        optimizer = torch.optim.SGD(model.parameters(), lr=RATE)
        losses, gradients = [], {}
        for _ in range(STEPS):
            optimizer.zero_grad()
            loss = parallel(**mine)
            loss.backward()
            gradients = gradients or {key: value.grad.flatten().tolist()
                                      for key, value in model.named_parameters()}
            optimizer.step()
            loss = loss.detach() / RANKS
            dist.all_reduce(loss)
            losses.append(loss.item())
        results[name] = {"losses": losses, "gradients": gradients,
                         "weights": {key: value.flatten().tolist()
                                     for key, value in model.state_dict().items()}}
    if rank == 0:
        pathlib.Path(folder, "results.json").write_text(json.dumps(results))
    dist.destroy_process_group()


def main():
    torch.manual_seed(5)
    model = Classifier()
    inputs = {"ids": torch.randint(10, (BATCH,)), "labels": torch.randint(CLASSES, (BATCH,))}
    shutil.rmtree(FOLDER, ignore_errors=True)
    export(FOLDER / "model.onnx", model, inputs, ["loss"], optimize=True)
    (FOLDER / "inputs").mkdir()
    for name, values in inputs.items():
        np.save(FOLDER / "inputs" / f"{name}.npy", values.numpy())
    with tempfile.TemporaryDirectory() as folder:
        torch.multiprocessing.spawn(train, (model, inputs, folder), nprocs=RANKS)
        results = json.loads(pathlib.Path(folder, "results.json").read_text())
    (FOLDER / "expected.json").write_text(json.dumps(results) + "\n")


if __name__ == "__main__":
    main()
