"""The Python state that a forward can read and change: attributes of the modules, and the
globals, variables around functions, and objects that their code names. A program is the
trace of one call, so what a call changes must be nothing that the next one reads.

A `Snapshot` is that state at one time. Code of libraries is not looked into, their objects'
attributes are."""
import collections
import contextlib
import itertools
import pathlib
import random
import sys
import sysconfig
import types
import zlib

import numpy as np
import torch

from .errors import is_library

_HOOKS = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")
_REGISTERED = ("_parameters", "_buffers", "_modules")
#: Atoms: what has no parts, and is what it says.
_PLAIN = (bool, int, float, complex, str, bytes, type(None), torch.dtype, torch.device,
          torch.layout, torch.Size, range, slice, pathlib.PurePath)
#: Beyond so many items of one container its length is what is looked at: a vocabulary.
_MANY = 10_000
_SITE_PACKAGES = sysconfig.get_paths()["purelib"]


@contextlib.contextmanager
def restored(module):
    """Afterwards the modules' attributes, buffers and random numbers are those of before."""
    attributes = [(part, dict(vars(part))) for part in module.modules()]
    buffers = [(buffer, buffer.clone()) for buffer in module.buffers()]
    try:
        with torch.random.fork_rng(devices=[]):
            yield
    finally:
        for part, before in attributes:
            vars(part).clear()
            vars(part).update(before)
        with torch.no_grad():
            for buffer, before in buffers:
                buffer.copy_(before)


class Place:
    """Where a tensor that is neither parameter nor buffer is kept."""

    def __init__(self, holder, key, tensor):
        self.holder, self.key, self.tensor = holder, key, tensor
        self.version = -1 if tensor.is_inference() else tensor._version

    def __eq__(self, other):
        return (isinstance(other, Place) and self.tensor is other.tensor and
                self.version == other.version)

    def put(self, tensor):
        """Whether `tensor` could be put there instead."""
        if not isinstance(self.holder, (dict, list)):
            return False
        self.holder[self.key] = tensor
        return True


def _own_code(file):
    """Whether a file is the user's: state in a library's globals is the library's."""
    return not is_library(file) and not file.startswith(_SITE_PACKAGES)


def _names(code):
    """The global names that a function's code, or code inside it, says."""
    names = set(code.co_names)
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            names |= _names(constant)
    return names


def _is_own_class(cls):
    module = sys.modules.get(cls.__module__)
    file = getattr(module, "__file__", None)
    return _own_code(file) if file else module is None or cls.__module__ == "__main__"


