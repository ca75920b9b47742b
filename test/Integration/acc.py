"""Running acc-opt and acc-run from a test: what run_export.py and run_train.py
share. Everything that does not hold is a Failed."""
import json
import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(ROOT / "scripts"), str(ROOT / "test")]
sys.dont_write_bytecode = True
import tensorfiles  # noqa: E402  (from scripts/)
from sampling import sample  # noqa: E402, F401


class Failed(Exception):
    """A requirement that does not hold."""


def run(*command):
    """Returns what the command wrote to stdout and to stderr."""
    result = subprocess.run([str(c) for c in command], capture_output=True, text=True)
    if result.returncode != 0:
        raise Failed(f"{' '.join(map(str, command))}\nended with {result.returncode}:\n"
                     f"{result.stderr[-4000:]}")
    return result.stdout, result.stderr


def bindings(model, inputs):
    """--dim flags and the batch, from the sizes of the input tensors."""
    values, _ = tensorfiles.graph_values(model)
    tensors = tensorfiles.read(inputs, [name for name, _ in values], kind="input")
    flags, bound = [], set()
    for name, sizes in values:
        for symbol, size in zip(sizes, tensors[name][0]):
            if isinstance(symbol, str) and symbol not in bound:
                bound.add(symbol)
                flags += ["--dim", f"{symbol}={size}"]
    return flags, tensors[values[0][0]][0][0]


def report_of(stdout, ranks):
    """The steps' lines and the last one of `acc-run --json`, whose planned and
    allocated bytes must agree."""
    *steps, report = [json.loads(line) for line in stdout.splitlines()]
    if report["ranks"] != ranks:
        raise Failed(f"expected {ranks} ranks, found {report}")
    if report["planned_peak_bytes"] != report["measured_peak_bytes"]:
        raise Failed(f"planned and measured bytes differ: {report}")
    # The shadow of a sanitizer counts as resident, and what the model device knows of bytes.
    excess = report["resident_bytes"] - report["planned_peak_bytes"] - report["reserved_bytes"]
    if excess > 0 and not os.environ.keys() & {"ASAN_OPTIONS", "ACCEL_MODEL_ORDER"}:
        raise Failed(f"more resident than the arenas and the reserve: {report}")
    return steps, report
