"""table: columns of numbers become inputs, several side by side, with missing values and
scales looked after; tensors and lists of numbers pass as they are."""
import numpy as np

from acc_export import Refused

from .classes import Classes
from .inputs import cast
from .output import read_description
from .rows import missing

_TYPES = ("float32", "float64", "int64", "int32", "bool")


class _Input:
    """One input and the columns that it is made of."""

    def __init__(self, text):
        head, equals, columns = text.partition("=")
        self.name, _, kind = head.partition(":")
        self.columns = [column.strip() for column in columns.split(",")]
        if not (equals and self.name and all(self.columns)):
            raise Refused("expected --input NAME=COLUMN,COLUMN or NAME:TYPE=COLUMN, found "
                          f"'{text}'")
        if kind and kind not in _TYPES:
            raise Refused(f"expected a type of {', '.join(_TYPES)} in '{text}', found '{kind}'")
        self.dtype = np.dtype(kind) if kind else None
        self.classes = None
        self.mean = self.std = None


def _inputs_of(options, names, inputs):
    """As --input says; else one for each input of the model, or for each column."""
    if options.input:
        made = [_Input(text) for text in options.input]
    else:
        made = [_Input(f"{name}={name}") for name in (inputs.spec or names)]
    if len({each.name for each in made}) < len(made):
        raise Refused("expected each --input once, found one twice")
    taken = {column for each in made for column in each.columns}
    for each in made:
        if "*" in each.columns:
            if each.columns != ["*"]:
                raise Refused(f"expected '*' alone for input '{each.name}', found more columns")
            each.columns = [name for name in names if name not in taken]
            if not each.columns:
                raise Refused(f"expected columns that are of no other input for '{each.name}=*', "
                              "found none")
    return made


def _is_text(values):
    """A column in which there are words, not only the figures of a CSV."""
    if isinstance(values, np.ndarray):
        return False
    for value in values:
        if isinstance(value, str) and value.strip():
            try:
                float(value)
            except ValueError:
                return True
    return False


def _text_columns(source, columns):
    """Those of `columns` in which there are words: a file that has types says so at once."""
    found, open_ = set(), set(columns)
    if open_:
        for block in source.blocks({column.split(".")[0] for column in columns}):
            values = {column: block.column(column) for column in open_}
            found |= {column for column in open_ if _is_text(values[column])}
            open_ = {column for column in open_ - found
                     if not isinstance(values[column], np.ndarray)}
            if not open_:
                break
    return found


def _is_missing(value):
    return value is None or isinstance(value, str) and not value.strip()


def _numbers(block, column):
    """[rows, ...] of a column, and which rows have no value."""
    values = block.column(column)
    if isinstance(values, np.ndarray):
        if values.dtype.kind != "f":
            return values, np.zeros(len(values), bool)
        return values, np.isnan(values).reshape(len(values), -1).any(1)
    absent = np.array([_is_missing(value) for value in values])
    like = next((value for value in values if not _is_missing(value)), 0.0)
    made = []
    for i, value in enumerate(values):
        try:
            if isinstance(value, (dict, bool)) and not isinstance(like, bool):
                raise ValueError
            made.append(np.asarray(like if absent[i] else value, None if not isinstance(
                value, str) else np.float64))
            if made[-1].dtype.kind not in "fiub" or made[-1].shape != made[0].shape:
                raise ValueError
        except (ValueError, TypeError):
            raise Refused(f"{block.place(i)}: expected a number in '{column}', or lists of equally "
                          f"many, found {str(value)[:60]}") from None
    if isinstance(like, str):
        made = [np.asarray(value, np.float64) for value in made]
    result = np.stack(made)
    if result.dtype.kind == "f":
        absent |= np.isnan(result).reshape(len(result), -1).any(1)
    return result, absent


def _assemble(each, block):
    """(the rows of an input, which of them miss a value)."""
    if each.classes:
        values = block.column(each.columns[0])
        absent = np.array([_is_missing(value) for value in values])
        return np.array([0 if gone else each.classes.number(value, block.place(i))
                         for i, (value, gone) in enumerate(zip(values, absent))]), absent
    parts, absent = zip(*(_numbers(block, column) for column in each.columns))
    if len(parts) > 1:
        if any(part.ndim > 1 for part in parts):
            raise Refused(f"expected columns of one number a row to stand side by side in input "
                          f"'{each.name}', found lists: name one column")
        parts = [np.stack(parts, 1)]
    return parts[0], np.logical_or.reduce(absent)


