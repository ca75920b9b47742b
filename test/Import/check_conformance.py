#!/usr/bin/env python3
"""Imports the node cases of ONNX's own conformance suite (the archive of
shared/models/onnx), and compares what the reference evaluator makes of them with
the suite's outputs. Prints how many agree, in each tier of the training subset too,
and fails where that is not what docs/Conformance.md says: a case differs that it does
not list, or agrees that it does, or a number is another. Inputs that the importer must
know (axes, shapes) are bound to the case's own by --input."""
import argparse
import concurrent.futures
import os
import pathlib
import re
import subprocess
import sys
import tarfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "scripts"))
import tensorfiles  # noqa: E402

# What a message says of an input whose value is needed now.
NEEDED = re.compile(r"--input ([^=]+)=FILE")


def run(*command):
    return subprocess.run([str(c) for c in command], capture_output=True, text=True)


def name_of(tensor):
    """The name that a TensorProto carries: its field 8."""
    return next((value.decode() for number, value in tensorfiles.fields(tensor.read_bytes())
                 if number == 8), "")


def check(case, tolerance):
    """What is wrong with a case, or None."""
    text, data = case / "nn.mlir", case / "test_data_set_0"
    files = {name_of(file): file for file in data.glob("input_*.pb")}
    bound = []
    while True:
        imported = run("acc-opt", case / "model.onnx", "--compile-to=nn", "-o", text, *bound)
        needed = NEEDED.search(imported.stderr)
        if imported.returncode == 0 or not needed or needed.group(1) not in files:
            break
        file = f"{needed.group(1)}={files.pop(needed.group(1))}"
        bound.append(f"--input={file}")
    if imported.returncode != 0:
        return imported.stderr
    evaluated = run("acc-eval", text, "--own-types", "--inputs", data, "--expect", data,
                    "--tolerance", tolerance)
    return None if evaluated.returncode == 0 else evaluated.stdout + evaluated.stderr


def read_docs(path):
    """The patterns of refused cases, and how many each row of a table takes, of how many."""
    text = path.read_text()
    refused = [re.compile(pattern.replace("*", "(?:(?!_expanded).)*"))
               for names in re.findall(r"^\| (`test_[^|]*) \| .* \|$", text, re.M)
               for pattern in re.findall(r"`([^`]+)`", names)]
    rows = re.findall(r"^\| (.+) \| ([\d,]+) \| ([\d,]+) \|$", text, re.M)
    return refused, {name: tuple(int(n.replace(",", "")) for n in numbers)
                     for name, *numbers in rows}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("archive", type=pathlib.Path)
    parser.add_argument("subset", type=pathlib.Path, help="tier, operator, case of each line")
    parser.add_argument("docs", type=pathlib.Path)
    parser.add_argument("work", type=pathlib.Path, help="where to unpack the cases")
    # BackendTest's own relative tolerance.
    parser.add_argument("--tolerance", type=float, default=1e-3)
    parser.add_argument("--only", help="a pattern of the cases to check, without the numbers")
    arguments = parser.parse_args()
    with tarfile.open(arguments.archive) as archive:
        archive.extractall(arguments.work, [m for m in archive if m.name.startswith("node/")])
    names = sorted(model.parent.name for model in arguments.work.glob("node/*/model.onnx")
                   if re.fullmatch(arguments.only or ".*", model.parent.name))
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        results = dict(zip(names, pool.map(
            lambda name: check(arguments.work / "node" / name, arguments.tolerance), names)))
    refused, numbers = read_docs(arguments.docs)
    wrong = False
    for name, message in results.items():
        is_refused = any(pattern.fullmatch(name) for pattern in refused)
        if is_refused == (message is None):
            wrong = True
            print(f"{name}: {(message or 'agrees, but is listed as refused').strip()}")
    tiers = {"all node cases of the suite of onnx 1.22, by the evaluator "
             "(`test/Import/conformance.test`)": names,
             "training subset of the suite of onnx 1.22 (`subset.tsv`)": []}
    subset = next(reversed(tiers))
    for line in arguments.subset.read_text().splitlines():
        tier, _, name, *_ = line.split("\t")
        if name in results:
            tiers.setdefault(tier, []).append(name)
            tiers[subset].append(name)
    for tier, cases in tiers.items():
        found = sum(results[name] is None for name in cases), len(cases)
        print(f"{tier}: {found[0]} of {found[1]}")
        if not arguments.only and numbers.get(tier) != found:
            wrong = True
            print(f"  but docs/Conformance.md has {numbers.get(tier)}")
    sys.exit(wrong)


if __name__ == "__main__":
    main()
