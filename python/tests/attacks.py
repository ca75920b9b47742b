"""Small modules that try to be exported as something else than they are. Each is a row of
`ATTACKS`: a name, what makes the module (which returns its loss), and what shall become of
it: '' where acc must train it as PyTorch does, else words of the refusal. Run by
test_attacks.py."""
import functools
import itertools
import random
import time

import numpy as np
import torch
import torch.nn.functional as F
import torch.utils.checkpoint
from torch import nn
from torch.nn.utils import parametrizations

ATTACKS = {}
_steps = 0
_log = []


class Settings:
    """State of nobody's module."""
    calls = 0


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


# -- Autograd functions under other names ------------------------------------------------

class Double(torch.autograd.Function):
    """Whose backward is not that of its forward."""
    @staticmethod
    def forward(ctx, x):
        return 2 * x

    @staticmethod
    def backward(ctx, gradient):
        return gradient


class Square(torch.autograd.Function):
    """Whose backward is that of its forward."""
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, gradient):
        return 2 * ctx.saved_tensors[0] * gradient


def identity_with(change, by_setup=False):
    """x, with a gradient that is changed."""
    class Function(torch.autograd.Function):
        if by_setup:
            @staticmethod
            def forward(x):
                return x * 1

            @staticmethod
            def setup_context(ctx, inputs, output):
                pass
        else:
            @staticmethod
            def forward(ctx, x):
                return x * 1

        @staticmethod
        def backward(ctx, gradient):
            return change(gradient)
    return Function.apply


bound_double, bound_square = Double.apply, Square.apply
partial_double = functools.partial(Double.apply)
clipped = identity_with(lambda g: g.clamp(-5, 5))
clipped_by_norm = identity_with(lambda g: g * (100 / g.norm().clamp(min=100)), by_setup=True)
signed = identity_with(torch.sign)
without_small = identity_with(lambda g: torch.where(g.abs() < 1e-6, 0 * g, g))
capped = identity_with(lambda g: g.clamp(max=1e4))
same = identity_with(lambda g: g, by_setup=True)
halved = identity_with(lambda g: g / 2, by_setup=True)


def around(x):
    return bound_double(x)


@attack("Double' at")
def bound_at_module_level(s, x):
    return bound_double(s.a(x)).pow(2).sum()


@attack("Double' at")
def in_a_partial(s, x):
    return partial_double(s.a(x)).pow(2).sum()


@attack("Double' at")
def in_a_helper(s, x):
    return s.b(around(s.a(x))).pow(2).sum()


@attack("Double' at")
class BoundAsAttribute(Small):
    def __init__(self):
        super().__init__()
        self.act = Double.apply

    def forward(self, x):
        return self.act(self.a(x)).pow(2).sum()


@attack("")
def bound_and_right(s, x):
    return bound_square(s.a(x)).sum() + same(s.b(s.a(x))).pow(2).sum()


for _name, _apply in (("clipped", clipped), ("clipped_by_norm", clipped_by_norm),
                      ("signed", signed), ("without_small", without_small), ("capped", capped)):
    attack("has a backward of its own", _name)(
        lambda s, x, apply=_apply: (100 * apply(s.a(x))).pow(2).sum())


@attack("has a backward of its own")
class TensorsInAList(Small):
    class Sum(torch.autograd.Function):
        @staticmethod
        def forward(ctx, tensors):
            return tensors[0] + tensors[1]

        @staticmethod
        def backward(ctx, gradient):
            return None

    def forward(self, x):
        return (self.Sum.apply([self.a(x), self.w]) + self.a(x)).pow(2).sum()


@attack("has a backward of its own")
class ClosedOver(Small):
    """PyTorch passes no gradient to what is no argument."""
    class Scale(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, module):
            ctx.save_for_backward(module.w)
            return x * module.w

        @staticmethod
        def backward(ctx, gradient):
            return gradient * ctx.saved_tensors[0], None

    def forward(self, x):
        return self.Scale.apply(self.a(x), self).pow(2).sum()


