"""From a module to trained weights in the module, through acc itself: as PyTorch trains
it in float64. Needs the tools, whose folder ACC_BIN names."""
import copy
import json
import os
import pathlib
import subprocess
import unittest

import torch
import torch.nn.functional as F

from common import ExportCase, acc_export

TOOLS = pathlib.Path(os.environ.get("ACC_BIN", "build/bin")).resolve()
STEPS = 3


class Net(torch.nn.Module):
    """A tie, a padding row, what is frozen, what nothing uses, a buffer like a parameter."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.e = torch.nn.Embedding(11, 6, padding_idx=2)
        self.n = torch.nn.LayerNorm(6)
        self.frozen = torch.nn.Linear(6, 6).requires_grad_(False)
        self.o = torch.nn.Linear(6, 11, bias=False)
        self.o.weight = self.e.weight
        self.unused = torch.nn.Linear(2, 3)
        self.register_buffer("ones", torch.ones(6))

    def forward(self, ids):
        h = self.n(torch.tanh(self.frozen(self.e(ids)))) * self.ones
        return self.o(h) + h @ self.e.weight.T


def loss(logits, labels):
    return F.cross_entropy(logits.reshape(-1, 11), labels.reshape(-1), label_smoothing=0.1)


@unittest.skipUnless((TOOLS / "acc-opt").exists(), f"no acc-opt in {TOOLS}")
class Train(ExportCase):
    def run_tool(self, *command):
        result = subprocess.run([str(c) for c in command], text=True, capture_output=True)
        self.assertEqual(result.returncode, 0, result.stderr)
        return result

    def reference(self, module, ids, labels):
        module = copy.deepcopy(module).double()
        optimizer = torch.optim.AdamW(
            [p for p in module.parameters() if p.requires_grad], lr=0.01, weight_decay=0.1)
        losses = []
        for _ in range(STEPS):
            optimizer.zero_grad()
            value = loss(module(ids), labels)
            losses.append(value.item())
            value.backward()
            optimizer.step()
        return losses, module

    def test_there_and_back(self):
        module = Net()
        ids = torch.randint(0, 11, (4, 5), generator=torch.Generator().manual_seed(1))
        ids[0, :2] = 2
        labels = torch.randint(0, 11, (4, 5), generator=torch.Generator().manual_seed(2))
        labels[1, :] = -100
        losses, trained = self.reference(module, ids, labels)
        start = copy.deepcopy(module.state_dict())
        summary, _ = self.export(module, (ids,), {"labels": labels}, loss=loss)
        program, saved = self.folder / "m.accx", self.folder / "w.safetensors"
        compiled = self.run_tool(
            TOOLS / "acc-opt", summary.path, "--train", "--loss", "loss", "--optimizer", "adamw",
            "--set", "optimizer.lr=0.01", "--set", "optimizer.weight_decay=0.1", "-o", program)
        self.assertEqual(compiled.stderr, "")
        lines = self.run_tool(TOOLS / "acc-run", program, "--steps", STEPS, "--inputs",
                              self.folder / "inputs", "--json", "--save-weights",
                              saved).stdout.splitlines()
        found = [json.loads(line)["loss"] for line in lines if '"loss"' in line]
        torch.testing.assert_close(torch.tensor(found), torch.tensor(losses), rtol=1e-5, atol=0)
        with torch.no_grad():
            for parameter in module.parameters():
                parameter.add_(1)
        acc_export.load(module, saved)
        for name, parameter in trained.named_parameters():
            value = module.get_parameter(name)
            if name.startswith(("frozen", "unused")):
                self.assertTrue(torch.equal(value, start[name]), name)
            else:
                torch.testing.assert_close(value.double(), parameter, rtol=1e-4, atol=1e-5)
        # The padding row moves by the head's gradient and by decay, as in PyTorch.
        self.assertFalse(torch.equal(module.e.weight[2], start["e.weight"][2]))


if __name__ == "__main__":
    unittest.main()
