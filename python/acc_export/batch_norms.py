"""Batch norms in training mode: what they keep from call to call (their running statistics,
and how many calls there were) is theirs to change, and in the file they say that they are
trained, which PyTorch's exporter leaves out."""
import operator

import torch

_CALL = "pkg.torch.onnx.fx_node"
_TRAINED = torch.ops.aten._native_batch_norm_legit_functional.default
_COUNT = "num_batches_tracked"


def _calls(program):
    """(input, weight, bias, running_mean, running_var, training, …)"""
    return [node for node in program.graph.nodes if node.target is _TRAINED and node.args[5]]


def _before_casts(node):
    """What PyTorch computes in float32 and keeps in the type of a buffer of 16 bits."""
    while node.target is torch.ops.aten._to_copy.default:
        node = node.args[0]
    return node


def kept_buffers(program):
    """The names of buffers that the program changes by batch norms alone. A count is of the
    module of running statistics, plus one."""
    signature = program.graph_signature
    nodes = {node.name: node for node in program.graph.nodes}
    norms = set(_calls(program))
    changed = {name: _before_casts(nodes[value])
               for value, name in signature.buffers_to_mutate.items()}
    kept = {name for name, node in changed.items()
            if node.target is operator.getitem and node.args[0] in norms and node.args[1] in (3, 4)}
    owners = {name.rpartition(".")[0] for name in kept}
    return kept | {name for name, node in changed.items()
                   if name.rpartition(".")[::2] in [(owner, _COUNT) for owner in owners] and
                   node.target is torch.ops.aten.add.Tensor}


def mark_trained(program, graph):
    """Says of the operators of these calls that they take statistics of the batch."""
    from onnxscript import ir
    trained = {f"%{node.name}" for node in _calls(program)}
    for node in graph:
        if (node.op_type == "BatchNormalization" and
                node.metadata_props.get(_CALL, "").split(" ")[0] in trained):
            node.attributes["training_mode"] = ir.AttrInt64("training_mode", 1)
