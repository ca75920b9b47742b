#!/usr/bin/env python3
"""Imports cases of ONNX's own conformance suite (the archive of
shared/models/onnx), and compares what the reference evaluator makes of them with
the suite's outputs. Names of cases, one a line; prints those that differ."""
import argparse
import concurrent.futures
import os
import pathlib
import subprocess
import sys
import tarfile


def run(*command):
    return subprocess.run([str(c) for c in command], capture_output=True, text=True)


def check(case, tolerance):
    """What is wrong with a case, or None."""
    text = case / "nn.mlir"
    imported = run("acc-opt", case / "model.onnx", "--compile-to=nn", "-o", text)
    if imported.returncode != 0:
        return imported.stderr
    data = case / "test_data_set_0"
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
