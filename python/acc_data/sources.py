"""What data are read from: files of rows by their suffix, in blocks of some rows whose
columns have names. Every file can be read again from its start."""
import csv
import dataclasses
import gzip
import json
import pathlib
import zlib

import numpy as np

from acc_export import Refused

BLOCK = 1024  # rows
_ROWS = (".jsonl", ".ndjson", ".json", ".csv", ".tsv", ".txt")
_ARROW = (".parquet", ".arrow", ".feather")
_TENSORS = (".safetensors", ".npy")
SUFFIXES = (*_ROWS, *_ARROW, *_TENSORS)


@dataclasses.dataclass
class Block:
    """Some rows of a file."""
    columns: dict          # name -> list, or array whose first dimension is the rows
    count: int
    file: str
    first: int             # rows of the file before these
    lines: list = None     # of the rows, where the file has lines

    def place(self, index):
        """Of row `index`, for messages."""
        if self.lines:
            return f"{self.file}:{self.lines[index]}"
        return f"{self.file}, row {self.first + index + 1}"

    def column(self, name):
        """`a.b` is field b of column a, if no column is called so."""
        if name in self.columns:
            return self.columns[name]
        outer, _, inner = name.partition(".")
        values = self.columns.get(outer) if inner else None
        if values is None:
            raise Refused(f"expected a column '{name}' in '{self.file}', found "
                          f"{', '.join(self.columns) or 'none'}")
        for field in inner.split("."):
            if not all(value is None or isinstance(value, dict) and field in value
                       for value in values):
                raise Refused(f"expected a field '{field}' of '{name}' in every row of "
                              f"'{self.file}', found rows without it")
            values = [None if value is None else value[field] for value in values]
        return values


def _suffix(path):
    names = path.suffixes
    return names[-2] if len(names) > 1 and names[-1] == ".gz" else path.suffix


def _open_text(path):
    """As UTF-8, unpacked where it ends in .gz; a byte order mark is not text."""
    opener = gzip.open if path.suffix == ".gz" else open
    return opener(path, "rt", encoding="utf-8-sig", newline="")


def _of_rows(rows, file):
    """Blocks of (line, row) pairs; a name that a row lacks, but one before
    has, has None there."""
    taken, first, names = [], 0, {}

    def block():
        names.update(dict.fromkeys(name for _, row in taken for name in row))
        return Block({name: [row.get(name) for _, row in taken] for name in names}, len(taken),
                     file, first, [line for line, _ in taken])
    for pair in rows:
        taken.append(pair)
        if len(taken) == BLOCK:
            yield block()
            first += BLOCK
            taken = []
    if taken:
        yield block()


def _json_rows(path):
    with _open_text(path) as file:
        for line, text in enumerate(file, 1):
            if not text.strip():
                continue
            if line == 1 and text.lstrip().startswith("["):
                raise Refused(f"{path}:1: expected one JSON object a line, found an array: write "
                              f"its elements as lines, as with jq -c '.[]' {path}")
            try:
                row = json.loads(text)
            except ValueError as error:
                raise Refused(f"{path}:{line}: expected one JSON object a line, found what is no "
                              f"JSON: {error}") from error
            if not isinstance(row, dict):
                raise Refused(f"{path}:{line}: expected one JSON object a line, found "
                              f"{type(row).__name__}")
            yield line, row


def _csv_rows(path):
    with _open_text(path) as file:
        reader = csv.reader(file, delimiter="\t" if _suffix(path) == ".tsv" else ",", strict=True)
        names = None
        try:
            for cells in reader:
                if not cells:
                    continue
                if names is None:
                    names = [cell.strip() for cell in cells]
                    if len(set(names)) < len(names):
                        raise Refused(f"{path}:1: expected a name for each column, found one twice "
                                      f"in {', '.join(names)}")
                    continue
                if len(cells) != len(names):
                    raise Refused(f"{path}:{reader.line_num}: expected {len(names)} cells, as the "
                                  f"first line has, found {len(cells)}")
                yield reader.line_num, dict(zip(names, cells))
        except csv.Error as error:
            raise Refused(f"{path}:{reader.line_num}: expected CSV, found: {error}") from error


def _text_rows(path):
    with _open_text(path) as file:
        for line, text in enumerate(file, 1):
            if text.strip():
                yield line, {"text": text.rstrip("\r\n")}


_SAFETENSORS = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "I64": "<i8", "I32": "<i4", "I16": "<i2",
                "I8": "i1", "U64": "<u8", "U32": "<u4", "U16": "<u2", "U8": "u1", "BOOL": "?",
                "BF16": "<u2"}


def _safetensors(path):
    """(name, type, shape, where in the file it begins, is bfloat16) of each tensor."""
    with open(path, "rb") as file:
        size = int.from_bytes(file.read(8), "little")
        if size > path.stat().st_size - 8:
            raise Refused(f"expected a safetensors file, found a header of {size} bytes in "
                          f"'{path}'")
        header = json.loads(file.read(size))
    header.pop("__metadata__", None)
    for name, entry in header.items():
        if entry["dtype"] not in _SAFETENSORS:
            raise Refused(f"'{path}': tensor '{name}' is of type {entry['dtype']}: convert it to "
                          "float32 first")
        yield (name, np.dtype(_SAFETENSORS[entry["dtype"]]), tuple(entry["shape"]),
               8 + size + entry["data_offsets"][0], entry["dtype"] == "BF16")