@attack("has a backward of its own")
class WithoutDerivative(Small):
    class Both(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            double = x * 2
            ctx.mark_non_differentiable(double)
            return x * 1, double

        @staticmethod
        def backward(ctx, gradient, _):
            return gradient

    def forward(self, x):
        one, two = self.Both.apply(self.a(x))
        return (one * two).sum()


@attack("has a backward of its own")
class SecondKind(Small):
    """Right where values are small, which they are on the sample."""
    class Far(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return 3 * x

        @staticmethod
        def backward(ctx, gradient):
            return 3 * gradient * (ctx.saved_tensors[0].abs() < 500)

    def forward(self, x):
        return self.Far.apply(self.a(x)).pow(2).sum()


@attack("that torch.library registered")
def custom_operator(s, x):
    return shifted(s.a(x)).pow(2).sum()


@torch.library.custom_op("acctest::shifted", mutates_args=())
def shifted(x: torch.Tensor) -> torch.Tensor:
    return x + 1


shifted.register_fake(torch.empty_like)
shifted.register_autograd(lambda ctx, gradient: 2 * gradient)


# -- What one call leaves for the next ---------------------------------------------------

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


# -- Gradients that a trace does not see -------------------------------------------------

early_hook = torch.Tensor.register_hook
early_gradient = torch.autograd.grad


@attack("Tensor.register_hook at")
def hook(s, x):
    h = s.a(x)
    h.register_hook(lambda g: 2 * g)
    return h.pow(2).sum()


@attack("Tensor.register_hook at")
def hook_by_another_name(s, x):
    h = s.a(x)
    early_hook(h, lambda g: 2 * g)
    return h.pow(2).sum()


@attack("the gradient of parameter")
def hook_that_clips(s, x):
    h = s.a(x)
    if h.grad_fn is not None:
        h.grad_fn.register_prehook(lambda gs: (gs[0].clamp(-500, 500),))
    return h.pow(2).sum()


@attack("the gradient of parameter")
def hook_on_a_node(s, x):
    h = s.a(x)
    if h.grad_fn is not None:
        h.grad_fn.register_prehook(lambda gs: (3 * gs[0],))
    return h.pow(2).sum()


@attack("takes or changes gradients")
def penalty(s, x):
    return early_gradient(s.a(x).sum(), s.w, allow_unused=True)[0] or s.a(x).pow(2).sum()


@attack("has a hook on its gradient")
class HookOnAParameter(Small):
    def __init__(self):
        super().__init__()
        self.w.register_hook(lambda g: 2 * g)

    def forward(self, x):
        return (self.a(x) * self.w).pow(2).sum()


@attack("has a hook on its gradient")
class HookAfterAccumulation(Small):
    def __init__(self):
        super().__init__()
        self.w.register_post_accumulate_grad_hook(lambda p: p.grad.mul_(0.1))

    def forward(self, x):
        return (self.a(x) * self.w).pow(2).sum()


@attack("")
class HookThatChangesTheOutput(Small):
    def __init__(self):
        super().__init__()
        self.a.register_forward_hook(lambda module, args, output: 3 * output)
        self.b.register_forward_pre_hook(lambda module, args: (args[0].tanh(),))
        self.register_forward_hook(lambda module, args, output: 0.1 * output)

    def forward(self, x):
        return self.b(self.a(x)).pow(2).sum()


@attack("has a backward hook")
class BackwardHook(Small):
    def __init__(self):
        super().__init__()
        self.a.register_full_backward_hook(lambda m, given, out: (None,))

    def forward(self, x):
        return self.a(x).pow(2).sum()


@attack("the gradient of parameter")
def packed_activations(s, x):
    def pack(t):
        return t.to(torch.bfloat16)
    with torch.autograd.graph.saved_tensors_hooks(pack, lambda t: t.to(torch.float32)):
        h = s.a(x).tanh()
    return h.pow(2).sum()


@attack("changes requires_grad of parameter 'w'")
def freezes(s, x):
    h = s.a(x) * s.w
    s.w.requires_grad_(False)
    return h.pow(2).sum() + (s.b(s.a(x))).sum()


@attack("changes requires_grad of parameter 'a.weight'")
def freezes_a_part(s, x):
    s.a.requires_grad_(False)
    return (s.a(x) * s.w).pow(2).sum()


@attack("")
def freezes_what_is_detached(s, x):
    h = s.a(x).detach().requires_grad_()
    return (h * s.w).pow(2).sum()


# -- Regions without gradients -----------------------------------------------------------

@attack("")
def inference(s, x):
    with torch.inference_mode():
        h = s.a(x)
    return (h.clone() * s.w).pow(2).sum() + s.a(x).sum()


@attack("")
def switched_off(s, x):
    torch.set_grad_enabled(False)
    h = s.a(x).tanh()
    torch.set_grad_enabled(True)
    return (h * s.w).pow(2).sum()


@attack("")
def asks_for_gradients(s, x):
    with torch.no_grad():
        h = s.a(x) * (1 if torch.is_grad_enabled() else 3)
    return (h * s.w).pow(2).sum() * (2 if torch.is_grad_enabled() else 1)


@attack("is not what the model computes")
def knows_the_exporter(s, x):
    return s.a(x).pow(2).sum() * (2 if torch.compiler.is_compiling() else 1)


@attack("")
def knows_its_mode(s, x):
    return s.a(x).pow(2).sum() * (2 if s.training else 1)


@attack("")
def data(s, x):
    return (s.a(x) * s.w.data * s.w).pow(2).sum()


@attack("mul_() at")
def data_in_place(s, x):
    s.w.data.mul_(0.9)
    return (s.a(x) * s.w).pow(2).sum()


@attack("clamp_() at")
def parameter_in_place(s, x):
    with torch.no_grad():
        s.w.clamp_(-0.5, 0.5)
    return (s.a(x) * s.w).pow(2).sum()


@attack("parameter 'w'")
def data_replaced(s, x):
    s.w.data = s.w.data * 0.9
    return (s.a(x) * s.w).pow(2).sum()


@attack("each call of the forward changes attribute 'w'")
def parameter_replaced(s, x):
    s.w = nn.Parameter(s.w.detach() * 0.9)
    return (s.a(x) * s.w).pow(2).sum()


# -- Parameters under other names --------------------------------------------------------

@attack("")
class WeightNorm(Small):
    def __init__(self):
        super().__init__()
        parametrizations.weight_norm(self.a)

    def forward(self, x):
        return self.a(x).pow(2).sum() * 0.1


@attack("")
class OldWeightNorm(Small):
    def __init__(self):
        super().__init__()
        nn.utils.weight_norm(self.a)

    def forward(self, x):
        return self.a(x).pow(2).sum() * 0.1


@attack("changes buffer")
class SpectralNorm(Small):
    def __init__(self):
        super().__init__()
        parametrizations.spectral_norm(self.a)

    def forward(self, x):
        return self.a(x).pow(2).sum() * 0.1


@attack("")
class SpectralNormAtRest(Small):
    def __init__(self):
        super().__init__()
        parametrizations.spectral_norm(self.a)
        self.eval()

    def forward(self, x):
        return self.a(x).pow(2).sum() * 0.1


@attack("")
class Parametrised(Small):
    class Positive(nn.Module):
        def forward(self, w):
            return F.softplus(w)

    def __init__(self):
        super().__init__()
        nn.utils.parametrize.register_parametrization(self.b, "weight", self.Positive())

    def forward(self, x):
        return self.b(self.a(x)).pow(2).sum() * 0.1


@attack("on the same memory")
class SharedMemory(Small):
    def __init__(self):
        super().__init__()
        self.alias = self.w.data

    def forward(self, x):
        return (self.a(x) * self.alias).pow(2).sum()


@attack("")
class NotRegistered(Small):
    """A tensor that no optimizer sees."""

    def __init__(self):
        super().__init__()
        self.free = [torch.ones(6, requires_grad=True)]

    def forward(self, x):
        return (self.a(x) * self.free[0]).pow(2).sum()


@attack("is not what the model computes")
class NumberOfAParameter(Small):
    """Which Python computes behind the trace's back."""

    def __init__(self):
        super().__init__()
        self.seen = [self.w.detach().numpy()]

    def forward(self, x):
        return (self.a(x) * float(self.seen[0].max())).pow(2).sum()


@attack("torch.export cannot trace")
def branch_on_a_parameter(s, x):
    h = s.a(x)
    return (h if s.w.sum() > 0 else 2 * h).pow(2).sum()


@attack("")
def item_of_a_parameter(s, x):
    return (s.a(x) * s.w.max().item()).pow(2).sum()


@attack("")
def twins(s, x):
    return (s.a(x) + s.a(x)).pow(2).sum() + (s.w * s.w.T).sum()


@attack("")
class EqualButNotTied(Small):
    def __init__(self):
        super().__init__()
        self.c, self.d = (nn.Parameter(torch.ones(6)) for _ in range(2))
        self.register_buffer("ones", torch.ones(6))

    def forward(self, x):
        return (self.a(x) * self.c * self.ones + self.d.pow(2)).pow(2).mean()


@attack("")
def checkpointed(s, x):
    return torch.utils.checkpoint.checkpoint(
        lambda v: s.b(v).tanh(), s.a(x), use_reentrant=True).pow(2).sum()


@attack("operator 'ScatterND'")
def written_view(s, x):
    h = s.a(x) * 1
    h[:, :2] = 0.5 * h[:, 2:4]
    h[:, 3].mul_(2)
    return h.pow(2).sum()


@attack("")
def written_after_a_read(s, x):
    h = s.a(x).tanh()
    g = h * 2
    h = h + 0
    h.add_(1)
    return (g * h).sum()


@attack("")
def compared(s, x):
    h = s.a(x)
    return torch.where(h > s.w, h, s.w * 2).pow(2).sum() + torch.maximum(h, s.w).sum()


@attack("")
def vmapped(s, x):
    return torch.func.vmap(lambda row: (s.a(row) * s.w).tanh())(x).pow(2).sum()


@attack("gradients inside the model")
def functional_gradient(s, x):
    return torch.func.grad(lambda w: (s.a(x) * w).pow(2).sum())(s.w).pow(2).sum()


@attack("has a backward of its own")
def vmapped_function(s, x):
    return torch.func.vmap(halved)(s.a(x)).pow(2).sum()


@attack("")
def functional_call(s, x):
    doubled = {name: 2 * p for name, p in s.a.named_parameters()}
    return torch.func.functional_call(s.a, doubled, (x,)).pow(2).sum()


@attack("")
class ReturnsAParameter(Small):
    """Beside the loss, which is returned twice."""

    def forward(self, x):
        loss = (self.a(x) * self.w).pow(2).sum()
        return loss, self.w, x, loss, {"w": self.w}
