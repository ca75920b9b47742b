"""What the recipes of docs/Recipes.md share: the page's files and commands, run as they stand, and
the loop by which the originals train in PyTorch. published_recipes.py has the recipes."""
import contextlib
import io
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys
import time

import numpy as np
import onnx
import torch

import common  # noqa: F401 (finds the packages)

from acc_data import cli as data_cli
from acc_export import cli as export_cli
from draws import mix
from test_data import permuted
from training import TOOLS

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "Recipes.md").read_text()
PARTS = {part.splitlines()[0]: part for part in PAGE.split("\n## ")[1:]}


def run(line, folder):
    """Runs a command of the page in `folder`; what it said on stdout."""
    tool, *words = shlex.split(line)
    cli = {"acc-data": data_cli, "acc-export": export_cli}.get(tool)
    if cli:
        said, errors = io.StringIO(), io.StringIO()
        with contextlib.chdir(folder), contextlib.redirect_stderr(errors):
            status = cli.execute(cli.make_parser().parse_args(words), said)
        if status:
            raise RuntimeError(f"{line}\n{errors.getvalue()}")
        return said.getvalue()
    program = sys.executable if tool == "python" else TOOLS / tool
    search = os.pathsep.join([str(ROOT / "python"), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run([program, *words], cwd=folder, text=True, capture_output=True,
                          env={**os.environ, "PYTHONPATH": search, "ACC_BIN": str(TOOLS)})
    if done.returncode:
        raise RuntimeError(f"{line}\n{done.stderr}")
    return done.stdout


def initial_weights(model):
    """What a module begins with: the parameters in the file that acc trains, by their names."""
    return {tensor.name: torch.from_numpy(onnx.numpy_helper.to_array(tensor).copy())
            for tensor in onnx.load(model).graph.initializer}


def rows_of_steps(steps, batch, count, seed=0):
    """The rows of each step of acc-run, by docs/Executable.md."""
    numbers = []
    for number in range(steps * batch):
        epoch, index = divmod(number, count)
        key = mix(seed) + mix(2 ** 64 - 1 - epoch) & 2 ** 64 - 1
        numbers.append(permuted(count, key, index))
    return np.array(numbers).reshape(steps, batch)


def value_of(line, key):
    """Of `--set KEY=…` or of an option in a command of the page."""
    return float(re.search(rf"{re.escape(key)}[= ](\S+)", line)[1])


def log_of(file):
    """What a run of acc says of its steps."""
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    return {"losses": [line["loss"] for line in lines],
            "evaluations": {line["step"]: line["eval_loss"] for line in lines
                            if "eval_loss" in line},
            "seconds": sum(line["time_s"] for line in lines)}


class Published:
    """A recipe, in a folder of its own. `programs`: the names of its executables and logs, by
    layout."""
    edits = {}  # what the page's text is replaced by

    def __init__(self, folder):
        self.folder = folder
        self.part = PARTS[self.heading]
        for old, new in self.edits.items():
            if old not in self.part:
                raise ValueError(f"expected {old!r} in docs/Recipes.md, found none")
            self.part = self.part.replace(old, new)
        self.compiling, self.running = (
            next(line for line in self.commands() if line.startswith(tool))
            for tool in ("acc-opt", "acc-run"))

    def commands(self):
        """Those of the page, with what its variables hold."""
        variables, lines = {}, []
        for kind, text in re.findall(r"^```(\w*)\n(.*?)^```", self.part, re.M | re.S):
            found = re.findall(r'^(\w+)="([^"]*)"$|^(.+)$', text, re.M)
            for name, value, line in found if not kind else ():
                if name:
                    variables[name] = " ".join(value.split())
                else:
                    lines.append(re.sub(r"\$(\w+)", lambda found: variables[found[1]], line))
        return lines

    def write_files(self):
        """Those that the page shows."""
        for name, text in re.findall(r"`(\S+)`:\n```python\n(.*?)^```", self.part, re.M | re.S):
            (self.folder / name).write_text(text)

    def by_acc(self, tell=lambda line, seconds: None):
        """Runs the commands; what acc says of each layout."""
        self.write_files()
        accuracies = []
        for line in self.commands():
            began = time.monotonic()
            said = run(line, self.folder)
            tell(line, time.monotonic() - began)
            if "accuracy.py" in line:
                accuracies = [float(each.split()[-1]) for each in said.splitlines()]
        curves = {layout: log_of(self.folder / f"{name}.jsonl")
                  for layout, name in self.programs.items()}
        first = next(iter(curves.values()))
        first["accuracies"] = dict(zip(first["evaluations"], accuracies))
        return curves

    def setting(self, key):
        return value_of(self.compiling, key)

    def cut(self, name, length, following):
        """The rows of a file of tokens, as acc-run cuts them; `following`: and what follows each
        token."""
        stream = torch.from_numpy(np.fromfile(self.folder / name, np.uint16).astype(np.int64))
        count = len(stream) // length
        rows = stream[:count * length].view(count, length)
        if not following:
            return (rows,)
        behind = torch.full((count * length,), -100)
        followers = stream[1:count * length + 1]
        behind[:len(followers)] = followers
        return rows, behind.view(count, length)

    def module(self):
        """What PyTorch trains: the module, with the weights that acc begins with."""
        module = self.make()
        module.load_state_dict(initial_weights(self.folder / self.exported / "model.onnx"),
                               strict=False)
        return module

    def undecayed(self, name, parameter):
        """As nanoGPT and Megatron-LM have it: of one dimension."""
        return parameter.dim() < 2

    def groups(self, module):
        """Two groups, as the originals make them: what is decayed, and the rest."""
        decay = self.setting("optimizer.weight_decay")
        named = list(module.named_parameters())
        return [{"params": [p for n, p in named if self.undecayed(n, p) == isFree],
                 "weight_decay": 0.0 if isFree else decay} for isFree in (False, True)]

    def by_torch(self):
        """The loop of all three originals: AdamW on groups, gradients accumulated over
        micro-batches and clipped, the schedule stepped after each step."""
        module, steps = self.module(), self.steps()
        data, held = self.data()
        optimizer = torch.optim.AdamW(self.groups(module), lr=self.setting("optimizer.lr"),
                                      betas=self.betas)
        schedule = self.schedule(optimizer)
        every = value_of(self.running, "--eval-every")
        losses, evaluations, accuracies = [], {}, {}
        rows_of = rows_of_steps(steps, self.batch, len(data[0]))
        for number, rows in enumerate(rows_of, 1):
            total = 0.0
            for part in np.split(rows, self.micro_batches):
                loss = self.loss(module, [column[part] for column in data]) / self.micro_batches
                loss.backward()
                total += loss.item()
            torch.nn.utils.clip_grad_norm_(module.parameters(),
                                           self.setting("gradient_clipping"))
            optimizer.step()
            schedule.step()
            optimizer.zero_grad()
            losses.append(total)
            if number % every == 0:
                with torch.no_grad():
                    evaluations[number] = self.evaluate(module, held)
                    if hasattr(self, "accuracy"):
                        accuracies[number] = self.accuracy(module, held)
        return {"losses": losses, "evaluations": evaluations, "accuracies": accuracies}

    def evaluate(self, module, held):
        """The mean over all rows, which count the same."""
        parts = list(zip(*(column.split(self.batch) for column in held)))
        return sum(self.loss(module, part).item() * len(part[0]) for part in parts) / len(held[0])
