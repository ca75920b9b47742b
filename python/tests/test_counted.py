"""The loss of an evaluation whose rows weigh differently (labels that are ignored, weights of
classes, masks): over all rows of a file, whose last ones make no whole batch, it is what PyTorch
has in float64 for all of them at once, in several layouts. Needs the tools, whose folder ACC_BIN
names."""
import json
import subprocess
import unittest

import numpy as np
import torch
import torch.nn.functional as F

from common import acc_export
from training import TOOLS, WITHOUT_TOOLS, TrainCase

BATCH, ROWS, LENGTH, WORDS, WIDTH = 4, 11, 6, 16, 8
LAYOUTS = ("", "--mesh dp=2", "--mesh dp=2 --micro-batches=2", "--mesh pp=2 --micro-batches=2",
           "--mesh dp=2 --set zero_stage=3", "--mesh dp=2,tp=2")


def ignored(net, logits, labels, mask):
    return F.cross_entropy(logits, labels)


def weighted(net, logits, labels, mask):
    return F.cross_entropy(logits, labels, weight=net.weights, label_smoothing=0.125)


def masked(net, logits, labels, mask):
    losses = F.cross_entropy(logits, labels, reduction="none")
    return (losses * mask).sum() / mask.sum().clamp(min=64)  # of all rows it is less


def added(net, logits, labels, mask):
    losses = F.cross_entropy(logits, labels, reduction="none")
    return (0.5 * F.cross_entropy(logits, labels) - 0.25 * weighted(net, logits, labels, mask)
            + (losses * mask).sum() / (mask.sum() + 0.5) / 4 + 0.125 * logits.square().mean())


def of_means(net, logits, labels, mask):
    return F.cross_entropy(logits, labels).exp()


class Net(torch.nn.Module):
    """Two layers, for two stages; a token's mask is a number."""

    def __init__(self, loss):
        super().__init__()
        torch.manual_seed(7)
        self.words = torch.nn.Embedding(WORDS, WIDTH)
        self.layers = torch.nn.ModuleList(torch.nn.Linear(WIDTH, WIDTH) for _ in range(2))
        self.head = torch.nn.Linear(WIDTH, WORDS)
        self.register_buffer("weights", torch.linspace(0.25, 2, WORDS))
        self.loss = loss

    def forward(self, ids, labels, mask):
        x = self.words(ids)
        for layer in self.layers:
            x = x + layer(x).tanh()
        return self.loss(self, self.head(x).flatten(0, 1), labels.flatten(), mask.flatten())


@unittest.skipIf(WITHOUT_TOOLS, WITHOUT_TOOLS)
class Counted(TrainCase):
    def setUp(self):
        super().setUp()
        draws = torch.Generator().manual_seed(3)
        self.ids, self.labels = torch.randint(0, WORDS, (2, ROWS, LENGTH), generator=draws)
        self.mask = torch.rand(ROWS, LENGTH, generator=draws, dtype=torch.float64)
        for row in range(ROWS):  # of the second batch no label counts
            kept = 0 if BATCH <= row < 2 * BATCH else row * 5 % LENGTH + 1
            self.labels[row, kept:] = -100
            self.mask[row, kept:] = 0
        for name in ("ids", "labels", "mask"):
            np.save(self.folder / f"{name}.npy", getattr(self, name).numpy())

    def compile(self, net, layout):
        if not (self.folder / "model.onnx").exists():
            batch = (self.ids[:BATCH], self.labels[:BATCH], self.mask[:BATCH].float())
            acc_export.export(net, batch, dir=str(self.folder))
        self.tool("acc-opt", self.folder / "model.onnx", "--train", "--loss", "loss", "--dtype=f64",
                  "--optimizer", "sgd", "--set", "optimizer.lr=0.1", *layout.split(),
                  "-o", self.folder / "m.accx")

    def evaluate(self, net):
        data = ",".join(f"{name}={self.folder / name}.npy" for name in ("ids", "labels", "mask")
                        if net.loss in (masked, added) or name != "mask")
        done = subprocess.run([TOOLS / "acc-run", self.folder / "m.accx", "--json", "--entry",
                               "eval", "--data", data], text=True, capture_output=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout.splitlines()[0])["eval_loss"], done.stderr

    def right(self, net, rows=slice(None)):
        with torch.no_grad():
            return net.double()(self.ids[rows], self.labels[rows], self.mask[rows]).item()

    def assert_counted(self, loss):
        net = Net(loss)
        for layout in LAYOUTS:
            with self.subTest(layout=layout):
                self.compile(net, layout)
                found, said = self.evaluate(net)
                right = self.right(net)
                self.assertLess(abs(found - right), 1e-12 * abs(right))
                self.assertEqual(said, "")

    def test_labels_that_are_ignored(self):
        self.assert_counted(ignored)

    def test_weights_of_classes_and_smoothed_labels(self):
        self.assert_counted(weighted)

    def test_masks_that_are_not_let_below_a_count(self):
        self.assert_counted(masked)

    def test_losses_that_are_added(self):
        self.assert_counted(added)

    def test_what_is_not_made_of_sums_is_the_mean_of_whole_batches(self):
        net = Net(of_means)
        self.labels[BATCH:2 * BATCH, 0] = 1  # one counts in every batch
        np.save(self.folder / "labels.npy", self.labels.numpy())
        self.compile(net, "")
        found, said = self.evaluate(net)
        right = sum(self.right(net, slice(at, at + BATCH)) for at in (0, BATCH)) / 2
        self.assertLess(abs(found - right), 1e-12 * abs(right))
        self.assertIn("leaves out the last 3 of the 11 rows", said)
