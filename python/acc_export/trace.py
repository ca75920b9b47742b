"""Traces a module into an ExportedProgram, under guards: what PyTorch's tracing would
leave out without a word (a custom backward, inference_mode, a hook on a gradient) is
either traced as what it means or refused while the user's line is still on the stack."""
import contextlib
import io
import logging
import random
import sys
import warnings

import numpy as np
import torch
import torch.utils.checkpoint

from . import custom
from .errors import Refused, at, calling_line, line_of_exception


@contextlib.contextmanager
def _replaced(holder, name, value):
    """Sets an attribute of a class or module for as long as the context lasts."""
    own = name in vars(holder)
    before = vars(holder).get(name)
    setattr(holder, name, value)
    try:
        yield
    finally:
        if own:
            setattr(holder, name, before)
        else:
            delattr(holder, name)


def _checkpointed(args):
    """A checkpointed region computes the same gradients: it is traced as its body."""
    run, _, *rest = args
    if torch.is_grad_enabled() and not any(
            isinstance(value, torch.Tensor) and value.requires_grad for value in rest):
        raise Refused(f"checkpoint(use_reentrant=True){at(calling_line())} has no input that needs a "
                      "gradient, so that PyTorch trains nothing in it: say use_reentrant=False")
    return run(*rest)


class _Unknown(Refused):
    """A function whose backward has not been tried yet."""


def _apply_known(known):
    """Stands for torch.autograd.Function.apply while tracing: functions in `known` are
    their forward."""
    def apply(cls, *args, **kwargs):
        if cls is torch.utils.checkpoint.CheckpointFunction:
            return _checkpointed(args)
        if cls.__module__.startswith("torch._higher_order_ops"):
            raise Refused(f"control flow that depends on values (torch.cond and its like)"
                          f"{at(calling_line())} is nothing that acc can train: use torch.where")
        if cls not in known:
            raise _Unknown(_has_own_backward(cls))
        return custom.inline(cls, args, kwargs)
    return apply


def _has_own_backward(cls):
    return (f"the autograd function '{cls.__module__}.{cls.__qualname__}'{at(calling_line())} has "
            "a backward of its own, which no ONNX file can hold, and it is not the derivative of its "
            "forward: write its forward as ordinary calls, with detach() where its gradient shall "
            "not pass")


def _try_functions(module, args, kwargs):
    """Runs `module` once, and returns the functions whose backward is that of their
    forward. Refuses the first that is not one."""
    known, own = set(), torch.autograd.Function.apply.__func__

    def apply(cls, *values, **options):
        if cls is torch.utils.checkpoint.CheckpointFunction:
            return _checkpointed(values)
        # torch.autograd.grad is what tells, and is guarded only while tracing.
        with _replaced(torch.autograd.Function, "apply", classmethod(own)):
            try:
                same = custom.is_derivative(cls, cls.apply, values, options)
            except Exception:
                same = False
            if not same:
                raise Refused(_has_own_backward(cls))
            known.add(cls)
            return cls.apply(*values, **options)

    with custom.unchanged(module), torch.enable_grad(), _replaced(
            torch.autograd.Function, "apply", classmethod(apply)):
        module(*args, **kwargs)
    return known


def _refuse_gradients(what):
    def refuse(*args, **kwargs):
        raise Refused(
            f"{what}{at(calling_line())} takes or changes gradients inside the model: a file "
            "holds the forward alone, so compute the loss without it")
    return refuse


def _enter_inference(self):
    # Tracing cannot see inference mode; for what is computed it is no_grad.
    self._accel_grad = torch.set_grad_enabled(not self.mode)
    self._accel_grad.__enter__()


def _exit_inference(self, *error):
    self._accel_grad.__exit__(*error)


# Tracing would make a constant of what `.data` returns; it means detach().
_data = property(lambda self: self.detach(),
                 lambda self, value: torch._C.TensorBase.data.__set__(self, value))


@contextlib.contextmanager
def _guards(known):
    with contextlib.ExitStack() as stack:
        for holder, name, value in (
                (torch.autograd.Function, "apply", classmethod(_apply_known(known))),
                (torch.inference_mode, "__enter__", _enter_inference),
                (torch.inference_mode, "__exit__", _exit_inference),
                (torch.Tensor, "data", _data),
                (torch.Tensor, "register_hook", _refuse_gradients("Tensor.register_hook")),
                (torch.Tensor, "backward", _refuse_gradients("Tensor.backward")),
                (torch.autograd, "backward", _refuse_gradients("torch.autograd.backward")),
                (torch.autograd, "grad", _refuse_gradients("torch.autograd.grad"))):
            stack.enter_context(_replaced(holder, name, value))
        yield


@contextlib.contextmanager
def _without_other_random_numbers():
    """PyTorch's random numbers are traced as calls; others would be the same in every
    step."""
    before, numpy_before = random.getstate(), np.random.get_state()
    yield
    numpy_after = np.random.get_state()
    for name, same in (("random", random.getstate() == before),
                       ("numpy.random", numpy_after[2:] == numpy_before[2:] and
                        np.array_equal(numpy_after[1], numpy_before[1]))):
        if not same:
            raise Refused(f"the forward draws from Python's module {name}, and would get the same "
                          "numbers in every step: draw with torch, or decide before exporting")


@contextlib.contextmanager
def quiet():
    """Without what PyTorch's exporters say about themselves."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        before = logging.root.manager.disable
        logging.disable(logging.CRITICAL)
        try:
            yield
        finally:
            logging.disable(before)


def first_sentence(error):
    """The part of a library's message that a user can use: PyTorch's go on for pages."""
    text = " ".join(str(error).strip().split("\n\n")[0].split())
    return text[:400].rstrip(". ") or type(error).__name__


def _dimensions(shapes):
    """`shapes` with what is named by a string alone made any size at all."""
    if isinstance(shapes, str):
        return torch.export.Dim.DYNAMIC
    if isinstance(shapes, dict):
        return {key: _dimensions(value) for key, value in shapes.items()}
    if isinstance(shapes, (list, tuple)):
        return type(shapes)(_dimensions(value) for value in shapes)
    return shapes


def _refused_within(error):
    """The Refused that `error` was raised from, or None."""
    while error and not isinstance(error, Refused):
        error = error.__cause__ or error.__context__
    return error


def trace(module, args, kwargs, dynamic_shapes, known=frozenset()):
    """The ExportedProgram of `module`, in the mode it is in and with gradients on."""
    said = io.StringIO()  # pages of graph where it fails: the error is enough
    try:
        with (quiet(), contextlib.redirect_stderr(said), _guards(known),
              _without_other_random_numbers(), torch.enable_grad()):
            program = torch.export.export(module, args, kwargs or None,
                                          dynamic_shapes=_dimensions(dynamic_shapes),
                                          strict=False)
        sys.stderr.write(said.getvalue())
        return program
    except Exception as error:
        refused = _refused_within(error)
        if isinstance(refused, _Unknown) and not known:
            tried = _try_functions(module, args, kwargs)
            if tried:
                return trace(module, args, kwargs, dynamic_shapes, tried)
        if refused:
            raise refused from None
        text = first_sentence(error)
        if "data-dependent" in text or "Could not guard" in text:
            text += "; a branch on values must become torch.where, or be decided before"
        raise Refused(f"torch.export cannot trace the model{at(line_of_exception(error))}: "
                      f"{text}") from error