class _Moments:
    """Mean and variance of rows by Chan, Golub and LeVeque's update (1979)."""

    def __init__(self):
        self.count, self.mean, self.squares = 0, 0.0, 0.0

    def add(self, rows):
        if not len(rows):
            return
        rows = rows.astype(np.float64)
        mean, squares = rows.mean(0), ((rows - rows.mean(0)) ** 2).sum(0)
        total, delta = self.count + len(rows), mean - self.mean
        self.squares = self.squares + squares + delta ** 2 * self.count * len(rows) / total
        self.mean = self.mean + delta * len(rows) / total
        self.count = total

    def std(self):
        return np.sqrt(self.squares / max(1, self.count))


def _rows(block, made):
    """({input: rows}, which rows have all values)."""
    arrays, good = {}, np.ones(block.count, bool)
    for each in made:
        arrays[each.name], absent = _assemble(each, block)
        good &= ~absent
    return arrays, good


def _find_scales(made, chosen, source, split, report):
    """Of the rows that are trained on."""
    moments, seen = {each.name: _Moments() for each in chosen}, 0
    for block in source.blocks():
        arrays, good = _rows(block, made)
        training = dict(split.of(seen, block.count))[split.names[0]]
        keep = np.zeros(block.count, bool)
        keep[training] = True
        for name, each in moments.items():
            each.add(arrays[name][keep & good])
        seen += block.count
        report.progress(0, "looked at for their scale")
    for each in chosen:
        found = moments[each.name]
        each.mean, each.std = found.mean, np.asarray(found.std())
        constant = int((each.std == 0).sum())
        report.add("columns that have one value in all rows, only centred", constant)
        each.std = np.where(each.std == 0, 1.0, each.std)


def _typed(each, rows, inputs):
    if each.mean is not None:
        rows = (rows - each.mean) / each.std
    if each.dtype is None and inputs.asks(each.name):
        return rows  # the model says
    if each.dtype is None and rows.dtype.kind == "f" and rows.dtype != np.float32:
        return cast(each.name, rows, np.dtype(np.float32))
    return rows if each.dtype is None else cast(each.name, rows, each.dtype)


def convert(options, source, split, inputs, output, report):
    made = _inputs_of(options, source.names(), inputs)
    like = read_description(options.like) if options.like else None
    alone = [each for each in made if len(each.columns) == 1]
    known = set(like.get("classes", {})) if like else set()
    named = known | _text_columns(source, {each.columns[0] for each in alone} - known)
    if options.classes and len(named) != 1:
        raise Refused(f"--classes is for one column of words, found "
                      f"{', '.join(sorted(named)) or 'none'}")
    for each in alone:
        if each.columns[0] in named:
            each.classes = Classes(options, source, each.columns[0], report)
    chosen = [each for each in made if each.name in options.standardise]
    unknown = set(options.standardise) - {each.name for each in chosen}
    if unknown:
        raise Refused(f"expected names of inputs for --standardise, found {', '.join(unknown)} (of "
                      f"{', '.join(each.name for each in made)})")
    if like and like.get("scales"):
        for each in made:
            if each.name in like["scales"]:
                each.mean, each.std = (np.array(like["scales"][each.name][what])
                                       for what in ("mean", "std"))
    elif chosen:
        _find_scales(made, chosen, source, split, report)
    seen = 0
    for block in source.blocks():
        arrays, good = _rows(block, made)
        for i in np.flatnonzero(~good):
            missing(options, report, block.place(i), "a value in every column that is used")
        for name, indices in split.of(seen, block.count):
            chosen_rows = indices[good[indices]]
            if len(chosen_rows):
                typed = {each.name: _typed(each, arrays[each.name][chosen_rows], inputs)
                         for each in made}
                output.append(name, inputs.fit(typed, set(typed)))
        seen += block.count
        report.progress(block.count)
    classes = {}
    for each in made:
        if each.classes:
            classes.update(each.classes.description().get("classes", {}))
    scales = {each.name: {"mean": np.asarray(each.mean).tolist(),
                          "std": np.asarray(each.std).tolist()}
              for each in made if each.mean is not None}
    return {"inputs": {each.name: each.columns for each in made},
            **({"classes": classes} if classes else {}), **({"scales": scales} if scales else {})}
