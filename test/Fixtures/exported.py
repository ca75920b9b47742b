"""What the makers of fixtures share: exporting a PyTorch model as today's exporter
writes it, and leaving no trace of other people's source in the file."""
import json

import onnx
import torch


def strip(proto):
    """Drops the exporter's stack traces, which quote other people's source and
    this machine's paths, and the class hierarchy, which `namespace` repeats.
    What identifies a parameter's use stays."""
    dropped = ("pkg.torch.onnx.stack_trace", "pkg.torch.onnx.class_hierarchy")

    def clean(properties):
        kept = [p for p in properties if p.key not in dropped]
        del properties[:]
        properties.extend(kept)

    def walk(graph):
        clean(graph.metadata_props)
        for value in [*graph.input, *graph.output, *graph.value_info, *graph.initializer]:
            clean(value.metadata_props)
        for node in graph.node:
            clean(node.metadata_props)
            for attribute in node.attribute:
                for inner in [attribute.g, *attribute.graphs]:
                    if inner.node:
                        walk(inner)

    walk(proto.graph)
    clean(proto.metadata_props)
    for function in proto.functions:
        clean(function.metadata_props)
        for node in function.node:
            clean(node.metadata_props)
    return proto


def export(path, model, inputs, outputs, optimize, dynamic_shapes=None):
    """Writes `model` as an ONNX file; `inputs` maps argument names to tensors."""
    program = torch.onnx.export(
        model, tuple(inputs.values()), dynamo=True, optimize=optimize,
        dynamic_shapes=dynamic_shapes, input_names=list(inputs), output_names=outputs,
        verbose=False)
    proto = strip(program.model_proto)
    data = proto.SerializeToString(deterministic=True)
    for trace in (b"stack_trace", b"site-packages", b"File \""):
        assert trace not in data, (path, trace)
    onnx.checker.check_model(proto)
    path.parent.mkdir(parents=True)
    path.write_bytes(data)


def save_parameters(path, model):
    """The state_dict as JSON: each tensor once, with its other names."""
    names = {}
    for name, tensor in model.state_dict(keep_vars=True).items():
        names.setdefault(id(tensor), []).append((name, list(tensor.shape)))
    entries = [{"name": tied[0][0], "aliases": [name for name, _ in tied[1:]],
                "shape": tied[0][1]} for tied in names.values()]
    path.write_text(json.dumps(entries, indent=1) + "\n")
