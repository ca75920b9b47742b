"""The loss inside the exported graph: a forward that takes labels and returns the loss
beside what the module returns. The kinds are those of Hugging Face's heads, written
with the calls that ONNX has an operator for."""
import contextlib
import inspect

import torch
import torch.nn.functional as F

from .errors import Refused

IGNORED = -100


def _logits(outputs):
    if isinstance(outputs, torch.Tensor):
        return outputs
    found = outputs.get("logits") if isinstance(outputs, dict) else getattr(
        outputs, "logits", None)
    if found is None and isinstance(outputs, (tuple, list)) and outputs:
        found = outputs[0]
    if not isinstance(found, torch.Tensor):
        raise Refused("the loss needs the model's logits: return a tensor, or something with "
                      f"'logits' in it, instead of {type(outputs).__name__}")
    return found


def causal_lm(outputs, labels):
    """Each position is asked for the next token; a mean over the tokens that count."""
    logits = _logits(outputs)
    # Labels move, not logits: a row of labels is nothing to copy.
    following = F.pad(labels, (0, 1), value=IGNORED)[..., 1:]
    return F.cross_entropy(logits.reshape(-1, logits.shape[-1]), following.reshape(-1),
                           ignore_index=IGNORED)


def masked_lm(outputs, labels):
    """Each position is asked for its own token, where the label is not ignored."""
    logits = _logits(outputs)
    return F.cross_entropy(logits.reshape(-1, logits.shape[-1]), labels.reshape(-1),
                           ignore_index=IGNORED)


def sequence_classification(outputs, labels):
    """One class a sequence."""
    return F.cross_entropy(_logits(outputs), labels, ignore_index=IGNORED)


# A decoder is given what comes before its labels, and asked for these.
KINDS = {"causal-lm": causal_lm, "sequence-classification": sequence_classification,
         "mlm": masked_lm, "seq2seq": masked_lm}


def find(loss):
    """The function that `loss` names or is."""
    if callable(loss):
        if isinstance(loss, torch.nn.Module) and any(True for _ in loss.parameters()):
            raise Refused("the loss has parameters of its own: make it a part of the model, whose "
                          "forward then returns the loss")
        return loss
    if loss not in KINDS:
        raise Refused(f"unknown loss '{loss}': {', '.join(KINDS)}, or FILE.py:function")
    return KINDS[loss]


def _with_labels(signature):
    """The signature of forward with the keyword `labels`, once."""
    rest = [p for p in signature.parameters.values() if p.name != "labels"]
    keywords = [p for p in rest if p.kind is p.VAR_KEYWORD]
    labels = inspect.Parameter("labels", inspect.Parameter.KEYWORD_ONLY)
    return signature.replace(parameters=[p for p in rest if p not in keywords] +
                             [labels, *keywords])


@contextlib.contextmanager
def inside(module, loss):
    """For as long as the context lasts, `module` takes labels and returns the loss first.
    The module stays the root of the program, so that every name in it is the user's."""
    if loss is None:
        yield
        return
    function, original = find(loss), module.forward
    if module._forward_hooks:
        raise Refused("the model has a forward hook, which would see the loss beside its outputs: "
                      "put the model inside a module whose forward returns the loss, without "
                      "loss=, or remove the hook")

    def forward(*args, **kwargs):
        labels = kwargs.pop("labels")
        outputs = original(*args, **kwargs)
        value = function(outputs, labels)
        if not isinstance(value, torch.Tensor) or value.dim() or not value.is_floating_point():
            raise Refused(f"the loss returns {_shape(value)}: it must return one number, a tensor "
                          "without dimensions")
        return {"loss": value, "outputs": outputs}

    forward.__signature__ = _with_labels(inspect.signature(original))
    own = "forward" in vars(module)
    module.forward = forward
    try:
        yield
    finally:
        if own:
            module.forward = original
        else:
            del module.forward


def _shape(value):
    if isinstance(value, torch.Tensor):
        return f"a tensor of shape {list(value.shape)} and type {value.dtype}"
    return f"an object of type {type(value).__name__}"
