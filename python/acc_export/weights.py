"""Trained weights back into the module that was exported: strictly, since a weight that
is silently left alone is a model that nobody trained."""
import torch

from .errors import Refused
from .signature import entries_of, unwrapped


def _read(path):
    from safetensors import SafetensorError, safe_open
    try:
        with safe_open(path, framework="pt") as file:
            return {name: file.get_tensor(name) for name in file.keys()}
    except (OSError, SafetensorError) as error:
        raise Refused(f"cannot read '{path}' as safetensors: {error}") from error


def _some(names):
    quoted = [f"'{name}'" for name in sorted(names)]
    return ", ".join(quoted[:5]) + (f" and {len(quoted) - 5} more" if len(quoted) > 5 else "")


def load_weights(module, path):
    """See acc_export.load."""
    weights, copies, missing = _read(path), [], []
    for entry in entries_of(unwrapped(module)):
        found = [name for name in entry.names() if name in weights]
        if not found:
            if entry.kind == "parameter":
                missing.append(entry.name)
            continue
        given = [weights.pop(name) for name in found]
        for name, tensor in zip(found, given):
            if tensor.shape != entry.tensor.shape or tensor.dtype != entry.tensor.dtype:
                raise Refused(
                    f"'{name}' in '{path}' is {tensor.dtype} of shape {list(tensor.shape)}, the "
                    f"module's is {entry.tensor.dtype} of shape {list(entry.tensor.shape)}: load "
                    "into the module that was exported")
            if not torch.equal(tensor, given[0]):
                raise Refused(f"'{found[0]}' and '{name}' are one parameter of the module, but "
                              f"differ in '{path}'")
        copies.append((entry.tensor, given[0]))
    if missing:
        raise Refused(f"'{path}' lacks parameters of the module: {_some(missing)}")
    if weights:
        raise Refused(f"'{path}' holds what the module does not have: {_some(weights)}")
    with torch.no_grad():
        for into, tensor in copies:
            into.copy_(tensor)
