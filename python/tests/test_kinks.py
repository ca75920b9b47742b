"""Each row of kinks.py is trained by acc as PyTorch trains it, several in one module, or is
refused in the words of kinks.MISSING."""
import unittest

import torch

from attack import Small
from kinks import KINKS, MISSING
from training import WITHOUT_TOOLS, TrainCase

#: So many rows are one module.
_TOGETHER = 8


def whole_numbers(s, x):
    """Whole numbers with zeros and ties among them, whose gradient reaches a bias."""
    return torch.round(2 * x) * s.w[:5].detach().sign() + (s.b.bias - s.b.bias.detach())


def _test(names, words=""):
    def forward(s, x):
        h = whole_numbers(s, x)
        return sum(KINKS[name](h, s, x) / 8 for name in names)
    return lambda self: self.assert_trained(lambda: Small(forward), words)


@unittest.skipIf(WITHOUT_TOOLS, WITHOUT_TOOLS)
class Kinks(TrainCase):
    """The tests are made of the rows, below."""
    rate = 2.0 ** -10  # near the kinks


_there = [name for name in KINKS if name not in MISSING]
for _begin in range(0, len(_there), _TOGETHER):
    _names = _there[_begin:_begin + _TOGETHER]
    setattr(Kinks, f"test_{'_'.join(_names)}", _test(_names))
for _name, _words in MISSING.items():
    setattr(Kinks, f"test_without_{_name}", _test([_name], _words))

if __name__ == "__main__":
    unittest.main()
