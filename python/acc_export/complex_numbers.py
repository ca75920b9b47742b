"""Complex tensors, which ONNX has no type for: each becomes a tensor of real numbers with one
more dimension, its real and its imaginary part, and each call on one becomes calls that
compute the same on those, value and gradient. What CALLS does not hold is refused by the
tensor's type. Calls are tested one by one against PyTorch (tests/test_complex_numbers.py)."""
import operator

import torch
from torch.export.graph_signature import InputKind
from torch.utils import _pytree as pytree

from . import stops, trace
from .errors import Refused, at, line_of_node

aten = torch.ops.aten

_PART = {torch.complex32: torch.float16, torch.complex64: torch.float32,
         torch.complex128: torch.float64}


class _Pairs:
    """A complex tensor: `tensor` has real and imaginary part in a last dimension of 2."""

    def __init__(self, tensor):
        self.tensor = tensor

    @property
    def rank(self):
        return self.tensor.dim() - 1

    @property
    def real(self):
        return self.tensor[..., 0]

    @property
    def imag(self):
        return self.tensor[..., 1]


def _parts(value):
    """(real part, imaginary part) of what a call is given; None is a part that is 0."""
    if isinstance(value, _Pairs):
        return value.real, value.imag
    if isinstance(value, complex):
        return (value.real or None, value.imag) if value.imag else (value.real, None)
    return value, None


def _pairs(real, imaginary):
    """The complex tensor of two parts, of which one may be a number or None."""
    like = real if isinstance(real, torch.Tensor) else imaginary
    real, imaginary = (
        part if isinstance(part, torch.Tensor) else torch.full_like(like, part or 0.0)
        for part in (real, imaginary))
    return _Pairs(torch.stack(torch.broadcast_tensors(real, imaginary), -1))


def _sum(one, other, sign=1):
    if other is None:
        return one
    if one is None:
        return other if sign == 1 else -other
    return one + other if sign == 1 else one - other


# -- Arithmetic --------------------------------------------------------------------------

def _bilinear(function):
    """What is a product in each of its two arguments."""
    def call(one, other, *rest, **named):
        def product(a, b):
            return None if a is None or b is None else function(a, b, *rest, **named)
        (a, b), (c, d) = _parts(one), _parts(other)
        return _pairs(_sum(product(a, c), product(b, d), -1),
                      _sum(product(a, d), product(b, c)))
    return call


_multiply = _bilinear(operator.mul)


def _add(one, other, alpha=1, sign=1):
    other = other if alpha == 1 else _multiply(other, alpha) if isinstance(
        other, _Pairs) else other * alpha
    (a, b), (c, d) = _parts(one), _parts(other)
    return _pairs(_sum(a, c, sign), _sum(b, d, sign))


def _conjugate(x):
    return _pairs(x.real, -x.imag)


def _reciprocal(x):
    return _divide(1.0, x)


def _divide(one, other):
    if not isinstance(other, (_Pairs, complex)):
        real, imaginary = (None if part is None else part / other for part in _parts(one))
        return _pairs(real, imaginary)
    if isinstance(other, complex):
        return _multiply(one, 1 / other)
    size = other.real.square() + other.imag.square()
    above = _multiply(one, _conjugate(other))
    return _pairs(above.real / size, above.imag / size)


def _exponential(x):
    size = torch.exp(x.real)
    return _pairs(size * torch.cos(x.imag), size * torch.sin(x.imag))


def _power(x, exponent):
    result = x
    for _ in range(int(exponent) - 1):
        result = _multiply(result, x)
    return result


def _einsum(equation, operands, **_):
    if len(operands) == 1:
        return _pairs(*(torch.einsum(equation, part) for part in _parts(operands[0])))
    return _bilinear(lambda a, b: torch.einsum(equation, a, b))(*operands)


def _polar(size, angle):
    return _pairs(size * torch.cos(angle), size * torch.sin(angle))


def _where(condition, one, other):
    (a, b), (c, d) = _parts(one), _parts(other)
    def choose(a, c):
        return torch.where(condition, 0.0 if a is None else a, 0.0 if c is None else c)
    return _pairs(choose(a, c), choose(b, d))


def _convert(x, dtype=None, **_):
    if not isinstance(x, _Pairs):
        return _pairs(x.to(_PART[dtype]), None)
    if dtype is None or dtype in _PART:
        return _Pairs(x.tensor.to(_PART.get(dtype, x.tensor.dtype)))
    return x.real.to(dtype)


def _full(size, value, dtype=None, **_):
    real, imaginary = (0.0 if part is None else part for part in _parts(value))
    part = _PART.get(dtype, torch.get_default_dtype())
    return _pairs(torch.full(size, real, dtype=part), torch.full(size, imaginary, dtype=part))


# -- Shapes ------------------------------------------------------------------------------

