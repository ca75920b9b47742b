"""Scaled losses over 2,000 steps, some of whose samples make infinite gradients, in one
micro-batch and on one rank: the scale and the skipped steps are those of torch.amp.GradScaler
itself, and of DeepSpeed's and Megatron-LM's classes, restated below from their published code
(deepspeed/runtime/fp16/loss_scaler.py at edaa722, megatron/core/optimizer/grad_scaler.py at
d98e8a6); parameters are PyTorch's, in float64, in each layout; a run that goes on from a
checkpoint, in another layout too, ends with the same bits. Needs the tools, whose folder
ACC_BIN names."""
import json
import signal
import subprocess
import unittest

import numpy as np
import torch
from safetensors.torch import load_file

from common import acc_export
from test_data import mix, permuted
from training import TOOLS, WITHOUT_TOOLS, TrainCase

BATCH, ROWS, STEPS, SEED = 8, 211, 2000, 3
INFINITE = (17, 60)  # rows
LAYOUTS = {"one rank": (), "micro-batches": ("--mesh=dp=2", "--micro-batches=2"),
           "zero 3": ("--mesh=dp_shard=4", "--set=zero_stage=3"),
           "pipeline": ("--mesh=pp=2", "--micro-batches=4"),
           "tensor": ("--mesh=tp=2",)}


class Torch:
    """torch.amp.GradScaler's own update."""
    flags = ("type=torch", "growth_interval=9")

    def __init__(self):
        self.scaler = torch.amp.GradScaler("cpu", growth_interval=9)
        self.parameter = torch.nn.Parameter(torch.zeros(()))
        self.optimizer = torch.optim.SGD([self.parameter], lr=0.0)
        self.scaler.scale(torch.zeros(()))  # makes its tensors

    def scale(self):
        return self.scaler.get_scale()

    def update(self, overflows):
        self.parameter.grad = torch.tensor(float("inf") if overflows else 0.0)
        self.scaler.step(self.optimizer)
        self.scaler.update()


class DeepSpeed:
    flags = ("type=deepspeed", "growth_interval=13", "hysteresis=2")
    window, consecutive = 13, False

    def __init__(self):
        self.cur_scale, self.cur_iter, self.last_overflow_iter = 2.0 ** 16, 0, -1
        self.delayed_shift = self.cur_hysteresis = 2
        self.scale_factor, self.scale_window, self.min_scale = 2.0, self.window, 1.0

    def scale(self):
        return self.cur_scale

    def update(self, overflows):
        if overflows:
            if self.delayed_shift == 1 or self.cur_hysteresis == 1:
                if self.cur_scale == self.min_scale:
                    raise RuntimeError("Current loss scale already at minimum")
                self.cur_scale = max(self.cur_scale / self.scale_factor, self.min_scale)
            else:
                self.cur_hysteresis -= 1
            self.last_overflow_iter = self.cur_iter
        else:
            if self.consecutive:
                self.cur_hysteresis = self.delayed_shift
            stable = self.cur_iter - self.last_overflow_iter - 1
            if stable > 0 and stable % self.scale_window == 0:
                self.cur_hysteresis = self.delayed_shift
                self.cur_scale *= self.scale_factor
        self.cur_iter += 1


class Consecutive(DeepSpeed):
    flags = ("type=deepspeed", "growth_interval=24", "consecutive_hysteresis=true")
    window, consecutive = 24, True


class Megatron:
    flags = ("type=megatron", "growth_interval=18", "hysteresis=3", "init_scale=4096",
             "min_scale=64")

    def __init__(self):
        self._scale, self.min_scale = 4096.0, 64.0
        self.growth_interval, self.hysteresis = 18, 3
        self._growth_tracker, self._hysteresis_tracker = 0, 3

    def scale(self):
        return self._scale

    def update(self, overflows):
        if overflows:
            self._growth_tracker = 0
            self._hysteresis_tracker -= 1
            if self._hysteresis_tracker <= 0:
                self._scale = max(self._scale * 0.5, self.min_scale)
        else:
            self._growth_tracker += 1
            if self._growth_tracker == self.growth_interval:
                self._growth_tracker = 0
                self._hysteresis_tracker = self.hysteresis
                self._scale = self._scale * 2.0


