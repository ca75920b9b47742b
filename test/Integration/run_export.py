#!/usr/bin/env python3
"""Compiles one exported model for several numbers of ranks and runs it: what the
model must contain (`--count attention=2`), outputs against the references (1e-4),
between numbers of ranks (1e-6), and planned against allocated bytes. Symbolic
sizes are bound to those of the inputs. Prints a line for each comparison."""
import argparse
import pathlib
import re
import sys

from acc import Failed, bindings, report_of, run, tensorfiles


def check_counts(model, dims, counts):
    text, _ = run("acc-opt", model, *dims, "--compile-to=nn")
    for count in counts:
        op, expected = count.split("=")
        found = len(re.findall(rf"(?<![#!\w])nn\.{op}\b", text))
        if found != int(expected):
            raise Failed(f"expected {expected} nn.{op}, found {found}")
    if counts:
        print("  counted", *counts)


def run_on(model, dims, ranks, inputs, work):
    """Compiles for `ranks`, runs, and returns the folder of outputs."""
    executable, outputs = work / f"on{ranks}.accx", work / f"on{ranks}"
    mesh = ["--mesh", f"dp={ranks}"] if ranks > 1 else []
    run("acc-opt", model, *dims, *mesh, "-o", executable)
    stdout, _ = run("acc-run", executable, "-n", ranks, "--inputs", inputs,
                    "--outputs", outputs, "--json")
    _, report = report_of(stdout, ranks)
    if len(report["times_s"]) != 1:
        raise Failed(f"expected one time, found {report}")
    return outputs


def compare(what, found, expected, names, tolerance):
    found, expected = (tensorfiles.read(p, names) for p in (found, expected))
    if set(found) != set(expected):
        raise Failed(f"expected outputs {sorted(expected)}, found {sorted(found)}")
    for name, tensor in expected.items():
        try:
            error = tensorfiles.difference(found[name], tensor)
        except tensorfiles.Mismatch as problem:
            raise Failed(f"{what}: output '{name}': {problem}")
        print(f"  {what}: '{name}' {error:.1e}")
        if not error <= tolerance:
            raise Failed(f"{what}: output '{name}' differs by {error:.2e}, "
                         f"expected at most {tolerance:.0e}")


def check_set(options, inputs, references, work):
    dims, batch = bindings(options.model, inputs)
    names = [name for name, _ in tensorfiles.graph_values(options.model)[1]]
    check_counts(options.model, dims, options.count)
    first = None
    for ranks in map(int, options.ranks.split(",")):
        if batch % ranks:
            continue
        outputs = run_on(options.model, dims, ranks, inputs, work)
        compare(f"ranks {ranks} against the reference", outputs, references, names, 1e-4)
        if first:
            compare(f"ranks {ranks} against {first.name}", outputs, first, names, 1e-6)
        first = first or outputs


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", type=pathlib.Path, help="the .onnx, or a folder of test material")
    parser.add_argument("--inputs", type=pathlib.Path)
    parser.add_argument("--expected", type=pathlib.Path)
    parser.add_argument("--ranks", default="1,2,4")
    parser.add_argument("--count", action="append", default=[], metavar="OP=N")
    parser.add_argument("--work", type=pathlib.Path, required=True)
    options = parser.parse_args()
    sets = [(options.inputs, options.expected)]
    if options.model.is_dir():
        sets = [(s, s) for s in sorted(options.model.glob("test_data_set_*"))]
        options.model /= "model.onnx"
    try:
        if not sets:
            raise Failed(f"'{options.model.parent}' has no test_data_set_*")
        for index, (inputs, references) in enumerate(sets):
            print(f"{options.model.parent.name}, set {index}")
            work = options.work / str(index)
            work.mkdir(parents=True, exist_ok=True)
            check_set(options, inputs, references, work)
    except (Failed, tensorfiles.Mismatch) as problem:
        print(f"error: {problem}", file=sys.stderr)
        return 1
    return 0


sys.exit(main())
