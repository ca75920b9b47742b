"""Stochastic depth, as transformers, timm and torchvision write it: in training a sample's branch is
there with probability p, and then divided by p; the same samples in every layout, others in every step;
in evaluation always. Needs the tools, whose folder ACC_BIN names."""
import json
import unittest

import numpy as np
import torch

from training import WITHOUT_TOOLS, TrainCase

ROWS, STEPS = 4096, 3


def by_floor(x, p):
    random = p + torch.rand((x.shape[0],) + (1,) * (x.dim() - 1), dtype=x.dtype)
    random.floor_()
    return x.div(p) * random


def by_bernoulli(x, p):
    random = x.new_empty((x.shape[0],) + (1,) * (x.dim() - 1)).bernoulli_(p)
    return x * random.div_(p)


class Branches(torch.nn.Module):
    """Of a sample: 1 + 16 where the first branch is there, and 256 where the second is."""

    def __init__(self):
        super().__init__()
        self.one = torch.nn.Parameter(torch.ones(1))

    def forward(self, x):
        y = self.one + by_floor(16 * 0.75 * self.one * x, 0.75) + by_bernoulli(
            256 * 0.25 * self.one * x, 0.25)
        return y.mean()


@unittest.skipIf(WITHOUT_TOOLS, WITHOUT_TOOLS)
class StochasticDepth(TrainCase):
    def losses(self, *flags):
        program, inputs = self.folder / "m.accx", self.folder / "inputs"
        self.tool("acc-opt", self.folder / "model.onnx", "--train", "--loss", "loss", "--dtype=f64",
                  "--optimizer", "sgd", "--set", "optimizer.lr=0", *flags, "-o", program)
        lines = self.tool("acc-run", program, "--steps", STEPS, "--inputs", inputs,
                          "--json").splitlines()
        evaluated = self.tool("acc-run", program, "--entry", "eval", "--inputs", inputs, "--json")
        return ([float(json.loads(line)["loss"]) for line in lines if '"loss"' in line],
                json.loads(evaluated.splitlines()[0])["eval_loss"])

    def test_branches(self):
        x = torch.ones(ROWS, 1)
        self.export(Branches().train(), (x,))
        (self.folder / "inputs").mkdir(exist_ok=True)
        np.save(self.folder / "inputs" / "x.npy", x.double().numpy())
        losses, evaluated = self.losses()
        # Nothing is dropped: 0.75 of 16, and 0.25 of 256.
        self.assertAlmostEqual(evaluated, 1 + 12 + 64, places=4)
        self.assertEqual(len(set(losses)), STEPS)
        for loss in losses:
            # Sums of 16 and 256, within five deviations of what is expected.
            total = round((loss - 1) * ROWS)
            self.assertEqual(total % 16, 0)
            deviation = ROWS ** 0.5 * (16 ** 2 * 0.1875 + 256 ** 2 * 0.1875) ** 0.5
            self.assertLess(abs(total - ROWS * (12 + 64)), 5 * deviation)
        for layout in ("--mesh dp=2", "--mesh dp=2 --micro-batches 4"):
            self.assertEqual(self.losses(*layout.split()), (losses, evaluated))


if __name__ == "__main__":
    unittest.main()
