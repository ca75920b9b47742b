"""Models whose parameters are bfloat16 or float16, trained with master weights in float32: in
float64 beside PyTorch's of the same weights at 1e-9, in their own types beside PyTorch's loop
with float32 copies of the weights, in each layout; what is saved is in float32. Needs the tools,
whose folder ACC_BIN names."""
import json
import unittest

import numpy as np
import torch
from safetensors.torch import load_file

from common import Calls, acc_export
from training import WITHOUT_TOOLS, X, TrainCase

STEPS, RATE, WORDS = 12, 0.01, 50
LAYOUTS = {"one rank": (), "micro-batches": ("--mesh=dp=2", "--micro-batches=2"),
           "zero 3": ("--mesh=dp_shard=4", "--set=zero_stage=3"), "tensor": ("--mesh=tp=2",),
           "pipeline": ("--mesh=pp=2", "--micro-batches=2", "--recompute=up")}


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.table, self.norm = torch.nn.Embedding(WORDS, 32), torch.nn.LayerNorm(32)
        self.up, self.down = torch.nn.Linear(32, 64), torch.nn.Linear(64, WORDS)

    def forward(self, ids, labels):
        hidden = torch.nn.functional.gelu(self.up(self.norm(self.table(ids))))
        logits = self.down(hidden)
        if logits.dtype != torch.float64:
            logits = logits.float()
        return torch.nn.functional.cross_entropy(logits.view(-1, WORDS), labels.view(-1))


IDS = torch.randint(0, WORDS, (8, 6), generator=torch.Generator().manual_seed(4))


def by_torch(dtype, compute):
    """Losses, and float32 (or float64) weights: the model computes in `compute`."""
    model = Net().to(dtype).to(compute)
    wide = torch.float64 if compute == torch.float64 else torch.float32
    masters = [parameter.detach().to(wide).requires_grad_() for parameter in model.parameters()]
    optimizer = torch.optim.AdamW(masters, lr=RATE)
    losses, scale = [], 1024.0 if compute == torch.float16 else 1.0
    for _ in range(STEPS):
        model.zero_grad()
        loss = model(IDS, IDS)
        losses.append(loss.item())
        (loss * scale).backward()
        for master, parameter in zip(masters, model.parameters(), strict=True):
            master.grad = parameter.grad.to(wide) / scale
        optimizer.step()
        with torch.no_grad():
            for master, parameter in zip(masters, model.parameters(), strict=True):
                parameter.copy_(master)
    names = [name for name, _ in model.named_parameters()]
    return losses, dict(zip(names, masters, strict=True))


@unittest.skipIf(WITHOUT_TOOLS, WITHOUT_TOOLS)
class HalfModels(TrainCase):
    def train(self, *words):
        program, saved = self.folder / "m.accx", self.folder / "w.safetensors"
        self.tool("acc-opt", self.folder / "model.onnx", "--train", "--loss=loss",
                  "--optimizer=adamw", f"--set=optimizer.lr={RATE}", *words, "-o", program)
        lines = self.tool("acc-run", program, "--steps", STEPS, "--inputs", self.folder / "inputs",
                          "--json", "--save-weights", saved).splitlines()
        return [float(json.loads(line)["loss"]) for line in lines[:-1]], load_file(saved)

    def test_they_train_as_pytorch_does(self):
        for dtype in (torch.bfloat16, torch.float16):
            acc_export.export(Net().to(dtype), (IDS, IDS), dir=str(self.folder))
            exact, weights = by_torch(dtype, torch.float64)
            with self.subTest(dtype=dtype):
                losses, saved = self.train("--dtype=f64")
                np.testing.assert_allclose(losses, exact, rtol=1e-9)
                for name, weight in weights.items():
                    torch.testing.assert_close(saved[name], weight.detach(), rtol=1e-8, atol=1e-9)
            theirs, _ = by_torch(dtype, dtype)
            near = 3e-4 if dtype == torch.bfloat16 else 1e-4
            for layout, words in LAYOUTS.items():
                with self.subTest(dtype=dtype, layout=layout):
                    if dtype == torch.float16:
                        words += ("--set=scaler.type=static", "--set=scaler.init_scale=1024")
                    losses, saved = self.train(*words)
                    # Later on, roundings decide which way a small gradient moves a weight.
                    np.testing.assert_allclose(losses[:5], theirs[:5], rtol=near)
                    np.testing.assert_allclose(losses, exact, rtol=30 * near)
                    for name, weight in saved.items():
                        self.assertEqual(weight.dtype, torch.float32, name)

    def test_inputs_and_what_nothing_reads(self):
        for dtype in (torch.bfloat16, torch.float16):
            with self.subTest(dtype=dtype):
                module, x = Calls(lambda s, x: s.a(x).float().square().mean()).to(dtype), X.to(dtype)
                acc_export.export(module, (x,), dir=str(self.folder))
                losses, saved = self.train("--set=ema.decay=0.5")
                self.assertAlmostEqual(losses[0], module(x).item(), delta=2e-2 * losses[0])
                self.assertLess(losses[-1], 0.9 * losses[0])
                torch.testing.assert_close(saved["b.weight"].to(dtype), module.b.weight.detach())


if __name__ == "__main__":
    unittest.main()
