"""From the traced program to the ONNX file: PyTorch's own conversion, unoptimised; then
the parameters are made inputs of the graph, so that no later optimiser merges or folds
them, and what ONNX has no word for is written as metadata (docs/Exporting.md)."""
import json
import os
import re

import ml_dtypes
import numpy as np
import torch
from torch.export.graph_signature import ConstantArgument, InputKind, OutputKind
from torch.utils import _pytree as pytree

from . import __version__, checkpoints, stops
from .errors import Refused, at, line_of_node
from .trace import first_sentence, quiet

_CALL = "pkg.torch.onnx.fx_node"
_SIGNATURE = "pkg.torch.export.ExportedProgram.graph_signature"
#: Protobuf holds no file of 2 GiB; some readers stop earlier.
_EXTERNAL_BYTES = 2_000_000_000


def _array(tensor):
    """As NumPy has it; bfloat16, which NumPy has not, as ml_dtypes has."""
    tensor = tensor.detach().cpu()
    if tensor.dtype == torch.bfloat16:
        return tensor.contiguous().view(torch.int16).numpy().view(ml_dtypes.bfloat16)
    return tensor.numpy()


def _translations():
    from onnxscript import opset18

    def stop(x):
        return opset18.Identity(x)
    return {stops.STOP: stop}


def _name_of(path):
    """The user's name for a place in what forward returned."""
    parts = []
    for key in path:
        if isinstance(key, pytree.MappingKey):
            parts.append(str(key.key))
        elif isinstance(key, pytree.GetAttrKey):
            parts.append(str(key.name))
        else:
            parts.append(f"output_{key.idx}" if not parts else str(key.idx))
    if parts[:1] == ["outputs"]:  # put there by losses.inside
        parts = parts[1:] or ["output"]
    return ".".join(parts) or "output"


def _output_names(program):
    """Names of the outputs, in order, those that are no tensor left out."""
    specs = [spec for spec in program.graph_signature.output_specs
             if spec.kind == OutputKind.USER_OUTPUT]
    tree = pytree.tree_unflatten(list(range(len(specs))), program.call_spec.out_spec)
    paths, _ = pytree.tree_flatten_with_path(tree)
    values = {node.name: node.meta.get("val") for node in program.graph.nodes}
    names = []
    for path, place in paths:
        arg = specs[place].arg
        if isinstance(arg, ConstantArgument):
            continue
        name = _name_of(path)
        value = values.get(arg.name)
        is_scalar = isinstance(value, torch.Tensor) and value.dim() == 0
        if not names and name in ("output", "output_0") and is_scalar:
            name = "loss"
        names.append(name)
    taken = {}
    for i, name in enumerate(names):
        taken[name] = taken.get(name, -1) + 1
        if taken[name]:
            names[i] = f"{name}_{taken[name]}"
    return names


def _types(node):
    """' of float32[4, 3]': what a call is given, since there may be ONNX for other types."""
    values = (leaf.meta.get("val") for leaf in pytree.tree_leaves((node.args, node.kwargs))
              if isinstance(leaf, torch.fx.Node))
    found = [f"{str(value.dtype).removeprefix('torch.')}{list(value.shape)}"
             for value in values if isinstance(value, torch.Tensor)]
    return f" of {', '.join(found)}" if found else ""


def _missing(error, program):
    """The call that PyTorch's exporter has no translation for, its types and the user's line."""
    cause = error
    while cause:
        text = str(cause)
        if "No ONNX function found for " in text or "No decompositions registered" in text:
            for node in program.graph.nodes:
                if node.op == "call_function" and str(node.target) in text:
                    return f"{node.target}{_types(node)}{at(line_of_node(node))}"
        cause = cause.__cause__
    return None


def convert(program, input_names, output_names, opset, dynamic_shapes):
    """The ONNX model as onnxscript's IR."""
    inputs = [spec for spec in program.graph_signature.input_specs
              if spec.kind == InputKind.USER_INPUT and not isinstance(spec.arg, ConstantArgument)]
    if input_names is not None and len(input_names) != len(inputs):
        raise Refused(f"expected {len(inputs)} input_names, one a tensor among the arguments, "
                      f"found {len(input_names)}")
    outputs = _output_names(program)
    if output_names is not None:
        outputs = [*output_names, *outputs[len(output_names):]]
    checkpoints.name_scopes(program)
    try:
        with quiet():
            model = torch.onnx.export(
                program, dynamo=True, optimize=False, verbose=False, opset_version=opset,
                input_names=list(input_names) if input_names else [
                    spec.arg.name for spec in inputs],
                # Of a program that is traced already: the dimensions' names.
                output_names=outputs, dynamic_shapes=dynamic_shapes,
                custom_translation_table=_translations()).model
    except Exception as error:
        missing = _missing(error, program)
        if missing:
            raise Refused(f"PyTorch's exporter has no ONNX for {missing}: write it with other "
                          "calls") from error
        cause = error
        while cause.__cause__:
            cause = cause.__cause__
        part = re.search(r"No ONNX function found for <OpOverload\(op='([\w.]+)'", str(cause))
        if part:  # the exporter takes a call apart before it says so
            raise Refused(f"PyTorch's exporter has no ONNX for {part[1]}, which a call of the model "
                          "is made of: write it with other calls") from error
        raise Refused(f"PyTorch's exporter failed: {first_sentence(cause)}") from error
    found = model.opset_imports.get("")
    if opset is not None and found != opset:
        raise Refused(f"PyTorch's exporter could not write opset {opset}, only {found}: leave "
                      "opset out")
    return model


