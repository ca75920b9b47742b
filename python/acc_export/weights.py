"""Trained weights back into the module that was exported: strictly, since a weight that
is silently left alone is a model that nobody trained."""
import json
from pathlib import Path

import torch

from .errors import Refused
from .signature import entries_of, unwrapped


def _read_file(path):
    from safetensors import SafetensorError, safe_open
    try:
        with safe_open(path, framework="pt") as file:
            return {name: file.get_tensor(name) for name in file.keys()}
    except (OSError, SafetensorError) as error:
        raise Refused(f"cannot read '{path}' as safetensors: {error}") from error


def _find_checkpoint(folder):
    """The checkpoint that a folder is, or the newest of those in it, as acc-run takes it."""
    if (folder / "checkpoint.json").exists():
        return folder
    steps = sorted(each for each in folder.iterdir() if each.name.startswith("step-"))
    if not steps:
        raise Refused(f"expected a .safetensors file, a checkpoint of acc-run or a folder of "
                      f"checkpoints, found the folder '{folder}' without any")
    if not (steps[-1] / "checkpoint.json").exists():
        raise Refused(f"the newest checkpoint, '{steps[-1]}', is damaged: it has no "
                      "'checkpoint.json'; name another one of the folder to load that")
    return steps[-1]


def _read_checkpoint(folder):
    """Its weights, by every name that a tied one has."""
    manifest = folder / "checkpoint.json"
    try:
        states = json.loads(manifest.read_text())["states"]
    except (OSError, ValueError, KeyError) as error:
        raise Refused(f"cannot read '{manifest}' as the manifest of a checkpoint: "
                      f"{error}") from error
    weights = _read_file(folder / "model.safetensors")
    for name in list(weights):
        for alias in states.get(name, {}).get("aliases", []):
            weights[alias] = weights[name]
    return weights


def _some(names):
    quoted = [f"'{name}'" for name in sorted(names)]
    return ", ".join(quoted[:5]) + (f" and {len(quoted) - 5} more" if len(quoted) > 5 else "")


def load_weights(module, path):
    """See acc_export.load."""
    is_checkpoint = Path(path).is_dir()
    if is_checkpoint:
        path = _find_checkpoint(Path(path))
    weights = _read_checkpoint(path) if is_checkpoint else _read_file(path)
    copies, missing = [], []
    for entry in entries_of(unwrapped(module)):
        found = [name for name in entry.names() if name in weights]
        if not found:
            # A frozen one that every rank reads from the model's file is in no checkpoint.
            is_kept = is_checkpoint and not entry.tensor.requires_grad
            if entry.kind == "parameter" and not is_kept:
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
