"""Losses whose rows are taken in chunks (--set loss_chunks=N) beside PyTorch in float64: losses and
weights after four steps, of heads and losses as models have them. Needs the tools, whose folder
ACC_BIN names."""
import json
import unittest

import numpy as np
import torch
import torch.nn.functional as F
from safetensors.torch import load_file

from common import acc_export
from training import WITHOUT_TOOLS, Refused, TrainCase

SAMPLES, LENGTH, WIDTH, CLASSES = 8, 6, 8, 512
RATE, STEPS = 0.125, 4
LAYOUTS = ("", "--micro-batches=2", "--mesh dp=2", "--mesh dp=2 --set zero_stage=3 --micro-batches=2",
           "--mesh pp=2 --micro-batches=2 --schedule=1f1b", "--mesh pp=2",
           "--mesh pp=2 --micro-batches=4 --schedule=zb-h1", "--mesh tp=2 --set tp.vocabulary=false",
           "--recompute=full")


def mean(logits, labels, x):
    return F.cross_entropy(logits.flatten(0, 1), labels.flatten())


def smooth(logits, labels, x):
    return F.cross_entropy(logits.flatten(0, 1), labels.flatten(), label_smoothing=0.125)


def shifted(logits, labels, x):
    return F.cross_entropy(logits[:, :-1].flatten(0, 1), labels[:, 1:].flatten())


def capped(logits, labels, x):
    return mean(torch.tanh(logits / 3) * 3, labels, x)


def scaled(logits, labels, x):
    return F.cross_entropy(0.5 * logits.flatten(0, 1), labels.flatten(), reduction="sum") / 16


def masked(logits, labels, x):
    mask = (x[..., 0] > 0).to(logits.dtype).flatten()
    each = F.cross_entropy(logits.flatten(0, 1), labels.flatten(), reduction="none")
    return (each * mask).sum() / mask.sum()


def with_z(logits, labels, x):
    return mean(logits, labels, x) + 0.015625 * logits.logsumexp(-1).square().mean()


def weighted(logits, labels, x):
    weight = torch.linspace(0.5, 1.5, CLASSES, dtype=logits.dtype)
    return F.cross_entropy(logits.flatten(0, 1), labels.flatten(), weight=weight)


def twice(logits, labels, x):
    return mean(logits, labels, x) + 0.5 * shifted(logits, labels, x)


