"""`acc-run --save-dtype`: the file has every tensor of floating point in that type, rounded once to
nearest even, in each layout, and is read again; of a program of float64 too, where rounding by way
of float32 would differ. Needs the tools, whose folder ACC_BIN names."""
import unittest

import numpy as np
import torch
from safetensors.torch import load_file

from common import Refused
from training import WITHOUT_TOOLS, X, TrainCase

LAYOUTS = {"one rank": (), "micro-batches": ("--micro-batches=3",),
           "zero 3": ("--mesh=dp_shard=2", "--set=zero_stage=3"), "tensor": ("--mesh=tp=2",)}
TYPES = {"bf16": torch.bfloat16, "fp16": torch.float16, "fp32": torch.float32}
# Of bfloat16 and float16: fraction bits, and the exponent of the least normal number.
SHAPES = {torch.bfloat16: (7, -126), torch.float16: (10, -14), torch.float32: (23, -126)}


class Net(torch.nn.Module):
    """Weights of two layers, and one that nothing trains."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.up, self.down = torch.nn.Linear(5, 8), torch.nn.Linear(8, 4)
        self.shift = torch.nn.Parameter(torch.randn(5), requires_grad=False)

    def forward(self, x):
        return self.down(self.up(x + self.shift).tanh()).square().mean()


def round_once(value, dtype):
    """float64 to the nearest number of the type, ties to even, by way of no other type."""
    fraction, least = SHAPES[dtype]
    value = value.double().numpy()
    _, exponent = np.frexp(value)
    unit = np.maximum(exponent - 1, least) - fraction
    return torch.from_numpy(np.ldexp(np.round(np.ldexp(value, -unit)), unit))


@unittest.skipIf(WITHOUT_TOOLS, WITHOUT_TOOLS)
class SaveTypes(TrainCase):
    def build(self, *words):
        self.tool("acc-opt", self.folder / "model.onnx", "--train", "--loss=loss",
                  "--optimizer=sgd", "--set=optimizer.lr=0.1", *words, "-o", self.program)

    def save(self, *words, steps=3):
        self.tool("acc-run", self.program, "--steps", steps, "--inputs", self.folder / "inputs",
                  "--save-weights", self.saved, *words)
        return load_file(self.saved)

    def setUp(self):
        super().setUp()
        self.program, self.saved = self.folder / "m.accx", self.folder / "w.safetensors"
        self.export(Net(), (X,))

    def test_they_are_rounded_once_in_each_layout(self):
        for layout, flags in LAYOUTS.items():
            self.build(*flags)
            exact = self.save()
            for name, dtype in TYPES.items():
                with self.subTest(layout=layout, type=name):
                    found = self.save(f"--save-dtype={name}")
                    self.assertEqual(found.keys(), exact.keys())
                    for key, value in exact.items():
                        self.assertEqual(found[key].dtype, dtype, key)
                        self.assertTrue(torch.equal(found[key], value.to(dtype)), key)

    def test_float64_is_not_rounded_twice(self):
        for path in (self.folder / "inputs").glob("*.npy"):
            value = np.load(path)
            np.save(path, value.astype(np.float64))
        self.build("--dtype=f64")
        exact = self.save()
        for name, dtype in TYPES.items():
            found = self.save(f"--save-dtype={name}")
            for key, value in exact.items():
                self.assertTrue(torch.equal(found[key].double(), round_once(value, dtype)), key)

    def test_they_are_read_again(self):
        self.build()
        half = self.save("--save-dtype=bf16")
        again = self.folder / "again.safetensors"
        self.tool("acc-run", self.program, "--inputs", self.folder / "inputs", "--steps", 1,
                  "--weights", self.saved, "--save-weights", again)
        module = Net()
        with torch.no_grad():
            for name, parameter in module.named_parameters():
                parameter.copy_(half[name].float())
        module(X).backward()
        found = load_file(again)
        for name, parameter in module.named_parameters():
            expected = parameter.detach()
            if parameter.requires_grad:
                expected = expected - 0.1 * parameter.grad
            torch.testing.assert_close(found[name], expected, rtol=1e-5, atol=1e-6)

    def test_others_are_refused(self):
        self.build()
        with self.assertRaisesRegex(Refused, "expected bf16, fp16 or fp32 as --save-dtype"):
            self.save("--save-dtype=fp8")


if __name__ == "__main__":
    unittest.main()
