"""What the module's parameters are: their names and ties, which of them PyTorch trains,
and what about them no file can say. Read off the module itself, not off the traced
program, which knows neither ties nor requires_grad."""
import dataclasses

import torch

from .errors import Refused


@dataclasses.dataclass
class Entry:
    """One tensor of the module: a parameter or a buffer, under its first name."""
    name: str
    aliases: list
    kind: str  # 'parameter' or 'buffer'
    tensor: torch.Tensor

    def names(self):
        return [self.name, *self.aliases]

    def describe(self, initializer):
        """As the file's metadata has it (docs/Exporting.md)."""
        held = self.tensor.detach().resolve_conj()
        held = torch.view_as_real(held) if held.is_complex() else held
        return {"name": self.name, "aliases": self.aliases, "kind": self.kind,
                "requires_grad": self.kind == "parameter" and self.tensor.requires_grad,
                "initializer": initializer, "shape": list(held.shape),
                "dtype": str(held.dtype).removeprefix("torch.")}


def unwrapped(module):
    """The user's module: torch.compile puts another around it, whose names are its own."""
    return getattr(module, "_orig_mod", module)


def _is_number(tensor):
    """What is no floating-point number is not trained, whatever it is registered as."""
    return torch.nn.parameter.is_lazy(tensor) or tensor.is_floating_point() or tensor.is_complex()


def entries_of(module):
    """Every parameter and buffer once, with all names that it goes by."""
    entries = {}
    for kind, named in (("parameter", module.named_parameters(remove_duplicate=False)),
                        ("buffer", module.named_buffers(remove_duplicate=False))):
        for name, tensor in named:
            entry = entries.get(id(tensor))
            if entry is None:
                entries[id(tensor)] = Entry(
                    name, [], kind if _is_number(tensor) else "buffer", tensor)
            else:
                entry.aliases.append(name)
    return list(entries.values())


def _bytes_of(tensor):
    """(storage, first byte, byte after the last) of a dense tensor's memory."""
    reach = sum((size - 1) * stride for size, stride in zip(tensor.shape, tensor.stride()))
    start = tensor.storage_offset() * tensor.element_size()
    return (tensor.untyped_storage().data_ptr(), start,
            start + (reach + 1) * tensor.element_size())


def _refuse_shared_memory(named):
    """Two tensors on the same bytes of which one is trained: the update of one is an
    update of the other, which the file could not say."""
    spans = sorted(((*_bytes_of(tensor), name, tensor) for name, tensor in named
                    if tensor.numel() and tensor.device.type != "meta"), key=lambda s: s[:3])
    for (storage, _, end, name, tensor), (other, start, _, second, twin) in zip(spans, spans[1:]):
        if storage and storage == other and start < end and (
                tensor.requires_grad or twin.requires_grad):
            raise Refused(
                f"'{name}' and '{second}' are different tensors on the same memory, so an update "
                "of one changes the other: tie them (module.a = module.b) or clone one")


def check(module, entries):
    """Refuses what training would do to these parameters and a file cannot say."""
    for entry in entries:
        tensor = entry.tensor
        if entry.kind != "parameter":
            continue
        if torch.nn.parameter.is_lazy(tensor) or tensor.device.type == "meta":
            raise Refused(f"parameter '{entry.name}' has no values yet (a lazy module, or the "
                          "device 'meta'): run the model once or load its weights first")
        if tensor.is_complex():
            raise Refused(f"parameter '{entry.name}' is complex, which ONNX has no type for: hold "
                          "its real and imaginary parts")
        if getattr(tensor, "_backward_hooks", None) or getattr(
                tensor, "_post_accumulate_grad_hooks", None):
            raise Refused(f"parameter '{entry.name}' has a hook on its gradient, which a file "
                          "cannot hold: remove the hook")
    for name, part in module.named_modules():
        what = f"module '{name}' ({type(part).__name__})" if name else "the model"
        if part._backward_hooks or part._backward_pre_hooks:
            raise Refused(f"{what} has a backward hook, which a file cannot hold: remove the hook")
        if isinstance(part, torch.nn.modules.batchnorm._BatchNorm) and (
                part.training and part.running_mean is not None and part.momentum is None):
            raise Refused(
                f"{what} has momentum=None: its running statistics are means over all batches so "
                "far, which a training step does not count; give it a momentum, or call eval() on "
                "it to train with its running statistics")
    _refuse_shared_memory([(entry.name, entry.tensor) for entry in entries])


def check_constants(entries, constants):
    """`constants` are the tensors that the trace found in no parameter and no buffer."""
    for name, tensor in constants.items():
        if not isinstance(tensor, torch.Tensor):
            continue
        _refuse_shared_memory([(entry.name, entry.tensor) for entry in entries] +
                              [(f"the constant {name}", tensor)])
