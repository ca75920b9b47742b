"""Batch norms that are trained, beside PyTorch in float64: losses, weights and running statistics
after some steps, of a batch in micro-batches and on ranks, each scope as its original defines it: a
step of PyTorch for each micro-batch (SyncBatchNorm on all ranks), or for each rank's piece of one
(DistributedDataParallel). Needs the tools, whose folder ACC_BIN names."""
import copy
import json
import unittest

import numpy as np
import torch
import torch.nn.functional as F
from safetensors.torch import load_file, save_file

import acc_export
from acc_export import trace
from common import Refused
from training import WITHOUT_TOOLS, TrainCase

ROWS, RATE, STEPS = 12, 2.0 ** -4, 3
DATA = torch.randn(ROWS, 3, 6, 5, generator=torch.Generator().manual_seed(3))
#: Flags, ranks that share the batch, micro-batches.
LAYOUTS = (("", 1, 1), ("--micro-batches 3", 1, 3), ("--mesh dp=2", 2, 1),
           ("--mesh dp=2 --micro-batches 3", 2, 3),
           ("--mesh dp_shard=2 --micro-batches 2 --set zero_stage=3", 2, 2),
           ("--mesh tp=2 --micro-batches 2", 1, 2),
           ("--mesh pp=2 --micro-batches 3 --schedule 1f1b", 1, 3),
           ("--mesh dp=2 --recompute norm,second", 2, 1))


class Net(torch.nn.Module):
    """Norms of pictures and of rows, one without weights, and one that is called twice."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(5)
        self.first = torch.nn.Conv2d(3, 4, 3, padding=1, bias=False)
        self.norm = torch.nn.BatchNorm2d(4, momentum=0.25)
        self.second = torch.nn.Conv2d(4, 4, 3, padding=1)
        self.bare = torch.nn.BatchNorm2d(4, affine=False, eps=1e-3)
        self.rows = torch.nn.Linear(4 * 30, 6)
        self.last = torch.nn.BatchNorm1d(6)
        self.head = torch.nn.Linear(6, 2)
        with torch.no_grad():
            for norm in (self.norm, self.bare, self.last):
                norm.running_mean.uniform_(-1, 1)
                norm.running_var.uniform_(0.5, 2)
            self.norm.weight.uniform_(0.5, 1.5)
            self.norm.bias.uniform_(-1, 1)

    def forward(self, x):
        h = torch.relu(self.norm(self.first(x)))
        h = self.bare(self.second(h)) + self.norm(h.tanh() * 2)
        h = self.last(self.rows(h.flatten(1)))
        y = self.head(torch.sigmoid(h)).square().sum(1)
        return ((y - x.mean((1, 2, 3))) ** 2).mean()


class Narrow(torch.nn.Module):
    """SyncBatchNorm is a batch norm like others on one process."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(5)
        self.first, self.norm = torch.nn.Conv2d(3, 4, 3), torch.nn.SyncBatchNorm(4)

    def forward(self, x):
        return torch.relu(self.norm(self.first(x))).float().square().mean()


class FrozenPart(Net):
    """A norm that goes by running statistics beside others."""

    def train(self, mode=True):
        super().train(mode)
        self.bare.eval()
        return self


def buffers(module):
    return {name: value for name, value in module.named_buffers() if "running" in name}


def by_torch(module, ranks, micro_batches, scope):
    """Losses of steps; `module`, in the mode that it is in, is left trained."""
    module = module.double()
    optimizer = torch.optim.SGD(module.parameters(), lr=RATE)
    parts = ranks if scope == "rank" else 1
    losses = []
    for _ in range(STEPS):
        optimizer.zero_grad()
        total = 0.0
        for rows in DATA.double().chunk(micro_batches):
            before = copy.deepcopy(buffers(module))
            after = []
            for piece in rows.chunk(parts):
                for name, value in buffers(module).items():
                    value.copy_(before[name])
                loss = module(piece) / (micro_batches * parts)
                loss.backward()
                total += loss.item()
                after.append(copy.deepcopy(buffers(module)))
            for name, value in buffers(module).items():
                value.copy_(torch.stack([each[name] for each in after]).mean(0))
        losses.append(total)
        optimizer.step()
    return losses


