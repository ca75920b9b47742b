"""LSTM, GRU and RNN beside PyTorch in float64: losses and weights after some steps, in layouts, as
acc-export and both of torch.onnx's exporters write them. Needs the tools, whose folder ACC_BIN names."""
import unittest

import numpy as np
import torch

from common import Refused
from training import WITHOUT_TOOLS, TrainCase

ROWS, LENGTH, WIDTH, STEPS, RATE = 4, 5, 3, 3, 0.25
DATA = torch.randn(ROWS, LENGTH, WIDTH, generator=torch.Generator().manual_seed(2))
LAYOUTS = ("", "--mesh dp=2 --micro-batches 2", "--mesh dp_shard=2 --set zero_stage=3",
           "--mesh tp=2", "--mesh pp=2 --micro-batches 2 --schedule 1f1b")


class Tagger(torch.nn.Module):
    """A network in one of PyTorch's forms, and a sum of squares over what it gives."""

    def __init__(self, kind, starts=False, **options):
        super().__init__()
        torch.manual_seed(7)
        self.inner = getattr(torch.nn, kind)(WIDTH, 4, batch_first=True, **options)
        directions = 2 if options.get("bidirectional") else 1
        self.head = torch.nn.Linear(4 * directions, 2)
        self.start = torch.nn.Parameter(torch.randn(
            options.get("num_layers", 1) * directions, 1, 4)) if starts else None

    def forward(self, x):
        state = None
        if self.start is not None:
            state = self.start.expand(-1, x.shape[0], -1).contiguous()
            if isinstance(self.inner, torch.nn.LSTM):
                state = (state, torch.tanh(state))
        sequence, last = self.inner(x, state)
        last = last[0] + last[1] if isinstance(last, tuple) else last
        return (self.head(sequence) - x[:, :, :2]).square().mean() + last.square().mean()


def by_torch(module):
    module = module.double()
    optimizer = torch.optim.SGD(module.parameters(), lr=RATE)
    losses = []
    for _ in range(STEPS):
        optimizer.zero_grad()
        loss = module(DATA.double())
        loss.backward()
        losses.append(loss.item())
        optimizer.step()
    return losses


@unittest.skipIf(WITHOUT_TOOLS, WITHOUT_TOOLS)
class Recurrent(TrainCase):
    def train(self, *flags):
        return self.train_steps(STEPS, "--optimizer", "sgd", "--set", f"optimizer.lr={RATE}", *flags)

    def write_inputs(self):
        (self.folder / "inputs").mkdir(exist_ok=True)
        np.save(self.folder / "inputs" / "x.npy", DATA.double().numpy())

    def assert_alike(self, make, *flags):
        module = make()
        expected = by_torch(module)
        losses, weights = self.train(*flags)
        torch.testing.assert_close(losses, expected, rtol=1e-6, atol=1e-8)
        for name, parameter in module.named_parameters():
            torch.testing.assert_close(weights[name].double(), parameter.detach(), rtol=1e-6,
                                       atol=1e-6)

    def check(self, layouts, kind, **options):
        def make():
            return Tagger(kind, **options)

        self.export(make(), (DATA,))
        self.write_inputs()
        for layout in layouts:
            with self.subTest(layout=layout, kind=kind, **options):
                self.assert_alike(make, *layout.split())

    def test_kinds(self):
        for kind in ("LSTM", "GRU", "RNN"):
            self.check(LAYOUTS if kind == "LSTM" else LAYOUTS[:1], kind)
            self.check(LAYOUTS[:2], kind, num_layers=2, bidirectional=True, starts=True)
            self.check(LAYOUTS[:1], kind, bias=False)
        self.check(LAYOUTS[:1], "RNN", nonlinearity="relu")

    def test_exporters(self):
        """Weights that are joined and reordered on the way have their names; folded ones are refused
        where they had names, and else trained under those that they have."""
        def make():
            return Tagger("LSTM", bidirectional=True)

        self.write_inputs()
        path = str(self.folder / "model.onnx")
        for name, options in (("whole", {"dynamo": True, "optimize": False}),
                              ("old", {"dynamo": False, "do_constant_folding": False})):
            torch.onnx.export(make(), (DATA,), path, input_names=["x"], output_names=["loss"],
                              **options)
            with self.subTest(exporter=name):
                self.assert_alike(make)
        torch.onnx.export(make(), (DATA,), path, input_names=["x"], output_names=["loss"], dynamo=True)
        with self.assertRaisesRegex(Refused, "acc-export"):
            self.train()
        torch.onnx.export(make(), (DATA,), path, input_names=["x"], output_names=["loss"],
                          dynamo=False)
        torch.testing.assert_close(self.train()[0], by_torch(make()), rtol=1e-6, atol=1e-8)


if __name__ == "__main__":
    unittest.main()