class Static:
    flags = ("type=static", "init_scale=1024")

    def scale(self):
        return 1024.0

    def update(self, overflows):
        pass


SCALERS = {"torch": Torch, "deepspeed": DeepSpeed, "consecutive": Consecutive,
           "megatron": Megatron, "static": Static}


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(7)
        self.up, self.down = torch.nn.Linear(6, 4), torch.nn.Linear(4, 2)

    def forward(self, x, y):
        return (self.down(self.up(x)) - y).square().mean()


def make_data():
    draw = torch.Generator().manual_seed(5)
    x, y = (torch.randn(ROWS, width, generator=draw).double() for width in (6, 2))
    x[list(INFINITE), 2] = 1e300
    return {"x": x, "y": y}


def rows_of(call):
    """The samples of a call, shuffled by the program's seed."""
    rows = []
    for number in range(call * BATCH, call * BATCH + BATCH):
        epoch, index = divmod(number, ROWS)
        rows.append(permuted(ROWS, mix(SEED) + mix(2 ** 64 - 1 - epoch) & 2 ** 64 - 1, index))
    return rows


OVERFLOWS = [not set(INFINITE).isdisjoint(rows_of(call)) for call in range(STEPS)]


def trajectory(make):
    """The scale of each step, before it."""
    scaler, scales = make(), []
    for overflows in OVERFLOWS:
        scales.append(scaler.scale())
        scaler.update(overflows)
    return scales


def train_by_torch():
    """Losses of steps that are done, and the parameters in the end: a scale of a power of two
    changes nothing of them."""
    module, data = Net().double(), make_data()
    optimizer = torch.optim.AdamW(module.parameters(), lr=0.01)
    losses = {}
    for call, overflows in enumerate(OVERFLOWS):
        if overflows:
            continue
        optimizer.zero_grad()
        loss = module(*(value[rows_of(call)] for value in data.values()))
        losses[call] = loss.item()
        loss.backward()
        optimizer.step()
    return losses, dict(module.named_parameters())


