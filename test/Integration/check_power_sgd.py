#!/usr/bin/env python3
"""Trains test/Fixtures/hooks with PowerSGD, and compares with PyTorch's DistributedDataParallel
under its own hook, given the same first factors (make_power_sgd.py):

  check_power_sgd.py --work DIR

Of each choice of options and each layout, in float64: losses, the last step's gradients and
the weights after it are PyTorch's. What ranks send is the factors, and what is not
compressed. Prints each comparison."""
import argparse
import json
import pathlib
import shutil
import sys

from acc import ROOT, Failed, run, tensorfiles

FIXTURE = ROOT / "test" / "Fixtures" / "hooks"
RATE = 0.5
# mesh, micro-batches
LAYOUTS = [("dp=1", 1), ("dp=2", 1), ("dp=2", 2), ("dp=4", 1), ("dp=4", 2)]


def compile_step(hook, options, layout, *more):
    mesh, parts = layout
    flags = []
    if hook == "power_sgd":
        for name, value in {"start_powerSGD_iter": 0, **options}.items():
            flags += ["--set", f"power_sgd.{name}={str(value).lower()}"]
    return run("acc-opt", FIXTURE / "model.onnx", "--train", "--loss", "loss", "--entries=step",
               "--optimizer=sgd", "--set", f"optimizer.lr={RATE}", "--emit-gradients", "--mesh",
               mesh, "--micro-batches", parts, "--set", f"comm_hook={hook}", *flags, *more)


def train(work, options, layout, steps):
    """Losses, the last step's gradients, and weights."""
    program, outputs, weights = work / "power.accx", work / "outputs", work / "weights"
    compile_step("power_sgd", options, layout, "--dtype=f64", "-o", program)
    shutil.rmtree(outputs, ignore_errors=True)
    stdout, _ = run("acc-run", program, "--steps", steps, "--inputs", FIXTURE / "inputs",
                    "--outputs", outputs, "--save-weights", weights, "--json")
    losses = [json.loads(line)["loss"] for line in stdout.splitlines()[:-1]]
    gradients = {name[:-len(".grad")]: tensor[2]
                 for name, tensor in tensorfiles.read(outputs).items() if name.endswith(".grad")}
    return losses, gradients, {name: tensor[2] for name, tensor in
                               tensorfiles.read_safetensors(weights).items()}


def distance(found, expected):
    """The L2 norm of the difference, relative to what is expected."""
    if found.keys() != expected.keys():
        raise Failed(f"expected {sorted(expected)}, found {sorted(found)}")
    pairs = [(a, b) for name in expected
             for a, b in zip(found[name], expected[name], strict=True)]
    return (sum((a - b)**2 for a, b in pairs) / sum(b * b for _, b in pairs))**0.5


def require(what, holds):
    print(f"  {what}", flush=True)
    if not holds:
        raise Failed(f"does not hold: {what}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--work", type=pathlib.Path, required=True)
    work = parser.parse_args().work
    work.mkdir(parents=True, exist_ok=True)
    expected = json.loads((FIXTURE / "power_sgd.json").read_text())
    worst = 0
    for choice, torch in expected.items():
        feeds = torch["options"].get("use_error_feedback", True)
        for layout in LAYOUTS if choice in ("rank 1", "rank 2") else LAYOUTS[:2 + feeds]:
            losses, gradients, weights = train(work, torch["options"], layout,
                                               len(torch["losses"]))
            errors = [max(abs(a - b) / b for a, b in zip(losses, torch["losses"], strict=True)),
                      distance(gradients, torch["gradients"][-1]),
                      distance(weights, torch["weights"])]
            require(f"{choice} {layout}: losses {errors[0]:.1e}, gradients {errors[1]:.1e}, "
                    f"weights {errors[2]:.1e} from PyTorch's", max(errors) <= 1e-9)
            worst = max(worst, *errors)
    print(f"{len(expected)} choices of options as in PyTorch, {worst:.0e} at worst")


if __name__ == "__main__":
    try:
        main()
    except (Failed, tensorfiles.Mismatch) as problem:
        sys.exit(f"check_power_sgd: {problem}")
