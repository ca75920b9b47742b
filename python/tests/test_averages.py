"""Averages of weights (`ema.decay`) beside torch.optim.swa_utils.AveragedModel with
get_ema_multi_avg_fn, in float64: after each step, in evaluations, in files and checkpoints, alone
and sharded. Needs the tools, whose folder ACC_BIN names."""
import copy
import json
import unittest

import torch
from safetensors.torch import load_file
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

from test_decay import Net as Mixture
from test_optimizers import LAYOUTS, Net
from training import WITHOUT_TOOLS, Refused, TrainCase

STEPS, DECAY = 12, 0.8


@unittest.skipIf(WITHOUT_TOOLS, WITHOUT_TOOLS)
class Averages(TrainCase):
    def setUp(self):
        super().setUp()
        generator = torch.Generator().manual_seed(4)
        self.batch = (torch.randint(0, 13, (4, 3), generator=generator),
                      torch.randint(0, 7, (4,), generator=generator))
        self.module = Net()
        self.export(self.module, self.batch)

    def by_torch(self, steps=STEPS):
        """The averages after all steps, and the loss on them after every third one."""
        module = copy.deepcopy(self.module).double()
        averaged = AveragedModel(module, multi_avg_fn=get_ema_multi_avg_fn(DECAY))
        optimizer = torch.optim.AdamW(module.parameters(), lr=0.02)
        losses = []
        for step in range(steps):
            optimizer.zero_grad()
            module(*self.batch).backward()
            optimizer.step()
            averaged.update_parameters(module)
            if step % 3 == 2:
                losses.append(averaged(*self.batch).item())
        return averaged.module, losses

    def compile(self, *flags, name="m"):
        program = self.folder / f"{name}.accx"
        self.tool("acc-opt", self.folder / "model.onnx", "--train", "--loss", "loss", "--dtype=f64",
                  "--entries=step,eval", "--set=optimizer.lr=0.02", f"--set=ema.decay={DECAY}", *flags,
                  "-o", program)
        return program

    def run_steps(self, program, *more, steps=STEPS):
        lines = self.tool("acc-run", program, "--inputs", self.folder / "inputs", "--json", "--steps", steps,
                          *more).splitlines()
        return [line["eval_loss"] for line in map(json.loads, lines) if "eval_loss" in line]

    def evaluate(self, program, *more):
        said = self.tool("acc-run", program, "--entry", "eval", "--inputs", self.folder / "inputs", "--json", *more)
        return json.loads(said)["eval_loss"]

    def assert_same(self, file, module):
        weights = load_file(file)
        self.assertEqual(set(weights), set(dict(module.named_parameters())))
        for name, parameter in module.named_parameters():
            torch.testing.assert_close(weights[name], parameter.detach(), rtol=1e-10, atol=1e-12)

    def test_in_each_layout(self):
        expected, losses = self.by_torch()
        saved = self.folder / "average.safetensors"
        for layout, mesh in LAYOUTS.items():
            with self.subTest(layout=layout):
                program = self.compile("--set=ema.evaluate=true", *mesh.split())
                found = self.run_steps(program, "--save-weights", saved, "--averages", "--eval-every", 3,
                                       "--eval-inputs", self.folder / "inputs")
                self.assert_same(saved, expected)
                torch.testing.assert_close(found, losses, rtol=1e-10, atol=0)

    def test_checkpoints_of_another_layout(self):
        expected, _ = self.by_torch()
        saved, folder = self.folder / "average.safetensors", self.folder / "saved"
        self.run_steps(self.compile(*LAYOUTS["zero3"].split()), "--checkpoint", folder, steps=5)
        program = self.compile(*LAYOUTS["tp"].split(), name="other")
        self.run_steps(program, "--resume", folder, "--save-weights", saved, "--averages")
        self.assert_same(saved, expected)

    def test_before_the_first_step(self):
        """Averages begin as the weights do, those that are given too."""
        program = self.compile("--set=ema.evaluate=true", *LAYOUTS["zero3"].split())
        module = copy.deepcopy(self.module).double()
        self.assertAlmostEqual(self.evaluate(program), module(*self.batch).item(), 12)
        saved = self.folder / "average.safetensors"
        self.run_steps(program, "--save-weights", saved, "--averages")
        expected, losses = self.by_torch()
        self.assertAlmostEqual(self.evaluate(program, "--weights", saved), losses[-1], 10)

    def test_weights_are_written_where_averages_are_not_asked_for(self):
        saved, averaged = self.folder / "w.safetensors", self.folder / "a.safetensors"
        program = self.compile()
        self.run_steps(program, "--save-weights", saved)
        self.run_steps(program, "--save-weights", averaged, "--averages")
        self.assertFalse(torch.equal(load_file(saved)["up.weight"], load_file(averaged)["up.weight"]))

    def test_stacks_of_experts(self):
        """What the compiler stacks has averages under the members' names."""
        generator = torch.Generator().manual_seed(4)
        self.batch = tuple(torch.randint(0, 13, (4, 5), generator=generator) for _ in range(2))
        self.module = Mixture()
        self.export(self.module, self.batch)
        saved = self.folder / "average.safetensors"
        self.run_steps(self.compile(*LAYOUTS["zero3"].split()), "--save-weights", saved, "--averages", steps=4)
        expected, _ = self.by_torch(4)
        weights = load_file(saved)
        for name, parameter in expected.named_parameters():
            torch.testing.assert_close(weights[name], parameter.detach(), rtol=1e-5, atol=1e-6)
        with self.assertRaisesRegex(Refused, r"cannot evaluate on averages \('ema.evaluate'\)"):
            self.compile("--set=ema.evaluate=true")
        alone = [self.folder / "model.onnx", "--train", "--loss", "loss",
                 "--optimizer=schedule_free_adamw", "-o", self.folder / "free.accx"]
        with self.assertRaisesRegex(Refused, "cannot evaluate on the averages of optimizer "
                                             "'schedule_free_adamw' with '.*', which stacks "
                                             "parameters: compile with --entries=step"):
            self.tool("acc-opt", *alone)
        self.tool("acc-opt", *alone, "--entries=step")

    def test_refusals(self):
        for flags, words in (
                (["--set=ema.decay=1"], "is set twice"),
                (["--set=ema.evaluate=yes"], "expected true or false as 'ema.evaluate', found 'yes'")):
            with self.subTest(flags), self.assertRaisesRegex(Refused, words):
                self.compile(*flags)
        model = [self.folder / "model.onnx", "--train", "--loss", "loss"]
        plain = self.folder / "plain.accx"
        for flags, words in (
                (["--set=ema.decay=1"], r"expected a number in \[0, 1\) as 'ema.decay', found '1'"),
                (["--set=ema.evaluate=true"], "expected 'ema.decay' with 'ema.evaluate=true', found none"),
                (["--set=ema.decay=0.5", "--set=ema.evaluate=true", "--entries=step"],
                 "expected eval or forward among --entries")):
            with self.subTest(flags), self.assertRaisesRegex(Refused, words):
                self.tool("acc-opt", *model, *flags, "-o", plain)
        self.tool("acc-opt", *model, "--entries=step", "-o", plain)
        for more, words in ((["--averages"], "option '--averages' expects --save-weights"),
                            (["--save-weights", self.folder / "w", "--averages"], "the program keeps none")):
            with self.subTest(more), self.assertRaisesRegex(Refused, words):
                self.run_steps(plain, *more)


if __name__ == "__main__":
    unittest.main()
