"""Autograd functions of the user's own. A file holds no backward, so such a function can
be exported only where its backward is the derivative of its forward (a formula that saves
memory, as Bloom's GELU). That cannot be read off it; it is tried: the model runs once on
the sample, and each call is held against its own forward, in float64, on the values that
it meets and on others, for upstream gradients of many sizes."""
import contextlib

import torch
import torch.utils.checkpoint
from torch.autograd import function as autograd_function

from .errors import Refused, at, calling_line
from .patches import replaced

#: The constants in hand-written formulas have some nine digits.
_TOLERANCE = 1e-6
#: Of the values tried beside those met: what is cut off is cut off at some size.
_VALUE_SCALES = (1.0, 1e-3, 10.0, 1e3)
#: Of upstream gradients: clipping, signs and thresholds do not scale.
_GRADIENT_SCALES = (1.0, 1e-9, 1e9)


class Context:
    """What forward() is given as ctx where nobody will ask for a backward."""

    def save_for_backward(self, *tensors):
        self.saved_tensors = tensors

    save_for_forward = save_for_backward

    def mark_non_differentiable(self, *tensors):
        pass

    def set_materialize_grads(self, value):
        pass


def _inline(cls, args, kwargs):
    """The forward of `cls` as ordinary calls."""
    if cls.setup_context is torch.autograd.Function.setup_context:
        return cls.forward(Context(), *args, **kwargs)
    return cls.forward(*args, **kwargs)


def _is_float(value):
    return isinstance(value, torch.Tensor) and value.is_floating_point()


def _floats(outputs):
    outputs = outputs if isinstance(outputs, (tuple, list)) else (outputs,)
    return [value for value in outputs if _is_float(value)]


def _derivatives(call, values, upstream):
    """The outputs of `call`, and the gradients for `upstream`, one random number for each
    number of the outputs, at several scales, each divided by its scale."""
    values = [v.clone().requires_grad_() if _is_float(v) else v for v in values]
    leaves = [v for v in values if _is_float(v)]
    outputs = _floats(call(*values))
    generator = torch.Generator().manual_seed(upstream)
    weights = [torch.randn(o.shape, generator=generator, dtype=o.dtype) for o in outputs]
    pairs = [(o, w) for o, w in zip(outputs, weights) if o.requires_grad]
    gradients = []
    for scale in _GRADIENT_SCALES if pairs else ():
        found = torch.autograd.grad([o for o, _ in pairs], leaves, [scale * w for _, w in pairs],
                                    retain_graph=True, allow_unused=True)
        gradients.append([None if g is None else g / scale for g in found])
    zeros = [torch.zeros_like(leaf) for leaf in leaves]
    return outputs, [z if g is None else g for found in gradients or [zeros]
                     for z, g in zip(zeros, found)]


def _agree(found, expected):
    return len(found) == len(expected) and all(
        a.shape == b.shape and torch.allclose(
            a, b, rtol=_TOLERANCE, equal_nan=True,
            atol=_TOLERANCE * (b.detach().abs().max().item() if b.numel() else 0.0))
        for a, b in zip(found, expected))


def _samples(values):
    """`values`, and others of their shapes: of many sizes, and where kinks are."""
    generator = torch.Generator().manual_seed(0)

    def with_each(make):
        return [make(v) if _is_float(v) else v for v in values]
    yield values
    for scale in _VALUE_SCALES:
        yield with_each(lambda v: scale * torch.randn(v.shape, generator=generator,
                                                      dtype=v.dtype))
    yield with_each(torch.zeros_like)
    yield with_each(lambda v: torch.randint(-3, 4, v.shape, generator=generator).to(v.dtype))


def _agrees_on(cls, apply, values, kwargs, number):
    # To what is no argument itself, but in a list or around it, PyTorch passes no gradient.
    if any(o.requires_grad for o in _floats(_inline(cls, values, kwargs))):
        return False
    found = _derivatives(lambda *a: apply(*a, **kwargs), values, number)
    expected = _derivatives(lambda *a: _inline(cls, a, kwargs), values, number)
    if not _agree(found[0], expected[0]):
        return False
    # Where the value itself is lost there is no derivative to be right.
    lost = number > 0 and not all(o.isfinite().all() for o in expected[0])
    return lost or _agree(found[1], expected[1])


def _is_derivative(cls, apply, args, kwargs):
    """Whether the backward of `cls` (whose real apply is `apply`) is that of its forward,
    as far as values tell."""
    values = [v.detach().cpu().double() if _is_float(v) else v for v in args]
    with torch.enable_grad():
        return all(_agrees_on(cls, apply, sample, kwargs, number)
                   for number, sample in enumerate(_samples(values)))


def checkpointed(args):
    """A checkpointed region computes the same gradients: it is traced as its body."""
    run, _, *rest = args
    if torch.is_grad_enabled() and not any(
            isinstance(value, torch.Tensor) and value.requires_grad for value in rest):
        raise Refused(f"checkpoint(use_reentrant=True){at(calling_line())} has no input that needs a "
                      "gradient, so that PyTorch trains nothing in it: say use_reentrant=False")
    return run(*rest)


class Unknown(Refused):
    """A function whose backward has not been tried yet."""


def _has_own_backward(cls):
    if cls.__module__ == "torch._library.autograd":
        return (f"the operator{at(calling_line())} that torch.library registered has a backward of "
                "its own, which no ONNX file can hold: call the function that it is made of")
    return (f"the autograd function '{cls.__module__}.{cls.__qualname__}'{at(calling_line())} has "
            "a backward of its own, which no ONNX file can hold, and it is not the derivative of its "
            "forward: write its forward as ordinary calls, with detach() where its gradient shall "
            "not pass")


@contextlib.contextmanager
def _every_apply(function):
    """Has each call of each autograd function go to `function(cls, args, kwargs)`, whatever
    name it is called by: `apply` itself may be bound long since, so what it calls is what
    is replaced."""
    def apply(cls, *args, **kwargs):
        return function(cls, args, kwargs)
    with contextlib.ExitStack() as stack:
        for holder, name, value in (
                (autograd_function._SingleLevelFunction, "apply", classmethod(apply)),
                (autograd_function, "custom_function_call", apply)):
            stack.enter_context(replaced(holder, name, value))
        yield


@contextlib.contextmanager
def traced(known):
    """While tracing, the functions in `known` are their forward; another raises Unknown."""
    def call(cls, args, kwargs):
        if cls is torch.utils.checkpoint.CheckpointFunction:
            return checkpointed(args)
        if cls.__module__.startswith("torch._higher_order_ops"):
            raise Refused(f"control flow that depends on values (torch.cond and its like)"
                          f"{at(calling_line())} is nothing that acc can train: use torch.where")
        if cls not in known:
            raise Unknown(_has_own_backward(cls))
        return _inline(cls, args, kwargs)
    with _every_apply(call):
        yield


def try_functions(module, args, kwargs):
    """Runs `module` once, and returns the functions whose backward is that of their
    forward. Refuses the first that is not one."""
    known = set()
    own = vars(torch._C._FunctionBase)["apply"]

    def call(cls, values, options):
        if cls is torch.utils.checkpoint.CheckpointFunction:
            return checkpointed(values)

        def apply(*given, **named):
            return own.__get__(None, cls)(*given, **named)
        try:
            same = _is_derivative(cls, apply, values, options)
        except Exception:
            same = False
        if not same:
            raise Refused(_has_own_backward(cls))
        known.add(cls)
        return apply(*values, **options)

    with torch.enable_grad(), _every_apply(call):
        module(*args, **kwargs)
    return known
