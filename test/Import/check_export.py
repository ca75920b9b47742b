#!/usr/bin/env python3
"""Imports an exported model for each of its test data sets, and compares what the
reference evaluator makes of it with the outputs that the exporter's framework
gave (1e-4). What the model must contain is given as `attention=2`."""
import argparse
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "scripts"))
sys.dont_write_bytecode = True
import tensorfiles  # noqa: E402  (from scripts/)


def run(*command):
    result = subprocess.run([str(c) for c in command], capture_output=True, text=True)
    if result.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}\nended with {result.returncode}:\n"
                 f"{result.stdout}{result.stderr}")
    return result.stdout


def bindings(model, folder):
    values, _ = tensorfiles.graph_values(model)
    tensors = tensorfiles.read(folder, [name for name, _ in values], kind="input")
    bound = {}
    for name, sizes in values:
        for symbol, size in zip(sizes, tensors[name][0]):
            if isinstance(symbol, str):
                bound.setdefault(symbol, size)
    return [flag for name, size in bound.items() for flag in ("--dim", f"{name}={size}")]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("text", type=pathlib.Path, help="where to put the program")
    parser.add_argument("counts", nargs="*", help="op=N")
    arguments = parser.parse_args()
    model = arguments.folder / "model.onnx"
    for data in sorted(arguments.folder.glob("test_data_set_*")):
        run("acc-opt", model, *bindings(model, data), "--compile-to=nn", "-o", arguments.text)
        text = arguments.text.read_text()
        for count in arguments.counts:
            op, expected = count.split("=")
            found = len(re.findall(rf" = nn\.{op}\b", text))
            if found != int(expected):
                sys.exit(f"{model}: expected {expected} nn.{op}, found {found}")
        for mode in ("--f64", "--own-types"):
            print(data, run("acc-eval", arguments.text, mode, "--inputs", data,
                            "--expect", data).splitlines()[-1])


if __name__ == "__main__":
    main()
