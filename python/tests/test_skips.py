"""Steps that the program skips by a rule of its own, in float64 beside PyTorch's loop with a
GradScaler that meets infinite gradients in the same steps: data and dropout go on, biases are
corrected and the rate follows its schedule by the steps that were done, in each layout; a run
that goes on from any checkpoint, or was killed, ends with the same bits. The rule, every third
step, is written into the program between two phases of the compiler. Needs the tools, whose
folder ACC_BIN names."""
import json
import re
import signal
import subprocess
import unittest

import numpy as np
import torch
from safetensors.torch import load_file

from common import acc_export
import acc  # noqa: E402, from the folder that common adds
from test_data import mix, permuted
from training import TOOLS, WITHOUT_TOOLS, TrainCase

BATCH, ROWS, WIDTH, STEPS, SEED, RATIO = 4, 11, 6, 8, 5, 0.5
LAYOUTS = {"one rank": (), "micro-batches": ("mesh=dp=2", "micro-batches=2"),
           "zero 3": ("mesh=dp_shard=4", "set=zero_stage=3"),
           "pipeline": ("mesh=pp=2", "micro-batches=2")}
FLAGS = ("--optimizer=adamw", "--set=optimizer.lr=0.05", "--set=optimizer.weight_decay=0.1",
         "--set=gradient_clipping=0.5", "--set=scheduler.type=linear",
         "--set=scheduler.warmup_steps=2", "--set=scheduler.total_steps=12", f"--set=seed={SEED}")
DATA = {name: torch.randn(ROWS, width, generator=torch.Generator().manual_seed(width)).double()
        for name, width in (("x", 5), ("y", 3))}
SKIPPED = [call for call in range(STEPS) if call % 3 == 2]


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(7)
        self.up, self.down = torch.nn.Linear(5, WIDTH), torch.nn.Linear(WIDTH, 3)

    def forward(self, x, y, mask=None):
        hidden = torch.tanh(self.up(x))
        hidden = torch.dropout(hidden, RATIO, True) if mask is None else hidden * mask
        return (self.down(hidden) - y).square().mean()


def philox(counter, key):
    """The first word of Philox4x32-10 (Salmon et al., SC'11)."""
    most = 2 ** 32 - 1
    x, low, high = [counter & most, counter >> 32, 0, 0], key & most, key >> 32
    for _ in range(10):
        first, second = 0xD2511F53 * x[0], 0xCD9E8D57 * x[2]
        x = [second >> 32 ^ x[1] ^ low, second & most, first >> 32 ^ x[3] ^ high, first & most]
        low, high = low + 0x9E3779B9 & most, high + 0xBB67AE85 & most
    return x[0]


def mask_of(call):
    """What the only dropout of the model, the first, keeps in a call, scaled."""
    key = call + (mix(mix(SEED) ^ 0) >> 1)
    drawn = [(philox(place, key) >> 8) * 2.0 ** -24 for place in range(BATCH * WIDTH)]
    kept = torch.tensor(drawn).double().reshape(BATCH, WIDTH) >= RATIO
    return kept.double() / (1 - RATIO)


def rows_of(call):
    """The samples of a call, shuffled by the program's seed."""
    rows = []
    for number in range(call * BATCH, call * BATCH + BATCH):
        epoch, index = divmod(number, ROWS)
        rows.append(permuted(ROWS, mix(SEED) + mix(2 ** 64 - 1 - epoch) & 2 ** 64 - 1, index))
    return rows


def by_torch():
    """(loss, rate) of each call, and the parameters in the end."""
    module = Net().double()
    optimizer = torch.optim.AdamW(module.parameters(), lr=0.05, weight_decay=0.1)
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda done: done / 2 if done < 2 else (12 - done) / 10)
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0 ** 10)
    told = []
    for call in range(STEPS):
        optimizer.zero_grad()
        loss = module(*(value[rows_of(call)] for value in DATA.values()), mask_of(call))
        told.append((loss.item(), optimizer.param_groups[0]["lr"]))
        scaler.scale(loss).backward()
        if call in SKIPPED:
            module.up.weight.grad[0, 0] = torch.inf
        scaler.unscale_(optimizer)
        torch.nn.utils.clip_grad_norm_(module.parameters(), 0.5)
        scale = scaler.get_scale()
        scaler.step(optimizer)
        scaler.update()
        if scaler.get_scale() == scale:  # as accelerate's AcceleratedScheduler
            schedule.step()
    return told, dict(module.named_parameters())


