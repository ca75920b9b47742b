"""The loss of an evaluation over all rows of a file whose last ones make no whole batch,
as PyTorch has it in float64 for all of them at once, in several layouts; and the line that
says what is left out where it cannot be known. Needs the tools, whose folder ACC_BIN
names."""
import json
import subprocess
import unittest

import numpy as np
import torch
import torch.nn.functional as F

from common import acc_export
from training import TOOLS, WITHOUT_TOOLS, TrainCase

BATCH, ROWS, LENGTH, WORDS, WIDTH = 4, 11, 12, 32, 16
LAYOUTS = ("", "--mesh dp=2 --micro-batches=2", "--mesh cp=2", "--mesh pp=2 --micro-batches=2",
           "--mesh dp=2,tp=2 --set zero_stage=3")
LEFT = "leaves out the last 3 of the 11 rows"


class Net(torch.nn.Module):
    """Attention over tokens; `scale` is an input that no tokens feed."""

    def __init__(self, ignored=-100, together=False):
        super().__init__()
        torch.manual_seed(7)
        self.words = torch.nn.Embedding(WORDS, WIDTH)
        self.q, self.k, self.v = (torch.nn.Linear(WIDTH, WIDTH) for _ in range(3))
        self.norm = torch.nn.LayerNorm(WIDTH)
        self.ignored, self.together = ignored, together

    def forward(self, ids, labels, scale):
        x = self.words(ids)
        y = F.scaled_dot_product_attention(*(f(x)[:, None] for f in (self.q, self.k, self.v)),
                                           is_causal=True)[:, 0]
        if self.together:  # no row is for itself
            y = y - y.mean(0, keepdim=True)
        logits = F.linear(self.norm(x + y), self.words.weight) * scale[:, None, None]
        return F.cross_entropy(logits[:, :-1].flatten(0, 1), labels[:, 1:].flatten(),
                               ignore_index=self.ignored)


@unittest.skipIf(WITHOUT_TOOLS, WITHOUT_TOOLS)
class Evaluation(TrainCase):
    def setUp(self):
        super().setUp()
        self.tokens = torch.randint(0, WORDS, (ROWS, LENGTH),
                                    generator=torch.Generator().manual_seed(3))
        for name, rows in (("held", ROWS), ("few", 3), ("one", 1)):
            np.save(self.folder / f"{name}.npy", self.tokens[:rows].numpy())
        for name, values in (("same", [1.5] * BATCH), ("other", [1.0, 2.0, 3.0, 4.0])):
            (self.folder / name).mkdir()
            np.save(self.folder / name / "scale.npy", np.array(values))

    def call(self, *words):
        done = subprocess.run([TOOLS / "acc-run", self.folder / "m.accx", "--json", *words],
                              text=True, capture_output=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout.splitlines()[0])["eval_loss"], done.stderr

    def compile(self, net, layout=""):
        if not (self.folder / "model.onnx").exists():
            batch = self.tokens[:BATCH]
            acc_export.export(net, (batch, batch, torch.ones(BATCH)), dir=str(self.folder))
        self.tool("acc-opt", self.folder / "model.onnx", "--train", "--loss", "loss", "--dtype=f64",
                  "--optimizer", "sgd", "--set", "optimizer.lr=0.1", *layout.split(),
                  "-o", self.folder / "m.accx")

    def evaluate(self, data, inputs="same"):
        """(the loss, what stands on stderr)"""
        return self.call("--entry", "eval", "--data", self.folder / f"{data}.npy", "--inputs",
                         self.folder / inputs)

    @staticmethod
    def right(net, rows, scale=1.5):
        scale = torch.as_tensor(scale, dtype=torch.float64)
        with torch.no_grad():
            return net.double()(rows, rows, scale.expand(len(rows))).item()

    def whole(self, net, scale=1.5):
        return sum(self.right(net, self.tokens[at:at + BATCH], scale) for at in (0, BATCH)) / 2

    def assert_loss(self, found, right):
        self.assertLess(abs(found - right), 1e-12 * abs(right))

    def test_all_rows_count_in_every_layout(self):
        net = Net()
        for layout in LAYOUTS:
            self.compile(net, layout)
            for data, rows in (("held", ROWS), ("few", 3), ("one", 1)):
                with self.subTest(layout=layout, data=data):
                    found, said = self.evaluate(data)
                    self.assert_loss(found, self.right(net, self.tokens[:rows]))
                    self.assertEqual(said, "")

    def test_all_rows_count_between_steps(self):
        net = Net()
        self.compile(net, "--mesh dp=2")
        held, same = self.folder / "held.npy", self.folder / "same"
        found, said = self.call("--inputs", same, "--data", held, "--eval-every", "1",
                                "--eval-inputs", same, "--eval-data", held, "--save-weights",
                                self.folder / "w.safetensors")
        acc_export.load(net.double(), str(self.folder / "w.safetensors"))
        self.assert_loss(found, self.right(net, self.tokens))
        self.assertEqual(said, "")

    def test_an_evaluation_ends_after_the_batches_it_is_given(self):
        net = Net()
        self.compile(net)
        held, same = self.folder / "held.npy", self.folder / "same"
        for batches, rows in ((1, 4), (2, 8), (3, ROWS), (9, ROWS)):
            found, said = self.call("--entry", "eval", "--data", held, "--inputs", same,
                                    "--eval-batches", str(batches))
            self.assert_loss(found, self.right(net, self.tokens[:rows]))
        found, said = self.call("--entry", "eval", "--data", held, "--inputs",
                                self.folder / "other", "--eval-batches", "2")
        self.assertEqual(said, "")  # no row that counts is left out
        found, said = self.call("--inputs", same, "--data", held, "--eval-every", "1",
                                "--eval-inputs", same, "--eval-data", held, "--eval-batches",
                                "1", "--save-weights", self.folder / "w.safetensors")
        acc_export.load(net.double(), str(self.folder / "w.safetensors"))
        self.assert_loss(found, self.right(net, self.tokens[:BATCH]))

    def test_rows_of_a_file_that_differ_are_left_out(self):
        net = Net()
        self.compile(net)
        found, said = self.evaluate("held", "other")
        self.assert_loss(found, self.whole(net, [1.0, 2.0, 3.0, 4.0]))
        self.assertIn(LEFT, said)
        self.assertIn("the file of input 'scale' has other values for each row of a batch", said)

    def test_labels_that_are_ignored_do_not_count(self):
        net = Net(ignored=int(self.tokens[0, 1]))
        self.compile(net)
        found, said = self.evaluate("held")
        self.assert_loss(found, self.right(net, self.tokens))
        self.assertEqual(said, "")

    def test_rows_that_depend_on_each_other_are_left_out(self):
        net = Net(together=True)
        self.compile(net)
        found, said = self.evaluate("held")
        self.assert_loss(found, self.whole(net))
        self.assertIn(LEFT, said)
        self.assertIn("the loss is not known to be a mean over rows", said)
