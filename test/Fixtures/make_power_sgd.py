#!/usr/bin/env python3
"""Records how PyTorch's DistributedDataParallel trains the module of hooks/ (make_hooks.py) in
float64 with PowerSGD, on one process and on two: hooks/power_sgd.json has, of each choice of
options, the losses, each step's gradients as the optimizer sees them and the parameters after
the last. The first factors are those that acc draws, so that nothing is left
to a generator. Run it with the versions of requirements.txt, after make_hooks.py."""
import copy
import json
import math
import pathlib
import tempfile

import numpy as np
import torch
import torch.distributed as dist
from torch.distributed.algorithms.ddp_comm_hooks import powerSGD_hook
from torch.nn.parallel import DistributedDataParallel

from make_hooks import FOLDER, Classifier

STEPS, RATE, PLAIN = 5, 0.5, 2
CHOICES = {
    "rank 1": {},
    "rank 2": {"matrix_approximation_rank": 2, "min_compression_rate": 1},
    "rank 3": {"matrix_approximation_rank": 3, "min_compression_rate": 1},
    "no feedback": {"use_error_feedback": False},
    "anew": {"warm_start": False, "random_seed": 7},
    "large ones": {"min_compression_rate": 5},
    "epsilon": {"orthogonalization_epsilon": 1e-3},
}
# PyTorch adds it to lengths of sums over processes, acc to those of the mean.
OF_ONE = {"epsilon"}
WORD = (1 << 64) - 1


def mix(x):
    """SplitMix64's finaliser."""
    x = (x + 0x9e3779b97f4a7c15) & WORD
    x = ((x ^ x >> 30) * 0xbf58476d1ce4e5b9) & WORD
    x = ((x ^ x >> 27) * 0x94d049bb133111eb) & WORD
    return x ^ x >> 31


def philox(counter, key):
    """The first word of Philox4x32-10."""
    half = (1 << 32) - 1
    x = [counter & half, counter >> 32, 0, 0]
    low, high = key & half, key >> 32
    for _ in range(10):
        first, second = 0xD2511F53 * x[0], 0xCD9E8D57 * x[2]
        x = [second >> 32 ^ x[1] ^ low, second & half, first >> 32 ^ x[3] ^ high, first & half]
        low, high = (low + 0x9E3779B9) & half, (high + 0xBB67AE85) & half
    return x[0]


def draw(name, step, seed, rank, columns):
    """What acc begins with: [columns, rank] of the normal distribution."""
    site = 0xcbf29ce484222325
    for byte in name.encode():
        site = ((site ^ byte) * 0x100000001b3) & WORD
    key = (mix(mix(seed) ^ site) >> 1) + step
    size = rank * columns
    uniform = [(philox(i, key) >> 8) * 2.0**-24 for i in range(2 * size)]
    normal = [math.sqrt(-2 * math.log(1 - uniform[i])) * math.cos(2 * math.pi * uniform[size + i])
              for i in range(size)]
    return torch.tensor(normal, dtype=torch.float64).view(rank, columns).t()


def make_hook(names, seed):
    """PyTorch's own, given the factors that it would draw. `names`: of parameters, by their
    gradients' shapes, which all differ."""
    def hook(state, bucket):
        index, step = bucket.index(), state.iter - state.start_powerSGD_iter
        begins = not state.warm_start or index not in state.p_memory_dict
        if step < 0 or not begins:
            return powerSGD_hook.powerSGD_hook(state, bucket)
        ps, qs = [], []
        for gradient in bucket.gradients():
            n, m = gradient.view(gradient.shape[0], -1).shape
            rank = min(n, m, state.matrix_approximation_rank)
            if (n + m) * rank * state.min_compression_rate < n * m:
                ps.append(torch.empty(n * rank, dtype=gradient.dtype))
                qs.append(draw(names[gradient.shape], step, seed, rank, m).reshape(-1))
        # It draws none where it has some.
        warm, state.warm_start = state.warm_start, True
        state.p_memory_dict[index], state.q_memory_dict[index] = torch.cat(ps), torch.cat(qs)
        future = powerSGD_hook.powerSGD_hook(state, bucket)
        future.wait()
        state.warm_start = warm
        if not warm:
            state.p_memory_dict.clear()
            state.q_memory_dict.clear()
        return future
    return hook


def train(rank, ranks, start, inputs, folder):
    """What one process sees of all choices."""
    dist.init_process_group("gloo", init_method=f"file://{folder}/meet{ranks}", rank=rank,
                            world_size=ranks)
    mine = {name: values.chunk(ranks)[rank] for name, values in inputs.items()}
    results = {}
    for choice, options in CHOICES.items():
        model = copy.deepcopy(start)
        parallel = DistributedDataParallel(model)
        state = powerSGD_hook.PowerSGDState(None, start_powerSGD_iter=PLAIN, **options)
        names = {value.shape: name for name, value in model.named_parameters()}
        parallel.register_comm_hook(state, make_hook(names, options.get("random_seed", 0)))
        optimizer = torch.optim.SGD(model.parameters(), lr=RATE)
        for _ in range(PLAIN):  # it must see two gradients; nothing learns from them
            optimizer.zero_grad()
            parallel(**mine).backward()
        losses, gradients = [], []
        for _ in range(STEPS):
            optimizer.zero_grad()
            loss = parallel(**mine)
            loss.backward()
            gradients.append({key: value.grad.flatten().tolist()
                              for key, value in model.named_parameters()})
            optimizer.step()
            loss = loss.detach() / ranks
            dist.all_reduce(loss)
            losses.append(loss.item())
        results[choice] = {"options": options, "losses": losses, "gradients": gradients,
                           "weights": {key: value.flatten().tolist()
                                       for key, value in model.state_dict().items()}}
    if rank == 0:
        pathlib.Path(folder, f"results{ranks}.json").write_text(json.dumps(results))
    dist.destroy_process_group()


def main():
    torch.manual_seed(5)
    model = Classifier().double()
    shapes = [value.shape for value in model.parameters()]
    assert len(set(shapes)) == len(shapes)
    inputs = {name: torch.from_numpy(np.load(FOLDER / "inputs" / f"{name}.npy"))
              for name in ("ids", "labels")}
    results = {}
    with tempfile.TemporaryDirectory() as folder:
        for ranks in (1, 2):
            torch.multiprocessing.spawn(train, (ranks, model, inputs, folder), nprocs=ranks)
            results[ranks] = json.loads(pathlib.Path(folder, f"results{ranks}.json").read_text())
    for choice, two in results[2].items():
        one = results[1][choice]["losses"]
        worst = max(abs(a - b) for a, b in zip(one, two["losses"], strict=True))
        print(f"{choice}: losses on one process {worst:.1e} from those on two")
    expected = {choice: results[1 if choice in OF_ONE else 2][choice] for choice in CHOICES}
    (FOLDER / "power_sgd.json").write_text(json.dumps(expected) + "\n")


if __name__ == "__main__":
    main()
