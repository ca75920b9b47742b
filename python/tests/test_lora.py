"""Low-rank adapters (Hu et al., arXiv:2106.09685) beside PyTorch in float64: what is not trained keeps its
bits and has no gradient and no moments, in every layout; with a base in float32, in bfloat16, and in 8 bits
with a scale for each row; and merged after training. Needs the tools, whose folder ACC_BIN names."""
import re
import unittest

import numpy as np
import torch

import acc_export
from training import WITHOUT_TOOLS, TrainCase

ROWS, WIDTH, RANK, STEPS, RATE = 8, 6, 2, 3, 2.0 ** -3
DATA = torch.randn(ROWS, WIDTH, generator=torch.Generator().manual_seed(4))
LAYOUTS = ("", "--mesh dp=2 --micro-batches 2", "--mesh dp_shard=4 --set zero_stage=3", "--mesh tp=2",
           "--mesh pp=2 --micro-batches 2 --schedule 1f1b", "--mesh dp=2 --recompute second")


class Base(torch.nn.Module):
    """A linear layer that is not trained: as it is, or as whole numbers of 8 bits and a scale."""

    def __init__(self, kind):
        super().__init__()
        weight = torch.randn(WIDTH, WIDTH)
        if kind == "int8":
            scale = weight.abs().amax(1, keepdim=True) / 127
            self.register_buffer("codes", torch.round(weight / scale).to(torch.int8))
            self.register_buffer("scale", scale)
        else:
            dtype = {"f32": torch.float32, "bf16": torch.bfloat16}[kind]
            self.weight = torch.nn.Parameter(weight.to(dtype), requires_grad=False)

    def matrix(self, dtype):
        if hasattr(self, "codes"):
            return self.codes.to(dtype) * self.scale.to(dtype)
        return self.weight.to(dtype)


class Adapted(torch.nn.Module):
    def __init__(self, kind):
        super().__init__()
        self.base_layer = Base(kind)
        self.lora_A = torch.nn.Linear(WIDTH, RANK, bias=False)
        self.lora_B = torch.nn.Linear(RANK, WIDTH, bias=False)

    def forward(self, x):
        return x @ self.base_layer.matrix(x.dtype).T + 2 * self.lora_B(self.lora_A(x))

    def merged(self):
        """One matrix for both, as PEFT's merge_and_unload makes it."""
        return self.base_layer.matrix(self.lora_A.weight.dtype) + 2 * self.lora_B.weight @ self.lora_A.weight


class Net(torch.nn.Module):
    def __init__(self, kind):
        super().__init__()
        torch.manual_seed(3)
        self.first, self.second = Adapted(kind), Adapted(kind)

    def forward(self, x):
        return (self.second(torch.tanh(self.first(x))) - x).square().mean()


def by_torch(module):
    """Of what is trained in float64; the base stays as it is."""
    for each in module.modules():
        if isinstance(each, torch.nn.Linear):
            each.double()
    trained = [p for p in module.parameters() if p.requires_grad]
    optimizer = torch.optim.AdamW(trained, lr=RATE, weight_decay=0.25)
    losses = []
    for _ in range(STEPS):
        optimizer.zero_grad()
        loss = module(DATA.double())
        loss.backward()
        losses.append(loss.item())
        optimizer.step()
    return losses


@unittest.skipIf(WITHOUT_TOOLS, WITHOUT_TOOLS)
class Adapters(TrainCase):
    def train(self, *flags):
        return self.train_steps(STEPS, "--optimizer", "adamw", "--set", f"optimizer.lr={RATE}", "--set",
                                "optimizer.weight_decay=0.25", *flags)

    def test_adapters(self):
        for kind in ("f32", "bf16", "int8"):
            start = Net(kind)
            self.export(start, (DATA,))
            (self.folder / "inputs").mkdir(exist_ok=True)
            np.save(self.folder / "inputs" / "x.npy", DATA.double().numpy())
            before = {name: value.clone() for name, value in start.state_dict().items()}
            reference = Net(kind)
            expected = by_torch(reference)
            for layout in LAYOUTS if kind == "f32" else LAYOUTS[:3]:
                with self.subTest(kind=kind, layout=layout):
                    losses, weights = self.train(*layout.split())
                    torch.testing.assert_close(losses, expected, rtol=1e-6, atol=1e-8)
                    # Buffers are constants of the program.
                    self.assertEqual(weights.keys(), dict(reference.named_parameters()).keys())
                    for name, value in reference.named_parameters():
                        if value.requires_grad:
                            torch.testing.assert_close(weights[name].double(), value.detach(),
                                                       rtol=1e-6, atol=1e-6)
                        else:  # all of it is float64 in this run, and holds what was there
                            self.assertTrue(torch.equal(weights[name].to(before[name].dtype),
                                                        before[name]), name)

    def test_has_moments_of_adapters_alone(self):
        self.export(Net("f32"), (DATA,))
        step = self.tool("acc-opt", self.folder / "model.onnx", "--train", "--loss", "loss",
                         "--optimizer", "adamw", "--entries=step", "--compile-to=train")
        moments = re.findall(r"nn\.state @(\S+) .*role = moment|nn\.state moment @(\S+)", step)
        named = {name for pair in moments for name in pair if name}
        self.assertEqual(len(named), 8, step[:2000])
        self.assertTrue(all("lora_" in name for name in named), named)

    def test_merges(self):
        """Weights come back to the module, whose own merge is another one's matrix."""
        self.export(Net("f32"), (DATA,))
        (self.folder / "inputs").mkdir(exist_ok=True)
        np.save(self.folder / "inputs" / "x.npy", DATA.double().numpy())
        self.train()
        module = Net("f32").double()
        acc_export.load(module, self.folder / "w.safetensors")
        with torch.no_grad():
            x = DATA.double()
            hidden = torch.tanh(x @ module.first.merged().T) @ module.second.merged().T
            torch.testing.assert_close((hidden - x).square().mean(), module(x))


if __name__ == "__main__":
    unittest.main()
