"""Convolutions and poolings beside PyTorch in float64: losses and what training leaves in weights
and in what the input is scaled by, which the gradient of the input reaches; over all attributes that
modules have, alone and split over the batch and over channels. Needs the tools, whose folder ACC_BIN
names."""
import json
import random
import unittest

import numpy as np
import torch
from safetensors.torch import load_file

from training import WITHOUT_TOOLS, TrainCase

ROWS, ELEMENTS, RATE, STEPS = 6, 600, 0.5, 2
PER_MODEL, MODELS = 26, 16  # 416 cases
DATA = torch.randn(ROWS, ELEMENTS, generator=torch.Generator().manual_seed(3))
LAYOUTS = ("", "--mesh dp=2 --micro-batches 3", "--mesh tp=2", "--mesh dp_shard=2 --set zero_stage=3")
MODES = ("zeros", "zeros", "zeros", "reflect", "replicate", "circular")


def pick_convolution(pick, dims):
    """A module, and the sizes of its input."""
    groups = pick.choice((1, 1, 2, 4))
    channels = groups * pick.choice((1, 1, 2, 3))
    outs = groups * pick.choice((1, 2, 3))
    many = lambda *choices: tuple(pick.choice(choices) for _ in range(dims))
    kernel, stride, dilation = many(1, 2, 3, 3), many(1, 1, 2, 3), many(1, 1, 2)
    extents = [(size - 1) * step + 1 for size, step in zip(kernel, dilation)]
    sizes = [extent + pick.randint(0, 3 if dims > 1 else 7) for extent in extents]
    bias = pick.random() < 0.5
    if pick.random() < 0.3:
        extra = tuple(pick.randrange(max(step, apart)) for step, apart in zip(stride, dilation))
        sizes = [pick.randint(1, 4) for _ in range(dims)]
        padding = tuple(pick.randint(0, min(2, ((size - 1) * step + extent - 1) // 2))
                        for size, step, extent in zip(sizes, stride, extents))
        kind = (torch.nn.ConvTranspose1d, torch.nn.ConvTranspose2d, torch.nn.ConvTranspose3d)
        made = kind[dims - 1](channels, outs, kernel, stride, padding, extra, groups, bias, dilation)
        return made, [channels, *sizes]
    kind = (torch.nn.Conv1d, torch.nn.Conv2d, torch.nn.Conv3d)[dims - 1]
    mode, padding = pick.choice(MODES), many(0, 1, 2)
    if mode != "zeros":
        padding = tuple(min(pad, size - 1) for pad, size in zip(padding, sizes))
    elif pick.random() < 0.2:
        padding, stride = pick.choice((("same", 1), ("valid", stride)))
    return kind(channels, outs, kernel, stride, padding, dilation, groups, bias, mode), [channels, *sizes]


def pick_pooling(pick, dims):
    """The same of a pooling."""
    many = lambda *choices: tuple(pick.choice(choices) for _ in range(dims))
    kernel, stride = many(1, 2, 3), many(1, 2, 3)
    padding = tuple(pick.randint(0, size // 2) for size in kernel)
    if pick.random() < 0.5:
        kind = (torch.nn.MaxPool1d, torch.nn.MaxPool2d, torch.nn.MaxPool3d)[dims - 1]
        dilation = many(1, 1, 2)
        made = kind(kernel, stride, padding, dilation, ceil_mode=pick.random() < 0.5)
    else:
        kind = (torch.nn.AvgPool1d, torch.nn.AvgPool2d, torch.nn.AvgPool3d)[dims - 1]
        dilation = (1,) * dims
        made = kind(kernel, stride, padding, pick.random() < 0.5, pick.random() < 0.5)
    extents = [(size - 1) * step + 1 for size, step in zip(kernel, dilation)]
    return made, [pick.randint(1, 3), *(extent + pick.randint(0, 4) for extent in extents)]


class Many(torch.nn.Module):
    """Each of the modules on numbers of the data, scaled element by element."""

    def __init__(self, seed, pick_one, count=PER_MODEL):
        super().__init__()
        pick = random.Random(seed)
        torch.manual_seed(seed)
        self.inner, self.scales, self.weights = (torch.nn.ModuleList(), torch.nn.ParameterList(), [])
        while len(self.inner) < count:
            made, sizes = pick_one(pick, pick.randint(1, 3))
            if np.prod(sizes) > ELEMENTS:
                continue
            self.inner.append(made)
            self.scales.append(torch.nn.Parameter(torch.randn(sizes)))

    def forward(self, x):
        loss = 0
        for made, scale in zip(self.inner, self.scales):
            y = made(x[:, :scale.numel()].view(-1, *scale.shape) * scale)
            steps = torch.arange(y[0].numel(), dtype=x.dtype).view(y[0].shape)
            loss = loss + (torch.tanh(y) * torch.cos(steps)).mean()
        return loss


@unittest.skipIf(WITHOUT_TOOLS, WITHOUT_TOOLS)
class Convolutions(TrainCase):
    def by_torch(self, make):
        module = make().double()
        optimizer = torch.optim.SGD(module.parameters(), lr=RATE)
        losses = []
        for _ in range(STEPS):
            optimizer.zero_grad()
            loss = module(DATA.double())
            losses.append(loss.item())
            loss.backward()
            optimizer.step()
        return losses, {name: value.detach() for name, value in module.named_parameters()}

    def by_acc(self, layout):
        program, saved = self.folder / "m.accx", self.folder / "w.safetensors"
        inputs = self.folder / "inputs"
        self.tool("acc-opt", self.folder / "model.onnx", "--train", "--loss", "loss", "--dtype=f64",
                  "--entries=step", "--optimizer", "sgd", "--set", f"optimizer.lr={RATE}",
                  *layout.split(), "-o", program)
        lines = self.tool("acc-run", program, "--steps", STEPS, "--inputs", inputs, "--json",
                          "--save-weights", saved).splitlines()
        return ([float(json.loads(line)["loss"]) for line in lines if '"loss"' in line],
                load_file(saved))

    def check(self, make, layouts):
        self.export(make(), (DATA,))
        for file in (self.folder / "inputs").glob("*.npy"):
            np.save(file, np.load(file).astype(np.float64))
        losses, weights = self.by_torch(make)
        for layout in layouts:
            with self.subTest(layout=layout):
                found, trained = self.by_acc(layout)
                # Numbers in the code are of float32 in the file.
                torch.testing.assert_close(found, losses, rtol=1e-6, atol=1e-7)
                self.assertEqual(trained.keys(), weights.keys())
                for name, value in weights.items():
                    torch.testing.assert_close(trained[name].double(), value, rtol=1e-6, atol=1e-6,
                                               msg=lambda text, name=name: f"{name}: {text}")

    def test_convolutions(self):
        for seed in range(MODELS):
            with self.subTest(seed=seed):
                self.check(lambda: Many(seed, pick_convolution), (LAYOUTS[0], LAYOUTS[1 + seed % 3]))

    def test_poolings(self):
        for seed in range(4):
            with self.subTest(seed=seed):
                self.check(lambda: Many(100 + seed, pick_pooling),
                           (LAYOUTS[0], LAYOUTS[1 + seed % 3]))


if __name__ == "__main__":
    unittest.main()
