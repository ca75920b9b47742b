"""Compiles each export of test/Fixtures/border: it trains as PyTorch does in float64, or
is refused in the words of cases.json. `--layout FLAGS` repeats all that trains in one
more layout; names of cases restrict the run."""
import argparse
import json
import pathlib
import re
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "scripts"))
import tensorfiles

BORDER = ROOT / "test" / "Fixtures" / "border"
# What an error says to do: a raw export cannot be made anew as one.
REMEDIES = {"default": r"; (export with acc-export, (or with torch\.onnx\.export|which tries)|compute without)",
            "raw": r"; (export with acc-export(\n|, which tries)|compute without writing to it)"}
LIMIT = 1e-6  # the files hold f32: literals are rounded there, and not in PyTorch


def run(*command):
    return subprocess.run([str(c) for c in command], capture_output=True, text=True)


def distance(found, expected):
    return max((abs(a - b) / max(abs(b), 1e-3) for a, b in zip(found, expected, strict=True)),
               default=0)


def check_training(name, entry, executable, work):
    weights = work / "weights.safetensors"
    done = run("acc-run", executable, "--steps", len(entry["losses"]), "--inputs", BORDER / name,
               "--json", "--save-weights", weights)
    if done.returncode:
        return f"acc-run: {done.stderr.strip()}"
    steps = [json.loads(line) for line in done.stdout.splitlines() if '"loss"' in line]
    error = distance([step["loss"] for step in steps], entry["losses"])
    if not error <= LIMIT:
        return f"losses differ by {error:.1e}"
    saved = tensorfiles.read_safetensors(weights)
    for parameter, expected in entry["parameters"].items():
        if parameter in entry["unused"]:
            continue
        if parameter not in saved:
            return f"'{parameter}' is not among the saved weights"
        error = distance(list(saved[parameter][2]), expected)
        if not error <= LIMIT:
            return f"'{parameter}' differs by {error:.1e}"
    return None


def check(name, export, entry, layout, work):
    """What is wrong with one export; None if nothing is."""
    executable = work / "step.accx"
    compiled = run("acc-opt", BORDER / name / f"{export}.onnx", "--train", "--loss", "loss",
                   "--optimizer", "sgd", "--set", "optimizer.lr=0.1", "--dtype=f64", *layout,
                   "-o", executable)
    expected = entry[export]
    if expected == "trains":
        return (f"refused: {compiled.stderr.strip()}" if compiled.returncode
                else check_training(name, entry, executable, work))
    if expected is None:  # what it draws is its own
        return compiled.stderr if compiled.returncode else None
    if compiled.returncode != 1 or expected not in compiled.stderr:
        return f"expected to be refused with '{expected}', found: {compiled.stderr.strip()}"
    if not re.search(REMEDIES[export], compiled.stderr):
        return f"the error does not say what to do: {compiled.stderr.strip()}"
    return None


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("cases", nargs="*")
    parser.add_argument("--layout", default="")
    parser.add_argument("--work", type=pathlib.Path, required=True)
    options = parser.parse_args()
    shutil.rmtree(options.work, ignore_errors=True)
    options.work.mkdir(parents=True)
    failed = 0
    for name, entry in json.loads((BORDER / "cases.json").read_text()).items():
        if options.cases and name not in options.cases:
            continue
        for export in ("default", "raw"):
            if options.layout and entry[export] != "trains":
                continue
            problem = check(name, export, entry, options.layout.split(), options.work)
            print(f"{name} ({export}): {problem or 'as expected'}")
            failed += problem is not None
    sys.exit(bool(failed))


if __name__ == "__main__":
    main()
