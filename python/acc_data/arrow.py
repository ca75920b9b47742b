"""Arrow and Parquet files, by Arrow's own library: record batches as blocks of rows."""
import json

import numpy as np

from acc_export import Refused

from .sources import BLOCK, Block


def _pyarrow():
    try:
        import pyarrow
        import pyarrow.ipc
        import pyarrow.parquet
    except ImportError as error:
        raise Refused("Arrow and Parquet files need Arrow's library: pip install pyarrow"
                      ) from error
    return pyarrow


def _values(array, pyarrow):
    """Numbers as an array, lists of equally many numbers as one of more dimensions; else a
    list of Python's values. A missing number is NaN."""
    kind = array.type
    if isinstance(kind, pyarrow.ExtensionType):  # datasets' Array2D and the like
        return _values(array.storage, pyarrow)
    types = pyarrow.types
    if types.is_floating(kind) or types.is_integer(kind) or types.is_boolean(kind):
        if types.is_boolean(kind) and array.null_count:
            return array.to_pylist()
        return array.to_numpy(zero_copy_only=False)
    if (types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind)
            ) and not array.null_count:
        if types.is_fixed_size_list(kind):
            lengths = {kind.list_size}
        else:
            lengths = set(np.diff(array.offsets.to_numpy()).tolist())
        inner = array.flatten()
        if len(lengths) == 1 and not inner.null_count:
            flat = _values(inner, pyarrow)
            if isinstance(flat, np.ndarray):
                return flat.reshape(len(array), lengths.pop(), *flat.shape[1:])
    return array.to_pylist()


def _batches(path, columns, pyarrow):
    try:
        if path.suffix == ".parquet":
            file = pyarrow.parquet.ParquetFile(path, pre_buffer=False)
            wanted = [name for name in file.schema_arrow.names
                      if columns is None or name in columns]
            yield from file.iter_batches(BLOCK, columns=wanted, use_threads=False)
            return
        with pyarrow.memory_map(str(path)) as mapped:
            try:
                file = pyarrow.ipc.open_file(mapped)
                batches = (file.get_batch(i) for i in range(file.num_record_batches))
            except pyarrow.ArrowInvalid:
                mapped.seek(0)
                batches = pyarrow.ipc.open_stream(mapped)
            for batch in batches:
                for first in range(0, batch.num_rows, BLOCK):
                    yield batch.slice(first, BLOCK)
    except pyarrow.ArrowException as error:
        raise Refused(f"cannot read '{path}': {str(error).splitlines()[0]}") from error


def blocks(path, columns):
    pyarrow, first = _pyarrow(), 0
    for batch in _batches(path, columns, pyarrow):
        if batch.num_rows:
            yield Block({name: _values(batch.column(i), pyarrow)
                         for i, name in enumerate(batch.schema.names)},
                        batch.num_rows, str(path), first)
        first += batch.num_rows


def class_names(path, column):
    """Those of a ClassLabel of Hugging Face's `datasets`, which writes its features into the
    schema; else None."""
    pyarrow = _pyarrow()
    if path.suffix == ".parquet":
        schema = pyarrow.parquet.read_schema(path)
    else:
        with pyarrow.memory_map(str(path)) as mapped:
            try:
                schema = pyarrow.ipc.open_file(mapped).schema
            except pyarrow.ArrowInvalid:
                mapped.seek(0)
                schema = pyarrow.ipc.open_stream(mapped).schema
    text = (schema.metadata or {}).get(b"huggingface")
    feature = json.loads(text).get("info", {}).get("features", {}).get(column) if text else None
    return feature.get("names") if isinstance(feature, dict) else None
