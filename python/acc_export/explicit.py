"""Calls whose gradient, or whose meaning, the exporter's translation loses, or for which
acc has no operator although others compute the same: each row replaces a call by ordinary
calls with the same value and the same gradient. Rows are tested one by one against
PyTorch (tests/test_explicit.py). What can only be refused is below, by name."""
import dataclasses
import math
from typing import Callable

import torch
import torch.nn.functional as F

from .errors import Refused, at, line_of_node

aten = torch.ops.aten


@dataclasses.dataclass
class Row:
    """`call` is replaced by `function`, of the same arguments, where `applies` to them."""
    call: torch._ops.OpOverload
    function: Callable
    applies: Callable = lambda **arguments: True


def _value(node):
    return node.meta["val"] if isinstance(node, torch.fx.Node) else node


def arguments_of(node):
    """The arguments of a traced call by the names of its schema, defaults filled in."""
    arguments = {}
    for i, argument in enumerate(node.target._schema.arguments):
        if i < len(node.args):
            arguments[argument.name] = node.args[i]
        elif argument.name in node.kwargs:
            arguments[argument.name] = node.kwargs[argument.name]
        else:
            arguments[argument.name] = argument.default_value
    return arguments


# -- Losses over classes -----------------------------------------------------------------

def _reduce(loss, reduction, count=None):
    """`reduction` as ATen numbers them: 0 none, 1 mean, 2 sum."""
    if reduction == 0:
        return loss
    if reduction == 2:
        return loss.sum()
    return loss.mean() if count is None else loss.sum() / count


def _along(weight, classes, rank):
    """`weight`, one number a class, shaped to be multiplied with dimension `classes`."""
    shape = [1] * rank
    shape[classes] = -1
    return weight.reshape(shape)


def _weights_of(target, weight, ignore_index):
    """How much each target counts, in the type of `weight`."""
    ignored = target == ignore_index
    inside = torch.where(ignored, torch.zeros_like(target), target)
    return torch.where(ignored, torch.zeros_like(weight[inside]), weight[inside])


def nll_loss(self, target, weight=None, reduction=1, ignore_index=-100):
    """-log p of the target class, ignored targets left out."""
    classes = 1 if self.dim() > 1 else 0
    ignored = target == ignore_index
    inside = torch.where(ignored, torch.zeros_like(target), target)
    loss = -self.gather(classes, inside.unsqueeze(classes)).squeeze(classes)
    # where, not a product: what is ignored may be infinite.
    loss = torch.where(ignored, torch.zeros_like(loss), loss)
    kept = (~ignored).to(self.dtype)
    if weight is not None:
        kept = _weights_of(target, weight, ignore_index)
        loss = loss * kept
    return _reduce(loss, reduction, kept.sum())


def cross_entropy(self, target, weight=None, reduction=1, ignore_index=-100,
                  label_smoothing=0.0):
    """With label smoothing, weights of classes, probabilities for targets, or no batch."""
    if self.dim() == 1:
        loss = cross_entropy(self.unsqueeze(0), target.unsqueeze(0), weight, reduction,
                             ignore_index, label_smoothing)
        return loss.squeeze(0) if reduction == 0 else loss
    classes = 1
    count = self.shape[classes]
    if target.is_floating_point():
        if label_smoothing:
            target = target * (1 - label_smoothing) + label_smoothing / count
        terms = F.log_softmax(self, classes) * target
        if weight is not None:
            terms = terms * _along(weight, classes, self.dim())
        # The mean is over samples, whatever the weights.
        return _reduce(-terms.sum(classes), reduction)
    # What one sample loses without weights is what ONNX has an operator for.
    loss = F.cross_entropy(self, target, reduction="none", ignore_index=ignore_index)
    ignored = target == ignore_index
    kept = (~ignored).to(self.dtype)
    if weight is not None:
        kept = _weights_of(target, weight, ignore_index)
        loss = loss * kept
    if label_smoothing:
        terms = F.log_softmax(self, classes)
        if weight is not None:
            terms = terms * _along(weight, classes, self.dim())
        smooth = torch.where(ignored, torch.zeros_like(loss), -terms.sum(classes))
        loss = loss * (1 - label_smoothing) + smooth * (label_smoothing / count)
    return _reduce(loss, reduction, kept.sum())


def _is_log_softmax(self, **_):
    """Of logarithms of probabilities the cross entropy is the loss itself."""
    if not isinstance(self, torch.fx.Node) or self.target is not aten.log_softmax.int:
        return False
    rank = _value(self).dim()
    return self.args[1] % rank == (1 if rank > 1 else 0)


def _needs_words(self, target, weight, label_smoothing, **_):
    """SoftmaxCrossEntropyLoss says the rest."""
    return (bool(label_smoothing) or weight is not None or _value(self).dim() == 1 or
            _value(target).is_floating_point())