@unittest.skipIf(WITHOUT_TOOLS, WITHOUT_TOOLS)
class Scalers(TrainCase):
    def setUp(self):
        super().setUp()
        parts = []
        for name, value in make_data().items():
            np.save(self.folder / f"{name}.npy", value.numpy())
            parts.append(f"{name}={self.folder / name}.npy")
        self.data = ",".join(parts)
        acc_export.export(Net(), tuple(value[:BATCH].float() for value in make_data().values()),
                          dir=str(self.folder))

    def compile(self, scaler, layout=()):
        program = self.folder / "m.accx"
        self.tool("acc-opt", self.folder / "model.onnx", "--train", "--loss=loss", "--dtype=f64",
                  "--optimizer=adamw", "--set=optimizer.lr=0.01", f"--set=seed={SEED}", *layout,
                  *("--set=scaler." + flag for flag in scaler.flags), "-o", program)
        return program

    def run_steps(self, program, *words, steps=STEPS):
        """What is told of each step, and the bytes of the weights."""
        saved = self.folder / "w.safetensors"
        lines = self.tool("acc-run", *self.command(program, steps), "--save-weights", saved,
                          *words).splitlines()
        return [json.loads(line) for line in lines[:-1]], saved.read_bytes()

    def command(self, program, steps):
        return (program, "--json", "--log-every", 1, "--data", self.data, "--steps", steps)

    def check(self, steps, scales):
        self.assertEqual([float(step["loss_scale"]) for step in steps], scales)
        self.assertEqual(["skipped" in step for step in steps], OVERFLOWS)

    def test_scales_are_those_of_the_originals(self):
        self.assertGreater(sum(OVERFLOWS), 150)
        for name, scaler in SCALERS.items():
            with self.subTest(scaler=name):
                self.check(self.run_steps(self.compile(scaler))[0], trajectory(scaler))

    def test_every_layout_trains_as_pytorch_does(self):
        losses, parameters = train_by_torch()
        scales = trajectory(Torch)
        for layout, flags in LAYOUTS.items():
            with self.subTest(layout=layout):
                steps, _ = self.run_steps(self.compile(Torch, flags))
                self.check(steps, scales)
                done = {call: float(step["loss"]) for call, step in enumerate(steps)
                        if "skipped" not in step}
                torch.testing.assert_close(done, losses, rtol=1e-9, atol=1e-12)
                weights = load_file(self.folder / "w.safetensors")
                for name, parameter in parameters.items():
                    torch.testing.assert_close(weights[name], parameter.detach(), rtol=1e-9,
                                               atol=1e-12)

    def test_a_run_goes_on_with_the_same_bits(self):
        for name in ("torch", "deepspeed", "megatron"):
            saved = self.folder / name
            program = self.compile(SCALERS[name], LAYOUTS["micro-batches"])
            steps, weights = self.run_steps(program, "--checkpoint", saved, "--save-every", 211,
                                            "--keep", 20)
            for first in (211, 844, 1899):
                checkpoint = saved / f"step-{first:08}"
                with self.subTest(scaler=name, first=first):
                    again, found = self.run_steps(program, "--resume", checkpoint)
                    for one, other in zip(again, steps[first:], strict=True):
                        self.assertEqual((one["loss"], one["loss_scale"]),
                                         (other["loss"], other["loss_scale"]))
                    self.assertEqual(found, weights)
            other = self.compile(SCALERS[name], LAYOUTS["zero 3"])
            again, _ = self.run_steps(other, "--resume", saved / "step-00000844")
            self.check([*steps[:844], *again], trajectory(SCALERS[name]))

    def test_a_run_goes_on_from_any_step(self):
        steps = 1 + max(call for call in range(60) if OVERFLOWS[call])
        self.assertGreater(sum(OVERFLOWS[:steps]), 3)
        for name in ("torch", "deepspeed", "megatron"):
            saved, killed = self.folder / f"every-{name}", self.folder / f"killed-{name}"
            program = self.compile(SCALERS[name], LAYOUTS["pipeline"])
            whole, weights = self.run_steps(program, "--checkpoint", saved, "--save-every", 1,
                                            "--keep", steps, steps=steps)
            for first in range(1, steps):
                with self.subTest(scaler=name, first=first):
                    again, found = self.run_steps(program, "--resume",
                                                  saved / f"step-{first:08}", steps=steps)
                    self.assertEqual([one["loss_scale"] for one in again],
                                     [one["loss_scale"] for one in whole[first:]])
                    self.assertEqual(found, weights)
            words = ("acc-run", *self.command(program, steps), "--checkpoint", killed,
                     "--save-every", 1, "--checkpoint-sync")
            with subprocess.Popen([str(TOOLS / words[0]), *map(str, words[1:])],
                                  stdout=subprocess.PIPE) as run:
                run.stdout.readline()
                run.send_signal(signal.SIGKILL)
            _, found = self.run_steps(program, "--resume", killed, steps=steps)
            self.assertEqual(found, weights)

    def test_deepspeed_gives_up_at_its_least_scale(self):
        class Low(DeepSpeed):
            flags = ("type=deepspeed", "init_scale=2", "growth_interval=1000", "hysteresis=1")
        overflows = [call for call, one in enumerate(OVERFLOWS) if one]
        with self.assertRaisesRegex(Exception, f"step {overflows[1] + 1}:.*, with a loss scale of 1;"):
            self.run_steps(self.compile(Low))


if __name__ == "__main__":
    unittest.main()
