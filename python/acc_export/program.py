"""The export as a whole: module in, files out. Each step is a file of its own: what the
module's parameters are (signature), the trace (trace), gradient stops (stops), calls that
must be spelled out (explicit), and the ONNX file (write)."""
import contextlib
import dataclasses
import inspect
import os
import pathlib
import threading
import time

import torch
from torch.export.graph_signature import TensorArgument
from torch.utils import _pytree as pytree

from . import agreement, batch_norms, complex_numbers, explicit, losses, signature, state, stops, trace, write
from .errors import Refused


@dataclasses.dataclass
class Summary:
    """What was written."""
    path: str
    inputs: dict        # name -> {"shape", "dtype"}
    outputs: list
    parameters: int     # tensors, ties once
    trained: int        # of them
    elements: int       # numbers in the parameters
    stops: int          # places that a gradient does not pass
    checkpoints: int    # calls of torch.utils.checkpoint
    dropouts: int       # calls that draw random numbers in every step
    opset: int
    seconds: float = 0.0


@contextlib.contextmanager
def step(progress, name):
    """Tells `progress` of a step that takes more than two seconds, while it does."""
    timer = threading.Timer(2.0, lambda: progress(f"{name}..."))
    timer.daemon = True
    if progress:
        timer.start()
    try:
        yield
    finally:
        timer.cancel()


def _as_tuple(args):
    return (args,) if isinstance(args, torch.Tensor) else tuple(args)


def _apart(args, kwargs):
    """Of a tensor that is given as several inputs (labels=ids) copies: torch.export would
    let one input stand for all of them, whatever they are fed in training."""
    seen = set()

    def own(value):
        if not isinstance(value, torch.Tensor):
            return value
        is_new = id(value) not in seen
        seen.add(id(value))
        return value if is_new else value.detach().clone().requires_grad_(value.requires_grad)

    return pytree.tree_map(own, (args, kwargs))


def _check_inputs(module, args, kwargs, loss):
    if loss is not None and "labels" not in kwargs:
        raise Refused("a loss needs labels: pass them as kwargs={'labels': …} beside the model's "
                      "own arguments")
    own = {name: value for name, value in kwargs.items() if loss is None or name != "labels"}
    try:
        inspect.signature(module.forward).bind(*args, **own)
    except TypeError as error:
        hint = "" if loss is not None or "labels" not in kwargs else (
            "; labels are for a loss (loss=, or --loss), and none is given")
        raise Refused(f"the model's forward does not take these arguments: {error}{hint}") from None


def _refuse_changes(program):
    """Buffers and inputs that the forward writes: a step has no place to keep them, but for what
    batch norms keep."""
    written = program.graph_signature
    kept = batch_norms.kept_buffers(program)
    changed = [f"buffer '{name}'" for name in written.buffers_to_mutate.values()
               if name not in kept]
    changed += [f"input '{name}'" for name in written.user_inputs_to_mutate.values()]
    changed += [f"parameter '{name}'" for name in written.parameters_to_mutate.values()]
    if changed:
        raise Refused(f"the forward changes {', '.join(changed[:3])}: a training step changes "
                      "parameters only, so compute without writing to it (call eval() on the part "
                      "that does)")


def _separate_outputs(program):
    """What is returned as it came in, or twice, gets a node of its own: the exporter names
    values after outputs, and a parameter would lose its name."""
    graph, output = program.graph, program.graph.output_node()
    returned = []
    for node, spec in zip(output.args[0], program.graph_signature.output_specs):
        if isinstance(node, torch.fx.Node) and (node.op == "placeholder" or node in returned):
            with graph.inserting_before(output):
                copy = graph.call_function(torch.ops.aten.clone.default, (node,))
            copy.meta = dict(node.meta)
            spec.arg = TensorArgument(name=copy.name)
            node = copy
        returned.append(node)
    output.args = (tuple(returned),)
    program.graph_module.recompile()


def _copy_before_views(program):
    """A view of a transposed tensor is possible only where that lies so in memory, which
    tracing believes of what an operator returns (attention's, in PyTorch 2.13) and the
    operator itself does not always do. A copy may be viewed in any case."""
    aten = torch.ops.aten
    for node in program.graph.nodes:
        source = node.args[0] if node.target is aten.view.default else None
        if getattr(source, "target", None) in (aten.transpose.int, aten.permute.default):
            with program.graph.inserting_before(node):
                copy = program.graph.call_function(
                    aten.clone.default, (source,), {"memory_format": torch.contiguous_format})
            copy.meta = {**source.meta, "val": source.meta["val"].contiguous()}
            node.replace_input_with(source, copy)
    program.graph_module.recompile()


def trace_module(module, args, kwargs, loss, dynamic_shapes, progress):
    """The program of a training forward: every stop marked, every row spelled out."""
    with state.restored(module), losses.inside(module, loss):
        with step(progress, "tracing the model"):
            program = trace.trace(module, args, kwargs, dynamic_shapes)
        with step(progress, "spelling out what ONNX has no word for"), trace.quiet():
            explicit.refuse_calls(program)
            stops.mark_stops(program)
            explicit.make_explicit(program)
            program = complex_numbers.by_real_numbers(trace.decomposed(program))
        _refuse_changes(program)
        signature.check_constants(signature.entries_of(module), program.constants)
        _separate_outputs(program)
        _copy_before_views(program)
        with step(progress, "running it beside the model"), trace.quiet():
            agreement.check(module, program, args, kwargs, loss)
    return program


def export_module(module, args, kwargs, *, loss, path, dir, dynamic_shapes, input_names,
                  output_names, opset, progress):
    """See acc_export.export."""
    began = time.monotonic()
    if not isinstance(module, torch.nn.Module):
        raise Refused(f"expected a torch.nn.Module, found {type(module).__name__}")
    if (path is None) == (dir is None):
        raise Refused("say where to write: one of path= (a file) and dir= (a folder)")
    module = signature.unwrapped(module)
    args, kwargs = _apart(_as_tuple(args), dict(kwargs or {}))
    _check_inputs(module, args, kwargs, loss)
    entries = signature.entries_of(module)
    signature.check(module, entries)
    program = trace_module(module, args, kwargs, loss, dynamic_shapes, progress)
    with step(progress, "converting to ONNX"):
        model = write.convert(program, input_names, output_names, opset, dynamic_shapes)
        batch_norms.mark_trained(program, model.graph)
        summary = write.describe(model, entries, Summary)
    file = pathlib.Path(path) if path else pathlib.Path(dir) / "model.onnx"
    with step(progress, f"writing {file}"):
        file.parent.mkdir(parents=True, exist_ok=True)
        write.save(model, file)
        if dir:
            write.save_inputs(program, model, pathlib.Path(dir) / "inputs")
    summary.path = os.fspath(file)
    summary.seconds = round(time.monotonic() - began, 3)
    return summary
