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

from . import checkpoints, custom, experts
from .errors import Refused, at, calling_line, line_of_exception
from .patches import replaced


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
                (torch.inference_mode, "__enter__", _enter_inference),
                (torch.inference_mode, "__exit__", _exit_inference),
                (torch.Tensor, "data", _data),
                (torch.Tensor, "register_hook", _refuse_gradients("Tensor.register_hook")),
                (torch.Tensor, "backward", _refuse_gradients("Tensor.backward")),
                (torch.autograd, "backward", _refuse_gradients("torch.autograd.backward")),
                (torch.autograd, "grad", _refuse_gradients("torch.autograd.grad"))):
            stack.enter_context(replaced(holder, name, value))
        stack.enter_context(custom.traced(known))
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
        with (quiet(), contextlib.redirect_stderr(said), _guards(known), experts.traceable(module),
              checkpoints.traced(), _without_other_random_numbers(),
              # Checks of what distributions are given are branches on values.
              replaced(torch.distributions.Distribution, "_validate_args", False),
              torch.enable_grad()):
            program = torch.export.export(module, args, kwargs or None,
                                          dynamic_shapes=_dimensions(dynamic_shapes),
                                          strict=False)
        sys.stderr.write(said.getvalue())
        return program
    except Exception as error:
        refused = _refused_within(error)
        if isinstance(refused, custom.Unknown) and not known:
            tried = custom.try_functions(module, args, kwargs)
            if tried:
                return trace(module, args, kwargs, dynamic_shapes, tried)
        if refused:
            raise refused from None
        text = first_sentence(error)
        if "data-dependent" in text or "Could not guard" in text:
            text += "; a branch on values must become torch.where, or be decided before"
        raise Refused(f"torch.export cannot trace the model{at(line_of_exception(error))}: "
                      f"{text}") from error


#: What tracing again makes of views that change numbers (`z.conj().imag`), and no exporter knows.
_COMPUTED_VIEWS = {torch.ops.aten._neg_view.default: torch.neg}


def decomposed(program):
    """`program` traced again, which takes apart what is not in ATen."""
    try:
        return program.run_decompositions(dict(_COMPUTED_VIEWS))
    except Exception as error:
        text = first_sentence(error)
        if "mutated in the forward" in text:
            raise Refused("the forward writes in place into a tensor that is neither parameter nor "
                          f"buffer ({text}): a training step has no place to keep it, so compute "
                          "it anew in each call") from error
        raise Refused(f"torch.export cannot lower the model{at(line_of_exception(error))}: "
                      f"{text}") from error
