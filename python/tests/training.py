"""What the tests that train share: a module is trained by acc, in float64, and by PyTorch, and
losses and parameters are held against each other. Needs the tools, whose folder ACC_BIN
names."""
import json
import os
import pathlib
import subprocess
import sys

import numpy as np
import torch
from safetensors.torch import load_file

from common import ExportCase, Refused, double

sys.path.append(str(pathlib.Path(__file__).resolve().parents[2] / "test"))
from sampling import ALL, sample  # noqa: E402, F401

TOOLS = pathlib.Path(os.environ.get("ACC_BIN", "build/bin")).resolve()
WITHOUT_TOOLS = "" if (TOOLS / "acc-opt").exists() else f"no acc-opt in {TOOLS}"
STEPS = 4
X = torch.randn(6, 5, generator=torch.Generator().manual_seed(1))


def train_by_torch(module, x, rate):
    optimizer = torch.optim.SGD([p for p in module.parameters() if p.requires_grad], lr=rate)
    losses = []
    for _ in range(STEPS):
        optimizer.zero_grad()
        loss = module(x)
        loss = loss[0] if isinstance(loss, tuple) else loss
        losses.append(loss.item())
        loss.backward()
        optimizer.step()
    return losses


class Pair:
    """Optimizers that step one after another."""

    def __init__(self, *inner):
        self.inner = inner

    def zero_grad(self):
        for one in self.inner:
            one.zero_grad()

    def step(self):
        for one in self.inner:
            one.step()


class TrainCase(ExportCase):
    rate = 2.0 ** -7
    said = ""  # what acc-opt warned of

    def tool(self, name, *arguments):
        result = subprocess.run([str(TOOLS / name), *map(str, arguments)], text=True,
                                capture_output=True)
        if result.returncode:
            raise Refused(result.stderr.strip())
        if name == "acc-opt":
            self.said = result.stderr
        return result.stdout

    def train_by_acc(self):
        folder = self.folder
        inputs, program, saved = folder / "inputs", folder / "m.accx", folder / "w.safetensors"
        for file in inputs.glob("*.npy"):
            np.save(file, double(torch.from_numpy(np.load(file))).numpy())
        self.tool("acc-opt", folder / "model.onnx", "--train", "--loss", "loss", "--dtype=f64",
                  "--optimizer", "sgd", "--set", f"optimizer.lr={self.rate}", "-o", program)
        lines = self.tool("acc-run", program, "--steps", STEPS, "--inputs", inputs, "--json",
                          "--save-weights", saved).splitlines()
        return [float(json.loads(line)["loss"]) for line in lines if '"loss"' in line], load_file(
            saved)

    def train_steps(self, steps, *flags):
        """Losses and saved weights of steps on the sample in the folder, in float64, compiled with
        `flags`, which name the optimizer."""
        program, saved = self.folder / "m.accx", self.folder / "w.safetensors"
        self.tool("acc-opt", self.folder / "model.onnx", "--train", "--loss", "loss", "--dtype=f64",
                  "--entries=step", *flags, "-o", program)
        lines = self.tool("acc-run", program, "--steps", steps, "--inputs", self.folder / "inputs",
                          "--json", "--save-weights", saved).splitlines()
        return [float(json.loads(line)["loss"]) for line in lines if '"loss"' in line], load_file(
            saved)

    def assert_trained(self, make, words=""):
        """The module that `make` makes is trained as PyTorch does; or, with `words`, it is
        refused by acc-export or acc in these."""
        torch.manual_seed(0)
        exported = make()
        try:
            self.export(exported, (X,))
            losses, weights = self.train_by_acc()
        except Refused as refused:
            self.assertTrue(words, f"refused: {refused}")
            self.assertTrue(any(word in str(refused) for word in words.split("|")), str(refused))
            return
        self.assertFalse(words, f"was not refused: {words}")
        torch.manual_seed(0)
        module = make().double()
        # Numbers in the code are of float32 in the file.
        torch.testing.assert_close(losses, train_by_torch(module, X.double(), self.rate), rtol=1e-6,
                                   atol=1e-9)
        for name, parameter in module.named_parameters():
            torch.testing.assert_close(weights[name].double(), parameter.detach(), rtol=1e-6,
                                       atol=1e-6)
