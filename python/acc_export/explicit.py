"""Calls whose gradient, or whose meaning, the exporter's translation loses, or for which
acc has no operator although others compute the same: each row replaces a call by ordinary
calls with the same value and the same gradient (formulas, loss_formulas). Rows are tested
one by one against PyTorch (tests/test_explicit.py). What can only be refused is below, by
name."""
import dataclasses
from typing import Callable

import torch

from . import formulas, loss_formulas
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


# -- When a row applies -------------------------------------------------------------------

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


def _has_truth_mask(attn_mask, **_):
    return attn_mask is not None and _value(attn_mask).dtype == torch.bool


def _is_flat(query, enable_gqa, **_):
    return _value(query).dim() != 4 and not enable_gqa


def _broadcasts(query, key, value, enable_gqa, **_):
    query, key, value = (tuple(_value(x).shape[:-2]) for x in (query, key, value))
    return not enable_gqa and not query == key == value


def _has_mixed_bounds(self, min, max):
    bounds = {type(bound) for bound in (min, max) if bound is not None}
    return _value(self).is_floating_point() and len(bounds) > 1


def _has_mixed_numbers(start, end, step=None, **_):
    return {type(number) for number in (start, end, step) if number is not None} == {int, float}


def _is_integer(self, **_):
    return not _value(self).is_floating_point() and _value(self).dtype != torch.bool


def _is_over_all(dim, **_):
    return not dim


def _is_square(self, offset, **_):
    value = _value(self)
    return value.is_floating_point() and value.dim() == 2 and offset == 0 and (
        value.shape[0] == value.shape[1])


# -- The tables --------------------------------------------------------------------------

ROWS = [
    Row(aten.cross_entropy_loss.default, loss_formulas.cross_entropy, _needs_words),
    Row(aten.nll_loss_nd.default, loss_formulas.cross_entropy, _is_log_softmax),
    Row(aten.nll_loss.default, loss_formulas.nll_loss),
    Row(aten.nll_loss_nd.default, loss_formulas.nll_loss),
    Row(aten.nll_loss2d.default, loss_formulas.nll_loss),
    Row(aten.kl_div.default, loss_formulas.kl_div),
    Row(aten.binary_cross_entropy.default, loss_formulas.binary_cross_entropy),
    Row(aten.scaled_dot_product_attention.default, formulas.attention,
        lambda dropout_p, **_: dropout_p > 0),
    Row(aten.scaled_dot_product_attention.default, formulas.flat_attention, _is_flat),
    Row(aten.scaled_dot_product_attention.default, formulas.broadcast_attention, _broadcasts),
    Row(aten.scaled_dot_product_attention.default, formulas.masked_attention, _has_truth_mask),
    Row(aten.dropout_.default, formulas.dropout_in_place),
    Row(aten.uniform_.default, formulas.uniform_in_place),
    Row(aten.rand.generator, formulas.without_generator(torch.rand)),
    Row(aten.randn.generator, formulas.without_generator(torch.randn)),
    Row(aten.randint.generator, formulas.without_generator(
        lambda high, size, **options: torch.randint(0, high, size, **options))),
    Row(aten.randint.low_generator, formulas.without_generator(torch.randint)),
    Row(aten.batch_norm.default, formulas.batch_norm, lambda training, **_: not training),
    Row(aten.batch_norm.default, formulas.batch_norm_without_states,
        lambda training, running_mean, **_: training and running_mean is None),
    Row(aten.group_norm.default, formulas.group_norm),
    Row(aten.elu.default, formulas.elu),
    Row(aten.selu.default, formulas.selu),
    Row(aten.celu.default, formulas.celu),
    Row(aten.mish.default, formulas.mish),
    Row(aten.prelu.default, formulas.prelu),
    Row(aten.round.default, formulas.round_to_even, lambda self: _value(self).is_floating_point()),
    Row(aten.tan.default, formulas.tan),
    Row(aten.atan2.default, formulas.atan2),
    Row(aten.xlogy.Tensor, formulas.xlogy),
    Row(aten.xlogy.Scalar_Other, lambda self, other: formulas.xlogy(
        self, torch.full_like(self, other))),
    Row(aten.xlogy.Scalar_Self, lambda self, other: formulas.xlogy(
        torch.full_like(other, self), other)),
    Row(aten.sinc.default, formulas.sinc),
    Row(aten.fmod.Scalar, formulas.integer_fmod, _is_integer),
    Row(aten.fmod.Tensor, formulas.integer_fmod, _is_integer),
    Row(aten.__rshift__.Scalar, formulas.shift_right),
    Row(aten.__lshift__.Scalar, formulas.shift_left),
    Row(aten.bitwise_right_shift.Tensor_Scalar, formulas.shift_right),
    Row(aten.bitwise_left_shift.Tensor_Scalar, formulas.shift_left),
    Row(aten.clamp.default, formulas.clamp, _has_mixed_bounds),
    Row(aten.amax.default, formulas.over_all(torch.amax), _is_over_all),
    Row(aten.amin.default, formulas.over_all(torch.amin), _is_over_all),
    Row(aten.arange.start, formulas.float_range, _has_mixed_numbers),
    Row(aten.arange.start_step, formulas.float_range, _has_mixed_numbers),
    Row(aten.cdist.default, formulas.cdist),
    Row(aten.masked_select.default, formulas.masked_select),
    Row(aten.trace.default, formulas.trace),
    Row(aten.diagonal.default, formulas.diagonal, _is_square),
]


def _embedding_flags(scale_grad_by_freq=False, sparse=False, **_):
    if scale_grad_by_freq:
        return ("scale_grad_by_freq divides gradients by counts, which acc does not do: leave it "
                "out")
    if sparse:
        return ("sparse gradients are another optimizer's: leave sparse=True out, the step is "
                "the same for SGD")
    return None


_STATISTICS = ("running statistics of an instance norm are kept in training mode, and acc has no "
               "operator that does: leave track_running_stats out, or call eval() on the norm to "
               "train with its running statistics")

#: Calls that no file can hold, and why: the function gives the reason, or None.
REFUSED = {
    aten.embedding.default: _embedding_flags,
    aten.embedding_bag.padding_idx: _embedding_flags,
    aten.embedding_renorm_.default: lambda **_: (
        "max_norm rescales the table in every forward: leave it out, or normalise what is "
        "looked up"),
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