def _mark_stops(graph):
    """Identities that a gradient does not pass: see docs/Exporting.md."""
    count = 0
    for node in graph:
        if node.op_type == "Identity" and "accel.stop_gradient" in node.metadata_props.get(
                _CALL, ""):
            node.metadata_props["accel.stop_gradient"] = "1"
            count += 1
    return count


def _declare(model, entries):
    """Makes each tensor one initializer under its first name, parameters inputs of the
    graph as well. Returns the signature for the metadata."""
    from onnxscript import ir
    graph, declared = model.graph, []
    for entry in entries:
        held = [graph.initializers[name] for name in entry.names() if name in graph.initializers]
        if held:
            first = held[0]
        elif entry.kind == "parameter":
            # Nothing uses it, and the exporter left it out: it is saved as it is.
            first = ir.Value(name=entry.name, const_value=ir.tensor(_array(entry.tensor),
                                                                    name=entry.name))
            first.shape, first.dtype = first.const_value.shape, first.const_value.dtype
            graph.initializers[entry.name] = first
        else:
            continue
        for twin in held[1:]:
            twin.replace_all_uses_with(first, replace_graph_outputs=True)
            graph.initializers.pop(twin.name)
        if first.name != entry.name:
            graph.initializers.pop(first.name)
            first.name = entry.name
            graph.initializers[entry.name] = first
        if entry.kind == "parameter":
            graph.inputs.append(first)
        declared.append(entry.describe(first.name))
    return declared


def describe(model, entries, summary):
    """Writes the metadata into `model`; returns a `summary` of it."""
    graph = model.graph
    # In the file each name is an input of the graph or one of its values, not both.
    inputs = list(graph.inputs)
    taken = {entry.name for entry in entries if entry.kind == "parameter"}
    for value in inputs:
        if value.name in taken:
            raise Refused(f"input '{value.name}' has the name of a parameter: name the inputs with "
                          "input_names=")
    stop_count = _mark_stops(graph)
    checkpoint_count = checkpoints.write(graph)
    declared = _declare(model, entries)
    graph.metadata_props.pop(_SIGNATURE, None)
    graph.metadata_props["accel.parameters"] = json.dumps(declared)
    model.metadata_props["accel.export"] = json.dumps(
        {"version": 1, "acc_export": __version__, "torch": torch.__version__})
    parameters = [entry.tensor for entry in entries if entry.kind == "parameter"]
    return summary(
        path="",
        inputs={value.name: {"shape": [d if isinstance(d, int) else str(d.value)
                                       for d in value.shape],
                             "dtype": value.dtype.name.lower()} for value in inputs},
        outputs=[value.name for value in graph.outputs],
        parameters=len(parameters), trained=sum(p.requires_grad for p in parameters),
        elements=sum(p.numel() for p in parameters), stops=stop_count,
        checkpoints=checkpoint_count,
        dropouts=sum(node.op_type == "Dropout" for node in graph),
        opset=model.opset_imports.get(""))


def save(model, file):
    """Beyond what one file can hold the weights go to FILE.data, beside it."""
    from onnxscript import ir
    size = sum(value.const_value.nbytes for value in model.graph.initializers.values())
    data = f"{file.name}.data"
    if (file.parent / data).exists():
        os.unlink(file.parent / data)
    ir.save(model, file, external_data=data if size > _EXTERNAL_BYTES else None)


def save_inputs(program, model, folder):
    """The sample, as acc-run --inputs reads it; `/` in a name is written %2F."""
    folder.mkdir(parents=True, exist_ok=True)
    leaves = pytree.tree_leaves(program.example_inputs)
    specs = [spec for spec in program.graph_signature.input_specs
             if spec.kind == InputKind.USER_INPUT]
    tensors = [leaf for leaf, spec in zip(leaves, specs)
               if not isinstance(spec.arg, ConstantArgument)]
    for value, tensor in zip(model.graph.inputs, tensors):
        np.save(folder / f"{value.name.replace('/', '%2F')}.npy", _array(tensor))
