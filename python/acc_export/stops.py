"""Gradient stops: detach(), and whatever leaves a region of torch.no_grad. PyTorch's own
lowering drops the regions, so they are taken apart here, and each value that a gradient
must not pass gets an operator that says so."""
import torch
from torch.fx.node import map_arg

from .errors import Refused, at, line_of_node
from .explicit import arguments_of

aten = torch.ops.aten
higher_order = torch.ops.higher_order


@torch.library.custom_op("accel::stop_gradient", mutates_args=())
def stop_gradient(x: torch.Tensor) -> torch.Tensor:
    return x.clone()


@stop_gradient.register_fake
def _shape_of_stop(x):
    return torch.empty_like(x)


stop_gradient.register_autograd(lambda context, gradient: None)

STOP = torch.ops.accel.stop_gradient.default
_DETACHES = (aten.detach.default, aten.detach_copy.default)
# A number of Python's has no gradient; ONNX knows tensors only.
_NUMBERS = (aten.item.default, aten._local_scalar_dense.default)
# What torch.tensor(…) is traced as: it detaches its copy in place.
_COPIES = (aten.lift_fresh_copy.default, aten.lift_fresh.default, aten.clone.default,
           aten._to_copy.default)


def _carries_gradient(value):
    return isinstance(value, torch.Tensor) and (value.is_floating_point() or value.is_complex())


def _insert_stop(graph, node):
    stop = graph.call_function(STOP, (node,))
    stop.meta = dict(node.meta)
    return stop


def _inline(program, node, body, arguments):
    """Puts the nodes of the region `body` before `node`, which calls it. Returns what was
    put there, and what the region returns."""
    graph = program.graph
    inlined = dict(zip((n for n in body.graph.nodes if n.op == "placeholder"), arguments))
    added, returned = [], []
    with graph.inserting_before(node):
        for inner in body.graph.nodes:
            if inner.op == "output":
                returned = map_arg(inner.args[0], lambda n: inlined[n])
            elif inner.op == "get_attr":
                name = f"{node.args[_body_at(node)].target}.{inner.target}"
                inlined[inner] = graph.get_attr(name)
                inlined[inner].meta = dict(inner.meta)
            elif inner.op != "placeholder":
                inlined[inner] = graph.node_copy(inner, lambda n: inlined[n])
                added.append(inlined[inner])
    return added, list(returned)


def _body_at(node):
    return 1 if node.target is higher_order.wrap_with_set_grad_enabled else 4


def _replace(program, old, new):
    if new is not old:
        with program.graph_module._set_replace_hook(program.graph_signature.get_replace_hook()):
            old.replace_all_uses_with(new)


def _take_apart_regions(program):
    """Inlines every region. Returns the nodes that ran without gradients."""
    graph_module, graph = program.graph_module, program.graph
    without = set()
    todo = [(node, True) for node in graph.nodes]
    while todo:
        node, enabled = todo.pop(0)
        if node.op != "call_function":
            continue
        if node.target is higher_order.wrap_with_set_grad_enabled:
            inside, arguments = bool(node.args[0]), node.args[2:]
        elif node.target is higher_order.wrap_with_autocast:
            if node.args[2]:
                raise Refused(
                    f"torch.autocast{at(line_of_node(node))} is inside the model: leave it out "
                    "and let acc compute in bfloat16 (acc-opt --mixed-precision=bf16)")
            inside, arguments = enabled, node.args[5:]
        elif isinstance(node.target, torch._ops.HigherOrderOperator):
            # A stop in a branch would not be seen, and acc has no branches.
            raise Refused(f"{node.target.name()}(){at(line_of_node(node))} is control flow, which "
                          "acc cannot train: use torch.where, or a loop of Python's")
        else:
            if not enabled:
                without.add(node)
            continue
        body = graph_module.get_submodule(node.args[_body_at(node)].target)
        added, returned = _inline(program, node, body, arguments)
        for user in list(node.users):  # getitem of the region's results
            _replace(program, user, returned[user.args[1]])
            graph.erase_node(user)
        graph.erase_node(node)
        todo[:0] = [(inner, inside) for inner in added]
        todo = [entry for entry in todo if entry[0].graph is not None and not entry[0]._erased]
    return without


