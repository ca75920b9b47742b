#!/usr/bin/env python3
"""Exports small modules whose losses, or whose order of rows, once could not be run in
micro-batches (losses/NAME.onnx, inputs beside it), and records how PyTorch trains each
in float64: losses/expected.json has the loss and gradient norm of each step, and the
parameters after the last. Run it with the versions of requirements.txt."""
import copy
import json
import pathlib
import shutil

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

from exported import export

FOLDER = pathlib.Path(__file__).resolve().parent / "losses"
STEPS, RATE = 4, 0.1
BATCH, LENGTH, WIDTH, WORDS = 12, 4, 8, 11


class Language(nn.Module):
    """Words to logits, each position by itself."""

    def __init__(self):
        super().__init__()
        self.embed, self.hidden = nn.Embedding(WORDS, WIDTH), nn.Linear(WIDTH, WIDTH)
        self.head = nn.Linear(WIDTH, WORDS)

    def logits(self, ids):
        return self.head(torch.tanh(self.hidden(self.embed(ids))))

    def log_probs(self, ids, labels):
        return F.log_softmax(self.logits(ids), -1).gather(-1, labels[..., None]).squeeze(-1)


class NegativeLogLikelihood(Language):
    """By hand: what users write for weighted tokens."""

    def forward(self, ids, labels, weights):
        return -(self.log_probs(ids, labels) * weights).sum() / weights.sum()


class Smoothed(Language):
    """Label smoothing: every word's gradient is the same number, and the label's more."""

    def forward(self, ids, labels):
        mean = F.log_softmax(self.logits(ids), -1).mean(-1)
        return -(0.9 * self.log_probs(ids, labels) + 0.1 * mean).mean()


class Preference(Language):
    """DPO: chosen and rejected answers in one batch."""

    def forward(self, chosen, rejected, reference):
        both = torch.cat([chosen, rejected], 0)
        ratios = self.log_probs(both, both).sum(-1)
        count = chosen.shape[0]
        return -F.logsigmoid(0.5 * (ratios[:count] - ratios[count:] - reference)).mean()


class Pairs(Language):
    """Chosen and rejected that follow each other: taken by steps, of scores and of what has
    more dimensions, woven again, and written by steps."""

    def forward(self, ids):
        x = self.embed(ids)
        states = torch.tanh(self.hidden(torch.stack([x[0::2], 0.5 * x[1::2]], 1).flatten(0, 1)))
        written = states.clone()
        written[1::2] = states[1::2] * states[0::2]
        logits = self.head(written)
        scores = logits.sin().mean((1, 2))
        apart = F.kl_div(*(F.log_softmax(logits[k::2], -1) for k in (0, 1)), log_target=True,
                         reduction="sum")
        return apart / ids.numel() - F.logsigmoid(scores[0::2] - scores[1::2]).mean()


class LastToken(Language):
    def forward(self, ids, last):
        return self.logits(ids)[torch.arange(ids.shape[0]), last].tanh().pow(2).mean()


class Picked(nn.Module):
    """Several positions of each sample, whole vectors of them."""

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(WIDTH, WIDTH)

    def forward(self, x, places):
        index = places[..., None].expand(-1, -1, WIDTH)
        return torch.gather(self.linear(x), 1, index).tanh().pow(2).mean()


class Attention(nn.Module):
    """torch's own module: positions first inside."""

    def __init__(self):
        super().__init__()
        self.attention = nn.MultiheadAttention(WIDTH, 2, batch_first=True)

    def forward(self, x):
        return self.attention(x, x, x, need_weights=True)[0].tanh().pow(2).mean()


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.TransformerEncoderLayer(WIDTH, 2, 16, 0.0, batch_first=True)

    def forward(self, x):
        return self.layer(x).tanh().pow(2).mean()


class SequenceFirst(Language):
    def forward(self, ids, labels):
        return F.cross_entropy(self.logits(ids).reshape(-1, WORDS), labels.reshape(-1))


