"""Calls on complex tensors, by real numbers: each row of complex_numbers.CALLS, value and
gradient, against PyTorch in float64; what is refused, and by which words."""
import unittest

import torch

from common import Calls, ExportCase
from acc_export import complex_numbers

torch.manual_seed(2)
X = torch.randn(4, 6, 5)
ANGLES = torch.outer(torch.arange(6.), torch.tensor([1., 0.3, 0.1]))
WEIGHTS = torch.randn(1000)
AT = torch.tensor([[0, 2, 1, 5, 4, 3], [5, 5, 0, 1, 1, 2], [3, 0, 0, 0, 1, 1], [1, 2, 3, 4, 5, 0]])


def turns():
    return torch.polar(torch.ones_like(ANGLES), ANGLES).to(torch.complex128)


def pairs(s, x):
    """[4, 6, 3] complex numbers."""
    return torch.view_as_complex(s.a(x).reshape(4, 6, 3, 2))


def weighed(z):
    """A number that depends on every part of z, each in another way."""
    real = torch.view_as_real(z.resolve_conj())
    return (real * WEIGHTS[:real.numel()].reshape(real.shape).to(real.dtype)).sum()


class Taken(dict):
    """A table that remembers what it was asked for."""
    def __init__(self, table):
        super().__init__(table)
        self.asked = set()

    def get(self, key, default=None):
        self.asked.add(key)
        return super().get(key, default)


class Rows(ExportCase):
    table = Taken(complex_numbers.CALLS)

    def setUp(self):
        super().setUp()
        before, complex_numbers.CALLS = complex_numbers.CALLS, self.table
        self.addCleanup(setattr, complex_numbers, "CALLS", before)

    @classmethod
    def tearDownClass(cls):
        unused = set(complex_numbers.CALLS) - cls.table.asked
        assert not unused, f"rows that no test uses: {unused}"

    def check(self, *functions, args=(X,), **parts):
        """The sum of what several functions make of the complex numbers."""
        def total(s, x, *rest):
            z = pairs(s, x)
            return sum(weighed(y) if y.is_complex() else y.sin().sum()
                       for f in functions for y in [f(s, z, *rest)])
        for node in self.assert_traced(Calls(total, **parts), args).graph.nodes:
            value = node.meta.get("val")
            self.assertFalse(isinstance(value, torch.Tensor) and value.is_complex(), node)

    def test_arithmetic(self):
        self.check(lambda s, z: z * z + z * 2.5 - z * (0.5 - 2j), lambda s, z: 3 - z,
                   lambda s, z: torch.sub(z, 1j, alpha=2) + torch.add(z, z.conj(), alpha=0.5),
                   lambda s, z: -z.conj() * z.real, lambda s, z: 1j * z.imag + 2,
                   lambda s, z: torch.exp(z / 4) + torch.exp(1j * z.abs()),
                   lambda s, z: z ** 3 + z.square() + torch.mul(z.real, 0j))

    def test_quotients(self):
        self.check(lambda s, z: z / (z + 4) + z / 3, lambda s, z: z.real / (z + 5j),
                   lambda s, z: z / (1 - 2j) + (z + 4).reciprocal() + z / z.abs())

    def test_products(self):
        self.check(lambda s, z: z @ z.transpose(1, 2), lambda s, z: z[0] @ z[1].t(),
                   lambda s, z: torch.bmm(z, z.conj().transpose(1, 2)),
                   lambda s, z: torch.mm(z[0], z[1].T) + torch.dot(z[0, 0], z[1, 1]),
                   lambda s, z: torch.vdot(z[2, 0], z[1, 3]) * z.conj_physical(),
                   lambda s, z: torch.einsum("blk,bmk->lm", z, z) + torch.einsum("blk->l", z))

    def test_sums(self):
        self.check(lambda s, z: z.sum() + z.mean(), lambda s, z: z.sum(-1) * z.mean(2),
                   lambda s, z: z.mean((0, -1), keepdim=True) + z.sum(1, keepdim=True),
                   lambda s, z: torch.where(z.real > 0, z, z.conj() * 2),
                   lambda s, z: torch.where(z.real > 0, z, 0.5) + torch.where(z.imag > 0, 1j, z))

    def test_shapes(self):
        self.check(lambda s, z: z.unsqueeze(-1).squeeze(-1) + z[None].squeeze(),
                   lambda s, z: z[:, None].squeeze((1,)) + z.reshape(24, -1).view(4, 6, 3),
                   lambda s, z: z.flatten(1, -1).unflatten(1, (2, 9)),
                   lambda s, z: z[:, :1].expand(-1, 6, 3) + z[:1].expand_as(z),
                   lambda s, z: z.transpose(-1, 0).permute(2, -2, 0) + z.contiguous(),
                   lambda s, z: z.repeat(2, 1, 3) * z[0, 0, 0] + z[:, :, -1:][0, 0])

    def test_places(self):
        self.check(lambda s, z: z[:, 1::2, :2] + z.select(-1, 1)[:, :3, None],
                   lambda s, z: z.index_select(1, torch.tensor([3, 0])) * z[AT[:, 0] % 4, :2],
                   lambda s, z: z.flip(-1) + z.roll(1, 1) + z.roll((1, 2), (0, -1)),
                   lambda s, z: torch.cat([z, z.conj(), z.real], -1),
                   lambda s, z: torch.stack([z, z * 2, z.imag], -1),
                   lambda s, z: sum(z.split(2, -2)) * z.unbind(-1)[1][:, :2, None],
                   lambda s, z: z.split([1, 2], 2)[1] + z.chunk(3, -1)[0])

    def test_makers(self):
        self.check(lambda s, z: torch.complex(z.imag, z.real) + torch.polar(z.abs(), z.real),
                   lambda s, z: z * torch.full((3,), 1 + 2j) + torch.zeros(3, dtype=z.dtype),
                   lambda s, z: z * torch.ones(6, 1, dtype=z.dtype) + z.real.to(z.dtype),
                   lambda s, z: z.conj().imag * z.real + torch.imag(z[:, 1:2].conj()).resolve_neg(),
                   lambda s, z: z.detach() * z + z.to(torch.complex128).clone().to(z.dtype),
                   lambda s, z: z * torch.tensor([1j, 2, 3 - 1j]) + z.resolve_conj())

    def test_rotations_as_models_write_them(self):
        def llama(s, z, at):
            return z * s.kept[:z.shape[1]].view(1, 6, 3) + z * s.kept[None, :]
        def gathered(s, z, at):
            return z * s.passing[at] + z * s.plain.unsqueeze(0).conj()
        def frequencies(s, z, at):
            angles = at[..., None] * torch.tensor([1., 0.3, 0.1]).to(z.real.dtype)
            return z * torch.polar(torch.ones_like(angles), angles) + z * torch.exp(1j * angles)
        self.check(llama, gathered, frequencies, args=(X, AT), plain=turns(), kept=turns(),
                   passing=turns().conj())