def _along(function, *places, added=0):
    """A call that takes dimensions as its arguments number `places`; with `added`, among
    those of the result."""
    def call(x, *arguments, **named):
        rank = x.rank + added
        arguments = list(arguments)
        for place in places:
            if place >= len(arguments):
                arguments += [0] * (place + 1 - len(arguments))  # the first, as ATen has it
            dims = arguments[place]
            arguments[place] = dims % rank if isinstance(dims, int) else [d % rank for d in dims]
        return _wrapped(function(x.tensor, *arguments, **named))
    return call


def _wrapped(result):
    if isinstance(result, torch.Tensor):
        return _Pairs(result)
    return [_Pairs(each) for each in result]


def _sized(function, last):
    """A call that takes a list with a number for each dimension: `last` is the parts'."""
    return lambda x, sizes, *_, **__: _Pairs(function(x.tensor, [*sizes, last]))


def _joined(function, added):
    def call(tensors, dim=0):
        pairs = [x if isinstance(x, _Pairs) else _pairs(x, None) for x in tensors]
        return _Pairs(function([x.tensor for x in pairs], dim % (pairs[0].rank + added)))
    return call


def _as_it_is(function):
    return lambda x, *rest, **named: _Pairs(function(x.tensor, *rest, **named))


def _reduced(function):
    def call(x, dims=None, keepdim=False, dtype=None):
        dims = [d % x.rank for d in dims] if dims else list(range(x.rank))
        return _Pairs(function(x.tensor, dims, keepdim)) if dims else x
    return call


CALLS = {
    # What makes complex numbers of real ones, and those of these.
    aten.view_as_complex.default: lambda x: _Pairs(x),
    aten.view_as_real.default: lambda x: x.tensor,
    aten.complex.default: _pairs,
    aten.polar.default: _polar,
    aten.abs.default: lambda x: torch.linalg.vector_norm(x.tensor, 2, -1),
    aten._to_copy.default: _convert,
    aten.full.default: _full,
    aten.zeros.default: lambda size, **named: _full(size, 0.0, **named),
    aten.ones.default: lambda size, **named: _full(size, 1.0, **named),
    # Arithmetic.
    aten.mul.Tensor: _multiply,
    aten.div.Tensor: _divide,
    aten.add.Tensor: _add,
    aten.sub.Tensor: lambda a, b, alpha=1: _add(a, b, alpha, -1),
    aten.rsub.Scalar: lambda a, b, alpha=1: _add(b, a, alpha, -1),
    aten.neg.default: _as_it_is(torch.neg),
    aten._conj.default: _conjugate,
    aten._conj_physical.default: _conjugate,
    aten.reciprocal.default: _reciprocal,
    aten.exp.default: _exponential,
    aten.square.default: lambda x: _power(x, 2),
    aten.matmul.default: _bilinear(torch.matmul),
    aten.mm.default: _bilinear(torch.mm),
    aten.bmm.default: _bilinear(torch.bmm),
    aten.dot.default: _bilinear(torch.dot),
    aten.vdot.default: lambda one, other: _bilinear(torch.dot)(_conjugate(one), other),
    aten.einsum.default: _einsum,
    aten.sum.default: _reduced(torch.sum),
    aten.sum.dim_IntList: _reduced(torch.sum),
    aten.mean.default: _reduced(torch.mean),
    aten.mean.dim: _reduced(torch.mean),
    aten.where.self: _where,
    aten.where.ScalarOther: _where,
    aten.where.ScalarSelf: _where,
    # The same numbers.
    aten.clone.default: _as_it_is(lambda x, **_: x.clone()),
    stops.STOP: _as_it_is(stops.STOP),
    # Other shapes and places of them.
    aten.unsqueeze.default: _along(torch.unsqueeze, 0, added=1),
    aten.squeeze.dim: _along(torch.squeeze, 0),
    aten.squeeze.dims: _along(aten.squeeze.dims, 0),
    aten.squeeze.default: lambda x: _Pairs(aten.squeeze.dims(x.tensor, list(range(x.rank)))),
    aten.view.default: _sized(torch.reshape, 2),
    aten.expand.default: _sized(lambda x, sizes: x.expand(sizes), -1),
    aten.repeat.default: _sized(lambda x, times: x.repeat(times), 1),
    aten.slice.Tensor: _along(aten.slice.Tensor, 0),
    aten.select.int: _along(torch.select, 0),
    aten.index_select.default: _along(torch.index_select, 0),
    aten.index.Tensor: _as_it_is(aten.index.Tensor),
    aten.transpose.int: _along(torch.transpose, 0, 1),
    aten.permute.default: lambda x, dims: _Pairs(
        x.tensor.permute([*(d % x.rank for d in dims), x.rank])),
    aten.t.default: lambda x: _Pairs(x.tensor.transpose(0, x.rank - 1)),
    aten.flip.default: _along(torch.flip, 0),
    aten.roll.default: _along(torch.roll, 1),
    aten.cat.default: _joined(torch.cat, 0),
    aten.stack.default: _joined(torch.stack, 1),
    aten.split.Tensor: _along(torch.split, 1),
    aten.split_with_sizes.default: _along(torch.split_with_sizes, 1),
    aten.unbind.int: _along(torch.unbind, 0),
}

