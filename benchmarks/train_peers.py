"""The peers of train.py, each in processes of its own: started with a peer's
name, it loads, makes CHECKED steps, answers with their losses, then answers
`run N` on stdin with the seconds of N more steps. A peer on two ranks starts its
second process itself; the first one says to it how many steps to make."""
import json
import os
import pathlib
import resource
import socket
import subprocess
import sys
import time

import numpy as np

import models

CHECKED = 3


def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


class Torch:
    """PyTorch: eager, compiled, and on two ranks with DDP or FSDP2 (gloo)."""

    ranks = 1

    def __init__(self, model, folder, precision, threads):
        import torch

        self.torch, self.version = torch, torch.__version__
        torch.set_num_threads(threads)
        self.autocast = precision == "bf16"
        self.rank = int(os.environ.get("RANK", 0))
        if self.ranks > 1:
            torch.distributed.init_process_group("gloo")
        self.ids, self.labels = (
            torch.from_numpy(np.load(folder / "inputs" / f"{name}.npy")).chunk(self.ranks)[self.rank]
            for name in ("input_ids", "labels"))
        self.model = self.wrap(models.with_loss(models.build(model, folder / models.WEIGHTS)))
        s = models.TRAINING
        # fused: the fastest that PyTorch has on processors.
        self.optimizer = torch.optim.AdamW(
            self.model.parameters(), lr=s["lr"], betas=s["betas"], eps=s["eps"],
            weight_decay=s["weight_decay"], fused=True)

    def wrap(self, model):
        return model

    def step(self):
        torch = self.torch
        self.optimizer.zero_grad(set_to_none=True)
        with torch.autocast("cpu", torch.bfloat16, enabled=self.autocast):
            loss = self.model(self.ids, self.labels)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), models.TRAINING["clip"])
        self.optimizer.step()
        return loss.detach()

    def value(self, loss):
        """Every rank has as many labels: the mean of their means is the whole's."""
        if self.ranks > 1:
            self.torch.distributed.all_reduce(loss)
        return loss.item() / self.ranks

    def share(self, number):
        """Rank 0's number, on every rank."""
        if self.ranks == 1:
            return number
        value = self.torch.tensor([number or 0])
        self.torch.distributed.broadcast(value, 0)
        return int(value.item())

    def peaks(self):
        if self.ranks == 1:
            return [peak()]
        found = [None] * self.ranks
        self.torch.distributed.all_gather_object(found, peak())
        return found


class Compiled(Torch):
    def wrap(self, model):
        return self.torch.compile(model)


class DDP(Torch):
    ranks = 2

    def wrap(self, model):
        return self.torch.nn.parallel.DistributedDataParallel(model)


class FSDP2(Torch):
    ranks = 2

    def wrap(self, model):
        from torch.distributed.fsdp import fully_shard

        mesh = self.torch.distributed.init_device_mesh("cpu", (self.ranks,))
        for block in models.blocks(model):
            fully_shard(block, mesh=mesh)
        return fully_shard(model, mesh=mesh)


class Jax:
    """gpt2_jax.py or llama_jax.py, on one device; state is donated from step to step."""

    ranks = devices = 1

    def __init__(self, model, folder, precision, threads):
        import jax
        import jax.numpy as jnp

        import jax_training

        self.version = jax.__version__
        dtype = jnp.bfloat16 if precision == "bf16" else jnp.float32
        prefix, forward = models.in_jax(model, dtype)
        mesh = jax.sharding.Mesh(np.array(jax.devices()[:self.devices]), ("dp",))
        whole = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec())
        rows = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec("dp"))
        parameters = jax_training.load(folder / models.WEIGHTS, prefix)
        moments = {n: (jnp.zeros_like(p), jnp.zeros_like(p)) for n, p in parameters.items()}
        self.state = jax.device_put((parameters, moments, jnp.int32(0)), whole)
        self.batch = [jax.device_put(np.load(folder / "inputs" / f"{name}.npy").astype(np.int32), rows)
                      for name in ("input_ids", "labels")]
        step = jax_training.train_step(forward, models.TRAINING)
        self.call = jax.jit(step, donate_argnums=(0, 1, 2))

    def step(self):
        *self.state, loss = self.call(*self.state, *self.batch)
        for values in self.state[0].values():
            values.block_until_ready()
        return loss

    def value(self, loss):
        return float(loss)

    def share(self, number):
        return number

    def peaks(self):
        return [peak()]


class JaxTwo(Jax):
    """Two devices in one process: data-parallel by sharding the batch."""

    devices = 2


ONE_RANK = {"PyTorch eager": Torch, "torch.compile": Compiled, "JAX": Jax}
TWO_RANKS = {"DDP": DDP, "FSDP2": FSDP2, "JAX 2 devices": JaxTwo}
PEERS = {**ONE_RANK, **TWO_RANKS}


def start_second(arguments):
    """The second rank, as torchrun would start it; its answers are not read."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port), WORLD_SIZE="2", RANK="0",
                      GLOO_SOCKET_IFNAME="lo")
    return subprocess.Popen([sys.executable, __file__, *arguments], stdin=subprocess.DEVNULL,
                            stdout=subprocess.DEVNULL, env={**os.environ, "RANK": "1"})


def serve(name, model, folder, precision, threads):
    # Libraries write to stdout; the answers go to the pipe that was there first.
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    start = time.perf_counter()
    second = None
    if PEERS[name].ranks > 1 and "RANK" not in os.environ:
        second = start_second(sys.argv[1:])
    peer = PEERS[name](model, pathlib.Path(folder), precision, threads)
    losses = [peer.value(peer.step())]
    first = time.perf_counter() - start
    losses += [peer.value(peer.step()) for _ in range(CHECKED - 1)]
    print(json.dumps({"version": peer.version, "to_first_step_s": first, "losses": losses}),
          file=answers)
    lead = os.environ.get("RANK", "0") == "0"
    while True:
        line = sys.stdin.readline() if lead else None
        count = peer.share(int(line.split()[1]) if line else 0)
        if not count:
            break
        times = []
        for _ in range(count):
            begin = time.perf_counter()
            peer.step()
            times.append(time.perf_counter() - begin)
        print(json.dumps({"times_s": times, "peak_resident_bytes": peer.peaks()}), file=answers)
    if peer.ranks > 1:
        peer.torch.distributed.destroy_process_group()
    if second:
        second.wait()


if __name__ == "__main__":
    serve(*sys.argv[1:5], int(sys.argv[5]))
