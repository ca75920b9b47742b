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
        inputs = [torch.from_numpy(np.load(folder / "inputs" / f"{name}.npy")) for name in ("input_ids", "labels")]
        self.inputs = self.share_out(*inputs)
        sequence = inputs[0].shape[1]  # of all ranks together, which the table of positions is for
        self.model = self.wrap(models.with_loss(models.build(model, folder / models.WEIGHTS, sequence)))
        s = models.TRAINING
        # fused: the fastest that PyTorch has on processors.
        self.optimizer = torch.optim.AdamW(
            self.parameters(), lr=s["lr"], betas=s["betas"], eps=s["eps"],
            weight_decay=s["weight_decay"], fused=True)

    def share_out(self, *inputs):
        """What of the inputs this rank has."""
        return [each.chunk(self.ranks)[self.rank] for each in inputs]

    def wrap(self, model):
        return model

    def parameters(self):
        return self.model.parameters()

    def clip(self):
        self.torch.nn.utils.clip_grad_norm_(self.model.parameters(), models.TRAINING["clip"])

    def step(self):
        torch = self.torch
        self.optimizer.zero_grad(set_to_none=True)
        with torch.autocast("cpu", torch.bfloat16, enabled=self.autocast):
            loss = self.model(*self.inputs)
        loss.backward()
        self.clip()
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
    # The dimension of the inputs that the devices share.
    inputs_split = 0

    def __init__(self, model, folder, precision, threads):
        import jax
        import jax.numpy as jnp

        import jax_training

        self.jax, self.version = jax, jax.__version__
        self.mesh = jax.sharding.Mesh(np.array(jax.devices()[:self.devices]), ("ranks",))
        dtype = jnp.bfloat16 if precision == "bf16" else jnp.float32
        prefix, forward = models.in_jax(model, dtype, **self.placing())
        arrays = self.prepare(jax_training.load(folder / models.WEIGHTS, prefix))
        parameters, first, second = (
            {name: jax.device_put(value(array), self.sharding(self.split(name), array.ndim))
             for name, array in arrays.items()} for value in (jnp.array, jnp.zeros_like, jnp.zeros_like))
        self.state = (parameters, {name: (first[name], second[name]) for name in first},
                      jax.device_put(jnp.int32(0), self.sharding(None, 0)))
        batch = self.labelled(*(np.load(folder / "inputs" / f"{name}.npy").astype(np.int32)
                                for name in ("input_ids", "labels")))
        self.batch = [jax.device_put(each, self.sharding(self.inputs_split, 2)) for each in batch]
        step = jax_training.train_step(forward, models.TRAINING, **self.criterion(model))
        self.call = jax.jit(step, donate_argnums=(0, 1, 2))

    def sharding(self, dim, rank):
        """Of a tensor whose dimension `dim`, if any, the devices share."""
        axes = ["ranks" if i == dim else None for i in range(rank)]
        return self.jax.sharding.NamedSharding(self.mesh, self.jax.sharding.PartitionSpec(*axes))

    def prepare(self, arrays):
        return arrays

    def split(self, name):
        """The dimension of a parameter that the devices share."""
        return None

    def placing(self):
        """What `forward` is told beside the model."""
        return {}

    def labelled(self, tokens, labels):
        return tokens, labels

    def criterion(self, model):
        """What train_step() is told beside the settings."""
        return {}

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
    return subprocess.Popen([sys.executable, *arguments], stdin=subprocess.DEVNULL,
                            stdout=subprocess.DEVNULL, env={**os.environ, "RANK": "1"})


def serve(peers, name, model, folder, precision, threads):
    # Libraries write to stdout; the answers go to the pipe that was there first.
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    start = time.perf_counter()
    second = None
    if peers[name].ranks > 1 and "RANK" not in os.environ:
        second = start_second(sys.argv)
    peer = peers[name](model, pathlib.Path(folder), precision, int(threads))
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
    serve(PEERS, *sys.argv[1:])
