"""The folder that is written: .npy files that grow by rows, under a name of their own until
all of them and data.json are whole, then under the user's in one rename."""
import contextlib
import json
import os
import pathlib
import shutil

import numpy as np

from acc_export import Refused

#: Bytes of a .npy file before its elements: room for any number of rows.
_HEADER = 128
_KEPT = "data.json"


class Array:
    """A .npy file of which each row has the same shape and type."""

    def __init__(self, path, row_shape, dtype):
        self.path, self.row_shape, self.dtype, self.rows = path, tuple(row_shape), dtype, 0
        self.file = open(path, "wb")
        self.file.write(b"\0" * _HEADER)

    def append(self, rows):
        """`rows`: [n, *row_shape]."""
        if rows.dtype != self.dtype:
            kept = rows.astype(self.dtype)
            if not np.array_equal(kept.astype(rows.dtype), rows):
                raise Refused(f"expected numbers of type {self.dtype.name} in "
                              f"'{self.path.stem}', as in the rows before, found "
                              f"{rows[kept != rows].flat[0]}: say --input "
                              f"{self.path.stem}:float32=COLUMN, or mend the column")
            rows = kept
        rows = np.ascontiguousarray(rows)
        if rows.shape[1:] != self.row_shape:
            raise Refused(f"expected rows of shape {list(self.row_shape)} for '{self.path.stem}', "
                          f"found {list(rows.shape[1:])}: all rows of an array have one shape")
        self.file.write(rows.data if rows.size else b"")
        self.rows += len(rows)

    def close(self):
        shape = (self.rows, *self.row_shape)
        text = repr({"descr": np.lib.format.dtype_to_descr(self.dtype), "fortran_order": False,
                     "shape": shape})
        header = text.ljust(_HEADER - 11).encode() + b"\n"
        self.file.seek(0)
        self.file.write(b"\x93NUMPY\x01\x00" + (_HEADER - 10).to_bytes(2, "little") + header)
        self.file.flush()
        os.fsync(self.file.fileno())
        self.file.close()


def _is_running(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True


class Output:
    """Use as a context: what is not finished at its end is removed."""

    def __init__(self, folder, overwrite):
        self.folder = pathlib.Path(os.path.abspath(folder))
        self.splits = {}
        if self.folder.exists():
            if not self.folder.is_dir():
                raise Refused(f"expected a folder to write, found the file '{folder}'")
            if any(self.folder.iterdir()):
                if not (self.folder / _KEPT).exists():
                    raise Refused(f"the folder '{folder}' is not empty, and not of acc-data: name "
                                  "another with -o")
                if not overwrite:
                    raise Refused(f"the folder '{folder}' has data already: say --overwrite, or "
                                  "name another with -o")
        self.folder.parent.mkdir(parents=True, exist_ok=True)
        prefix = f".{self.folder.name}.part-"
        for left in self.folder.parent.glob(prefix + "*"):
            # What a run that was killed has left.
            pid = left.name[len(prefix):]
            if pid.isdigit() and not _is_running(int(pid)):
                shutil.rmtree(left, ignore_errors=True)
        self.part = self.folder.parent / f"{prefix}{os.getpid()}"

    def __enter__(self):
        self.part.mkdir()
        return self

    def __exit__(self, *_):
        for arrays in self.splits.values():
            for array in arrays.values():
                # On a full disk that fails as the write before did.
                with contextlib.suppress(OSError):
                    array.file.close()
        shutil.rmtree(self.part, ignore_errors=True)

    def append(self, split, arrays):
        """`arrays`: name -> [n, ...], the same n; `split` is '' or a folder's name."""
        known = self.splits.setdefault(split, {})
        for name, rows in arrays.items():
            if name not in known:
                (self.part / split).mkdir(exist_ok=True)
                file = name.replace("/", "%2F")
                known[name] = Array(self.part / split / f"{file}.npy", rows.shape[1:], rows.dtype)
            known[name].append(rows)

    def rows(self, split):
        return max((array.rows for array in self.splits.get(split, {}).values()), default=0)

    def finish(self, description):
        """Gives the folder its name; `description` becomes data.json, with the arrays."""
        for arrays in self.splits.values():
            for array in arrays.values():
                array.close()
        description["arrays"] = {
            split or "all": {name: {"shape": [array.rows, *array.row_shape],
                                    "dtype": array.dtype.name,
                                    "file": str(self._final(array.path))}
                             for name, array in arrays.items()}
            for split, arrays in self.splits.items()}
        with open(self.part / _KEPT, "w", encoding="utf-8") as file:
            json.dump(description, file, indent=1, ensure_ascii=False)
            file.write("\n")
            file.flush()
            os.fsync(file.fileno())
        old = None
        if self.folder.exists() and any(self.folder.iterdir()):
            old = self.part.with_name(self.part.name + "-old")
            os.rename(self.folder, old)
        os.rename(self.part, self.folder)
        if old:
            shutil.rmtree(old, ignore_errors=True)

    def _final(self, path):
        return path.relative_to(self.part)


def read_description(folder):
    """The data.json of an earlier conversion."""
    try:
        return json.loads((pathlib.Path(folder) / _KEPT).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise Refused(f"expected the folder of an earlier acc-data, found no {_KEPT} that can be "
                      f"read in '{folder}': {error}") from error
