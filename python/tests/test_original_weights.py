"""`--original-weights` of acc-opt: what a default export of today's exporter holds of a parameter
only folded is undone, if it is that parameter bit by bit, and trained as PyTorch does in
float64; and the views by samples of what a mask chooses. Needs the tools."""
import copy
import unittest

import numpy as np
import torch
from safetensors.torch import save_file
from torch import nn

from training import STEPS, TrainCase, WITHOUT_TOOLS, train_by_torch, Refused

IDS = torch.tensor([[3, 7, 1, 7, 2], [7, 4, 7, 5, 6], [7, 7, 0, 1, 2], [4, 5, 7, 6, 7]])


def values(*shape, seed=1):
    return nn.Parameter(torch.randn(*shape, generator=torch.Generator().manual_seed(seed)))


class Table(nn.Module):
    """Rows of a longer table of positions, by a module and by an index; a scale that rounds."""

    def __init__(self):
        super().__init__()
        self.words, self.places = nn.Embedding(9, 6), nn.Embedding(8, 6)
        self.words.weight, self.places.weight = values(9, 6), values(8, 6, seed=2)
        self.scale, self.last = values(6, seed=3), values(12, 6, seed=4)

    def forward(self, ids):
        h = self.words(ids) + self.places(torch.arange(5).flip(0))
        h = h * (self.scale * 0.1) + self.last[2:7]
        return (h.tanh() * torch.arange(1., 7.)).square().mean()


