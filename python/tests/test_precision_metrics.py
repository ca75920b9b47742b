"""What a step measures of the tensors that it rounds (acc-opt --metrics=precision, acc-run
--metrics): largest magnitudes, scales, and how many elements overflow and vanish, counted here
by ml_dtypes and NumPy on the same tensors, in other layouts too."""
import json
import unittest

import ml_dtypes
import numpy as np
import torch
from torch import nn

from training import TOOLS, WITHOUT_TOOLS, TrainCase

E4M3 = ml_dtypes.float8_e4m3fn
LAYOUTS = ([], ["--micro-batches=4"], ["--mesh", "dp=4", "--set", "zero_stage=3"],
           ["--mesh", "dp=2,tp=2"], ["--mesh", "pp=2", "--micro-batches=2"],
           ["--mesh", "pp=2", "--micro-batches=4", "--recompute=first"])


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(16, 32, bias=False)
        self.second = nn.Linear(32, 16, bias=False)

    def forward(self, x):
        return self.second(self.first(x).relu()).square().sum()


def count(values, scale, kind):
    """Those that overflow and those that vanish, of a type of ml_dtypes or NumPy."""
    wide = (values * np.float32(scale)).astype(np.float32)
    narrow = wide.astype(kind).astype(np.float32)
    return int((~np.isfinite(narrow)).sum()), int(((wide != 0) & (narrow == 0)).sum())


@unittest.skipIf(WITHOUT_TOOLS, WITHOUT_TOOLS)
class Metrics(TrainCase):
    def setUp(self):
        super().setUp()
        torch.manual_seed(3)
        # Of many sizes, so that some elements are beyond either end.
        self.x = (torch.randn(8, 16) * 10.0 ** torch.empty(8, 16).uniform_(-9, 5.3))
        self.net = Net()
        with torch.no_grad():
            self.net.first.weight[0, :5] = torch.tensor([1e-3, 500.0, 5e-4, 464.0, 464.5])

    def measure(self, flags, layout):
        program, log = self.folder / "m.accx", self.folder / "m.jsonl"
        log.unlink(missing_ok=True)
        self.tool("acc-opt", self.folder / "model.onnx", "--train", "--loss", "loss", "--optimizer", "sgd",
                  "--metrics=precision", "--set", "optimizer.lr=0", *flags, *layout, "-o", program)
        self.tool("acc-run", program, "--steps", 2, "--inputs", self.folder / "inputs", "--metrics", log)
        lines = [json.loads(line) for line in log.read_text().splitlines()]
        self.assertEqual([line["step"] for line in lines], [1, 2])
        return [line["tensors"] for line in lines]

    def export_net(self):
        self.export(self.net, (self.x,))

    def test_fp8(self):
        self.export_net()
        x = self.x.to(torch.bfloat16).float().numpy()
        weights = {name: p.detach().numpy() for name, p in self.net.named_parameters()}
        for layout in LAYOUTS:
            with self.subTest(layout=layout):
                first, second = self.measure(["--mixed-precision=fp8"], layout)
                self.assertEqual(sorted(first), sorted(second))
                for name, tensor in (("first.weight/fprop/left", x), ("first.weight/fprop/right", weights["first.weight"]),
                                     ("second.weight/fprop/right", weights["second.weight"])):
                    amax = float(np.abs(tensor).max())
                    # Delayed: 1 in the first step, and from that one's amax in the second.
                    for told, scale in ((first[name], 1), (second[name], np.float32(448) / np.float32(amax))):
                        self.assertAlmostEqual(told["amax"], amax, delta=1e-6 * amax)
                        np.testing.assert_allclose(told["scale"], [scale, scale], rtol=1e-6)
                        self.assertEqual((told["overflow"], told["underflow"]), count(tensor, scale, E4M3))
                self.assertTrue(first["first.weight/fprop/right"]["overflow"] and
                                first["first.weight/fprop/left"]["underflow"])

    def test_fp16(self):
        self.export_net()
        x = self.x.numpy()
        for layout in LAYOUTS:
            with self.subTest(layout=layout):
                told, _ = self.measure(["--mixed-precision=fp16", "--set", "scaler.type=static", "--set",
                                        "scaler.init_scale=1"], layout)
                inputs = [each for each in told.values() if np.float32(each["amax"]) == np.abs(x).max()]
                self.assertEqual({(each["overflow"], each["underflow"]) for each in inputs},
                                 {count(x, 1, np.float16)})
                self.assertTrue(all(count(x, 1, np.float16)))
                self.assertEqual(inputs[0]["scale"], [1, 1])


if __name__ == "__main__":
    unittest.main()
