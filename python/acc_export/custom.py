"""Autograd functions of the user's own. A file holds no backward, so such a function can
be exported only where its backward is the derivative of its forward (a formula that saves
memory, as Bloom's GELU). That cannot be read off it; it is tried: the model runs once on
the sample, and each function is held against its own forward, in float64, on the values
that it meets and on others of several sizes."""
import contextlib

import torch

#: The constants in hand-written formulas have some nine digits.
_TOLERANCE = 1e-6
_SCALES = (1.0, 1e-3, 10.0)


class Context:
    """What forward() is given as ctx where nobody will ask for a backward."""

    def save_for_backward(self, *tensors):
        self.saved_tensors = tensors

    save_for_forward = save_for_backward

    def mark_non_differentiable(self, *tensors):
        pass

    def set_materialize_grads(self, value):
        pass


def inline(cls, args, kwargs):
    """The forward of `cls` as ordinary calls."""
    if cls.setup_context is torch.autograd.Function.setup_context:
        return cls.forward(Context(), *args, **kwargs)
    return cls.forward(*args, **kwargs)


def _is_float(value):
    return isinstance(value, torch.Tensor) and value.is_floating_point()


def _derivatives(call, values, generator):
    """The outputs of `call`, and the gradients of a random sum of them."""
    values = [v.clone().requires_grad_() if _is_float(v) else v for v in values]
    outputs = call(*values)
    outputs = [o for o in (outputs if isinstance(outputs, tuple) else (outputs,)) if _is_float(o)]
    leaves = [v for v in values if _is_float(v)]
    total = sum((o * torch.randn(o.shape, generator=generator, dtype=o.dtype)).sum()
                for o in outputs)
    if not (isinstance(total, torch.Tensor) and total.requires_grad):
        return outputs, [torch.zeros_like(leaf) for leaf in leaves]
    found = torch.autograd.grad(total, leaves, allow_unused=True)
    return outputs, [torch.zeros_like(leaf) if g is None else g for leaf, g in zip(leaves, found)]


def _agree(found, expected):
    return len(found) == len(expected) and all(
        a.shape == b.shape and torch.allclose(a, b, rtol=_TOLERANCE, atol=_TOLERANCE * max(
            1e-6, b.detach().abs().max().item() if b.numel() else 0.0), equal_nan=True)
        for a, b in zip(found, expected))


def is_derivative(cls, apply, args, kwargs):
    """Whether the backward of `cls` (whose real apply is `apply`) is that of its forward,
    as far as a few values tell."""
    generator = torch.Generator().manual_seed(0)
    values = [v.detach().cpu().double() if _is_float(v) else v for v in args]
    samples = [values]
    for scale in _SCALES:
        samples.append([scale * torch.randn(v.shape, generator=generator, dtype=v.dtype)
                        if _is_float(v) else v for v in values])
    with torch.enable_grad():
        for sample in samples:
            # The same random sum for both.
            seed = generator.get_state()
            found = _derivatives(lambda *a: apply(*a, **kwargs), sample, generator)
            generator.set_state(seed)
            expected = _derivatives(lambda *a: inline(cls, a, kwargs), sample, generator)
            if not (_agree(found[0], expected[0]) and _agree(found[1], expected[1])):
                return False
    return True


@contextlib.contextmanager
def unchanged(module):
    """Random numbers and buffers after a run on the side are as before."""
    buffers = {name: buffer.clone() for name, buffer in module.named_buffers()}
    with torch.random.fork_rng(devices=[]):
        yield
    with torch.no_grad():
        for name, buffer in module.named_buffers():
            if name in buffers:
                buffer.copy_(buffers[name])