class Regularised(nn.Module):
    """A term of weights alone, and weights that the loss reads through an op."""

    def __init__(self):
        super().__init__()
        self.linear, self.gate = nn.Linear(WIDTH, WIDTH), nn.Parameter(torch.randn(WIDTH, WIDTH))

    def forward(self, x):
        gate = torch.where(self.gate > 0, self.gate, 0.1 * self.gate)
        error = self.linear(x @ gate).tanh().pow(2).mean()
        return error + 0.1 * self.linear.weight.pow(2).sum() + 0.01 * self.linear.bias.abs().sum()


class ConstantGradient(nn.Module):
    """What reaches the weights does not depend on the data's micro-batch."""

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(WIDTH, WIDTH)

    def forward(self, x):
        y = self.linear(x)
        return (y - y.floor()).mean()


def ids(generator, *shape, below=WORDS):
    return torch.randint(0, below, shape, generator=generator)


def cases(g):
    """name: module, inputs, flags."""
    words = (BATCH, LENGTH)
    x = torch.randn(BATCH, LENGTH, WIDTH, generator=g)
    rows = torch.randn(BATCH, WIDTH, generator=g)
    second = ["--batch-dim", "ids=1", "--batch-dim", "labels=1"]
    return {
        "nll": (NegativeLogLikelihood, {"ids": ids(g, *words), "labels": ids(g, *words),
                                        "weights": torch.rand(*words, generator=g)}, []),
        "smoothed": (Smoothed, {"ids": ids(g, *words), "labels": ids(g, *words)}, []),
        "preference": (Preference, {"chosen": ids(g, *words), "rejected": ids(g, *words),
                                    "reference": torch.randn(BATCH, generator=g)}, []),
        "last_token": (LastToken, {"ids": ids(g, *words),
                                   "last": ids(g, BATCH, below=LENGTH)}, []),
        "picked": (Picked, {"x": x, "places": ids(g, BATCH, 3, below=LENGTH)}, []),
        "attention": (Attention, {"x": x}, []),
        "encoder": (Encoder, {"x": x}, []),
        "sequence_first": (SequenceFirst, {"ids": ids(g, LENGTH, BATCH),
                                           "labels": ids(g, LENGTH, BATCH)}, second),
        "regularised": (Regularised, {"x": rows}, []),
        "constant_gradient": (ConstantGradient, {"x": rows}, []),
        "pairs": (Pairs, {"ids": ids(g, 2 * BATCH, LENGTH)}, []),
    }


def wide(tensor):
    return tensor.double() if tensor.is_floating_point() else tensor


def train(module, inputs):
    module = copy.deepcopy(module).double()
    inputs = [wide(tensor) for tensor in inputs.values()]
    parameters = dict(module.named_parameters())
    optimizer = torch.optim.SGD(parameters.values(), lr=RATE)
    steps = []
    for _ in range(STEPS):
        optimizer.zero_grad()
        loss = module(*inputs)
        loss.backward()
        norm = torch.nn.utils.clip_grad_norm_(parameters.values(), float("inf"))
        steps.append({"loss": loss.item(), "grad_norm": norm.item()})
        optimizer.step()
    return steps, {name: value.flatten().tolist() for name, value in parameters.items()}


if __name__ == "__main__":
    shutil.rmtree(FOLDER, ignore_errors=True)
    expected = {}
    for name, (kind, inputs, flags) in cases(torch.Generator().manual_seed(7)).items():
        torch.manual_seed(4)
        module = kind()
        export(FOLDER / name / "model.onnx", module, inputs, ["loss"], optimize=False)
        (FOLDER / name / "inputs").mkdir()
        for key, tensor in inputs.items():
            np.save(FOLDER / name / "inputs" / f"{key}.npy", wide(tensor).numpy())
        steps, parameters = train(module, inputs)
        expected[name] = {"flags": ["--optimizer", "sgd", "--set", f"optimizer.lr={RATE}", *flags],
                          "steps": steps, "parameters": parameters}
    (FOLDER / "expected.json").write_text(json.dumps(expected, separators=(",", ":")) + "\n")
