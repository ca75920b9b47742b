"""Each row of attacks_*.py is trained by acc as PyTorch trains it, or is refused in the words
that it names."""
import unittest

import torch

import attacks_by_state  # noqa: F401
import attacks_on_gradients  # noqa: F401
import attacks_on_parameters  # noqa: F401
from attack import ATTACKS, Small
from training import WITHOUT_TOOLS, X, TrainCase


@unittest.skipIf(WITHOUT_TOOLS, WITHOUT_TOOLS)
class Attacks(TrainCase):
    """The tests are made of the rows, below."""


def _test(row, words):
    return lambda self: self.assert_trained(row, words)


for _name, (_row, _words) in ATTACKS.items():
    setattr(Attacks, f"test_{_name}", _test(_row, _words))


class Afterwards(TrainCase):
    """An export leaves no trace, although the module was run."""

    def test_module_is_as_it_was(self):
        def forward(s, x):
            s.kept = s.a(x)
            s.length = 5
            return s.kept.pow(2).sum() + torch.dropout(s.b(s.kept), 0.5, True).sum()
        module = Small(forward)
        module.w.grad = torch.ones(6)
        before = {name: p.detach().clone() for name, p in module.named_parameters()}
        state = torch.get_rng_state()
        self.export(module, (X,))
        self.assertIsNone(module.kept)
        self.assertFalse(hasattr(module, "length"))
        self.assertTrue(torch.equal(torch.get_rng_state(), state))
        for name, p in module.named_parameters():
            self.assertTrue(torch.equal(p, before[name]), name)
        self.assertTrue(torch.equal(module.w.grad, torch.ones(6)))
        self.assertIsNone(module.a.weight.grad)


if __name__ == "__main__":
    unittest.main()
