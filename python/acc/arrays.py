"""Arrays of the caller's beside those of the run: what they are called, whether they fit, and
copying where they are not the same memory. PyTorch's tensors are taken as what they share
memory with; nothing here imports PyTorch."""
import numpy as np

from .errors import BatchError

# By AccelType. NumPy has no bfloat16 and nothing narrower than a byte: their bits come as whole numbers.
NAMES = ("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
         "float16", "bfloat16", "float32", "float64", "float8_e4m3fn", "float8_e5m2",
         "float8_e8m0fnu", "float4_e2m1fn", "float8_e4m3fnuz", "float8_e5m2fnuz", "float6_e2m3fn",
         "float6_e3m2fn", "int4", "int2", "uint4", "uint2")
BITS = {"bfloat16": "uint16", "int4": "int8", "int2": "int8", "uint4": "uint8", "uint2": "uint8",
        **{name: "uint8" for name in NAMES if name.startswith(("float8_", "float6_", "float4_"))}}


class Slot:
    """A tensor of a run: its name, its type, its calls, and the array that the ranks see."""

    def __init__(self, name, dtype, calls, array, is_row_mask=False):
        self.name, self.dtype, self.calls, self.array = name, dtype, calls, array
        self.is_row_mask = is_row_mask

    def __str__(self):
        return f"{self.dtype} {list(self.array.shape)}"


def view(memory, offset, dtype, shape):
    """The array of a type, as in NAMES, at `offset` of mapped memory, which it keeps."""
    count = int(np.prod(shape, dtype=np.int64))
    return np.frombuffer(memory, BITS.get(dtype, dtype), count, offset).reshape(shape)


class Bits:
    """An array of a type that NumPy may not have: its name in NAMES, and the bits."""

    def __init__(self, dtype, array):
        self.dtype, self.array = dtype, array


def as_array(value):
    """(the name of its type, an array) of an array, a tensor, or what NumPy makes one of;
    without a copy of a tensor that lies in the host's memory."""
    if isinstance(value, Bits):
        return value.dtype, value.array
    if hasattr(value, "detach") and hasattr(value, "data_ptr"):
        tensor, name = value.detach().cpu(), str(value.dtype).removeprefix("torch.")
        if name in BITS:
            tensor = tensor.contiguous().view(getattr(__import__("torch"), BITS[name]))
        return name, tensor.resolve_conj().resolve_neg().numpy()
    array = np.asarray(value)
    name = array.dtype.name
    return name, array.view(BITS[name]) if name in BITS else array


def fill_up(slots, batch):
    """The batch with a mask of its rows, where the program takes one and it has none; rows that
    it lacks are copies of its last one, and do not count. Which dimension rows lie along is told
    by the one that is smaller."""
    mask = next((slot for slot in slots if slot.is_row_mask), None)
    if mask is None or not hasattr(batch, "items") or mask.name in batch:
        return batch
    rows, wanted = mask.array.shape[0], {slot.name: slot for slot in slots}
    full, counting = {}, set()
    for name, value in batch.items():
        kind, array = as_array(value)
        shape = wanted[name].array.shape if name in wanted else array.shape
        smaller = [dim for dim, (found, size) in enumerate(zip(array.shape, shape)) if found != size]
        full[name] = value
        if (len(array.shape) == len(shape) and len(smaller) == 1 and shape[smaller[0]] == rows
                and 0 < array.shape[smaller[0]] < rows):
            counting.add(array.shape[smaller[0]])
            index = np.minimum(np.arange(rows), array.shape[smaller[0]] - 1)
            full[name] = Bits(kind, np.take(array, index, axis=smaller[0]))
    if len(counting) > 1:
        raise BatchError(f"expected inputs of as many rows, found {listed(sorted(map(str, counting)))}")
    full[mask.name] = np.arange(rows) < min(counting, default=rows)
    return full


def put(slots, given, what, way):
    """Copies arrays to the places of the slots of the same names, once all of them fit. What
    is in its place already is not copied. `what` they are, and the `way` out where one is
    missing, are for errors."""
    if not hasattr(given, "items"):
        raise BatchError(f"expected a dictionary of {what}s by their names, found "
                         f"{type(given).__name__}")
    known = {slot.name: slot for slot in slots}
    unknown = sorted(map(str, given.keys() - known.keys()))
    if unknown:
        raise BatchError(f"expected {what}s that the executable reads here ({listed(known)}), "
                         f"found '{unknown[0]}'")
    values = {name: as_array(value) for name, value in given.items()}
    for name, slot in known.items():
        if name not in values:
            raise BatchError(f"expected {what} '{name}' ({slot}), found none among "
                             f"{listed(values)}: {way}")
        found, array = values[name]
        if found != slot.dtype and array.dtype.name == slot.array.dtype.name and (
                slot.dtype in BITS and found not in BITS):
            found = slot.dtype  # its bits
        if (found, array.shape) != (slot.dtype, slot.array.shape):
            raise BatchError(f"expected {slot} for {what} '{name}', found {found} "
                             f"{list(array.shape)}{advice(slot, found, array)}")
    for name, (_, array) in values.items():
        target = known[name].array
        if (array.ctypes.data, array.strides) != (target.ctypes.data, target.strides):
            np.copyto(target, array, casting="no" if array.dtype.isnative else "equiv")


def advice(slot, found, array):
    if array.shape == slot.array.shape:
        return "" if slot.dtype in BITS else f": convert it, as with astype('{slot.dtype}')"
    same = len(array.shape) == len(slot.array.shape)
    if same and array.shape[0] < slot.array.shape[0] and array.shape[1:] == slot.array.shape[1:]:
        return (": a step takes whole batches; leave the last one out where it is smaller "
                "(drop_last of a DataLoader)")
    return ""


def listed(names):
    return ", ".join(f"'{name}'" for name in names) or "none"
