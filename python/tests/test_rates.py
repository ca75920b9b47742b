"""Rates of DeepSpeed's schedules, beside DeepSpeed's own classes: they are made of what a file
says and set the rate when they are made and after each update, as its engine calls them. Files
are drawn, with warmups of one step, ends before them and peaks below their floor; every rate
and every loss is held against PyTorch in float64. Needs the tools, whose folder ACC_BIN names,
and deepspeed beside PyTorch; skipped without."""
import json
import logging
import os
import pathlib
import random
import sys
import unittest

import numpy as np
import torch

from training import WITHOUT_TOOLS, Refused, TrainCase

# Where scripts/test-python puts it.
sys.path.append(str(pathlib.Path(sys.prefix) / "libraries"))
try:
    os.environ.setdefault("DS_ACCELERATOR", "cpu")
    logging.disable(logging.WARNING)
    from deepspeed.runtime import lr_schedules
    MISSING = WITHOUT_TOOLS
except ImportError as error:
    MISSING = f"no deepspeed: {error}"

STEPS = 14
ROWS = 4


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(2)
        self.line = torch.nn.Linear(3, 2)

    def forward(self, x):
        return self.line(x).square().mean()


def draw_file(kind, generator):
    """A file with a schedule of class `kind`; what a key's absence means is drawn as well."""
    rate = generator.uniform(0.01, 0.1)
    params = {"warmup_num_steps": generator.randint(1, 9)}
    if generator.random() < 0.5:
        params["warmup_type"] = generator.choice(["linear", "log"])
    if kind != "WarmupLR":
        params["total_num_steps"] = generator.randint(1, STEPS)
    if kind == "WarmupCosineLR":
        if generator.random() < 0.5:
            params["warmup_min_ratio"] = generator.uniform(0, 0.5)
            params["cos_min_ratio"] = generator.uniform(0, 1)
    else:
        if generator.random() < 0.5:
            params["warmup_min_lr"] = generator.uniform(0, 0.1)
        if generator.random() < 0.5:
            params["warmup_max_lr"] = generator.uniform(0.01, 0.1)
    return {"optimizer": {"type": "SGD", "params": {"lr": rate, "momentum": 0.5}},
            "scheduler": {"type": kind, "params": params}, "gradient_clipping": 0}


def train(file, x):
    """(rate, loss) of each step."""
    module = Net().double()
    optimizer = torch.optim.SGD(module.parameters(), **file["optimizer"]["params"])
    maker = getattr(lr_schedules, file["scheduler"]["type"])
    schedule = maker(optimizer, **file["scheduler"]["params"])
    steps = []
    for _ in range(STEPS):
        optimizer.zero_grad()
        loss = module(x)
        loss.backward()
        steps.append((optimizer.param_groups[0]["lr"], loss.item()))
        optimizer.step()
        schedule.step()
    return steps


