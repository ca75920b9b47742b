#!/usr/bin/env python3
"""Runs a folder of small modules and their harness (../shared/truth) with acc-export in
the place of torch.onnx.export: each is trained in PyTorch float64 and in acc, in several
layouts, and a line says where they differ. See the harness's own README and `run`; what
it reads from the environment (ACC_BIN, LAYS, DT) holds here too.

    ACC_BIN=build/bin PYTHON test/PyTorch/check_truth_export.py ../shared/truth [c1.py…]

Exits with 1 where a case is wrong. What is refused is printed, with the reason."""
import contextlib
import io
import os
import pathlib
import runpy
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "python"))
sys.dont_write_bytecode = True


class Copied(io.TextIOBase):
    """Passes on what is written, and keeps the lines that begin with a verdict."""

    def __init__(self, to):
        self.to, self.text = to, ""

    def write(self, text):
        self.text += text
        return self.to.write(text)

    def flush(self):
        self.to.flush()


def main():
    folder = pathlib.Path(sys.argv[1]).resolve()
    files = sys.argv[2:] or sorted(f.name for f in folder.glob("c[0-9]*.py"))
    tempfile.tempdir = tempfile.mkdtemp(prefix="acc-truth-export-")
    os.environ["OPTZ"] = "0"
    os.environ["ACC_BIN"] = str(pathlib.Path(os.environ.get("ACC_BIN", "build/bin")).resolve())
    os.chdir(folder)
    sys.path.insert(0, str(folder))

    import torch

    import acc_export
    original = torch.onnx.export

    def export(model, args=(), f=None, *, dynamo=True, verbose=None, optimize=None,
               opset_version=None, **options):
        if isinstance(model, torch.export.ExportedProgram):  # acc-export's own call
            return original(model, args, f, dynamo=dynamo, verbose=verbose, optimize=optimize,
                            opset_version=opset_version, **options)
        return acc_export.export(model, args, path=f, opset=opset_version, **options)

    torch.onnx.export = export
    output = Copied(sys.stdout)
    with contextlib.redirect_stdout(output):
        for file in files:
            sys.argv = [file]
            try:
                runpy.run_path(file, run_name="__main__")
            except Exception as error:  # the rest of this file did not run
                print(f"?? {file} stopped: {type(error).__name__} {error}", flush=True)
    lines = output.text.splitlines()
    count = {kind: sum(line.startswith(kind) for line in lines) for kind in ("ok ", "R  ", "!! ", "?? ")}
    failed = sum("EXPORT FAILED" in line for line in lines)
    print(f"{count['ok ']} right, {count['R  ']} refused by acc, {failed} by acc-export, "
          f"{count['!! ']} wrong, {count['?? ']} files stopped")
    return count["!! "] > 0


sys.exit(main())
