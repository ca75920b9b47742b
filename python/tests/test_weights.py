"""Loading is strict both ways, and changes nothing where it refuses."""
import unittest

import torch
from safetensors.torch import save_file


from common import ExportCase, acc_export
from test_signature import Tied


class Net(Tied):
    def __init__(self):
        super().__init__()
        self.l = torch.nn.Linear(2, 3)
        self.register_buffer("scale", torch.ones(2))


class Load(ExportCase):
    def setUp(self):
        super().setUp()
        self.module = Net()
        self.file = self.folder / "weights.safetensors"
        self.weights = {"e.weight": torch.randn(5, 4), "l.weight": torch.randn(3, 2),
                        "l.bias": torch.randn(3)}

    def load(self):
        save_file(self.weights, self.file)
        acc_export.load(self.module, self.file)

    def refuse(self, words):
        before = {n: p.clone() for n, p in self.module.state_dict().items()}
        with self.assertRaises(acc_export.Refused) as caught:
            self.load()
        self.assertIn(words, str(caught.exception))
        for name, value in self.module.state_dict().items():
            self.assertTrue(torch.equal(value, before[name]), name)

    def test_every_parameter_once(self):
        self.load()
        for name, value in self.weights.items():
            self.assertTrue(torch.equal(self.module.state_dict()[name], value), name)
        self.assertTrue(torch.equal(self.module.o.weight, self.weights["e.weight"]))
        self.assertIs(self.module.o.weight, self.module.e.weight)

    def test_an_alias_is_enough(self):
        self.weights["also.weight"] = self.weights.pop("e.weight")
        self.load()
        self.assertTrue(torch.equal(self.module.e.weight, self.weights["also.weight"]))

    def test_missing(self):
        del self.weights["l.bias"]
        self.refuse("lacks parameters of the module: 'l.bias'")

    def test_unexpected(self):
        self.weights["l.extra"] = torch.ones(1)
        self.refuse("holds what the module does not have: 'l.extra'")

    def test_shape(self):
        self.weights["l.weight"] = torch.randn(2, 3)
        self.refuse("'l.weight' in")

    def test_dtype(self):
        self.weights["l.weight"] = self.weights["l.weight"].double()
        self.refuse("torch.float64 of shape [3, 2], the module's is torch.float32")

    def test_tied_names_that_differ(self):
        self.weights["o.weight"] = torch.randn(5, 4)
        self.refuse("'e.weight' and 'o.weight' are one parameter")

    def test_not_a_file_of_weights(self):
        self.file.write_bytes(b"no")
        with self.assertRaisesRegex(acc_export.Refused, "cannot read"):
            acc_export.load(self.module, self.file)
        with self.assertRaisesRegex(acc_export.Refused, "cannot read"):
            acc_export.load(self.module, self.folder / "absent")


if __name__ == "__main__":
    unittest.main()
