"""Models that draw random numbers in training: a variational autoencoder, a diffusion model with its
loss, Gumbel's softmax and others, trained by acc in every layout as PyTorch trains them in float64 with
the same numbers, which are functions of the seed, the step, the call's place in the model and the
element's (Philox4x32-10, computed here once more). Needs the tools, whose folder ACC_BIN names."""
import json
import unittest

import numpy as np
import torch
import torch.nn.functional as F

from common import double
from draws import Draws
from training import WITHOUT_TOOLS, TrainCase

BATCH, STEPS, RATE = 8, 3, 2.0 ** -5
LAYOUTS = ("", "--mesh dp=2 --micro-batches 2", "--mesh dp=4 --set zero_stage=3", "--mesh tp=2",
           "--micro-batches 4")
EVALUATION = -1  # the call whose numbers entries draw that do not train


class Autoencoder(torch.nn.Module):
    """Kingma and Welling's: the bottleneck is drawn, and the loss has its divergence."""

    def __init__(self):
        super().__init__()
        self.encode = torch.nn.Linear(12, 16)
        self.middle, self.spread = torch.nn.Linear(16, 4), torch.nn.Linear(16, 4)
        self.decode = torch.nn.Sequential(torch.nn.Linear(4, 16), torch.nn.ReLU(), torch.nn.Linear(16, 12))

    def draw(self, middle, spread):
        return middle + torch.randn_like(spread) * torch.exp(0.5 * spread)

    def forward(self, x):
        hidden = torch.tanh(self.encode(x))
        middle, spread = self.middle(hidden), self.spread(hidden)
        made = self.decode(self.draw(middle, spread))
        divergence = -0.5 * (1 + spread - middle ** 2 - spread.exp()).sum(-1).mean()
        return F.mse_loss(made, x, reduction="sum") / x.shape[0] + divergence


class ByDistribution(Autoencoder):
    def draw(self, middle, spread):
        return torch.distributions.Normal(middle, torch.exp(0.5 * spread)).rsample()


class Diffusion(torch.nn.Module):
    """Ho, Jain and Abbeel's training step: a time for each sample, and its noise to be found."""

    def __init__(self, times=20):
        super().__init__()
        self.times = times
        self.register_buffer("kept", torch.cumprod(1 - torch.linspace(1e-4, 0.2, times), 0))
        self.embed = torch.nn.Embedding(times, 8)
        self.first, self.second = torch.nn.Conv2d(2, 8, 3, padding=1), torch.nn.Conv2d(8, 2, 3, padding=1)
        self.norm = torch.nn.GroupNorm(2, 8)

    def forward(self, x):
        time = torch.randint(0, self.times, (x.shape[0],))
        noise = torch.randn_like(x)
        kept = self.kept[time].view(-1, 1, 1, 1)
        noisy = kept.sqrt() * x + (1 - kept).sqrt() * noise
        hidden = self.norm(self.first(noisy)) + self.embed(time)[:, :, None, None]
        return F.mse_loss(self.second(F.silu(hidden)), noise)


class Gumbel(torch.nn.Module):
    """A discrete choice of each row, by the straight-through estimator (Jang, Gu and Poole)."""

    def __init__(self, hard):
        super().__init__()
        self.hard = hard
        self.choose, self.table = torch.nn.Linear(12, 5), torch.nn.Linear(5, 12)

    def forward(self, x):
        return F.mse_loss(self.table(F.gumbel_softmax(self.choose(x), tau=0.7, hard=self.hard)), x)


class Others(torch.nn.Module):
    """What else is drawn: of one shape for all samples, by bounds, by probabilities."""

    def __init__(self):
        super().__init__()
        self.layer, self.classes = torch.nn.Linear(12, 6), torch.nn.Parameter(torch.rand(6, 3))

    def forward(self, x):
        h = self.layer(x + torch.empty_like(x).uniform_(-0.25, 0.5))
        h = h * torch.bernoulli(torch.sigmoid(h).detach()) + 0.1 * torch.randn((6,), generator=None)
        chosen = torch.multinomial(F.softmax(h.detach(), -1), 1)
        picked = self.classes[chosen[:, 0]]
        row = self.classes[torch.randint(6, (x.shape[0],), generator=None)]
        return (picked * torch.rand(x.shape[0], 1, generator=None) + row).pow(2).mean() + h.pow(2).mean()


@unittest.skipIf(WITHOUT_TOOLS, WITHOUT_TOOLS)
class Noise(TrainCase):
    def expect(self, model, x, seed):
        """Losses, evaluated loss, and parameters by PyTorch."""
        draws, model = Draws(seed), model.double()
        optimizer = torch.optim.SGD(model.parameters(), lr=RATE)
        losses = []
        with draws.of(EVALUATION):
            evaluated = model(x).item()
        for call in range(STEPS):
            with draws.of(call):
                optimizer.zero_grad()
                loss = model(x)
                losses.append(loss.item())
                loss.backward()
                optimizer.step()
        return losses, evaluated, {name: p.detach() for name, p in model.named_parameters()}

    def check(self, make, shape=(12,), layouts=LAYOUTS, seed=0):
        torch.manual_seed(3)
        x = torch.randn(BATCH, *shape)
        model = make()
        self.export(model, (x,))
        inputs, program = self.folder / "inputs", self.folder / "m.accx"
        np.save(inputs / "x.npy", double(torch.from_numpy(np.load(inputs / "x.npy"))).numpy())
        losses, evaluated, parameters = self.expect(model, x.double(), seed)
        for layout in layouts:
            with self.subTest(layout):
                flags = ["--optimizer", "sgd", "--set", f"optimizer.lr={RATE}", "--set", f"seed={seed}"]
                found, weights = self.train_steps(STEPS, *flags, *layout.split())
                # Numbers in the code are of float32 in the file.
                np.testing.assert_allclose(found, losses, rtol=1e-6)
                for name, value in parameters.items():
                    torch.testing.assert_close(weights[name].double(), value, rtol=1e-6, atol=1e-7)
                self.tool("acc-opt", self.folder / "model.onnx", "--train", "--loss", "loss", "--dtype=f64",
                          *flags, *layout.split(), "-o", program)
                for _ in range(2):
                    lines = self.tool("acc-run", program, "--entry", "eval", "--inputs", inputs, "--json")
                    self.assertAlmostEqual(json.loads(lines.splitlines()[0])["eval_loss"], evaluated,
                                           delta=1e-6 * abs(evaluated))

    def test_autoencoder(self):
        self.check(Autoencoder, layouts=(*LAYOUTS, "--micro-batches 2 --recompute full"))

    def test_seed(self):
        self.check(Autoencoder, layouts=LAYOUTS[1:2], seed=7)

    def test_distribution(self):
        self.check(ByDistribution, layouts=LAYOUTS[:2])

    def test_diffusion(self):
        self.check(Diffusion, shape=(2, 6, 6))

    def test_gumbel(self):
        self.check(lambda: Gumbel(False), layouts=LAYOUTS[:2])
        self.check(lambda: Gumbel(True), layouts=LAYOUTS[1:3])

    def test_others(self):
        self.check(Others)


if __name__ == "__main__":
    unittest.main()
