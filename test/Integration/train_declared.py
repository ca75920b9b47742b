#!/usr/bin/env python3
"""Trains a fixture of acc-export (test/Fixtures/declared/NAME) for three steps in several
layouts and compares losses and weights with PyTorch's in float64. What PyTorch gave no
gradient must not have moved at all, and every parameter is saved, used or not."""
import json
import pathlib
import sys

from acc import ROOT, Failed, report_of, run, tensorfiles

LAYOUTS = {1: [], 2: ["--mesh", "dp=2"], 4: ["--mesh", "dp=4", "--set", "zero_stage=3"]}
LOSS_LIMIT, WEIGHT_LIMIT = 1e-6, 2e-5


def check(name, work):
    folder = ROOT / "test" / "Fixtures" / "declared" / name
    expected = json.loads((folder / "expected.json").read_text())
    model = folder / "model.onnx"
    start = {p["name"]: p["trained"] for p in json.loads(
        run("acc-opt", model, "--report=parameters", "--json")[0])}
    if set(start) != set(expected["weights"]):
        raise Failed(f"parameters {sorted(start)}, expected {sorted(expected['weights'])}")
    for ranks, flags in LAYOUTS.items():
        program, saved = work / f"{ranks}.accx", work / f"{ranks}.safetensors"
        _, said = run("acc-opt", model, "--train", "--loss", "loss", "--optimizer", "adamw",
                      "--set", "optimizer.lr=0.01", "--set", "optimizer.weight_decay=0.1",
                      *flags, "-o", program)
        # What a stop keeps from every gradient is told, and nothing else is.
        if any("the loss does not depend on" not in line for line in said.splitlines()):
            raise Failed(f"expected no other warning, found {said}")
        out, _ = run("acc-run", program, "-n", ranks, "--steps", 3, "--inputs", folder / "inputs",
                     "--json", "--save-weights", saved)
        steps, _ = report_of(out, ranks)
        for step, loss in zip(steps, expected["losses"], strict=True):
            if not abs(step["loss"] - loss) <= LOSS_LIMIT * abs(loss):
                raise Failed(f"{ranks} ranks: loss {step['loss']}, expected {loss}")
        weights = tensorfiles.read_safetensors(saved)
        for parameter, values in expected["weights"].items():
            limit = 0 if parameter in expected["still"] else WEIGHT_LIMIT
            # What did not move is float32 in both.
            error = max(abs(a - b) for a, b in zip(weights[parameter][2], values, strict=True))
            if not error <= limit:
                raise Failed(f"{ranks} ranks: '{parameter}' is off by {error:.1e}")
        print(f"{name}, {ranks} ranks: {len(weights)} parameters as in PyTorch")


try:
    check(sys.argv[1], pathlib.Path(sys.argv[2]))
except Failed as problem:
    sys.exit(str(problem))
