"""Six recipes from their data sets to weights, beside PyTorch in float64: a BERT classifier of
padded sentences, T5 on pairs, a masked language model, Llama on packed chats with masked
prompts, a regression on a table, a vision transformer without convolution. acc-data makes the
files; three epochs and more of shuffled rows on one rank, on two with micro-batches, and on
four by ZeRO-3; evaluations of all rows; and a run that is killed within an epoch and goes on
in another layout. Needs the tools, whose folder ACC_BIN names."""
import contextlib
import copy
import fcntl
import json
import os
import subprocess
import time
import unittest

import numpy as np
import torch
from safetensors.torch import load_file

from common import acc_export

import acc_data
import recipes
from test_data import mix, permuted
from training import TOOLS, WITHOUT_TOOLS, TrainCase

try:
    import transformers
    transformers.logging.set_verbosity_error()
    MISSING = WITHOUT_TOOLS
except ImportError:
    MISSING = "transformers is not installed here"

SEED, EVERY, SAVE_EVERY = 11, 19, 4
LAYOUTS = {"one": "", "dp2": "--mesh dp=2 --micro-batches=2",
           "zero": "--mesh dp=4 --set zero_stage=3"}
# Adam divides what float32 leaves of a gradient that is none (of the biases of keys) by eps.
UPDATE = {"lr": 3e-3, "weight_decay": 0.1, "eps": 1e-4}


def rows_of_steps(steps, count):
    """The rows of each step, by docs/Executable.md."""
    rows = []
    for number in range(steps * recipes.BATCH):
        epoch, index = divmod(number, count)
        key = mix(SEED) + mix(2 ** 64 - 1 - epoch) & 2 ** 64 - 1
        rows.append(permuted(count, key, index))
    return [rows[at:at + recipes.BATCH] for at in range(0, len(rows), recipes.BATCH)]


def train_by_torch(recipe, module, data, held, steps, dtype=torch.float64):
    """(losses, the losses of `held` after every EVERY steps, the module)."""
    module = copy.deepcopy(module).to(dtype)
    data, held = ({name: value.to(dtype) if value.is_floating_point() else value
                   for name, value in part.items()} for part in (data, held))
    count = len(next(iter(data.values())))
    optimizer = torch.optim.AdamW(module.parameters(), **UPDATE)
    losses, evaluated = [], []
    with recipes.Wide() if dtype == torch.float64 else contextlib.nullcontext():
        for number, rows in enumerate(rows_of_steps(steps, count), 1):
            optimizer.zero_grad()
            loss = recipe.loss_of(module, {name: value[rows] for name, value in data.items()})
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
            if number % EVERY == 0:
                with torch.no_grad():
                    evaluated.append(recipe.loss_of(module, held).item())
    return losses, evaluated, module


def drift(rounded, exact):
    """How far PyTorch in float32 comes from itself in float64, in losses and weights."""
    return max(np.abs(np.subtract(rounded[0], exact[0])).max(), *(
        (a.double() - b).abs().max().item()
        for a, b in zip(rounded[2].parameters(), exact[2].parameters())))


