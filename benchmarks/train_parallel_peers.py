"""The peers of train_parallel.py, on two ranks or devices as in train_peers.py: tensor
parallelism by PyTorch's DTensor (gloo) and by JAX, and sequences that ranks share: in
PyTorch heads are exchanged for positions (Ulysses), or keys and values gathered, since
its context_parallel knows no attention of CPUs; in JAX it is said where tensors are."""
import sys

import numpy as np

import models
from pipeline_peers import PIPELINE
from train_peers import Jax, Torch, serve


class TensorParallel(Torch):
    """DTensor, as Megatron-LM splits: columns then rows in each half of a block, the
    vocabulary of the tied embedding, and a loss of logits that ranks have parts of."""

    ranks = 2

    def share_out(self, *inputs):
        return inputs

    def wrap(self, model):
        from torch.distributed.tensor import Replicate, Shard
        from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

        mesh = self.torch.distributed.init_device_mesh("cpu", (self.ranks,))
        columns, rows = ColwiseParallel(), RowwiseParallel()
        if hasattr(model, "transformer"):
            separate_linear(model, self.ranks)
            plan = {"attn.c_attn": columns, "attn.c_proj": rows, "mlp.c_fc": columns, "mlp.c_proj": rows}
            table = "transformer.wte"
        else:
            plan = {**{f"self_attn.{name}_proj": columns for name in "qkv"}, "self_attn.o_proj": rows,
                    "mlp.gate_proj": columns, "mlp.up_proj": columns, "mlp.down_proj": rows}
            table = "model.embed_tokens"
        for block in models.blocks(model):
            parallelize_module(block, mesh, plan)
        parallelize_module(model, mesh, {
            table: RowwiseParallel(input_layouts=Replicate()),
            "lm_head": ColwiseParallel(output_layouts=Shard(-1), use_local_output=True)})
        # Still one parameter.
        model.lm_head.weight = model.get_submodule(table).weight
        model.loss_function = split_loss(self.torch, model.lm_head.weight)
        return model

    def parameters(self):
        """Those of each kind together: fused AdamW takes no mixture."""
        self.split = [p for p in self.model.parameters() if hasattr(p, "to_local")]
        self.whole = [p for p in self.model.parameters() if not hasattr(p, "to_local")]
        return [{"params": self.split}, {"params": self.whole}]

    def clip(self):
        """clip_grad_norm_ takes no mixture either."""
        torch = self.torch
        pieces, whole = [p.grad.to_local() for p in self.split], [p.grad for p in self.whole]
        squares = torch.nn.utils.get_total_norm(pieces) ** 2
        torch.distributed.all_reduce(squares)
        norm = torch.sqrt(squares + torch.nn.utils.get_total_norm(whole) ** 2)
        torch._foreach_mul_(pieces + whole, torch.clamp(models.TRAINING["clip"] / (norm + 1e-6), max=1.0))


