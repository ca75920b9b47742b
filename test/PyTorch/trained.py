"""Trains a module with acc and with PyTorch, in float64 and in training mode (batch norms take
statistics), and compares losses, parameters and running statistics after three steps.

Each is exported by acc-export, by torch.onnx.export as it is, and by that without its optimizer
(`--ways`), and runs on one rank, on two with two micro-batches, and on four with ZeRO-3. Its loss is
a sum over all of its floating-point outputs, so that nothing that it computes goes unread. What a
default export folded is undone by the weights that it was made with (`--original-weights`), or the
file is refused in words that name what was folded: that is right, too. Where torch.onnx.export itself
fails, nothing is compared."""
import argparse
import contextlib
import copy
import json
import logging
import pathlib
import subprocess
import sys
import tempfile
import time
import warnings

import numpy as np
import safetensors.torch
import torch

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "python"))

import acc_export  # noqa: E402

BATCH, STEPS, RATE = 8, 3, 2.0 ** -6
#: Flags, and how many micro-batches they make.
LAYOUTS = (((), 1), (("--mesh", "dp=2", "--micro-batches", "2"), 2),
           (("--mesh", "dp=4", "--set", "zero_stage=3"), 1))
FLOOR = 1e-2  # of a loss, which is a sum of numbers of both signs
WAYS = ("acc-export", "unoptimised", "default")
#: In the refusals of what the default exporter's optimizer leaves no trace of.
FOLDED = ("would not follow it in training", "was merged with", "folded", "drops what adds less than 1e-8",
          "is gone")
LIMIT = 1e-5  # of a loss; of a parameter, relative to how far it moved: constants are float32


class Refused(Exception):
    """acc said no: its message."""


def run(*command):
    result = subprocess.run([str(c) for c in command], text=True, capture_output=True)
    if result.returncode:
        lines = result.stderr.strip().splitlines()
        raise Refused(next((line for line in lines if "error: " in line), lines[-1] if lines else
                           f"{command[0]} ended with {result.returncode}"))
    return result.stdout


def floats(value):
    """The floating-point tensors of an output, each once."""
    if isinstance(value, torch.Tensor):
        return [value] if value.is_floating_point() else []
    if isinstance(value, dict):
        value = value.values()
    return [each for part in value or () if not isinstance(part, str) for each in floats(part)]


class Summed(torch.nn.Module):
    """What a model computes as one number, which is its loss; of a number itself."""

    def __init__(self, model, by_name):
        super().__init__()
        self.model, self.by_name = model, by_name

    def forward(self, **inputs):
        outputs = self.model(**inputs) if self.by_name else self.model(*inputs.values())
        # From 0 on would be an addition that exporters drop.
        first, *rest = floats(outputs)
        return sum((self.weigh(each) for each in rest), start=self.weigh(first))

    @staticmethod
    def weigh(output):
        if output.dim() == 0:
            return output
        places = torch.arange(output[0].numel(), dtype=output.dtype).view(output[0].shape)
        return (torch.tanh(output / 10) * torch.cos(places)).mean()


def prepare(model, by_name=True):
    """The model in training mode, with its loss, and every parameter moved from its round start."""
    model = Summed(model, by_name).train()
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.05 * torch.randn(parameter.shape, generator=generator))
    return model


def make_inputs(shapes, batch=BATCH):
    """Inputs of these shapes by name, each of `batch` samples; token ids where the name says so."""
    generator = torch.Generator().manual_seed(2)
    return {key: torch.randint(3, 90, (batch, *shape), generator=generator) if key.endswith("ids")
            else torch.randn(batch, *shape, generator=generator) for key, shape in shapes.items()}


def double(value):
    return value.double() if value.is_floating_point() else value


def widen(model):
    """A copy in float64 with the numbers of batch norms as files have them, in float32: norms of few
    numbers tell."""
    model = copy.deepcopy(model).double()
    for part in model.modules():
        if isinstance(part, torch.nn.modules.batchnorm._BatchNorm):
            part.eps = float(np.float32(part.eps))
            part.momentum = 1 - float(np.float32(1 - part.momentum))
    return model


def train(model, inputs, micro_batches, draws):
    """Losses, and the model after the steps."""
    model = widen(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=RATE)
    losses = []
    for step in range(STEPS):
        optimizer.zero_grad()
        total = 0.0
        for number in range(micro_batches):
            with draws.of(step, number, micro_batches) if draws else contextlib.nullcontext():
                loss = model(**{key: double(value).chunk(micro_batches)[number]
                                for key, value in inputs.items()}) / micro_batches
            loss.backward()
            total += loss.item()
        losses.append(total)
        optimizer.step()
    return losses, model