def kl_div(self, target, reduction=1, log_target=False):
    """Where the target is 0 its logarithm is not taken."""
    if log_target:
        loss = target.exp() * (target - self)
    else:
        zero = target == 0
        log = torch.where(zero, torch.ones_like(target), target).log()
        loss = torch.where(zero, torch.zeros_like(target), target * log) - target * self
    return _reduce(loss, reduction)


# -- Attention ---------------------------------------------------------------------------

def attention(query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, *, scale=None,
              enable_gqa=False):
    """Scaled dot product attention with dropout, of which the exporter writes nothing."""
    scale = 1 / math.sqrt(query.shape[-1]) if scale is None else scale
    if enable_gqa:
        key = key.repeat_interleave(query.shape[-3] // key.shape[-3], -3)
        value = value.repeat_interleave(query.shape[-3] // value.shape[-3], -3)
    scores = query @ key.transpose(-2, -1) * scale
    if is_causal:
        rows = torch.arange(query.shape[-2]).unsqueeze(1)
        attn_mask = torch.arange(key.shape[-2]).unsqueeze(0) <= rows
    if attn_mask is not None and attn_mask.dtype == torch.bool:
        scores = torch.where(attn_mask, scores, float("-inf"))
    elif attn_mask is not None:
        scores = scores + attn_mask
    return F.dropout(F.softmax(scores, -1), dropout_p, True) @ value


def dropout_in_place(input, p, train):
    """Which the exporter takes apart into draws that nobody knows as a dropout."""
    return input.copy_(torch.dropout(input, p, train))


def broadcast_attention(query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, *,
                        scale=None, enable_gqa=False):
    """Learned queries or keys for every sample: one operator, once they are as many."""
    batch = torch.broadcast_shapes(query.shape[:-2], key.shape[:-2], value.shape[:-2])
    query, key, value = (x.expand(*batch, *x.shape[-2:]) for x in (query, key, value))
    return F.scaled_dot_product_attention(query, key, value, attn_mask, dropout_p, is_causal,
                                          scale=scale, enable_gqa=enable_gqa)


def _broadcasts(query, key, value, enable_gqa, **_):
    query, key, value = (tuple(_value(x).shape[:-2]) for x in (query, key, value))
    return not enable_gqa and not query == key == value


# -- Norms -------------------------------------------------------------------------------

def batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps,
               cudnn_enabled=True):
    """In eval mode: a scale and a shift of each channel, both trained."""
    shape = [1, -1] + [1] * (input.dim() - 2)
    scale = torch.rsqrt(running_var + eps)
    if weight is not None:
        scale = scale * weight
    result = (input - running_mean.reshape(shape)) * scale.reshape(shape)
    return result if bias is None else result + bias.reshape(shape)


def group_norm(input, num_groups, weight=None, bias=None, eps=1e-5, cudnn_enabled=True):
    """A layer norm of each group, then a scale and a shift of each channel."""
    groups = input.reshape(input.shape[0], num_groups, -1)
    result = F.layer_norm(groups, groups.shape[-1:], eps=eps).reshape(input.shape)
    shape = [1, -1] + [1] * (input.dim() - 2)
    if weight is not None:
        result = result * weight.reshape(shape)
    return result if bias is None else result + bias.reshape(shape)


# -- One element at a time ---------------------------------------------------------------

def elu(self, alpha=1, scale=1, input_scale=1):
    """x above 0, else alpha (exp(x) - 1), written so that nothing is lost near 0."""
    # The branch that is not taken must not overflow: its gradient is 0 times that.
    below = torch.where(self > 0, torch.zeros_like(self), self) * input_scale
    t = torch.tanh(below / 2)
    return torch.where(self > 0, self, 2 * t / (1 - t) * alpha) * scale


def selu(self):
    return elu(self, 1.6732632423543772, 1.0507009873554805)


def celu(self, alpha=1.0):
    return elu(self, alpha, 1, 1 / alpha)


def mish(self):
    return self * torch.tanh(F.softplus(self))


def prelu(self, weight):
    if weight.numel() > 1:
        weight = weight.reshape([1, -1] + [1] * (self.dim() - 2))
    return torch.where(self > 0, self, weight * self)


def round_to_even(self):
    low = torch.floor(self)
    rest = self - low
    tie = low + torch.remainder(low, 2)
    return torch.where(rest < 0.5, low, torch.where(rest > 0.5, low + 1, tie))


def tan(self):
    return torch.sin(self) / torch.cos(self)


def clamp(self, min=None, max=None):
    """The exporter cannot read bounds of two types."""
    return torch.clamp(self, None if min is None else float(min),
                       None if max is None else float(max))


def _has_mixed_bounds(self, min, max):
    bounds = {type(bound) for bound in (min, max) if bound is not None}
    return _value(self).is_floating_point() and len(bounds) > 1


# -- Others ------------------------------------------------------------------------------

def _over_all(reduce):
    """A reduction without dimensions, which the exporter cannot read."""
    def function(self, dim=(), keepdim=False):
        return reduce(self, list(range(self.dim())), keepdim)
    return function


def _is_over_all(dim, **_):
    return not dim


def diagonal(self, offset=0, dim1=0, dim2=1):
    rows = torch.arange(self.shape[0])
    here = rows.unsqueeze(0) == rows.unsqueeze(1)
    return torch.where(here, self, torch.zeros_like(self)).sum(1)


def _is_square(self, offset, **_):
    value = _value(self)
    return value.is_floating_point() and value.dim() == 2 and offset == 0 and (
        value.shape[0] == value.shape[1])


# -- The tables --------------------------------------------------------------------------

ROWS = [
    Row(aten.cross_entropy_loss.default, cross_entropy, _needs_words),
    Row(aten.nll_loss_nd.default, cross_entropy, _is_log_softmax),
    Row(aten.nll_loss.default, nll_loss),
    Row(aten.nll_loss_nd.default, nll_loss),
    Row(aten.nll_loss2d.default, nll_loss),
    Row(aten.kl_div.default, kl_div),
    Row(aten.scaled_dot_product_attention.default, attention,
        lambda dropout_p, **_: dropout_p > 0),
    Row(aten.scaled_dot_product_attention.default, broadcast_attention, _broadcasts),
    Row(aten.dropout_.default, dropout_in_place),
    Row(aten.batch_norm.default, batch_norm, lambda training, **_: not training),
    Row(aten.group_norm.default, group_norm),
    Row(aten.elu.default, elu),
    Row(aten.selu.default, selu),
    Row(aten.celu.default, celu),
    Row(aten.mish.default, mish),
    Row(aten.prelu.default, prelu),
    Row(aten.round.default, round_to_even, lambda self: _value(self).is_floating_point()),
    Row(aten.tan.default, tan),
    Row(aten.clamp.default, clamp, _has_mixed_bounds),
    Row(aten.amax.default, _over_all(torch.amax), _is_over_all),
    Row(aten.amin.default, _over_all(torch.amin), _is_over_all),
    Row(aten.diagonal.default, diagonal, _is_square),
]

#: Calls that PyTorch itself takes apart, into ones that acc has an operator for.
COMPOSITE = [aten.einsum.default]


def decompositions():
    """What run_decompositions shall use, and nothing else."""
    table = torch.export.default_decompositions()
    return {call: table[call] for call in COMPOSITE}


def _embedding_flags(scale_grad_by_freq=False, sparse=False, **_):
    if scale_grad_by_freq:
        return ("scale_grad_by_freq divides gradients by counts, which acc does not do: leave it "
                "out")
    if sparse:
        return ("sparse gradients are another optimizer's: leave sparse=True out, the step is "
                "the same for SGD")
    return None


_STATISTICS = ("statistics of the batch are taken in training mode, and acc has no operator for "
               "them yet: call eval() on the norm to train with its running statistics, or use "
               "another norm")

#: Calls that no file can hold, and why: the function gives the reason, or None.
REFUSED = {
    aten.embedding.default: _embedding_flags,
    aten.embedding_bag.padding_idx: _embedding_flags,
    aten.embedding_renorm_.default: lambda **_: (
        "max_norm rescales the table in every forward: leave it out, or normalise what is "
        "looked up"),
    aten.batch_norm.default: lambda training, **_: _STATISTICS if training else None,
    aten.instance_norm.default: lambda running_mean, use_input_stats, **_: (
        _STATISTICS if use_input_stats and running_mean is not None else None),
}


def refuse_calls(program):
    """Refuses what is in REFUSED, in regions too."""
    for part in program.graph_module.modules():
        for node in part.graph.nodes if isinstance(part, torch.fx.GraphModule) else ():
            if node.op != "call_function" or node.target not in REFUSED:
                continue
            reason = REFUSED[node.target](**arguments_of(node))
            if reason:
                name = node.target._schema.name.split("::")[1]
                raise Refused(f"{name}(){at(line_of_node(node))}: {reason}")


def make_explicit(program):
    """Puts the rows' functions in the place of the calls that they replace: tracing the
    program again (run_decompositions) takes them apart."""
    for node in program.graph.nodes:
        for row in ROWS if node.op == "call_function" else ():
            if node.target is row.call and row.applies(**arguments_of(node)):
                node.target = row.function
                break
    program.graph_module.recompile()
