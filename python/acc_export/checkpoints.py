"""What the user's code checkpoints (torch.utils.checkpoint): calls whose activations the backward
computes again. Tracing goes through them without a word; here their nodes are marked, and the file
says of each node in which such call it was made (docs/Exporting.md)."""
import ast
import contextlib
import itertools

import torch
from torch.fx.traceback import annotate, preserve_node_meta
from torch.utils import checkpoint

from . import custom
from .patches import replaced

_MARK = "accel.checkpoint"
_SCOPES = ("pkg.torch.onnx.name_scopes", "pkg.torch.onnx.class_hierarchy")


@contextlib.contextmanager
def traced():
    """While a module is traced: each call of checkpoint(), of either kind, marks the nodes that it
    makes. What is inside another belongs to the outermost, whose backward comes first."""
    numbers, depth = itertools.count(1), [0]

    @contextlib.contextmanager
    def marked():
        depth[0] += 1
        try:
            with annotate({_MARK: next(numbers)}) if depth[0] == 1 else contextlib.nullcontext():
                yield
        finally:
            depth[0] -= 1

    def without_reentrant(*args, **kwargs):
        with marked():
            yield

    class Reentrant:
        @staticmethod
        def apply(function, preserve, *args):
            with marked():
                return custom.checkpointed((function, preserve, *args))

    with (preserve_node_meta(), replaced(checkpoint, "_checkpoint_without_reentrant_generator", without_reentrant),
          replaced(checkpoint, "CheckpointFunction", Reentrant)):
        yield


def name_scopes(program):
    """Lets the exporter carry the marks: as the innermost scope of each marked node."""
    for node in program.graph.nodes:
        number = node.meta.get("custom", {}).get(_MARK)
        if number is not None:
            node.meta["nn_module_stack"] = {
                **node.meta.get("nn_module_stack", {}),
                _MARK: (f"{_MARK}#{number}", "torch.utils.checkpoint.checkpoint")}


def write(graph):
    """Takes the marks out of the scopes again: `accel.checkpoint` of a node is the number of its
    call. Returns how many calls there are."""
    calls = set()
    for node in graph.all_nodes():
        scopes, classes = (ast.literal_eval(node.metadata_props.get(key, "[]")) for key in _SCOPES)
        marks = [at for at, scope in enumerate(scopes) if scope.startswith(f"{_MARK}#")]
        if not marks:
            continue
        calls.add(scopes[marks[0]])
        node.metadata_props[_MARK] = scopes[marks[0]].rsplit("#", 1)[1]
        scopes = [scope for at, scope in enumerate(scopes) if at not in marks]
        classes = [name for at, name in enumerate(classes) if at not in marks]
        parts = node.metadata_props.get("namespace", "").split("/")
        node.metadata_props["namespace"] = "/".join(
            part for part in parts if not part.startswith(f"{_MARK}#"))
        for key, value in zip(_SCOPES, (scopes, classes)):
            node.metadata_props[key] = repr(value)
    return len(calls)