@unittest.skipIf(WITHOUT_TOOLS, WITHOUT_TOOLS)
class BatchNorms(TrainCase):
    def compile(self, *flags):
        self.tool("acc-opt", self.folder / "model.onnx", "--train", "--loss", "loss", "--dtype=f64",
                  "--optimizer", "sgd", "--set", f"optimizer.lr={RATE}", *flags,
                  "-o", self.folder / "m.accx")

    def run_program(self, *flags):
        saved = self.folder / "w.safetensors"
        lines = self.tool("acc-run", self.folder / "m.accx", "--inputs", self.folder / "inputs",
                          "--json", "--save-weights", saved, *flags).splitlines()
        return [float(json.loads(line)["loss"]) for line in lines if '"loss"' in line], load_file(
            saved)

    def write_model(self, module):
        self.export(module, (DATA,))
        (self.folder / "inputs").mkdir(exist_ok=True)
        np.save(self.folder / "inputs" / "x.npy", DATA.double().numpy())

    def check(self, make, layouts, scope="micro_batch", setting=None):
        self.write_model(make().train())
        for layout, ranks, micro_batches in layouts:
            with self.subTest(layout=layout, scope=scope):
                module = make().train()
                expected = by_torch(module, ranks, micro_batches, scope)
                self.compile("--entries=step", "--set", setting or f"batch_norm.scope={scope}",
                             *layout.split())
                losses, weights = self.run_program("--steps", STEPS)
                # Numbers in the code are of float32 in the file.
                torch.testing.assert_close(losses, expected, rtol=1e-6, atol=1e-7)
                wanted = {**dict(module.named_parameters()), **buffers(module)}
                for name, norm in module.named_children():
                    if not norm.training:
                        self.assertNotIn(f"{name}.running_mean", weights)
                        wanted = {key: value for key, value in wanted.items()
                                  if not key.startswith(f"{name}.running")}
                self.assertEqual(weights.keys(), wanted.keys())
                for name, value in wanted.items():
                    torch.testing.assert_close(
                        weights[name].double(), value.detach(), rtol=1e-6, atol=1e-7,
                        msg=lambda text, name=name: f"{name}: {text}")

    def test_micro_batch(self):
        self.check(Net, LAYOUTS)

    def test_rank(self):
        self.check(Net, [LAYOUTS[index] for index in (1, 3, 4)], "rank")

    def test_batch(self):
        self.check(Net, [LAYOUTS[index] for index in (0, 2, 7)], "batch")
        with self.assertRaisesRegex(Refused, "expected one micro-batch with 'batch_norm.scope=batch'"):
            self.compile("--set", "batch_norm.scope=batch", "--micro-batches", "2")

    def test_parts(self):
        """Parts that are asked for are those of micro-batches, in whatever layout."""
        self.check(Net, [(layout, 1, 2) for layout, ranks, parts in LAYOUTS if 2 % parts == 0],
                   setting="batch_norm.parts=2")

    def test_a_frozen_norm_beside_others(self):
        self.check(FrozenPart, [LAYOUTS[3]])

    def test_evaluation(self):
        """By running statistics, those that were trained, in the run and after it."""
        self.write_model(Net().train())
        self.compile("--mesh", "dp=2", "--micro-batches", "2")
        module = Net()
        by_torch(module, 2, 2, "micro_batch")
        expected = module.eval()(DATA.double()).item()
        inputs = self.folder / "inputs"
        self.run_program("--steps", STEPS)
        found = self.tool("acc-run", self.folder / "m.accx", "--entry", "eval", "--inputs", inputs,
                          "--weights", self.folder / "w.safetensors", "--json")
        self.assertAlmostEqual(json.loads(found.splitlines()[0])["eval_loss"], expected, delta=1e-6)
        fresh = Net().train()
        # Saved in float64, as they were computed.
        save_file({name: value.float() for name, value in load_file(
            self.folder / "w.safetensors").items()}, self.folder / "f.safetensors")
        acc_export.load(fresh, self.folder / "f.safetensors")
        torch.testing.assert_close(fresh.eval()(DATA).item(), expected, rtol=1e-5, atol=1e-6)

    def test_sixteen_bits(self):
        """Statistics are float32's, and kept in the module's type."""
        module = Narrow().bfloat16().train()
        self.export(module, (DATA.bfloat16(),))
        self.tool("acc-opt", self.folder / "model.onnx", "--train", "--loss", "loss", "--optimizer",
                  "sgd", "--set", f"optimizer.lr={RATE}", "-o", self.folder / "m.accx")
        losses, weights = self.run_program("--steps", 1)
        self.assertAlmostEqual(losses[0], module(DATA.bfloat16()).item(), delta=2e-2)
        for name, value in buffers(module).items():
            self.assertEqual(weights[name].dtype, torch.bfloat16)
            torch.testing.assert_close(weights[name], value, rtol=1e-2, atol=1e-3)

    def test_files_of_torch(self):
        """PyTorch's exporter leaves the mode to the metadata, and its optimizer loses it."""
        names = dict(input_names=["x"], output_names=["loss"], verbose=False)
        module = Net().train()
        file = self.folder / "model.onnx"
        with trace.quiet():
            torch.onnx.export(module, (DATA,), dynamo=True, optimize=False, **names).save(file)
        (self.folder / "inputs").mkdir()
        np.save(self.folder / "inputs" / "x.npy", DATA.double().numpy())
        self.compile("--entries=step", "--micro-batches", "3")
        module = Net()
        expected = by_torch(module, 1, 3, "micro_batch")
        torch.testing.assert_close(self.run_program("--steps", STEPS)[0], expected, rtol=1e-6,
                                   atol=1e-7)
        with trace.quiet():
            torch.onnx.export(Net().train(), (DATA,), dynamo=True, optimize=True, **names).save(file)
        with self.assertRaisesRegex(Refused, "normalizes by the statistics of the batch, and its "
                                             "nodes by running ones"):
            self.compile()

    def test_a_norm_of_a_weight(self):
        """Whose statistics the file computes: gradients go through them, too."""
        class Standardized(torch.nn.Conv1d):
            def forward(self, x):
                weight = F.batch_norm(self.weight.reshape(1, self.out_channels, -1), None, None,
                                      training=True, momentum=0.0, eps=2.0 ** -20)
                return F.conv1d(x, weight.reshape_as(self.weight), self.bias)

        class Small(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.conv = Standardized(3, 4, 2)

            def forward(self, x):
                return self.conv(x).tanh().square().mean()

        torch.manual_seed(0)
        module, x = Small().train(), torch.randn(6, 3, 5)
        with trace.quiet():
            torch.onnx.export(module, (x,), dynamo=True, optimize=False, input_names=["x"],
                              output_names=["loss"], verbose=False).save(self.folder / "model.onnx")
        (self.folder / "inputs").mkdir()
        np.save(self.folder / "inputs" / "x.npy", x.double().numpy())
        losses, weights = self.train_steps(3, "--optimizer", "sgd", "--set", "optimizer.lr=0.5")
        module, x = module.double(), x.double()
        optimizer = torch.optim.SGD(module.parameters(), lr=0.5)
        for found in losses:
            optimizer.zero_grad()
            loss = module(x)
            self.assertAlmostEqual(found, loss.item(), places=9)
            loss.backward()
            optimizer.step()
        for name, parameter in module.named_parameters():
            torch.testing.assert_close(weights[name].double(), parameter.detach(), rtol=1e-7, atol=1e-7)

    def test_files_that_do_not_tell(self):
        """The exporter of before calls eval(), unless it is told otherwise."""
        file = self.folder / "model.onnx"
        (self.folder / "inputs").mkdir()
        np.save(self.folder / "inputs" / "x.npy", DATA.double().numpy())
        for mode, flags, trained in (("EVAL", (), None), ("EVAL", ("--batch-norm=train",), True),
                                     ("EVAL", ("--batch-norm=frozen",), False),
                                     ("TRAINING", (), True),
                                     ("TRAINING", ("--batch-norm=frozen",), False)):
            with self.subTest(mode=mode, flags=flags), trace.quiet():
                module = Net()  # tracing is a call, which changes it
                torch.onnx.export(module, (DATA,), file, dynamo=False, input_names=["x"],
                                  output_names=["loss"], do_constant_folding=False,
                                  training=getattr(torch.onnx.TrainingMode, mode))
                if trained is None:
                    with self.assertRaisesRegex(Refused, "say --batch-norm=train"):
                        self.compile()
                    continue
                self.compile("--entries=step", *flags)
                losses, weights = self.run_program("--steps", STEPS)
                expected = by_torch(module.train(trained), 1, 1, "micro_batch")
                torch.testing.assert_close(losses, expected, rtol=1e-6, atol=1e-7)
                self.assertEqual("norm.running_mean" in weights, trained)


if __name__ == "__main__":
    unittest.main()
