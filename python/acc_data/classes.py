"""Labels: numbers stay numbers, names become the place of the name among all of them."""
import numbers

import numpy as np

from acc_export import Refused

from .output import read_description
from .rows import missing

_MOST = 100_000  # names, before a column of text is taken for no label


class Classes:
    """Of one column. Where it holds text the data are read once for the names, in the order of
    the letters, unless --classes or --like say them."""

    def __init__(self, options, source, column, report):
        self.options, self.report, self.column = options, report, column
        self.names = None
        if options.classes:
            self.names = options.classes.split(",")
        elif options.like:
            self.names = read_description(options.like).get("classes", {}).get(column)
        if self.names is None:
            self.names = self._find(source)
        self.index = None if self.names is None else {n: i for i, n in enumerate(self.names)}

    def _find(self, source):
        found = set()
        for block in source.blocks({self.column.split(".")[0]}):
            values = block.column(self.column)
            if isinstance(values, np.ndarray):
                break  # numbers
            found.update(value for value in values if isinstance(value, str) and value != "")
            if len(found) > _MOST:
                raise Refused(f"expected names of classes in column '{self.column}', found "
                              f"more than {_MOST:,} texts")
        if not found or all(_is_number(name) for name in found):
            return source.class_names(self.column)
        return sorted(found)

    def has(self, value, block, i):
        """Whether row `i` of the block has a label; counts those that have none."""
        if value is None or value == "" or isinstance(value, float) and value != value:
            missing(self.options, self.report, block.place(i), f"a value in '{self.column}'")
            return False
        return True

    def number(self, value, place):
        if isinstance(value, str):
            if self.index is not None and value in self.index:
                return self.index[value]
            if self.index is None and _is_number(value):
                return float(value) if not value.strip().lstrip("+-").isdigit() else int(value)
            raise Refused(f"{place}: expected one of the classes {_few(self.names)} in "
                          f"'{self.column}', found '{value}'")
        if not isinstance(value, numbers.Real):
            raise Refused(f"{place}: expected a class in '{self.column}', found {str(value)[:60]}")
        if isinstance(value, numbers.Integral) and self.names is not None and not (
                -1 <= value < len(self.names)):
            raise Refused(f"{place}: expected a class below {len(self.names)} in '{self.column}', "
                          f"found {value}")
        return value

    def array(self, values, block, rows):
        """int64 of classes; float32 where one is no whole number. `rows`: their indices first,
        for messages."""
        made = [self.number(value, block.place(row[0])) for value, row in zip(values, rows)]
        if all(isinstance(value, numbers.Integral) for value in made):
            return np.array(made, np.int64)
        return np.array(made, np.float32)

    def description(self):
        return {"classes": {self.column: self.names}} if self.names else {}


def _is_number(text):
    try:
        float(text)
    except ValueError:
        return False
    return True


def _few(names):
    names = names or ["(numbers)"]
    return ", ".join(names[:5]) + (", …" if len(names) > 5 else "")