#: Calls of CALLS where there are arguments that it cannot take.
_APPLIES = {
    aten.roll.default: lambda x, shifts, dims=(), **_: bool(dims),
    aten.einsum.default: lambda equation, operands, **_: len(operands) < 3,
}


# -- The program -------------------------------------------------------------------------

def _is_complex(value):
    return isinstance(value, complex) or isinstance(value, torch.Tensor) and value.is_complex()


def _value(node):
    return node.meta.get("val") if isinstance(node, torch.fx.Node) else node


def _meets_complex(node):
    """A complex value among the arguments and results of a call, or None."""
    values = pytree.tree_leaves([_value(node), *(
        _value(leaf) for leaf in pytree.tree_leaves((node.args, node.kwargs)))])
    return next((v for v in values if isinstance(v, torch.Tensor) and _is_complex(v)),
                next(filter(_is_complex, values), None))


def _power_call(node):
    """A small power is a product."""
    exponent = node.args[1] if len(node.args) > 1 else None
    if (node.target is aten.pow.Tensor_Scalar and not isinstance(exponent, complex) and
            exponent in (1, 2, 3, 4)):
        return _power
    return None


def _on_pairs(function, node):
    """`function` of the arguments of `node`, complex ones as pairs, as a call on tensors."""
    leaves = pytree.tree_leaves((node.args, node.kwargs))
    flags = [isinstance(leaf, torch.fx.Node) and _is_complex(_value(leaf)) for leaf in leaves]

    def call(*args, **kwargs):
        given, spec = pytree.tree_flatten((args, kwargs))
        args, kwargs = pytree.tree_unflatten(
            [_Pairs(value) if flag else value for value, flag in zip(given, flags)], spec)
        result = function(*args, **kwargs)
        return pytree.tree_map(lambda each: each.tensor if isinstance(each, _Pairs) else each,
                               result, is_leaf=lambda each: isinstance(each, _Pairs))
    return call


def _describe(value):
    if isinstance(value, complex):
        return f"the number {value}"
    return f"a tensor of {str(value.dtype).removeprefix('torch.')}{list(value.shape)}"


_WAY_OUT = ("which ONNX has no type for: compute with the real and the imaginary part as tensors "
            "of their own, or with those that torch.view_as_real gives")


def _refuse_borders(program):
    for node in program.graph.nodes:
        if node.op == "output":
            for value in pytree.tree_leaves(pytree.tree_map(_value, node.args)):
                if _is_complex(value):
                    raise Refused(f"the model returns {_describe(value)}, which ONNX has no type "
                                  "for: return torch.view_as_real of it")
    for spec in program.graph_signature.input_specs:
        value = next(_value(node) for node in program.graph.nodes if node.name == spec.arg.name)
        if spec.kind == InputKind.USER_INPUT and _is_complex(value):
            raise Refused(f"input '{spec.arg.name}' is {_describe(value)}, which ONNX has no type "
                          "for: pass torch.view_as_real of it, and call torch.view_as_complex in "
                          "the forward")


def _hold_pairs(program, placeholders):
    """Buffers and constants as pairs, in the program alone: the module keeps its own."""
    for spec in program.graph_signature.input_specs:
        node = placeholders[spec.arg.name]
        if not _is_complex(_value(node)):
            continue
        held = program.state_dict if spec.target in program.state_dict else program.constants
        held[spec.target] = torch.view_as_real(held[spec.target].detach().resolve_conj()).clone()
        node.meta["val"] = torch.view_as_real(node.meta["val"].resolve_conj())


def by_real_numbers(program):
    """`program`, traced again without complex tensors; as it is if it has none."""
    calls = [(node, found) for node in program.graph.nodes
             if node.op == "call_function" and node.target is not operator.getitem
             for found in [_meets_complex(node)] if found is not None]
    if not calls:
        return program
    _refuse_borders(program)
    for node, found in calls:
        if node.target is aten._assert_tensor_metadata.default:
            program.graph.erase_node(node)  # of its type, which it no longer has
            continue
        function = CALLS.get(node.target) or _power_call(node)
        applies = _APPLIES.get(node.target, lambda *_, **__: True)
        if function is None or not applies(*node.args, **node.kwargs):
            name = node.target.name() if hasattr(node.target, "name") else str(node.target)
            name = name.split("::")[-1].split(".")[0]
            raise Refused(f"{name}(){at(line_of_node(node))} computes with {_describe(found)}, "
                          f"{_WAY_OUT}")
        node.target = _on_pairs(function, node)
    _hold_pairs(program, {n.name: n for n in program.graph.nodes if n.op == "placeholder"})
    program.graph_module.recompile()
    return trace.decomposed(program)