def separate_linear(model, ranks):
    """GPT-2's Conv1D as Linear, which DTensor knows how to split, and in the weight of
    query, key and value each rank's parts together."""
    import torch

    def linear(weight, bias):
        made = torch.nn.Linear(weight.shape[1], weight.shape[0])
        made.weight, made.bias = torch.nn.Parameter(weight.contiguous()), torch.nn.Parameter(bias.contiguous())
        return made

    for block in model.transformer.h:
        attention, mlp = block.attn, block.mlp
        made, bias = attention.c_attn.weight.detach().T, attention.c_attn.bias.detach()
        width = made.shape[1]
        order = torch.arange(3 * width).reshape(3, ranks, width // ranks).transpose(0, 1).flatten()
        attention.c_attn = linear(made[order], bias[order])
        attention.split_size = width // ranks
        for owner, name in ((attention, "c_proj"), (mlp, "c_fc"), (mlp, "c_proj")):
            old = getattr(owner, name)
            setattr(owner, name, linear(old.weight.detach().T, old.bias.detach()))


def split_loss(torch, weight):
    """Cross-entropy of logits whose classes ranks share, as Megatron-LM has it: what is
    exchanged is one number of each token for the maximum, the sum and the label's logit."""
    import torch.distributed._functional_collectives as functional

    group = weight.device_mesh.get_group()
    size = weight.shape[0]
    # Pieces are of the size of the first; the last may be smaller.
    first = torch.distributed.get_rank() * -(-size // weight.device_mesh.size())

    def total(values, kind="sum"):
        return functional.wait_tensor(functional.all_reduce(values, kind, group))

    class Loss(torch.autograd.Function):
        @staticmethod
        def forward(context, logits, labels):
            logits = logits - total(logits.amax(-1), "max")[:, None]
            own = (labels >= first) & (labels < first + logits.shape[1])
            place = torch.where(own, labels - first, 0)
            label = torch.where(own, logits.gather(1, place[:, None])[:, 0], 0)
            exponents = logits.exp()
            sums, label = total(torch.stack([exponents.sum(-1), label])).unbind()
            counted = labels >= 0
            context.save_for_backward(exponents, sums, place, own, counted)
            return torch.where(counted, sums.log() - label, 0).sum() / counted.sum()

        @staticmethod
        def backward(context, gradient):
            exponents, sums, place, own, counted = context.saved_tensors
            scale = torch.where(counted, gradient / counted.sum(), 0)
            made = exponents * (scale / sums)[:, None]
            return made.scatter_add(1, place[:, None], torch.where(own, -scale, 0)[:, None]), None

    def loss(logits, labels, vocab_size, **_):
        shifted = torch.nn.functional.pad(labels[:, 1:], (0, 1), value=-100)
        return Loss.apply(logits.float().flatten(0, 1), shifted.flatten())

    return loss


class CompiledTensorParallel(TensorParallel):
    def wrap(self, model):
        return self.torch.compile(super().wrap(model))


class Sequence(Torch):
    """Each rank has some of the positions, every parameter, and averages gradients as DDP does."""

    ranks = 2

    def share_out(self, tokens, labels):
        torch = self.torch
        shifted = torch.nn.functional.pad(labels[:, 1:], (0, 1), value=-100)
        positions = torch.arange(tokens.shape[1])[None]
        # The mean of the ranks' losses is the mean over all labels.
        self.count = (shifted >= 0).sum() / self.ranks
        self.length = tokens.shape[1]
        return [each[:, self.positions(self.length)] for each in (tokens, shifted, positions)]

    def positions(self, length):
        return self.torch.arange(length).chunk(self.ranks)[self.rank]

    def wrap(self, model):
        from transformers import AttentionInterface

        torch, base, count = self.torch, type(model).__mro__[1], self.count
        AttentionInterface.register("shared", self.attention)
        model.config._attn_implementation = "shared"

        class Positioned(base):
            def forward(self, tokens, labels, positions):
                return super().forward(input_ids=tokens, labels=labels, position_ids=positions, use_cache=False,
                                       shift_labels=labels, num_items_in_batch=count).loss

        model.__class__ = Positioned
        return torch.nn.parallel.DistributedDataParallel(self.compile(model))

    def compile(self, model):
        return model


class Ulysses(Sequence):
    """All positions of half of the heads in attention."""

    def attention(self, module, query, key, value, mask, scaling=None, **_):
        import torch
        import torch.distributed._functional_collectives as functional

        group, ranks = torch.distributed.group.WORLD, self.ranks

        def exchange(x):
            return functional.all_to_all_single_autograd(x, None, None, group)

        batch, _, length, width = query.shape
        counts = [x.shape[1] // ranks for x in (query, key, value)]
        # [rank, batch, head of the rank, position, width], all three at once.
        parts = torch.cat([x.unflatten(1, (ranks, -1)) for x in (query, key, value)], 2).transpose(0, 1)
        got = exchange(parts.contiguous()).permute(1, 2, 0, 3, 4).flatten(2, 3)
        query, key, value = got.split(counts, 1)
        mixed = torch.nn.functional.scaled_dot_product_attention(
            query, key, value, scale=scaling, is_causal=True, enable_gqa=counts[0] != counts[1])
        back = exchange(mixed.unflatten(2, (ranks, length)).permute(2, 0, 1, 3, 4).contiguous())
        return back.permute(1, 3, 0, 2, 4).flatten(2, 3), None


class Gathered(Sequence):
    """Keys and values of all positions, for queries of some: of a causal sequence's quarters
    a rank has the first and last or those between, so that all have as much to do."""

    def positions(self, length):
        torch = self.torch
        quarters = torch.arange(length).chunk(2 * self.ranks)
        return torch.cat([quarters[self.rank], quarters[-1 - self.rank]])

    def attention(self, module, query, key, value, mask, scaling=None, **_):
        import torch
        import torch.distributed._functional_collectives as functional

        group, ranks, length = torch.distributed.group.WORLD, self.ranks, query.shape[2]
        pieces = 2 * ranks
        # [rank, batch, key and value head, half, position, width] -> the positions in order.
        both = torch.cat([key, value], 1)
        whole = functional.all_gather_single_autograd(both[None].contiguous(), 0, group)
        halves = whole.unflatten(3, (2, -1)).unbind(3)
        order = [halves[0][i] for i in range(ranks)] + [halves[1][i] for i in reversed(range(ranks))]
        mixed = []
        for number, own in zip((self.rank, pieces - 1 - self.rank), query.chunk(2, 2), strict=True):
            keys, values = torch.cat(order[:number + 1], 2).chunk(2, 1)
            rows = torch.arange(length // 2)[:, None] + number * (length // 2)
            mixed.append(torch.nn.functional.scaled_dot_product_attention(
                own, keys, values, attn_mask=rows >= torch.arange(keys.shape[2])[None], scale=scaling,
                enable_gqa=own.shape[1] != keys.shape[1]))
        return torch.cat(mixed, 2).transpose(1, 2), None


class CompiledUlysses(Ulysses):
    def compile(self, model):
        return self.torch.compile(model)


class CompiledGathered(Gathered):
    def compile(self, model):
        return self.torch.compile(model)


class JaxTensor(Jax):
    """Megatron-LM's splits by NamedSharding; each device makes the logits of half the batch."""

    devices = 2
    inputs_split = None
    # Parameters by the dimension of theirs that is split.
    SPLIT = {"attn.c_attn.weight": 2, "attn.c_attn.bias": 1, "attn.c_proj.weight": 0, "mlp.c_fc.weight": 1,
             "mlp.c_fc.bias": 0, "mlp.c_proj.weight": 0, **{f"self_attn.{name}_proj.weight": 0 for name in "qkv"},
             "self_attn.o_proj.weight": 1, "mlp.gate_proj.weight": 0, "mlp.up_proj.weight": 0,
             "mlp.down_proj.weight": 1}

    def prepare(self, arrays):
        """Query, key and value in three parts: else their heads are not what is split."""
        return {name: array.reshape(*array.shape[:-1], 3, -1) if ".c_attn." in name else array
                for name, array in arrays.items()}

    def split(self, name):
        return next((dim for end, dim in self.SPLIT.items() if name.endswith(end)), None)

    def place(self, kind, x):
        at = {"last": 0}.get(kind, False)
        return x if at is False else self.jax.lax.with_sharding_constraint(x, self.sharding(at, x.ndim))

    def placing(self):
        return {"place": self.place}


class JaxTensorVocabulary(JaxTensor):
    """The vocabulary is split, too, and padded where devices do not divide it."""

    def prepare(self, arrays):
        def pad(array):
            return np.pad(array, [(0, -len(array) % self.devices), (0, 0)])

        return {name: pad(array) if self.is_table(name) else array
                for name, array in super().prepare(arrays).items()}

    @staticmethod
    def is_table(name):
        return name in ("wte.weight", "embed_tokens.weight")

    def split(self, name):
        return 0 if self.is_table(name) else super().split(name)

    def place(self, kind, x):
        return x

    def criterion(self, model):
        jnp, size = self.jax.numpy, models.MODELS[model]["vocab_size"]

        def loss(logits, labels):
            """The label's logit is looked for: to gather it would be to gather them all."""
            logits = logits[:, :-1].astype(jnp.float32)
            classes = jnp.arange(logits.shape[-1])
            logits = jnp.where(classes < size, logits, -jnp.inf)
            picked = jnp.where(classes == labels[:, 1:, None], logits, 0).sum(-1)
            return (self.jax.nn.logsumexp(logits, axis=-1) - picked).mean()

        return {"criterion": loss}


class JaxSequence(Jax):
    """The devices share the positions; how attention is made of that is JAX's affair."""

    devices = 2
    inputs_split = 1
    PLACES = {}

    def place(self, kind, x):
        at = self.PLACES.get(kind)
        return x if at is None else self.jax.lax.with_sharding_constraint(x, self.sharding(at, x.ndim))

    def placing(self):
        return {"place": self.place}

    def labelled(self, tokens, labels):
        """Shifted here: the devices' pieces stay as long."""
        return tokens, np.pad(labels[:, 1:], [(0, 0), (0, 1)], constant_values=-100)

    def criterion(self, model):
        jnp = self.jax.numpy

        def loss(logits, labels):
            logits = logits.astype(jnp.float32)
            counted = labels >= 0
            picked = jnp.take_along_axis(logits, jnp.maximum(labels, 0)[..., None], axis=-1)[..., 0]
            losses = self.jax.nn.logsumexp(logits, axis=-1) - picked
            return jnp.where(counted, losses, 0).sum() / counted.sum()

        return {"criterion": loss}


class JaxUlysses(JaxSequence):
    """All positions of half of the heads in attention."""

    PLACES = {"heads": 2, "mixed": 1}


TENSOR = {"DTensor": TensorParallel, "DTensor compiled": CompiledTensorParallel,
          "JAX": JaxTensor, "JAX vocabulary split": JaxTensorVocabulary}
SEQUENCE = {"PyTorch Ulysses": Ulysses, "PyTorch Ulysses compiled": CompiledUlysses,
            "PyTorch gathered": Gathered, "PyTorch gathered compiled": CompiledGathered,
            "JAX": JaxSequence, "JAX Ulysses": JaxUlysses}
PEERS = {"tensor": TENSOR, "sequence": SEQUENCE, "pipeline": PIPELINE}

if __name__ == "__main__":
    kind, *words = sys.argv[1:]
    serve(PEERS[kind], *words)
