"""Small modules that try to be exported as something else than they are: what the files
attacks_*.py are made of. Each row is a name, what makes the module (which returns its
loss), and what shall become of it: '' where acc must train it as PyTorch does, else words of
the refusal. Run by test_attacks.py."""
import functools

import torch
from torch import nn

ATTACKS = {}


def attack(expected, name=None):
    """Adds a module: a function of (module, x) is the forward of a `Small`."""
    def add(made):
        key = name or made.__name__.strip("_")
        assert key not in ATTACKS, key
        is_class = isinstance(made, type)
        ATTACKS[key] = (made if is_class else functools.partial(Small, made), expected)
        return made
    return add


class Small(nn.Module):
    """Two layers, and whatever a forward keeps."""

    def __init__(self, function=None):
        super().__init__()
        self.a, self.b = nn.Linear(5, 6), nn.Linear(6, 5)
        self.w = nn.Parameter(torch.linspace(-1, 1, 6))
        self.function = function
        self.calls, self.kept = 0, None
        self.table = []

    def forward(self, x):
        return self.function(self, x)