class Layer(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.up, self.down = torch.nn.Linear(WIDTH, 2 * WIDTH), torch.nn.Linear(2 * WIDTH, WIDTH)

    def forward(self, x):
        return x + self.down(torch.tanh(self.up(x)))


class Net(torch.nn.Module):
    def __init__(self, loss, bias=False, tied=False, flat=False):
        super().__init__()
        torch.manual_seed(5)
        self.loss, self.tied, self.flat = loss, tied, flat
        self.layers = torch.nn.ModuleList(Layer() for _ in range(2))
        self.head = torch.nn.Linear(WIDTH, CLASSES, bias=bias)

    def forward(self, x, labels):
        h = x
        if self.tied:
            h = h + F.embedding(labels.clamp(min=0), self.head.weight)
        for layer in self.layers:
            h = layer(h)
        if self.flat:
            return self.loss(self.head(h.flatten(0, 1)).unflatten(0, (-1, LENGTH)), labels, x)
        return self.loss(self.head(h), labels, x)


@unittest.skipIf(WITHOUT_TOOLS, WITHOUT_TOOLS)
class LossChunks(TrainCase):
    def use(self, net):
        draw = torch.Generator().manual_seed(2)
        self.x = torch.randn(SAMPLES, LENGTH, WIDTH, generator=draw)
        self.labels = torch.randint(0, CLASSES, (SAMPLES, LENGTH), generator=draw)
        self.labels[0, 2:4] = self.labels[5, 0] = -100  # no row of a chunk is like another's
        acc_export.export(net, (self.x, self.labels), dir=str(self.folder))
        inputs = self.folder / "inputs"
        inputs.mkdir(exist_ok=True)
        np.save(inputs / "x.npy", self.x.double().numpy())
        np.save(inputs / "labels.npy", self.labels.numpy())
        # What PyTorch makes of it.
        net = net.double()
        optimizer = torch.optim.SGD(net.parameters(), lr=RATE)
        self.losses = []
        for _ in range(STEPS):
            optimizer.zero_grad()
            loss = net(self.x.double(), self.labels)
            loss.backward()
            optimizer.step()
            self.losses.append(loss.item())
        self.weights = {name: value.detach() for name, value in net.named_parameters()}

    def train(self, words):
        program, saved = self.folder / "m.accx", self.folder / "w.safetensors"
        self.tool("acc-opt", self.folder / "model.onnx", "--train", "--loss", "loss", "--dtype=f64",
                  "--optimizer", "sgd", "--set", f"optimizer.lr={RATE}", "--entries", "step",
                  *words.split(), "-o", program)
        lines = self.tool("acc-run", program, "--steps", STEPS, "--inputs", self.folder / "inputs",
                          "--json", "--save-weights", saved).splitlines()
        report = json.loads(lines[-1])
        self.assertEqual(report["planned_peak_bytes"], report["measured_peak_bytes"])
        return ([json.loads(line)["loss"] for line in lines if '"loss"' in line],
                load_file(saved), report["planned_peak_bytes"])

    def assert_as_pytorch(self, layouts=("",), chunks=(2, 4), is_less=True):
        for layout in layouts:
            *_, whole = self.train(f"{layout} --set loss_chunks=none")
            for count in chunks:
                with self.subTest(layout=layout, chunks=count):
                    losses, saved, peak = self.train(f"{layout} --set loss_chunks={count}")
                    torch.testing.assert_close(losses, self.losses, rtol=1e-12, atol=0)
                    self.assertEqual(saved.keys(), self.weights.keys())
                    for name, weight in self.weights.items():
                        distance = (saved[name] - weight).norm() / weight.norm()
                        self.assertLess(distance, 1e-12, name)
                    if is_less:
                        self.assertLess(peak, whole)

    def test_layouts(self):
        self.use(Net(mean))
        self.assert_as_pytorch(LAYOUTS, (2,))

    def test_evaluation(self):
        for net, words in ((Net(mean), ""), (Net(weighted, bias=True), "--mesh dp=2 --micro-batches=2"),
                           (Net(shifted), "--mesh pp=2 --micro-batches=2")):
            self.use(net)
            peaks = []
            for chunks in ("none", "2"):
                with self.subTest(words=words, chunks=chunks):
                    program = self.folder / "e.accx"
                    self.tool("acc-opt", self.folder / "model.onnx", "--train", "--loss", "loss", "--dtype=f64",
                              "--optimizer", "sgd", "--set", f"optimizer.lr={RATE}", *words.split(),
                              "--recompute=full", "--set", f"loss_chunks={chunks}", "-o", program)
                    inputs = self.folder / "inputs"
                    lines = [json.loads(line) for line in
                             self.tool("acc-run", program, "--steps", STEPS - 1, "--inputs", inputs, "--json",
                                       "--eval-every", 1, "--eval-inputs", inputs).splitlines()]
                    # The loss after a step is that of the next one.
                    found = [line["eval_loss"] for line in lines if "eval_loss" in line]
                    torch.testing.assert_close(found, self.losses[1:], rtol=1e-12, atol=0)
                    peaks.append(lines[-1]["planned_peak_bytes"])
            self.assertLess(peaks[1], peaks[0], words)

    def test_tied(self):
        self.use(Net(mean, tied=True))
        self.assert_as_pytorch(("", "--mesh dp=2 --micro-batches=2", "--mesh pp=2 --micro-batches=2"), (2,))

    def test_heads(self):
        for words in ({"bias": True}, {"flat": True}, {"bias": True, "flat": True}):
            with self.subTest(words):
                self.use(Net(mean, **words))
                self.assert_as_pytorch()

    def test_losses(self):
        for loss in (smooth, shifted, capped, scaled, masked, weighted, twice, with_z):
            with self.subTest(loss=loss.__name__):
                self.use(Net(loss, bias=True))
                self.assert_as_pytorch(chunks=(4,))

    def test_one_sample_is_cut_along_itself(self):
        self.use(Net(mean))
        self.assert_as_pytorch(("--micro-batches=8", "--mesh dp=4 --micro-batches=2"), (2, 3),
                               is_less=False)  # logits of six rows

    def test_what_stays_whole_is_said(self):
        self.use(Net(mean))
        for words, why in (("--set loss_chunks=5", "no multiple of that (8)"),
                           ("--set loss_chunks=2 --mesh tp=2", "ranks split the classes")):
            with self.assertRaises(Refused) as refused:
                self.train(words)
            self.assertIn(why, str(refused.exception))
        # A gradient that waits for all rows: of the loss's square.
        self.use(Net(lambda *given: mean(*given).square()))
        with self.assertRaises(Refused) as refused:
            self.train("--set loss_chunks=2")
        self.assertIn("waits for all rows", str(refused.exception))


if __name__ == "__main__":
    unittest.main()