@unittest.skipIf(MISSING, MISSING)
class Recipes(TrainCase):
    """The tests are made of recipes.ALL, below."""

    def setUp(self):
        super().setUp()
        # Of models this small threads are slower than none.
        self.addCleanup(torch.set_num_threads, torch.get_num_threads())
        torch.set_num_threads(1)

    def prepare(self, make, **sizes):
        recipe = make(self.folder, **sizes)
        source = recipe.source()
        torch.manual_seed(3)
        module, sample = recipe.model()
        module.train()
        acc_export.export(module, (), sample, loss=recipe.loss, dir=str(self.folder))
        options = dict(recipe.options)
        if (self.folder / "tok").exists():
            options["tokenizer"] = str(self.folder / "tok")
        self.summary = acc_data.convert(recipe.kind, [source], self.folder / "data",
                                        model=str(self.folder), validation=1 / 7, **options)
        data, held = ({name: torch.from_numpy(np.load(self.folder / "data" / array["file"]))
                       for name, array in self.summary["arrays"][split].items()}
                      for split in ("train", "validation"))
        self.rows = len(next(iter(data.values())))
        # Three epochs and a piece of a fourth.
        self.steps = 3 * self.rows // recipes.BATCH + 4
        return recipe, module, data, held

    def compile(self, layout, kind="f64"):
        program = self.folder / f"{layout}-{kind}.accx"
        precision = ["--dtype=f64"] if kind == "f64" else []
        self.tool("acc-opt", self.folder / "model.onnx", "--train", "--loss", "loss", *precision,
                  "--optimizer", "adamw", *(word for name, value in UPDATE.items()
                                            for word in ("--set", f"optimizer.{name}={value}")),
                  "--entries", "step,eval", *LAYOUTS[layout].split(), "-o", program)
        return program

    def words_of(self, *more):
        return ["--json", "--data", acc_data.data_text(self.summary, "train"), "--seed", str(SEED),
                "--save-weights", str(self.folder / "w.safetensors"), *map(str, more)]

    def distances(self, lines, expected, first=0):
        """The largest |found - PyTorch's| / (1 + |PyTorch's|) of losses, evaluations and final
        weights; `first` steps were of another run."""
        losses, evaluated, module = expected
        lines = [json.loads(line) for line in lines.splitlines() if '"loss"' in line]
        weights = load_file(self.folder / "w.safetensors")
        pairs = {
            "losses": [([line["loss"] for line in lines], losses[first:])],
            "evaluations": [([line["eval_loss"] for line in lines if "eval_loss" in line],
                             evaluated[first // EVERY:])],
            "weights": [(weights[name].numpy(), parameter.detach().numpy())
                        for name, parameter in module.named_parameters()]}
        for found, right in pairs["losses"] + pairs["evaluations"]:
            self.assertEqual(len(found), len(right))
        return {what: max(np.max(np.abs(np.subtract(a, b)) / (1 + np.abs(b))) for a, b in each)
                for what, each in pairs.items()}

    def assert_trained(self, lines, expected, close, first=0):
        for what, distance in self.distances(lines, expected, first).items():
            self.assertLessEqual(distance, close, what)

    def check(self, make):
        recipe, module, data, held = self.prepare(make)
        # No epoch ends with a batch, nor do the rows of an evaluation.
        self.assertNotEqual(self.rows % recipes.BATCH, 0)
        self.assertNotEqual(len(next(iter(held.values()))) % recipes.BATCH, 0)
        expected = train_by_torch(recipe, module, data, held, self.steps)
        self.assertLess(np.mean(expected[0][-20:]), np.mean(expected[0][:20]))  # it learns
        evaluated = ("--eval-every", EVERY, "--eval-data",
                     acc_data.data_text(self.summary, "validation"))
        for layout in LAYOUTS:
            with self.subTest(layout=layout):
                lines = self.tool("acc-run", self.compile(layout), "--steps", self.steps,
                                  *self.words_of(*evaluated))
                self.assert_trained(lines, expected, 1e-9)
        with self.subTest("float32"):
            rounded = train_by_torch(recipe, module, data, held, self.steps, torch.float32)
            lines = self.tool("acc-run", self.compile("dp2", "f32"), "--steps", self.steps,
                              *self.words_of(*evaluated))
            self.assert_trained(lines, expected, max(1e-5, 2 * drift(rounded, expected)))
        with self.subTest("killed"):
            first = self.kill("dp2-f64")
            lines = self.tool("acc-run", self.folder / "zero-f64.accx", "--steps", self.steps,
                              "--resume", self.folder / "saved", *self.words_of(*evaluated))
            self.assertNotEqual(first * recipes.BATCH % self.rows, 0)
            self.assert_trained(lines, expected, 1e-9, first)

    def kill(self, program):
        """Kills a run that would not end by itself; the number of its last checkpoint."""
        saved = self.folder / "saved"
        # It waits for its reader after a few lines: the pipe holds no more than what is left of
        # a page.
        reader, writer = os.pipe()
        fcntl.fcntl(writer, fcntl.F_SETPIPE_SZ, 4096)
        os.write(writer, b" " * 2700)
        child = subprocess.Popen([TOOLS / "acc-run", self.folder / f"{program}.accx", "--steps",
                                  "1000000", "--checkpoint", saved, "--save-every",
                                  str(SAVE_EVERY), *self.words_of()], stdout=writer,
                                 stderr=subprocess.DEVNULL)
        os.close(writer)
        deadline = time.monotonic() + 60
        while not list(saved.glob("step-*")) and time.monotonic() < deadline:
            time.sleep(0.01)
        child.kill()
        child.wait()
        os.close(reader)
        return max(int(folder.name[5:]) for folder in saved.glob("step-*"))


for _recipe in recipes.ALL:
    setattr(Recipes, f"test_{_recipe.__name__.lower()}",
            lambda self, make=_recipe: self.check(make))


if __name__ == "__main__":
    unittest.main()
