"""What acc-run checkpointed is loaded back into the module: of one checkpoint, of the newest
in a folder, with tied and frozen parameters. Needs the tools, whose folder ACC_BIN names."""
import unittest

import torch
from safetensors.torch import load_file

from common import acc_export
from training import WITHOUT_TOOLS, TrainCase, X


class Net(torch.nn.Module):
    """Two names of one parameter, one that is frozen, and one that is trained alone."""
    def __init__(self):
        super().__init__()
        self.a = torch.nn.Linear(5, 5, bias=False)
        self.b = torch.nn.Linear(5, 5, bias=False)
        self.b.weight = self.a.weight
        self.c = torch.nn.Linear(5, 5)
        self.c.weight.requires_grad_(False)

    def forward(self, x):
        return self.b(self.c(self.a(x))).square().mean()


@unittest.skipIf(WITHOUT_TOOLS, WITHOUT_TOOLS)
class Checkpoints(TrainCase):
    def setUp(self):
        super().setUp()
        torch.manual_seed(0)
        self.module = Net()
        self.export(self.module, (X,))
        self.tool("acc-opt", self.folder / "model.onnx", "--train", "--loss", "loss",
                  "--optimizer", "sgd", "--set", "optimizer.lr=0.1", "-o", self.folder / "m.accx")
        self.runs = self.folder / "runs"
        self.tool("acc-run", self.folder / "m.accx", "--steps", 3, "--save-every", 1,
                  "--inputs", self.folder / "inputs", "--checkpoint", self.runs,
                  "--save-weights", self.folder / "w.safetensors")

    def assert_loaded(self, path):
        trained = load_file(self.folder / "w.safetensors")
        torch.manual_seed(0)
        module = Net()
        frozen = module.c.weight.clone()
        acc_export.load(module, path)
        self.assertTrue(torch.equal(module.a.weight, trained["a.weight"]))
        self.assertIs(module.b.weight, module.a.weight)
        self.assertTrue(torch.equal(module.c.bias, trained["c.bias"]))
        self.assertTrue(torch.equal(module.c.weight, frozen))

    def test_newest(self):
        self.assert_loaded(self.runs)

    def test_one(self):
        self.assert_loaded(self.runs / "step-00000003")
        acc_export.load(self.module, str(self.runs / "step-00000001"))
        self.assertFalse(torch.equal(self.module.c.bias,
                                     load_file(self.folder / "w.safetensors")["c.bias"]))

    def test_another_module(self):
        self.module.d = torch.nn.Linear(2, 2, bias=False)
        with self.assertRaisesRegex(acc_export.Refused, "lacks parameters of the module"):
            acc_export.load(self.module, self.runs)

    def test_damaged(self):
        (self.runs / "step-00000003" / "checkpoint.json").unlink()
        with self.assertRaisesRegex(acc_export.Refused, "newest checkpoint.*is damaged"):
            acc_export.load(self.module, self.runs)
        (self.runs / "step-00000002" / "checkpoint.json").write_text("no")
        with self.assertRaisesRegex(acc_export.Refused, "cannot read.*manifest"):
            acc_export.load(self.module, self.runs / "step-00000002")

    def test_no_checkpoints(self):
        with self.assertRaisesRegex(acc_export.Refused, "folder of checkpoints, found the folder"):
            acc_export.load(self.module, self.folder / "inputs")


if __name__ == "__main__":
    unittest.main()
