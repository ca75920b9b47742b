"""Attributes of libraries' classes and modules, replaced for as long as a context lasts."""
import contextlib


@contextlib.contextmanager
def replaced(holder, name, value):
    """Sets `holder.name`, and puts back what was there, or nothing."""
    own = name in vars(holder)
    before = vars(holder).get(name)
    setattr(holder, name, value)
    try:
        yield
    finally:
        if own:
            setattr(holder, name, before)
        else:
            delattr(holder, name)
