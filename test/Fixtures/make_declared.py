#!/usr/bin/env python3
"""Makes test/Fixtures/declared: two small models as acc-export (python/) writes them, and
how PyTorch trains them.

  {plain,stops}/model.onnx   plain: a tied embedding with a padding row, label smoothing,
                             frozen and unused parameters, a buffer like a parameter
                             stops: detach and no_grad regions, on activations and weights
  {plain,stops}/inputs       the sample
  {plain,stops}/expected.json
                             losses: of three steps of AdamW (lr 0.01, weight decay 0.1),
                             float64; weights: after them, by name; still: names that
                             PyTorch gave no gradient

Run it with the versions of requirements.txt."""
import copy
import json
import pathlib
import shutil
import sys

import onnx
import torch
import torch.nn.functional as F

import exported

ROOT = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(ROOT.parent.parent / "python"))

import acc_export  # noqa: E402

VOCABULARY, WIDTH, STEPS = 11, 6, 3


class Plain(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = torch.nn.Embedding(VOCABULARY, WIDTH, padding_idx=2)
        self.norm = torch.nn.LayerNorm(WIDTH)
        self.frozen = torch.nn.Linear(WIDTH, WIDTH).requires_grad_(False)
        self.head = torch.nn.Linear(WIDTH, VOCABULARY, bias=False)
        self.head.weight = self.embed.weight
        self.unused = torch.nn.Linear(2, 3)
        self.register_buffer("ones", torch.ones(WIDTH))

    def forward(self, ids):
        h = self.norm(torch.tanh(self.frozen(self.embed(ids)))) * self.ones
        return self.head(h) + h @ self.embed.weight.T

    @staticmethod
    def loss(logits, labels):
        return F.cross_entropy(logits.reshape(-1, VOCABULARY), labels.reshape(-1),
                               label_smoothing=0.1)


class Stops(torch.nn.Module):
    """A student that follows a teacher made of its own weights, and a gate that only
    ever runs without gradients."""

    def __init__(self):
        super().__init__()
        self.embed = torch.nn.Embedding(VOCABULARY, WIDTH)
        self.student = torch.nn.Linear(WIDTH, WIDTH)
        self.head = torch.nn.Linear(WIDTH, WIDTH)
        self.gate = torch.nn.Linear(WIDTH, WIDTH)

    def forward(self, ids):
        h = self.embed(ids)
        with torch.no_grad():
            teacher = torch.tanh(self.student(h))
            gate = torch.sigmoid(self.gate(h))
        found = self.head(torch.tanh(self.student(h)))
        return gate * (found - teacher) + h @ self.head.weight.detach() + found.detach() * h

    @staticmethod
    def loss(outputs, labels):
        return outputs.pow(2).mean() + 0.01 * outputs.sum(-1).mul(labels.clamp(min=0)).mean()


def train(module, ids, labels):
    module = copy.deepcopy(module).double()
    optimizer = torch.optim.AdamW(module.parameters(), lr=0.01, weight_decay=0.1)
    losses = []
    for _ in range(STEPS):
        optimizer.zero_grad()
        value = module.loss(module(ids), labels)
        losses.append(value.item())
        value.backward()
        optimizer.step()
    return losses, module


def make(name, kind):
    torch.manual_seed(3)
    module = kind()
    generator = torch.Generator().manual_seed(4)
    ids = torch.randint(0, VOCABULARY, (4, 5), generator=generator)
    ids[0, :2] = 2
    labels = torch.randint(0, VOCABULARY, (4, 5), generator=generator)
    labels[1] = -100
    folder = ROOT / "declared" / name
    summary = acc_export.export(module, (ids,), {"labels": labels}, loss=kind.loss, dir=folder)
    proto = exported.strip(onnx.load(summary.path))
    pathlib.Path(summary.path).write_bytes(proto.SerializeToString(deterministic=True))
    losses, trained = train(module, ids, labels)
    (folder / "expected.json").write_text(json.dumps({
        "losses": losses,
        "weights": {n: p.flatten().tolist() for n, p in trained.named_parameters()},
        "still": [n for n, p in trained.named_parameters() if p.grad is None]}, indent=1) + "\n")


if __name__ == "__main__":
    shutil.rmtree(ROOT / "declared", ignore_errors=True)
    make("plain", Plain)
    make("stops", Stops)
