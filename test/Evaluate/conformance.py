#!/usr/bin/env python3
"""conformance.py ARCHIVE NAMES WORK: imports cases of ONNX's own conformance data
and evaluates them in their own types against the expected outputs. The oracle of
the evaluator that nobody here wrote."""
import pathlib
import subprocess
import sys
import tarfile

archive, names, work = sys.argv[1], sys.argv[2], pathlib.Path(sys.argv[3])
cases = pathlib.Path(names).read_text().split()
wanted = {f"node/{case}" for case in cases}
with tarfile.open(archive) as tar:
    for member in tar:
        parts = member.name.lstrip("./").split("/")
        if member.isfile() and "/".join(parts[:2]) in wanted:
            target = work.joinpath(*parts[1:])
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(tar.extractfile(member).read())

failed = 0
for case in cases:
    folder, text = work / case, work / case / "nn.mlir"
    commands = [["acc-opt", folder / "model.onnx", "--compile-to=nn", "-o", text]]
    for data in sorted(folder.glob("test_data_set_*")):
        commands.append(["acc-eval", text, "--own-types", "--inputs", data, "--expect", data])
    if len(commands) == 1:
        print(f"{case}: expected a test_data_set_*, found none")
        failed += 1
    for command in commands:
        result = subprocess.run([str(c) for c in command], capture_output=True, text=True)
        if result.returncode != 0:
            print(f"{case}: {result.stderr}")
            failed += 1
            break
print(f"{len(cases) - failed} of {len(cases)} cases agree")
sys.exit(failed != 0)