def _npy(path):
    """The same of a .npy file."""
    array = np.load(path, mmap_mode="r")
    if not array.flags.c_contiguous or array.dtype.kind not in "fiub":
        raise Refused(f"expected numbers in the order of C in '{path}', found "
                      f"{array.dtype.name}{'' if array.flags.c_contiguous else ' in another'}: "
                      "save it again with numpy.ascontiguousarray")
    yield path.stem, array.dtype, array.shape, array.offset, False


def _tensor_blocks(path):
    tensors = list(_npy(path) if path.suffix == ".npy" else _safetensors(path))
    if not tensors or len({shape[:1] for _, _, shape, _, _ in tensors}) != 1 or (
            tensors[0][2] == ()):
        raise Refused(f"expected tensors of equally many rows in '{path}', found " + ", ".join(
            f"{name} {list(shape)}" for name, _, shape, _, _ in tensors))
    total = tensors[0][2][0]
    sizes = [int(np.prod(shape[1:])) for _, _, shape, _, _ in tensors]
    row = sum(size * tensor[1].itemsize for size, tensor in zip(sizes, tensors))
    step = max(1, min(BLOCK, (8 << 20) // max(1, row)))
    # Read, not mapped: what is mapped stays resident for as long as there is room.
    with open(path, "rb") as file:
        for first in range(0, total, step):
            count, columns = min(step, total - first), {}
            for (name, dtype, shape, begin, is_bfloat16), size in zip(tensors, sizes):
                file.seek(begin + first * size * dtype.itemsize)
                part = np.fromfile(file, dtype, count * size)
                if len(part) < count * size:
                    raise Refused(f"'{path}' is shorter than its header says: copy it again")
                part = part.reshape(count, *shape[1:])
                columns[name] = (part.astype(np.uint32) << 16).view(
                    np.float32) if is_bfloat16 else part
            yield Block(columns, count, str(path), first)


class Source:
    """The files that the user named, one after another."""

    def __init__(self, paths):
        self.files = [file for path in paths for file in _files_of(pathlib.Path(path))]

    def blocks(self, columns=None):
        """`columns`: all that are read, where only these need be (Parquet)."""
        for path in self.files:
            try:
                yield from self._blocks_of(path, columns)
            except UnicodeDecodeError as error:
                raise Refused(f"expected UTF-8 in '{path}', found other bytes: {error}; convert it "
                              "with iconv") from error
            except (ValueError, KeyError, TypeError, EOFError, gzip.BadGzipFile,
                    zlib.error) as error:
                raise Refused(f"expected what '{path}' ends in, found a file that is damaged or of "
                              f"another kind: {error}".splitlines()[0]) from error

    @staticmethod
    def _blocks_of(path, columns):
        suffix = _suffix(path)
        if suffix in _ARROW:
            from . import arrow
            return arrow.blocks(path, columns)
        if suffix in _TENSORS:
            return _tensor_blocks(path)
        read = (_csv_rows if suffix in (".csv", ".tsv") else
                _text_rows if suffix == ".txt" else _json_rows)
        return _of_rows(read(path), str(path))

    def names(self):
        """The columns of the first block."""
        first = next(self.blocks(), None)
        return [] if first is None else list(first.columns)

    def class_names(self, column):
        """What the file itself says that the numbers of a column mean, or None."""
        if self.files and _suffix(self.files[0]) in _ARROW:
            from . import arrow
            return arrow.class_names(self.files[0], column)
        return None


def _files_of(path):
    """The files of a file or folder."""
    if path.is_file():
        if _suffix(path) not in SUFFIXES or path.suffix == ".gz" and _suffix(path) not in _ROWS:
            raise Refused(f"expected a file that ends in {', '.join(SUFFIXES)}, found '{path}'")
        return [path]
    if not path.is_dir():
        raise Refused(f"cannot open '{path}': no such file or folder")
    if (path / "dataset_dict.json").exists():
        splits = json.loads((path / "dataset_dict.json").read_text())["splits"]
        raise Refused(f"'{path}' holds several data sets: name one, as {path / splits[0]} (of "
                      f"{', '.join(splits)})")
    if (path / "state.json").exists():
        state = json.loads((path / "state.json").read_text())
        if state.get("_indices_data_files"):
            raise Refused(f"'{path}' is a selection of rows: save it again after "
                          "dataset.flatten_indices()")
        return [path / entry["filename"] for entry in state["_data_files"]]
    found = sorted(file for file in path.iterdir()
                   if file.is_file() and _suffix(file) in SUFFIXES
                   and not file.name.startswith("."))
    if not found:
        raise Refused(f"expected files that end in {', '.join(SUFFIXES)} in '{path}', found none")
    kinds = {_suffix(file) for file in found}
    if len(kinds) > 1:
        raise Refused(f"expected files of one kind in '{path}', found {', '.join(sorted(kinds))}: "
                      "name the files")
    return found
