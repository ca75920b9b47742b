"""What the model takes: with --for, the folder that acc-export wrote, whose sample says name,
shape and type of each input. Arrays are made to fit them, or refused."""
import pathlib

import numpy as np

from acc_export import Refused


class Inputs:
    def __init__(self, folder=None, rename=None):
        """`rename`: text MADE=INPUT,MADE=INPUT."""
        self.folder, self.rename, self.spec = folder, {}, None
        for part in filter(None, (rename or "").split(",")):
            made, equals, name = part.partition("=")
            if not (made and equals and name):
                raise Refused(f"expected --rename MADE=INPUT, found '{part}'")
            self.rename[made] = name
        if folder is not None:
            found = pathlib.Path(folder) / "inputs"
            files = sorted((found if found.is_dir() else pathlib.Path(folder)).glob("*.npy"))
            if not files:
                raise Refused(f"expected a folder of acc-export with inputs/NAME.npy for --for, "
                              f"found none in '{folder}'")
            self.spec = {}
            for file in files:
                sample = np.load(file, mmap_mode="r")
                self.spec[file.stem.replace("%2F", "/")] = (sample.shape[1:], sample.dtype)

    def name(self, made):
        return self.rename.get(made, made)

    def wants(self, made):
        """Whether an array that can be left out is to be written."""
        return self.spec is None or self.name(made) in self.spec

    def asks(self, made):
        """Whether the model is known to take it."""
        return self.spec is not None and self.name(made) in self.spec

    def shape(self, made):
        """Of one row, or None where no model is named."""
        return self.spec[self.name(made)][0] if self.asks(made) else None

    def length(self, made, given, flag):
        """Tokens in a row: as --sequence says, or the model."""
        shape = self.shape(made)
        if shape is None:
            if given is None:
                raise Refused(f"expected {flag} N, the tokens in a row, or --for the folder of the "
                              "exported model")
            return given
        if len(shape) != 1:
            raise Refused(f"expected rows of tokens for input '{self.name(made)}', found shape "
                          f"{list(shape)} in '{self.folder}'")
        if given not in (None, shape[0]):
            raise Refused(f"the model takes rows of {shape[0]} tokens, found {flag} {given}")
        return shape[0]

    def fit(self, arrays, needed):
        """The arrays under the inputs' names and types. `needed`: the model must take these."""
        if self.spec is None:
            return {self.name(made): values for made, values in arrays.items()}
        fitted = {}
        for made, values in arrays.items():
            name = self.name(made)
            if name in self.spec:
                fitted[name] = self._fit_one(name, values)
            elif made in needed:
                raise Refused(f"the model takes no input '{name}', which these data need, but "
                              f"{', '.join(self.spec)}: export it with that input, or say its "
                              f"name as --rename {made}=INPUT")
        for name in self.spec:
            if name not in fitted:
                raise Refused(f"the model takes an input '{name}', which is not made of these data "
                              f"({', '.join(arrays)}): name what it is with --rename MADE={name}, "
                              "or export the model without it")
        return fitted

    def _fit_one(self, name, values):
        shape, dtype = self.spec[name]
        if values.shape[1:] != shape and values[0].size == int(np.prod(shape)):
            if 1 in (*shape, *values.shape[1:]):  # [n] and [n, 1]
                values = values.reshape(len(values), *shape)
        if values.shape[1:] != shape:
            raise Refused(f"input '{name}' of the model has rows of shape {list(shape)}, found "
                          f"{list(values.shape[1:])}")
        return cast(name, values, dtype)


def cast(name, values, dtype):
    """As `dtype`, or refused where that loses more than digits."""
    if values.dtype == dtype:
        return values
    if dtype.kind == "f" and values.dtype == bool and values.ndim == 4:
        # Added to scores: what is not attended is as small as the type can say.
        return np.where(values, dtype.type(0), np.finfo(dtype).min)
    with np.errstate(over="ignore", invalid="ignore"):
        result = values.astype(dtype)
    if dtype.kind in "iub" and (values.dtype.kind == "f" or dtype.itemsize <
                                values.dtype.itemsize or dtype.kind != values.dtype.kind):
        if not np.array_equal(result.astype(values.dtype), values):
            raise Refused(f"expected values of type {dtype.name} for '{name}', found others, as "
                          f"{values[result.astype(values.dtype) != values].flat[0]}")
    if dtype.kind == "f" and (np.isfinite(values) & ~np.isfinite(result)).any():
        raise Refused(f"expected values of type {dtype.name} for '{name}', found one that is "
                      "beyond it")
    return result
