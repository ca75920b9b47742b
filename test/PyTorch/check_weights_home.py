#!/usr/bin/env python3
"""Trains the four exports of gpt2_train for three steps with acc, loads the saved
weights into the model of transformers that they came from, and compares the loss
there with acc's own in its fourth step.

What the exporter's constant folding took out of the file cannot be saved: loading
must then miss exactly that, and with `--original-weights` (the state_dict before
training) nothing. Run it with the versions of test/Fixtures/requirements.txt and the tools built
(scripts/setup); test/Integration/run_train.py home checks the same files without
PyTorch, against values that make_gpt2_train.py recorded."""
import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

import safetensors.torch
import torch
import transformers

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "test" / "Fixtures"))

import make_gpt2_train as fixture  # noqa: E402

FLAGS = ["--train", "--loss", "loss", "--optimizer", "adamw", "--set", "optimizer.lr=1e-2",
         "--set", "optimizer.weight_decay=0.01", "--set", "gradient_clipping=1.0"]
SIZES = ["--dim", f"batch={fixture.BATCH}", "--dim", f"sequence={fixture.SEQUENCE}"]
FOLDED = {"default_static": {fixture.HELD}}


def run(*command):
    result = subprocess.run([str(c) for c in command], text=True, capture_output=True)
    if result.returncode:
        raise SystemExit(f"{' '.join(map(str, command))}\n{result.stderr}")
    return [json.loads(line) for line in result.stdout.splitlines()]


def loss_of(weights):
    """Loads with strict=True into a model of other values; float64's loss."""
    model = fixture.make_model(kind=transformers.GPT2LMHeadModel)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.fill_(float("nan"))
    model.load_state_dict(weights, strict=True)
    with torch.no_grad():
        (loss,) = fixture.losses(model.double(), *fixture.make_inputs(), parts=1)
    return loss.item()


def check(export, tools, work):
    program = work / f"{export}.accx"
    dims = SIZES if export.endswith("dynamic") else []
    run(tools / "acc-opt", fixture.FOLDER / export / "model.onnx", *FLAGS, *dims,
        *(["--allow-folded"] if export in FOLDED else []), "-o", program)
    saved = work / f"{export}.safetensors"
    command = [tools / "acc-run", program, "--inputs", fixture.FOLDER / "inputs", "--json", "--steps"]
    run(*command, 3, "--save-weights", saved)
    expected = run(*command, 4)[3]["loss"]
    weights = safetensors.torch.load_file(saved)
    folded = FOLDED.get(export, set())
    if folded:
        missing = set(fixture.make_model().state_dict()) - set(weights)
        if missing != folded:
            raise SystemExit(f"{export}: expected {folded} to be missing, found {missing}")
        original = work / "original.safetensors"
        start = {n: t.clone() for n, t in fixture.make_model().state_dict().items()}
        safetensors.torch.save_file(start, original)
        run(*command, 3, "--save-weights", saved, "--original-weights", original)
        weights = safetensors.torch.load_file(saved)
    loss = loss_of(weights)
    error = abs(loss - expected) / expected
    print(f"{export}: loss {loss:.7f} in transformers, {expected:.7f} in acc, {error:.1e}"
          + (f" ({', '.join(folded)} from the original weights)" if folded else ""))
    if not error <= 1e-5:
        raise SystemExit(f"{export}: expected a difference of at most 1e-5")


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tools", type=pathlib.Path, default=ROOT / "build" / "bin")
    tools = parser.parse_args().tools
    with tempfile.TemporaryDirectory() as work:
        for export in ("default_static", "default_dynamic", "raw_static", "raw_dynamic"):
            check(export, tools, pathlib.Path(work))


main()