class Buffers(ExportCase):
    def test_hold_pairs_in_the_file_and_stay_in_the_module(self):
        module = Calls(lambda s, x: weighed(pairs(s, x) * s.turn))
        module.register_buffer("turn", turns().to(torch.complex64).conj())
        module.register_buffer("passing", turns(), persistent=False)
        model = self.assert_same(module, (X,))
        self.assertTrue(module.turn.is_complex())
        held = {i.name: list(i.dims) for i in model.graph.initializer}
        self.assertEqual(held["turn"], [6, 3, 2])
        declared = [p for p in model.graph.metadata_props if p.key == "accel.parameters"][0].value
        self.assertNotIn("complex", declared)
        self.assertIn('"name": "turn", "aliases": [], "kind": "buffer", "requires_grad": false, '
                      '"initializer": "turn", "shape": [6, 3, 2], "dtype": "float32"', declared)


class Refusals(ExportCase):
    def test_calls_that_have_no_row(self):
        def spectrum(s, x):
            return torch.fft.fft(s.a(x)).abs().sum()
        self.assert_refused("computes with a tensor of complex64[4, 6, 6], which ONNX has no type "
                            "for: compute with the real and the imaginary part", Calls(spectrum),
                            (X,))
        def angles(s, x):
            return pairs(s, x).angle().sum()
        self.assert_refused("angle() at ", Calls(angles), (X,))
        self.assert_refused("common.py:", Calls(angles), (X,))  # the forward's line
        self.assert_refused("pow() at ", Calls(lambda s, x: weighed(pairs(s, x) ** 0.5)), (X,))
        self.assert_refused("roll() at ", Calls(lambda s, x: weighed(pairs(s, x).roll(1))), (X,))

    def test_complex_borders(self):
        self.assert_refused("the model returns a tensor of complex64[4, 6, 3]",
                            Calls(lambda s, x: pairs(s, x)), (X,))
        self.assert_refused("input 'args_1' is a tensor of complex64[6, 3], which ONNX has no type",
                            Calls(lambda s, x, t: weighed(pairs(s, x) * t)),
                            (X, turns().to(torch.complex64)))


if __name__ == "__main__":
    unittest.main()
