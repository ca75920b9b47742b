#!/usr/bin/env python3
"""Trains a model by its meaning, in float64 (acc-opt --compile-to=train, acc-eval),
and compares with how PyTorch trains it in float64:

    check_training.py FOLDER [--work DIR]

FOLDER has model.onnx, test_data_set_0/grad_K.pb and loss_curves.json, as
shared/models/train has, or is one of the models of test/Fixtures/gpt2_train, beside
which expected.json lies. Gradients are compared by L2, relative to the larger of
their own norm and 1e-4 of all gradients' norm; curves relatively."""
import argparse
import json
import math
import pathlib
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "scripts"))
sys.dont_write_bytecode = True
import tensorfiles  # noqa: E402  (from scripts/)

MOMENTUM = ["--optimizer", "sgd", "--set", "optimizer.lr=0.05", "--set", "optimizer.momentum=0.9"]
ADAMW = ["--optimizer", "adamw", "--set", "optimizer.lr=1e-2"]
CLIP = ["--set", "gradient_clipping=1"]
# weight_decay, betas and eps of the AdamW runs are the defaults.
RUNS = {"adamw_lr1e-2_wd0.01_b0.9_0.999_eps1e-8": ADAMW,
        "sgd_lr0.1": ["--optimizer", "sgd", "--set", "optimizer.lr=0.1"],
        "sgd_lr0.05_mom0.9": MOMENTUM,
        "sgd": MOMENTUM, "sgd_clip": MOMENTUM + CLIP,
        "adamw": ADAMW, "adamw_clip": ADAMW + CLIP}
# References of gradients are float32, and so are constants of the graph, like the
# epsilon of a layer norm.
TOLERANCE = 1e-7


class Failed(Exception):
    """A requirement that does not hold."""


def run(*command):
    result = subprocess.run([str(c) for c in command], capture_output=True, text=True)
    if result.returncode != 0:
        raise Failed(f"{' '.join(map(str, command))}\nended with {result.returncode}:\n"
                     f"{result.stderr[-4000:]}")
    return result.stdout


def dims(model, inputs):
    """--dim flags from the sizes of the input tensors."""
    values, _ = tensorfiles.graph_values(model)
    tensors = tensorfiles.read(inputs, [name for name, _ in values], kind="input")
    bound = {symbol: size for name, sizes in values
             for symbol, size in zip(sizes, tensors[name][0]) if isinstance(symbol, str)}
    return [f for symbol, size in bound.items() for f in ("--dim", f"{symbol}={size}")]


def norm(values):
    return math.sqrt(sum(v * v for v in values))


def check_curve(name, found, expected):
    if len(found) != len(expected):
        raise Failed(f"{name}: expected {len(expected)} steps, found {len(found)}")
    error = max(abs(a - b) / abs(b) for a, b in zip(found, expected))
    print(f"  {name}: {error:.1e}")
    if not error <= TOLERANCE:
        raise Failed(f"{name} differs by {error:.2e}, expected at most {TOLERANCE:.0e}")


def train(model, flags, options, inputs, steps, work):
    """Runs `steps`, and returns the scalars of each."""
    text, outputs = work / "step.mlir", work / "outputs"
    shutil.rmtree(outputs, ignore_errors=True)
    run("acc-opt", model, *flags, *options, *tensorfiles.folded_flags(model), "--train", "--loss",
        tensorfiles.graph_values(model)[1][0][0], "--dtype=f64", "--compile-to=train", "-o", text)
    return [json.loads(line) for line in
            run("acc-eval", text, "--inputs", inputs, "--outputs", outputs,
                "--steps", steps).splitlines()]


def check_gradients(model, flags, inputs, work):
    train(model, flags, ["--emit-gradients"], inputs, 1, work)
    expected = dict(tensorfiles.read_pb(p) for p in inputs.glob("grad_*.pb"))
    total = norm([norm(values) for _, _, values in expected.values()])
    record = model.parent / "parameters.json"
    names = json.loads(record.read_text())["names of each parameter"] if record.exists() else {}
    names = {alias: name for name, aliases in names.items() for alias in aliases}
    worst = 0
    for name, (shape, _, values) in expected.items():
        path = work / "outputs" / f"{names.get(name, name).replace('/', '%2F')}.grad.npy"
        found_shape, _, found = tensorfiles.read_npy(path)
        if tuple(found_shape) != tuple(shape):
            raise Failed(f"{name}: expected a gradient of shape {shape}, found {found_shape}")
        error = norm([a - b for a, b in zip(found, values)]) / max(norm(values), 1e-4 * total)
        if not error <= TOLERANCE:
            raise Failed(f"{name}: the gradient differs by {error:.2e}, expected at most "
                         f"{TOLERANCE:.0e}")
        worst = max(worst, error)
    emitted = len(list((work / "outputs").glob("*.grad.npy")))
    if emitted != len(expected):
        raise Failed(f"expected {len(expected)} gradients, found {emitted}")
    print(f"  {emitted} gradients: {worst:.1e}")


def check(folder, work):
    model, inputs = folder / "model.onnx", folder / "test_data_set_0"
    recorded = folder / "loss_curves.json"
    if recorded.exists():
        flags = dims(model, inputs)
        check_gradients(model, flags, inputs, work)
        curves = {run: {"loss": losses} for part in json.loads(recorded.read_text()).values()
                  if isinstance(part, dict) for run, losses in part.items()}
    else:
        inputs = folder.parent / "inputs"
        flags = dims(model, inputs)
        curves = json.loads((folder.parent / "expected.json").read_text())["curves"]
        # Where the exporter folded the position embeddings away, they are held.
        held = folder.name == "default_static"
        curves = {name.removesuffix("_held"): curve for name, curve in curves.items()
                  if name.endswith("_held") == held}
    for name, curve in curves.items():
        steps = train(model, flags, RUNS[name], inputs, len(curve["loss"]), work)
        for key, values in curve.items():
            check_curve(f"{name} {key}", [step[key] for step in steps], values)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--work", type=pathlib.Path, required=True)
    options = parser.parse_args()
    options.work.mkdir(parents=True, exist_ok=True)
    print(options.folder.name)
    try:
        check(options.folder, options.work)
    except (Failed, tensorfiles.Mismatch) as problem:
        print(f"error: {problem}", file=sys.stderr)
        return 1
    return 0


sys.exit(main())
