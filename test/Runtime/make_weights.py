#!/usr/bin/env python3
"""make_weights.py FOLDER: inputs of the regression, and safetensors files that are its
weights (zeros), lack them, have another shape, or have more."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent.parent / "scripts"))
sys.dont_write_bytecode = True
import tensorfiles  # noqa: E402  (from scripts/)

FILES = {"good": {"w": [4, 2]}, "missing": {"v": [4, 2]}, "shape": {"w": [2, 4]},
         "more": {"w": [4, 2], "v": [4, 2]}}


def main():
    folder = pathlib.Path(sys.argv[1])
    (folder / "inputs").mkdir()
    tensorfiles.write_npy(folder / "inputs" / "x.npy", ([8, 4], "float32", [1.0] * 32))
    tensorfiles.write_npy(folder / "inputs" / "t.npy", ([8, 2], "float32", [2.0] * 16))
    for name, tensors in FILES.items():
        tensorfiles.write_safetensors(folder / f"{name}.safetensors", {
            tensor: (shape, "float32", [0.0] * 8) for tensor, shape in tensors.items()})


if __name__ == "__main__":
    main()
