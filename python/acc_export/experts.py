"""Mixtures of experts of Hugging Face. The library has several ways to compute one and
the same function (`experts_implementation`); those that it takes by default look at how
many rows each expert has, which no trace can hold. One of them, products with the
matrices that an index picks, can be written down, and acc makes one grouped product of
it."""
import contextlib

#: The way that can be traced, as the library calls it.
_TRACEABLE = "batched_mm"


@contextlib.contextmanager
def traceable(module):
    """While it lasts the experts within `module` are computed in a way that can be traced."""
    before = {}  # configurations have no hash; many modules share one
    for part in module.modules():
        config = getattr(part, "config", None)
        if getattr(config, "_experts_implementation_internal", None) is not None:
            before.setdefault(id(config), (config, config._experts_implementation_internal))
    for config, _ in before.values():
        config._experts_implementation_internal = _TRACEABLE
    try:
        yield
    finally:
        for config, way in before.values():
            config._experts_implementation_internal = way
