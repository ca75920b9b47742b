"""Hyperbolic functions and their inverses in float32, from the smallest to the largest numbers,
beside PyTorch in float64: no digits cancel near 0, nothing overflows where the result does not."""
import unittest

import numpy as np
import onnx
import torch
from onnx import helper

from training import WITHOUT_TOOLS, TrainCase

SIZES = np.concatenate([np.logspace(-30, 38, 137), [1, 2, np.nextafter(2, 3), 88, 89]])
ALL = np.concatenate([[0.0], SIZES, -SIZES])
#: Each with numbers from its domain.
FUNCTIONS = {
    "Sinh": (torch.sinh, ALL), "Cosh": (torch.cosh, ALL), "Asinh": (torch.asinh, ALL),
    "Acosh": (torch.acosh, np.concatenate([1 + np.logspace(-6, 0, 61), SIZES[SIZES >= 1]])),
    "Atanh": (torch.atanh, np.concatenate([ALL[abs(ALL) < 1], 1 - np.logspace(-7, -1, 61)])),
    "Tan": (torch.tan, ALL[abs(ALL) < 1.5]), "Tanh": (torch.tanh, ALL)}


@unittest.skipIf(WITHOUT_TOOLS, WITHOUT_TOOLS)
class Trigonometric(TrainCase):
    def test_all_sizes(self):
        nodes = [helper.make_node(name, [f"x{name}"], [f"y{name}"]) for name in FUNCTIONS]
        numbers = {name: x.astype(np.float32) for name, (_, x) in FUNCTIONS.items()}
        inputs, outputs = ([helper.make_tensor_value_info(
            f"{letter}{name}", onnx.TensorProto.FLOAT, [len(x)]) for name, x in numbers.items()]
            for letter in "xy")
        model = helper.make_model(helper.make_graph(nodes, "functions", inputs, outputs),
                                  opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
        onnx.save(model, self.folder / "model.onnx")
        given, made = self.folder / "given", self.folder / "made"
        given.mkdir()
        for name, x in numbers.items():
            np.save(given / f"x{name}.npy", x)
        self.tool("acc-opt", self.folder / "model.onnx", "-o", self.folder / "m.accx")
        self.tool("acc-run", self.folder / "m.accx", "--inputs", given, "--outputs", made)
        for name, (function, _) in FUNCTIONS.items():
            with self.subTest(function=name):
                expected = function(torch.from_numpy(numbers[name]).double()).float()
                found = torch.from_numpy(np.load(made / f"y{name}.npy"))
                # What is below the smallest normal number is 0 (docs/Numerics.md).
                torch.testing.assert_close(found, expected, rtol=2e-6, atol=2e-38)


if __name__ == "__main__":
    unittest.main()
