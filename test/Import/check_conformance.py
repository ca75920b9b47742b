#!/usr/bin/env python3
"""Imports cases of ONNX's own conformance suite (the archive of
shared/models/onnx), and compares what the reference evaluator makes of them with
the suite's outputs. Names of cases, one a line; prints those that differ. Inputs
that the importer must know (axes, shapes) are bound to the case's own by --input."""
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


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("archive", type=pathlib.Path)
    parser.add_argument("names", type=pathlib.Path)
    parser.add_argument("work", type=pathlib.Path, help="where to unpack the cases")
    # BackendTest's own relative tolerance.
    parser.add_argument("--tolerance", type=float, default=1e-3)
    arguments = parser.parse_args()
    names = arguments.names.read_text().split()
    wanted = {f"node/{name}" for name in names}
    with tarfile.open(arguments.archive) as archive:
        members = [m for m in archive
                   if "/".join(pathlib.PurePosixPath(m.name).parts[:2]) in wanted]
        archive.extractall(arguments.work, members)
    cases = [arguments.work / "node" / name for name in names]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        results = list(pool.map(lambda case: check(case, arguments.tolerance), cases))
    failures = [(name, wrong) for name, wrong in zip(names, results) if wrong]
    for name, wrong in failures:
        print(f"{name}: {wrong.strip()}")
    print(f"{len(names) - len(failures)} of {len(names)} cases agree")
    sys.exit(bool(failures))


if __name__ == "__main__":
    main()