@unittest.skipIf(MISSING, MISSING)
class Rates(TrainCase):
    def setUp(self):
        super().setUp()
        self.x = torch.randn(ROWS, 3, generator=torch.Generator().manual_seed(5))
        self.export(Net(), (self.x,))
        self.x = self.x.double()
        np.save(self.folder / "inputs" / "x.npy", self.x.numpy())

    def compile(self, file, *flags, name="m"):
        path, program = self.folder / f"{name}.json", self.folder / f"{name}.accx"
        path.write_text(json.dumps(file))
        flags = flags or ("--mesh", "dp_shard=2", "--set", "zero_stage=1")
        self.tool("acc-opt", self.folder / "model.onnx", "--train", "--loss", "loss", "--dtype=f64",
                  "--entries=step", "--config", path, *flags, "-o", program)
        return program

    def run_steps(self, program, *words, steps=STEPS):
        lines = self.tool("acc-run", program, "--steps", steps, "--inputs",
                          self.folder / "inputs", "--json", *words).splitlines()
        return [(line["lr"], line["loss"]) for line in map(json.loads, lines) if "lr" in line]

    def assert_same(self, found, expected):
        np.testing.assert_allclose(np.array(found, float), np.array(expected), rtol=1e-9,
                                   atol=1e-15)

    def test_drawn_files(self):
        generator = random.Random(9)
        for kind in ("WarmupLR", "WarmupDecayLR", "WarmupCosineLR"):
            for _ in range(5):
                file = draw_file(kind, generator)
                with self.subTest(file["scheduler"]):
                    self.assert_same(self.run_steps(self.compile(file)), train(file, self.x))

    def file(self, kind="WarmupDecayLR", **params):
        params = {"total_num_steps": 11, "warmup_num_steps": 5, **params}
        return {"optimizer": {"type": "SGD", "params": {"lr": 0.05}}, "gradient_clipping": 0,
                "scheduler": {"type": kind, "params": params}}

    def test_micro_batches_are_one_update(self):
        file = self.file("WarmupCosineLR")
        for flags in (("--micro-batches=4",), ("--mesh", "dp=2", "--micro-batches=2")):
            with self.subTest(flags):
                self.assert_same(self.run_steps(self.compile(file, *flags)), train(file, self.x))

    def test_a_run_goes_on_in_its_warmup_in_another_layout(self):
        file, saved = self.file(warmup_max_lr=0.03), self.folder / "saved"
        begun = self.run_steps(self.compile(file), "--checkpoint", saved, steps=3)
        other = self.compile(file, "--mesh", "dp=4", name="other")
        self.assert_same(begun + self.run_steps(other, "--resume", saved), train(file, self.x))

    def test_a_file_that_accelerate_names(self):
        file, outer = self.file(warmup_min_lr=0.01), self.folder / "run.yaml"
        (self.folder / "ds.json").write_text(json.dumps({**file, "zero_optimization": {"stage": 2}}))
        outer.write_text("distributed_type: DEEPSPEED\nnum_processes: 2\ndeepspeed_config: "
                         "{deepspeed_config_file: ds.json}\n")
        program = self.folder / "m.accx"
        self.tool("acc-opt", self.folder / "model.onnx", "--train", "--loss", "loss", "--dtype=f64",
                  "--entries=step", "--config", outer, "-o", program)
        self.assert_same(self.run_steps(program), train(file, self.x))

    def test_steps_have_the_rates_that_are_reported(self):
        """Those that jump where a quotient is a whole number, in compiled kernels."""
        steps = 80
        for words in ("StepLR step_size=7 gamma=0.9", "MultiStepLR milestones=3,40",
                      "CosineAnnealingWarmRestarts T_0=3 T_mult=3", "CyclicLR base_lr=0.001 step_size_up=7",
                      "cosine_with_restarts total_steps=77 warmup_steps=3 num_cycles=7",
                      "OneCycle cycle_min_lr=0.001 cycle_max_lr=0.05 cycle_first_step_size=21 "
                      "cycle_first_stair_count=7"):
            kind, *keys = words.split()
            flags = ["--optimizer=sgd", f"--set=scheduler.type={kind}",
                     *(f"--set=scheduler.{key}" for key in keys)]
            if kind != "OneCycle":
                flags.append("--set=optimizer.lr=0.05")
            with self.subTest(kind):
                self.tool("acc-opt", self.folder / "model.onnx", "--train", "--loss", "loss", "--dtype=f64",
                          "--entries=step", *flags, "-o", self.folder / "m.accx")
                found = [rate for rate, _ in self.run_steps(self.folder / "m.accx", steps=steps)]
                told = self.tool("acc-opt", "--report=scheduler", "--json", "--steps", steps, *flags)
                self.assert_same(found, json.loads(told)["values"]["lr"])

    def test_what_the_class_refuses_is_refused(self):
        for params in ({"warmup_num_steps": 0}, {"warmup_num_steps": -3}, {"warmup_num_steps": 2.5}):
            with self.subTest(params):
                file = self.file(**params)
                with self.assertRaises(ValueError):
                    train(file, self.x)
                with self.assertRaisesRegex(Refused, "scheduler.params.warmup_num_steps"):
                    self.compile(file)


if __name__ == "__main__":
    unittest.main()
