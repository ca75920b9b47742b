"""Attacks by what one call leaves for the next: counters, caches, draws of their own."""
import collections
import itertools
import random
import time

import numpy as np
import torch

from attack import Small, attack

_steps = 0
_log = []


class Settings:
    """State of nobody's module."""
    calls = 0


class Slots:
    """State without a dictionary."""
    __slots__ = ("calls",)

    def __init__(self):
        self.calls = 0


@attack("each call of the forward changes attribute 'calls'")
def counter(s, x):
    s.calls += 1
    return s.a(x).pow(2).sum() * s.calls


@attack("each call of the forward changes attribute 'calls'")
def counter_with_a_threshold(s, x):
    s.calls += 1
    return s.a(x).pow(2).sum() * (2 if s.calls > 7 else 1)


@attack("each call of the forward changes attribute 'table'")
def growing_list(s, x):
    s.table.append(1)
    return s.a(x).pow(2).sum() * len(s.table)


@attack("each call of the forward changes global '_steps'")
def counter_in_a_global(s, x):
    global _steps
    _steps += 1
    return s.a(x).pow(2).sum() * (2 if _steps > 7 else 1)


@attack("each call of the forward changes global '_log'")
def list_in_a_global(s, x):
    _log.append(0)
    return s.a(x).pow(2).sum() * (2 if len(_log) > 7 else 1)


@attack("each call of the forward changes attribute 'Settings.calls'")
def counter_in_a_class(s, x):
    Settings.calls += 1
    return s.a(x).pow(2).sum() * (2 if Settings.calls > 7 else 1)


@attack("each call of the forward changes variable 'n' around")
class CounterInAClosure(Small):
    def __init__(self):
        super().__init__()
        n = 0

        def step():
            nonlocal n
            n += 1
            return 2 if n > 7 else 1
        self.step = step

    def forward(self, x):
        return self.a(x).pow(2).sum() * self.step()


@attack("each call of the forward changes")
class CounterInAnIterator(Small):
    def __init__(self):
        super().__init__()
        self.numbers = itertools.count(1)

    def forward(self, x):
        return self.a(x).pow(2).sum() * next(self.numbers)


@attack("each call of the forward changes")
class Generator(Small):
    def __init__(self):
        super().__init__()
        self.kept = (n for n in itertools.chain([1] * 9, itertools.repeat(2)))

    def forward(self, x):
        return self.a(x).pow(2).sum() * next(self.kept)


@attack("each call of the forward changes")
class DrawsOfItsOwn(Small):
    def __init__(self):
        super().__init__()
        self.random = random.Random(3)

    def forward(self, x):
        return self.a(x).pow(2).sum() * self.random.choice([1, 1, 2])


@attack("each call of the forward changes")
class NumpyDrawsOfItsOwn(Small):
    def __init__(self):
        super().__init__()
        self.random = np.random.default_rng(3)

    def forward(self, x):
        return self.a(x).pow(2).sum() * self.random.integers(1, 3)


@attack("draws from Python's module random")
def layer_drop(s, x):
    h = s.a(x)
    return (s.b(h) if random.random() > 0.5 else h).pow(2).sum()


@attack("draws from Python's module numpy.random")
def numpy_draws(s, x):
    return (s.a(x) * float(np.random.rand())).pow(2).sum()


@attack("is not what the model computes")
def clock(s, x):
    return s.a(x).pow(2).sum() * (time.perf_counter() % 1 + 1)


@attack("is not what the model computes")
def last_step(s, x):
    h = s.a(x)
    before, s.kept = s.kept, h.detach()
    return h.pow(2).sum() if before is None else (h - 0.9 * before).pow(2).sum()


@attack("is not what the model computes")
def last_input(s, x):
    """Which on the sample is the same each time."""
    before, s.kept = s.kept, x.mean(0)
    return (s.a(x) - s.a(s.kept if before is None else before)).pow(2).sum()


@attack("torch.export cannot trace")
def tensor_that_counts(s, x):
    s.kept = torch.zeros(()) if s.kept is None else s.kept + 1
    return s.a(x).pow(2).sum() * (2 if s.kept > 7 else 1)


@attack("is not what the model computes")
def first_call_is_another(s, x):
    first, s.calls = s.calls == 0, 1
    return s.a(x).pow(2).sum() * (2 if first else 1)


@attack("writes in place into a tensor")
class RunningMean(Small):
    def __init__(self):
        super().__init__()
        self.mean = torch.zeros(6)

    def forward(self, x):
        h = self.a(x)
        self.mean.mul_(0.9).add_(0.1 * h.detach().mean(0))
        return (h - self.mean).pow(2).sum()


@attack("changes buffer")
class RunningMeanInABuffer(Small):
    def __init__(self):
        super().__init__()
        self.register_buffer("mean", torch.zeros(6))

    def forward(self, x):
        h = self.a(x)
        with torch.no_grad():
            self.mean = 0.9 * self.mean + 0.1 * h.mean(0)
        return (h - self.mean).pow(2).sum()


@attack("")
def what_nobody_reads(s, x):
    s.kept, s.shape = s.a(x), x.shape
    return s.kept.pow(2).sum()


@attack("")
def what_is_made_once(s, x):
    if not hasattr(s, "length"):
        s.length = x.shape[1]
    return s.a(x).pow(2).sum() * s.length


def counted():
    counted.calls += 1
    return 2 if counted.calls > 7 else 1


counted.calls = 0
slots = Slots()


@attack("each call of the forward changes attribute 'counted.calls'")
def counter_on_a_function(s, x):
    return s.a(x).pow(2).sum() * counted()


@attack("each call of the forward changes global 'slots'.calls")
def counter_in_slots(s, x):
    slots.calls += 1
    return s.a(x).pow(2).sum() * (2 if slots.calls > 7 else 1)


@attack("each call of the forward changes")
class CounterInADefault(Small):
    def forward(self, x, seen=[]):  # noqa: B006
        seen.append(0)
        return self.a(x).pow(2).sum() * (2 if len(seen) > 7 else 1)


@attack("each call of the forward changes")
class Rotation(Small):
    def __init__(self):
        super().__init__()
        self.turns = collections.deque([1] * 7 + [2])

    def forward(self, x):
        self.turns.rotate(1)
        return self.a(x).pow(2).sum() * (2 if self.turns[5] == 2 else 1)


@attack("each call of the forward changes")
class CounterInAnArray(Small):
    def __init__(self):
        super().__init__()
        self.seen = np.zeros(1)

    def forward(self, x):
        self.seen += 1
        return self.a(x).pow(2).sum() * (2 if self.seen[0] > 7 else 1)


@attack("each call of the forward changes")
class DrawsByAGenerator(Small):
    def __init__(self):
        super().__init__()
        self.draws = torch.Generator().manual_seed(3)

    def forward(self, x):
        n = torch.randint(1, 3, (), generator=self.draws)
        return (self.a(x) * n).pow(2).sum()


@attack("changes input 'x'")
def written_input(s, x):
    x.add_(1)
    return s.a(x).pow(2).sum()


@attack("")
class ChangesOfMode(Small):
    """To the mode that it is in."""

    def forward(self, x):
        self.train(True)
        return self.a(x).pow(2).sum() * (2 if self.training else 1)


@attack("is not what the model computes")
class ChangesItsMode(Small):
    def forward(self, x):
        result = self.a(x).pow(2).sum() * (2 if self.training else 1)
        self.eval()
        return result


@attack("")
def gradient_of_the_last_step(s, x):
    """Which is gone when the forward runs."""
    return (s.a(x) * s.w).pow(2).sum() * (1 if s.w.grad is None else 2)