def skip_every_third(text):
    """A step in phase 'train' whose verdict is 1 in every third call."""
    calls = re.search(r'(%\w+): tensor<i64> {nn.state = @"counter/call"}', text)[1]
    step = text.index("func.func @step(")
    verdict = re.search(r"\n    return (?:%\w+, ){3}(%\w+),", text[step:])[1]
    line = re.search(rf"\n +({verdict}) = nn.select [^\n]*", text)
    rule = line[0].replace(verdict + " =", "%before =") + f"""
    %third = nn.constant dense<3> : tensor<i64>
    %last = nn.constant dense<2> : tensor<i64>
    %skipped = nn.constant dense<1> : tensor<i32>
    %rest = nn.mod {calls}, %third : tensor<i64>
    %isLast = nn.compare eq %rest, %last : tensor<i64>
    {verdict} = nn.select %isLast, %skipped, %before : tensor<i32>"""
    return text[:line.start()] + rule + text[line.end():]


@unittest.skipIf(WITHOUT_TOOLS, WITHOUT_TOOLS)
class Skips(TrainCase):
    def setUp(self):
        super().setUp()
        parts = []
        for name, value in DATA.items():
            np.save(self.folder / f"{name}.npy", value.numpy())
            parts.append(f"{name}={self.folder / name}.npy")
        self.data = ",".join(parts)
        batch = tuple(value[:BATCH].float() for value in DATA.values())
        acc_export.export(Net(), batch, dir=str(self.folder))

    def compile(self, layout):
        step, local, program = (self.folder / name for name in ("step.mlir", "local.mlir", "m.accx"))
        self.tool("acc-opt", self.folder / "model.onnx", "--train", "--loss=loss", "--dtype=f64",
                  "--entries=step", *FLAGS, *("--" + word for word in LAYOUTS[layout]),
                  "--compile-to=train", "-o", step)
        step.write_text(skip_every_third(step.read_text()))
        phases = " ".join(("to=local", *LAYOUTS[layout]))
        self.tool("acc-opt", step, f"--accel-run-phases={phases}", "-o", local)
        self.tool("acc-opt", local, f"--proved-against={step}", "-o", program)
        return program

    def command(self, program, *words):
        return [program, "--json", "--data", self.data, "--steps", STEPS, *words]

    def run_steps(self, program, *words):
        """What is told of steps and of the run, and the bytes of the weights."""
        saved = self.folder / "w.safetensors"
        lines = self.tool("acc-run", *self.command(program, "--save-weights", saved, *words))
        *steps, run = map(json.loads, lines.splitlines())
        return steps, run, saved.read_bytes()

    def test_every_layout_goes_on_as_pytorch_does(self):
        told, parameters = by_torch()
        for layout in LAYOUTS:
            with self.subTest(layout=layout):
                steps, run, _ = self.run_steps(self.compile(layout))
                torch.testing.assert_close([(step["loss"], float(step["lr"])) for step in steps],
                                           told, rtol=1e-10, atol=1e-12)
                self.assertEqual([step["step"] - 1 for step in steps if "skipped" in step], SKIPPED)
                self.assertEqual([step["step"] for step in steps], list(range(1, STEPS + 1)))
                self.assertEqual(run["skipped_steps"], len(SKIPPED))
                weights = load_file(self.folder / "w.safetensors")
                for name, parameter in parameters.items():
                    torch.testing.assert_close(weights[name], parameter.detach(), rtol=1e-10,
                                               atol=1e-12)

    def test_a_run_goes_on_from_any_step_with_the_same_bits(self):
        numbers = ("step", "loss", "grad_norm", "lr", "skipped", "epoch")
        def exact(steps):
            return [{name: step[name] for name in numbers if name in step} for step in steps]
        for layout in LAYOUTS:
            program, saved = self.compile(layout), self.folder / layout
            steps, _, weights = self.run_steps(program, "--checkpoint", saved, "--save-every", 1)
            for first in range(1, STEPS):
                with self.subTest(layout=layout, first=first):
                    again, _, found = self.run_steps(program, "--resume",
                                                     saved / f"step-{first:08}")
                    self.assertEqual(exact(again), exact(steps[first:]))
                    self.assertEqual(found, weights)
        # So does one that was killed, wherever it was.
        killed = self.folder / "killed"
        words = self.command(program, "--checkpoint", killed, "--save-every", 1,
                             "--checkpoint-sync")
        with subprocess.Popen([str(word) for word in (TOOLS / "acc-run", *words)],
                              stdout=subprocess.PIPE) as run:
            run.stdout.readline()
            run.send_signal(signal.SIGKILL)
        again, _, found = self.run_steps(program, "--resume", killed)
        self.assertEqual(exact(again), exact(steps)[STEPS - len(again):])
        self.assertEqual(found, weights)

    def test_a_program_that_calls_hears_of_it(self):
        told, _ = by_torch()
        with acc.load(self.compile("micro-batches")) as run:
            for call in range(STEPS):
                result = run.step({name: value[rows_of(call)] for name, value in DATA.items()})
                self.assertEqual(result.skipped, call in SKIPPED)
                self.assertEqual(result.step, call + 1)
                torch.testing.assert_close((result.loss, result.lr), told[call], rtol=1e-10,
                                           atol=1e-12)
                self.assertEqual(list(result.reports), ["loss", "grad_norm", "lr"])


if __name__ == "__main__":
    unittest.main()
