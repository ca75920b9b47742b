"""The random numbers that acc draws, computed once more: functions of the seed, the site in the model,
the call and the element's place."""
import contextlib
import math
from unittest import mock

import numpy as np
import torch


def mix(value):
    """The finisher of splitmix64."""
    most = 2 ** 64 - 1
    value = value + 0x9E3779B97F4A7C15 & most
    value = (value ^ value >> 30) * 0xBF58476D1CE4E5B9 & most
    value = (value ^ value >> 27) * 0x94D049BB133111EB & most
    return value ^ value >> 31


def philox(counters, key):
    """The first words of Philox4x32-10 (Salmon et al., SC'11), as numbers in [0, 1)."""
    most = np.uint64(2 ** 32 - 1)
    half = np.uint64(32)
    counters = counters.astype(np.uint64)
    x = [counters & most, counters >> half, np.zeros_like(counters), np.zeros_like(counters)]
    low, high = key & 0xFFFFFFFF, key >> 32
    for _ in range(10):
        first, second = np.uint64(0xD2511F53) * x[0], np.uint64(0xCD9E8D57) * x[2]
        x = [second >> half ^ x[1] ^ np.uint64(low), second & most,
             first >> half ^ x[3] ^ np.uint64(high), first & most]
        low, high = low + 0x9E3779B9 & 0xFFFFFFFF, high + 0xBB67AE85 & 0xFFFFFFFF
    return (x[0] >> np.uint64(8)).astype(np.float64) * 2.0 ** -24


def _flat(shape):
    """Sizes, which may be given as one tuple."""
    return tuple(shape[0]) if shape and not isinstance(shape[0], int) else shape


class Draws:
    """PyTorch's functions, of acc's numbers. Sites are counted in the order of calls."""

    def __init__(self, seed=0):
        self.seed, self.call, self.site = seed, 0, 0
        self.part, self.parts = 0, 1

    def uniform(self, shape, drawn=0):
        """The numbers of a tensor that comes after `drawn` others of its shape."""
        key = (mix(mix(self.seed) ^ self.site) >> 1) + self.call
        count = math.prod(shape)
        first = (self.parts * drawn + self.part) * count
        return torch.from_numpy(philox(np.arange(count) + first, key)).reshape(shape)

    def rand(self, *shape, **_):
        shape = _flat(shape)
        value = self.uniform(shape).clamp(min=2.0 ** -25)
        self.site += 1
        return value

    def randn(self, *shape, **_):
        shape = _flat(shape)
        first, second = self.uniform(shape), self.uniform(shape, 1)
        self.site += 1
        return (-2 * (1 - first).log()).sqrt() * (2 * math.pi * second).cos()

    def randint(self, *bounds, **_):
        *low, high, shape = bounds
        low = low[0] if low else 0
        return (low + (high - low) * self.rand(*shape)).floor().long()

    def exponential(self, value):
        return value.copy_(-self.rand(*value.shape).log())

    def multinomial(self, p, count):
        gumbel = -(-self.rand(*p.shape).log()).log()
        return (p.log() + gumbel).argmax(-1, keepdim=True)

    @contextlib.contextmanager
    def of(self, call, part=0, parts=1):
        """In which PyTorch draws what acc draws in a call of the step, or for one of equal parts of its
        batch, which what is drawn has first."""
        self.call, self.site, self.part, self.parts = call, 0, part, parts
        tensor = torch.Tensor
        with contextlib.ExitStack() as stack:
            for holder, name, function in (
                    (torch, "rand", self.rand), (torch, "randn", self.randn),
                    (torch, "rand_like", lambda x: self.rand(*x.shape)),
                    (torch, "randn_like", lambda x: self.randn(*x.shape)),
                    (torch, "randint", self.randint), (torch, "multinomial", self.multinomial),
                    (torch, "bernoulli", lambda p: (self.rand(*p.shape) < p).to(p)),
                    (tensor, "exponential_", lambda x: self.exponential(x)),
                    (tensor, "normal_", lambda x: x.copy_(self.randn(*x.shape))),
                    (tensor, "uniform_", lambda x, low, high: x.copy_(
                        low + (high - low) * self.rand(*x.shape)))):
                stack.enter_context(mock.patch.object(holder, name, function))
            yield