def _aliases(graph):
    """For every node the root of those that may share its memory, by the operators'
    schemas."""
    root = {}

    def find(node):
        while root.setdefault(node, node) is not node:
            node = root[node]
        return node

    for node in graph.nodes:
        if node.op != "call_function":
            continue
        if not isinstance(node.target, torch._ops.OpOverload):
            if getattr(node.target, "__name__", "") == "getitem":
                root[find(node)] = find(node.args[0])
            continue
        schema = node.target._schema
        if not any(result.alias_info for result in schema.returns):
            # reshape, contiguous, to: a view or a copy, which the schema does not say.
            if node.target.namespace != "aten" or not node.target._schema.name.endswith(
                    ("::reshape", "::contiguous", "::to", "::flatten")):
                continue
        for argument in node.args[:1]:
            if isinstance(argument, torch.fx.Node):
                root[find(node)] = find(argument)
    return find


def _writes(node):
    """The nodes whose memory the call `node` writes."""
    if node.op == "call_function" and isinstance(node.target, torch._ops.OpOverload):
        for value, argument in zip(node.args, node.target._schema.arguments):
            if argument.alias_info is not None and argument.alias_info.is_write:
                if isinstance(value, torch.fx.Node) and _carries_gradient(value.meta.get("val")):
                    yield value


def _is_detached_in_place(node):
    return node.op == "call_function" and node.target is aten.detach_.default


def _is_own_copy(node):
    """Whether what is detached in place is nobody else's."""
    copies = node.target in _COPIES or (
        isinstance(node.target, torch._ops.OpOverload) and arguments_of(node).get("copy") is True)
    return copies and len(node.users) == 1


def _refuse_writes(graph, without):
    """In-place operators on memory that was read both with and without gradients: what
    they do to gradients depends on PyTorch's tape, which the program does not hold."""
    find = _aliases(graph)
    stopped, modes = set(), {}
    for node in graph.nodes:
        if _is_detached_in_place(node):
            if _is_own_copy(node.args[0]):
                continue
            raise Refused(f"detach_(){at(line_of_node(node))} changes a tensor that has been "
                          "used already: write x = x.detach()")
        modes.setdefault(find(node), set()).add(node in without)
        for value in _writes(node):
            if find(value) in stopped or len(modes[find(value)]) > 1:
                raise Refused(
                    f"{node.target._schema.name.split('::')[1]}(){at(line_of_node(node))} writes "
                    "in place into a tensor that is detached, or was made or is read under "
                    "no_grad: write the result to a new tensor")
        if node.op == "call_function" and node.target in _DETACHES:
            stopped.add(find(node))


def mark_stops(program):
    """Turns every gradient stop of `program`, in place, into calls of STOP."""
    graph = program.graph
    without = _take_apart_regions(program)
    _refuse_writes(graph, without)
    for node in list(graph.nodes):
        if _is_detached_in_place(node) or (node.op == "call_function" and
                                           node.target in _DETACHES):
            # Of integers and truth values nothing needs to be said.
            if _carries_gradient(node.meta.get("val")):
                node.target = STOP
            else:
                _replace(program, node, node.args[0])
                graph.erase_node(node)
    for node in list(graph.nodes):
        if node.op == "call_function" and node.target in _NUMBERS and _carries_gradient(
                node.args[0].meta.get("val")):
            with graph.inserting_before(node):
                node.args = (_insert_stop(graph, node.args[0]),)
    for node in list(graph.nodes):
        if node not in without or not _carries_gradient(node.meta.get("val")):
            continue
        users = [user for user in node.users if user not in without]
        if not users:
            continue
        # A stop for each user, where the user is: a write in between is seen.
        for user in users:
            with graph.inserting_before(user):
                stop = _insert_stop(graph, node)
            hook = program.graph_signature.get_replace_hook()
            with program.graph_module._set_replace_hook(hook):
                user.replace_input_with(node, stop)
    graph.lint()
    program.graph_module.recompile()