def compare(model, trained, weights):
    """The largest error of a parameter or running statistic, relative to how far it moved."""
    start, worst = model.state_dict(), 0.0
    for name, end in trained.state_dict().items():
        if name not in weights:
            if end.is_floating_point() and not torch.equal(end, start[name].double()):
                twins = [n for n, v in trained.state_dict().items()
                         if n in weights and v.data_ptr() == end.data_ptr()]
                if not twins:
                    raise Refused(f"'{name}' is not among the saved weights")
            continue
        moved = (end - start[name].double()).norm()
        error = (weights[name].double() - end).norm()
        worst = max(worst, (error / max(moved, 1e-3 * end.norm(), 1e-9)).item())
    return worst


def export(model, inputs, way, work):
    """Writes work/model.onnx and work/inputs. Returns what acc-opt has to be told beside."""
    if way == "acc-export":
        acc_export.export(model, (), inputs, dir=work)
        return []
    torch.onnx.export(model, (), str(work / "model.onnx"), kwargs=inputs, dynamo=True, verbose=False,
                      optimize=way == "default", input_names=list(inputs), output_names=["loss"])
    (work / "inputs").mkdir()
    for name, value in inputs.items():
        np.save(work / "inputs" / f"{name}.npy", value.numpy())
    has_norms = any(isinstance(part, torch.nn.modules.batchnorm._BatchNorm) for part in model.modules())
    return (["--batch-norm=train"] if has_norms else []) + [
        f"--frozen={name}" for name, value in model.named_parameters() if not value.requires_grad]


def train_by_acc(tools, work, flags):
    """What acc-run prints of each step, and the weights."""
    program, saved = work / "train.accx", work / "weights.safetensors"
    run(tools / "acc-opt", work / "model.onnx", "--train", "--loss", "loss", "--dtype=f64",
        "--entries=step", "--optimizer", "sgd", "--set", f"optimizer.lr={RATE}", *flags, "-o", program)
    lines = run(tools / "acc-run", program, "--steps", STEPS, "--inputs", work / "inputs", "--json",
                "--save-weights", saved).splitlines()
    return [json.loads(line) for line in lines], safetensors.torch.load_file(saved)


def check(model, inputs, way, tools, work, draws):
    """Exports and trains in all layouts. Returns the largest errors of losses and of parameters, and
    what had to be said beside."""
    said = export(model, inputs, way, work)
    for path in (work / "inputs").glob("*.npy"):
        np.save(path, double(torch.from_numpy(np.load(path))).numpy())
    loss_error = parameter_error = 0.0
    for layout, micro_batches in LAYOUTS:
        losses, trained = train(model, inputs, micro_batches, draws)
        try:
            steps, weights = train_by_acc(tools, work, [*said, *layout])
        except Refused:
            if way != "default" or "--original-weights" in said:
                raise
            safetensors.torch.save_file({name: value.clone() for name, value in model.state_dict().items()},
                                        work / "original.safetensors")
            said += ["--original-weights", work / "original.safetensors"]
            steps, weights = train_by_acc(tools, work, [*said, *layout])
        for step, expected in zip(steps, losses):
            loss_error = max(loss_error, abs(step["loss"] - expected) / max(abs(expected), FLOOR))
        parameter_error = max(parameter_error, compare(model, trained, weights))
    return loss_error, parameter_error, [flag for flag in said if str(flag).startswith("--")]


def main(description, architectures, make, draws=None):
    """Checks those that the command line names, or all. `make(name)` gives a model and its inputs;
    `draws` are the random numbers of models that draw."""
    parser = argparse.ArgumentParser(description=description,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("architectures", nargs="*", metavar="ARCHITECTURE",
                        help=", ".join(architectures))
    parser.add_argument("--ways", metavar="WAY,...", default=",".join(WAYS),
                        help="default: %(default)s")
    parser.add_argument("--tools", type=pathlib.Path, default=ROOT / "build" / "bin")
    arguments = parser.parse_args()
    warnings.filterwarnings("ignore")
    logging.disable(logging.WARNING)
    failed = 0
    for name in arguments.architectures or architectures:
        for way in arguments.ways.split(","):
            began = time.monotonic()
            with tempfile.TemporaryDirectory() as work:
                try:
                    loss, parameter, said = check(*make(name), way, arguments.tools, pathlib.Path(work),
                                            draws)
                    wrong = not (loss <= LIMIT and parameter <= LIMIT)
                    text = f"loss {loss:.1e}, parameters {parameter:.1e} of their moves" + "".join(
                        f"; {flag}" for flag in said)
                except torch.onnx.OnnxExporterError as problem:
                    wrong, text = False, f"the exporter fails: {str(problem.__cause__ or problem)[:200]}"
                except (Refused, acc_export.Refused) as problem:
                    text = str(problem)
                    wrong = way != "default" or not any(words in text for words in FOLDED)
                    text = text if wrong else f"refused by name: {text[:200]}"
            failed += wrong
            print(f"{name:16} {way:11} {'WRONG: ' if wrong else ''}{text} "
                  f"({time.monotonic() - began:.0f} s)", flush=True)
    if failed:
        raise SystemExit(f"{failed} of them are wrong")