class WithoutGradient(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.weight = nn.Embedding(9, 6), values(6, 6, seed=2)
        self.words.weight = values(9, 6)

    def forward(self, ids):
        with torch.no_grad():
            still = self.weight[1:5].t()
        return (self.words(ids) @ still).square().mean()


class Scaled(nn.Module):
    """Scales and a wider type, of which the file alone tells what was before."""

    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(9, 6)
        self.words.weight = values(9, 6)
        self.scale, self.shift, self.wide = (values(6, seed=seed) for seed in (2, 3, 4))

    def forward(self, ids):
        h = self.words(ids) * (self.scale * 0.5)
        h = (h.tanh() - (self.shift / 4)).double() * self.wide.double()
        return h.square().mean().float()


class ScaledWithoutGradient(Scaled):
    def forward(self, ids):
        with torch.no_grad():
            half = self.scale * 0.5
        return (self.words(ids) * half + self.shift).square().mean()


class Expanded(nn.Module):
    """A token before each row, as a Vision Transformer has it, and a column beside each matrix."""

    def __init__(self, start=None, column=(1, 6, 1)):
        super().__init__()
        self.words = nn.Embedding(9, 6)
        self.words.weight = values(9, 6)
        self.token = values(1, 1, 6, seed=2) if start is None else nn.Parameter(torch.full((1, 1, 6), start))
        self.column = values(*column, seed=3)

    def forward(self, ids):
        h = torch.cat([self.token.expand(ids.shape[0], -1, -1), self.words(ids)], 1)
        h = torch.cat([h.transpose(1, 2), self.column.expand(ids.shape[0], 6, 2)], 2)
        return (h.tanh() * torch.arange(1., 9.)).square().mean()


class Grouped(nn.Module):
    """Norms of groups, of whose weights the exporter makes columns."""

    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(9, 6)
        self.words.weight = values(9, 6)
        self.norm = nn.GroupNorm(3, 6)
        self.norm.weight, self.norm.bias = values(6, seed=2), values(6, seed=3)

    def forward(self, ids):
        h = self.norm(self.words(ids).transpose(1, 2))
        return (h.tanh() * torch.arange(1., 6.)).square().mean()


class ExpandedWithoutGradient(Expanded):
    def forward(self, ids):
        with torch.no_grad():
            token = self.token.expand(ids.shape[0], -1, -1)
        return torch.cat([token, self.words(ids)], 1).tanh().square().mean() + self.column.sum()


class Turned(Expanded):
    """Of a square of equal numbers either way round may be meant."""

    def __init__(self):
        super().__init__()
        self.column = nn.Parameter(torch.ones(6, 6))

    def forward(self, ids):
        square = self.column.t().expand(ids.shape[0], 6, 6)
        return (torch.cat([square, self.words(ids)], 1).tanh() * torch.arange(1., 7.)).square().mean()


class LastOfSample(nn.Module):
    """As BART and T5 classify: the last of those of each sample that a mask chooses."""

    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(9, 6)
        self.words.weight = values(9, 6)

    def forward(self, ids):
        h = self.words(ids).cumsum(1)
        seen = h[ids == 7].view(ids.shape[0], -1, 6)
        return (seen[:, -1].tanh() + 0.5 * seen[:, 0] ** 2).mean()


@unittest.skipIf(WITHOUT_TOOLS, WITHOUT_TOOLS)
class Originals(TrainCase):
    rate = 0.5

    def train(self, module, ids, *flags):
        folder = self.folder
        torch.onnx.export(copy.deepcopy(module), (ids,), str(folder / "model.onnx"), dynamo=True,
                          verbose=False, input_names=["ids"], output_names=["loss"])
        (folder / "inputs").mkdir(exist_ok=True)
        np.save(folder / "inputs" / "ids.npy", ids.numpy())
        tool = self.tool

        def with_flags(name, *arguments):
            return tool(name, *arguments, *(flags if name == "acc-opt" else ()))
        self.tool = with_flags
        try:
            return self.train_by_acc()
        finally:
            self.tool = tool

    def assert_right(self, module, ids, *flags):
        losses, weights = self.train(module, ids, *flags)
        exact = copy.deepcopy(module).double()
        np.testing.assert_allclose(losses, train_by_torch(exact, ids, self.rate), rtol=1e-7)
        self.assertEqual(len(losses), STEPS)
        for name, parameter in exact.named_parameters():
            torch.testing.assert_close(weights[name].double(), parameter.detach(), rtol=0, atol=1e-6)

    def save(self, module, **changed):
        path = self.folder / "original.safetensors"
        save_file({**{n: v.detach().clone() for n, v in module.state_dict().items()}, **changed},
                  path)
        return "--original-weights", path

    def test_what_was_folded_is_undone(self):
        module = Table()
        with self.assertRaises(Refused):
            self.train(module, IDS)
        self.assert_right(module, IDS, *self.save(module))
        self.assertIn("rows of parameter 'places.weight'", self.said)

    def test_what_is_on_its_line_is_undone_without_them(self):
        self.assert_right(Scaled(), IDS)
        with self.assertRaisesRegex(Refused, "from parameter 'scale'"):
            self.train(ScaledWithoutGradient(), IDS)

    def test_repetition_is_undone(self):
        """Without the originals the shape is the copies' own."""
        self.assert_right(Expanded(), IDS)
        self.assertIn("it is saved as [1, 1, 6]", self.said)
        for module in (Expanded(), Expanded(start=0.0), Expanded(column=(6, 1))):
            self.assert_right(module, IDS, *self.save(module))
            self.assert_right(module, IDS, *self.save(module), "--mesh", "dp=2")
        with self.assertRaisesRegex(Refused, "parameter 'token'"):
            self.train(Expanded(start=0.0), IDS)
        for module in (ExpandedWithoutGradient(), Turned()):
            with self.assertRaises(Refused):
                self.train(module, IDS, *self.save(module))

    def test_columns_of_norms_are_undone(self):
        module = Grouped()
        self.assert_right(module, IDS)
        self.assert_right(module, IDS, *self.save(module))

    def test_other_weights_are_refused(self):
        module = Table()
        other = module.scale.detach() + torch.tensor([0, 0, 0.01, 0, 0, 0])
        with self.assertRaises(Refused):
            self.train(module, IDS, *self.save(module, scale=other))
        with self.assertRaisesRegex(Refused, "other values of parameter 'words.weight'"):
            self.train(module, IDS, *self.save(module, **{"words.weight": torch.ones(9, 6)}))

    def test_a_padding_may_be_meant(self):
        module = Table()
        with torch.no_grad():
            module.places.weight[2] = 0
        with self.assertRaisesRegex(Refused, "places.weight"):
            self.train(module, IDS, *self.save(module))

    def test_what_has_no_gradient_is_refused(self):
        module = WithoutGradient()
        with self.assertRaises(Refused):
            self.train(module, IDS, *self.save(module))

    def test_files_that_are_none(self):
        path = self.folder / "original.safetensors"
        for data in (b"", b"\xff" * 64, b"\2\0\0\0\0\0\0\0[]", b"\2\0\0\0\0\0\0\0{}"):
            path.write_bytes(data)
            with self.assertRaisesRegex(Refused, "original.safetensors.*expected"):
                self.train(Table(), IDS, "--original-weights", path)

    def test_one_of_each_sample(self):
        module = LastOfSample()
        for flags in ((), ("--mesh", "dp=2", "--micro-batches", "2")):
            self.assert_right(module, IDS, *flags)

    def test_samples_with_other_numbers_stop_the_run(self):
        ids = IDS.clone()
        ids[0, 0], ids[1, 0] = 7, 0  # 3, 1, 2 and 2
        with self.assertRaisesRegex(Refused, "expected"):
            self.train(LastOfSample(), ids)


if __name__ == "__main__":
    unittest.main()