class Snapshot:
    def __init__(self, *roots):
        #: What each path held: a plain value, a Place, or the type of what has parts.
        self.held = {}
        self._alive = []  # so that no identity is used twice
        self._seen = set()
        self._todo = collections.deque(("", root, None, None) for root in roots)
        while self._todo:
            path, value, holder, key = self._todo.popleft()
            self._look(path, value, holder, key)

    def changed_from(self, before):
        """The paths whose content differs."""
        missing = object()
        return sorted(path for path in self.held.keys() | before.held.keys()
                      if self.held.get(path, missing) != before.held.get(path, missing))

    def _visit(self, path, value, holder=None, key=None):
        self._todo.append((path, value, holder, key))

    def _look(self, path, value, holder, key):
        if isinstance(value, _PLAIN):
            # A NaN is itself here.
            self.held[path] = (type(value), repr(value))
            return
        if isinstance(value, torch.Tensor):
            self.held[path] = Place(holder, key, value)
            return
        self.held[path] = type(value)
        self._alive.append(value)
        if id(value) in self._seen:
            return
        self._seen.add(id(value))
        self._look_inside(path, value)

    def _look_inside(self, path, value):
        if isinstance(value, torch.nn.Module):
            self._module(path, value)
        elif isinstance(value, (list, tuple, collections.deque)):
            self._items(path, value, [(f"{path}[{i}]", item, i) for i, item in enumerate(
                itertools.islice(value, _MANY))])
        elif isinstance(value, dict):
            self._items(path, value, [(f"{path}[{key!r}]", item, key) for key, item in
                                      itertools.islice(value.items(), _MANY)])
            self._attributes(path, value)
        elif isinstance(value, (set, frozenset)):
            self.held[path] = sorted(map(repr, itertools.islice(value, _MANY)))
        elif isinstance(value, types.FunctionType):
            self._function(path, value)
        elif isinstance(value, types.MethodType):
            self._visit(f"{path}.__self__", value.__self__)
            self._visit(path, value.__func__)
        elif isinstance(value, type):
            self._class(path, value)
        elif not self._numbers(path, value):
            self._attributes(path, value)
            self._progress(path, value)

    def _items(self, path, value, items):
        self.held[path] = (type(value), len(value))
        for name, item, key in items:
            self._visit(name, item, value, key)

    def _attributes(self, path, value):
        if isinstance(value, (types.ModuleType, types.BuiltinFunctionType)):
            return
        held = getattr(value, "__dict__", None)
        if isinstance(held, dict):
            for name, item in list(held.items()):
                self._visit(f"{path}.{name}", item, held, name)
        for cls in type(value).__mro__:
            slots = cls.__dict__.get("__slots__", ())
            for name in (slots,) if isinstance(slots, str) else slots:
                if hasattr(value, name):
                    self._visit(f"{path}.{name}", getattr(value, name))
        self._visit(f"class {type(value).__name__}", type(value))

    def _module(self, path, module):
        prefix = f"{path}." if path else ""
        for name, item in vars(module).items():
            if name in _HOOKS:
                for number, hook in enumerate(item.values()):
                    self._visit(f"{prefix}{name}[{number}]", hook)
            elif name == "_modules":
                for child, part in item.items():
                    self._visit(f"{prefix}{child}", part)
            elif name in _REGISTERED:
                # Which tensors they are; what is in them is looked at elsewhere.
                self.held.update({f"{prefix}{k}": id(v) for k, v in item.items()})
                self._alive.append(list(item.values()))
            elif name == "training" or not name.startswith(("_load_state", "_state_dict")):
                self._visit(f"{prefix}{name}", item, vars(module), name)
        self._visit(f"class {type(module).__name__}", type(module))

    def _class(self, path, cls):
        for base in cls.__mro__:
            for name, value in list(vars(base).items()) if _is_own_class(base) else ():
                if isinstance(value, property):
                    value = value.fget
                value = getattr(value, "__func__", value)  # of static and class methods
                if not name.startswith("__") or name in ("__call__", "__getattr__"):
                    self._visit(f"{base.__name__}.{name}", value)

    def _function(self, path, function):
        code = function.__code__
        if not _own_code(code.co_filename):
            return
        for name, cell in zip(code.co_freevars, function.__closure__ or ()):
            try:
                self._visit(f"variable '{name}' around {function.__name__}()", cell.cell_contents)
            except ValueError:  # not set yet
                pass
        self._visit(f"defaults of {function.__name__}()", function.__defaults__)
        self._visit(f"defaults of {function.__name__}()", function.__kwdefaults__)
        for name, value in vars(function).items():
            self._visit(f"{function.__name__}.{name}", value, vars(function), name)
        names, scope = _names(code), function.__globals__
        for name in names & scope.keys():
            value = scope[name]
            if not isinstance(value, types.ModuleType):
                self._visit(f"global '{name}'", value, scope, name)
            elif _own_code(getattr(value, "__file__", None) or "<none>"):
                for inner in names & vars(value).keys():
                    self._visit(f"global '{name}.{inner}'", vars(value)[inner], vars(value), inner)

    def _numbers(self, path, value):
        """Arrays, and what draws random numbers of its own."""
        if isinstance(value, np.ndarray):
            self.held[f"{path}.data"] = (value.shape, zlib.crc32(np.ascontiguousarray(value))
                                         if value.dtype != object else repr(value))
        elif isinstance(value, (random.Random, np.random.RandomState)):
            get = getattr(value, "getstate", None) or value.get_state
            self.held[f"{path}.state"] = repr(get())
        elif isinstance(value, np.random.Generator):
            self.held[f"{path}.state"] = repr(value.bit_generator.state)
        elif isinstance(value, torch.Generator):
            self.held[f"{path}.state"] = value.get_state().tolist()
        else:
            return False
        return True

    def _progress(self, path, value):
        """How far an iterator is."""
        if isinstance(value, types.GeneratorType):
            frame = value.gi_frame
            self.held[f"{path}.at"] = frame and frame.f_lasti
            self._visit(f"{path}.locals", frame and dict(frame.f_locals))
        elif hasattr(value, "__next__") and type(value).__module__ in ("builtins", "itertools"):
            try:
                parts = value.__reduce__()
            except TypeError:
                return
            self._visit(f"{path}.at", parts[1:])
        elif isinstance(value, collections.abc.Callable) and hasattr(value, "func"):
            self._visit(f"{path}.func", value.func)  # functools.partial
            self._visit(f"{path}.args", value.args)
            self._visit(f"{path}.keywords", value.keywords)
