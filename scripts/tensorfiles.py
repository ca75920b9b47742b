"""Reads tensors (.npy, ONNX .pb) and an ONNX graph's inputs and outputs with
nothing but Python, and compares them. For scripts and tests, which must run where
neither NumPy nor the onnx package is installed."""
import array
import ast
import json
import math
import pathlib
import re
import struct
import urllib.parse


class Mismatch(Exception):
    """Tensors that cannot be compared, or files that are no tensors."""


def half_floats(data, code):
    """bf16 (a float32 cut in half) and fp16, which array does not know."""
    if code == "e":
        return [v for (v,) in struct.iter_unpack("<e", data)]
    words = array.array("H", data)
    return [struct.unpack("<f", struct.pack("<I", w << 16))[0] for w in words]


# Type name -> code of the array module (or of half_floats).
CODES = {"float32": "f", "float64": "d", "float16": "e", "bfloat16": "bf",
         "int8": "b", "uint8": "B", "bool": "B", "int16": "h", "uint16": "H",
         "int32": "i", "uint32": "I", "int64": "q", "uint64": "Q"}
NPY_TYPES = {"f4": "float32", "f8": "float64", "f2": "float16", "b1": "bool",
             "i1": "int8", "i2": "int16", "i4": "int32", "i8": "int64",
             "u1": "uint8", "u2": "uint16", "u4": "uint32", "u8": "uint64"}
SAFETENSORS_TYPES = {"F32": "float32", "F64": "float64", "F16": "float16", "BF16": "bfloat16",
                     "I8": "int8", "U8": "uint8", "BOOL": "bool", "I16": "int16", "U16": "uint16",
                     "I32": "int32", "U32": "uint32", "I64": "int64", "U64": "uint64"}
ONNX_TYPES = {1: "float32", 2: "uint8", 3: "int8", 4: "uint16", 5: "int16",
              6: "int32", 7: "int64", 9: "bool", 10: "float16", 11: "float64",
              12: "uint32", 13: "uint64", 16: "bfloat16"}


def values(data, kind):
    code = CODES[kind]
    if code in ("e", "bf"):
        return half_floats(data, code)
    return array.array(code, data)


def read_npy(path):
    """Returns (shape, type, values) of a .npy file."""
    data = path.read_bytes()
    if data[:6] != b"\x93NUMPY":
        raise Mismatch(f"'{path}' is not a .npy file")
    wide = data[6] > 1
    size = struct.unpack_from("<I" if wide else "<H", data, 8)[0]
    start = (12 if wide else 10) + size
    header = ast.literal_eval(data[12 if wide else 10:start].decode("latin1"))
    kind = NPY_TYPES.get(header["descr"].lstrip("<|="))
    if kind is None or header["fortran_order"]:
        raise Mismatch(f"'{path}' has type {header['descr']} or Fortran order, "
                       "which is not supported")
    return header["shape"], kind, values(data[start:], kind)


def write_npy(path, tensor):
    """Writes (shape, type, values); no halves."""
    shape, kind, numbers = tensor
    names = {kind: name for name, kind in NPY_TYPES.items()}
    header = str({"descr": "<" + names[kind], "fortran_order": False, "shape": tuple(shape)}) + "\n"
    path.write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() +
                     array.array(CODES[kind], numbers).tobytes())


def read_safetensors(path):
    """Returns {name: (shape, type, values)} of a .safetensors file."""
    data = pathlib.Path(path).read_bytes()
    size = struct.unpack_from("<Q", data)[0]
    header = json.loads(data[8:8 + size])
    header.pop("__metadata__", None)
    result = {}
    for name, entry in header.items():
        begin, end = entry["data_offsets"]
        kind = SAFETENSORS_TYPES[entry["dtype"]]
        result[name] = (tuple(entry["shape"]), kind, values(data[8 + size + begin:8 + size + end], kind))
    return result


def write_safetensors(path, tensors):
    """Writes {name: (shape, type, values)}; no halves."""
    names = {kind: name for name, kind in SAFETENSORS_TYPES.items()}
    header, data = {}, b""
    for name, (shape, kind, numbers) in tensors.items():
        piece = array.array(CODES[kind], numbers).tobytes()
        header[name] = {"dtype": names[kind], "shape": list(shape),
                        "data_offsets": [len(data), len(data) + len(piece)]}
        data += piece
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    pathlib.Path(path).write_bytes(struct.pack("<Q", len(text)) + text + data)


def fields(data):
    """Yields (number, value) of a protobuf message: an int or bytes."""
    at = 0

    def varint():
        nonlocal at
        result = shift = 0
        while True:
            byte = data[at]
            at += 1
            result |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return result

    while at < len(data):
        key = varint()
        if key & 7 == 0:
            yield key >> 3, varint()
        else:
            size = {1: 8, 5: 4}[key & 7] if key & 7 != 2 else varint()
            yield key >> 3, data[at:at + size]
            at += size


def packed_varints(entries, kind):
    result = []
    for entry in entries:
        if isinstance(entry, int):
            result.append(entry)
            continue
        result += [v for _, v in fields(b"".join(
            b"\x08" + piece for piece in re.findall(rb"[\x80-\xff]*[\x00-\x7f]", entry)))]
    if kind.startswith("int"):
        result = [v - (1 << 64) if v >> 63 else v for v in result]
    return result


def read_pb(path):
    """Returns (name, (shape, type, values)) of an ONNX TensorProto."""
    message = {}
    for number, value in fields(path.read_bytes()):
        message.setdefault(number, []).append(value)
    shape = tuple(packed_varints(message.get(1, []), "int64"))
    kind = ONNX_TYPES.get(message.get(2, [0])[0])
    name = message.get(8, [b""])[0].decode()
    if kind is None:
        raise Mismatch(f"'{path}' has ONNX type {message.get(2)}, which is not supported")
    if 9 in message:
        found = values(message[9][0], kind)
    elif kind == "float32":
        found = values(b"".join(message.get(4, [])), kind)
    elif kind == "float64":
        found = values(b"".join(message.get(10, [])), kind)
    else:
        found = packed_varints(message.get({"int64": 7, "uint64": 11, "uint32": 11}.get(kind, 5), []), kind)
        if kind in ("float16", "bfloat16"):
            found = values(struct.pack(f"<{len(found)}H", *found), kind)
    return name, (shape, kind, found)


def read(path, names=(), kind="output"):
    """Returns {name: (shape, type, values)} of a file or folder (its `kind`_K.pb
    are outputs or inputs)."""
    if not path.exists():
        raise Mismatch(f"'{path}' does not exist")
    if path.is_file():
        return {"": read_npy(path) if path.suffix == ".npy" else read_pb(path)[1]}
    result = {}
    for file in sorted(path.glob("*.npy")):
        result[urllib.parse.unquote(file.stem)] = read_npy(file)
    numbered = sorted(path.glob(f"{kind}_*.pb"), key=lambda f: int(f.stem.split("_")[1]))
    for index, file in enumerate(numbered):
        name, tensor = read_pb(file)
        if not name:
            name = names[index] if index < len(names) else file.stem
        result[name] = tensor
    if not result:
        raise Mismatch(f"'{path}' holds no .npy and no {kind}_*.pb")
    return result


def check_alike(found, expected):
    """Refuses tensors that differ in shape or kind of type."""
    (shape, kind, values), (want_shape, want_kind, want) = found, expected
    if tuple(shape) != tuple(want_shape):
        raise Mismatch(f"expected shape {list(want_shape)}, found {list(shape)}")
    if ("float" in kind) != ("float" in want_kind) or (
            "float" not in kind and kind != want_kind):
        raise Mismatch(f"expected type {want_kind}, found {kind}")
    if len(values) != len(want) or len(want) != math.prod(want_shape):
        raise Mismatch(f"expected {math.prod(want_shape)} values, found {len(values)}")


def difference(found, expected):
    """The largest |found - expected| / (1 + |expected|) of two tensors."""
    check_alike(found, expected)
    values, want = found[2], expected[2]
    largest = 0.0
    for a, b in zip(values, want):
        if a == b or (a != a and b != b):
            continue
        error = abs(a - b) / (1 + abs(b)) if math.isfinite(a) and math.isfinite(b) else math.inf
        largest = max(largest, error)
    return largest


def norm(tensor):
    """The Euclidean (L2) norm."""
    return math.sqrt(math.fsum(v * v for v in tensor[2]))


def distance(found, expected):
    """The L2 norm of found - expected; infinite where a value is not finite."""
    check_alike(found, expected)
    total = math.fsum((a - b) * (a - b) for a, b in zip(found[2], expected[2]))
    return math.sqrt(total) if math.isfinite(total) else math.inf


def folded_flags(model):
    """What holds constant what the references beside a model do, because its exporter
    folded it away: --allow-folded, and --frozen for what can be undone and trained (the
    record says which). Of our own it is the static export."""
    record = model.parent / "parameters.json"
    held = model.parent.name == "default_static"
    names = []
    if record.exists():
        said = json.loads(record.read_text())
        names = [name for key, values in said.items() if key.startswith("folded away")
                 for name in values]
    flags = [part for name in names for part in ("--frozen", name)]
    return [*flags, "--allow-folded"] if held or names else []


def graph_values(model):
    """Returns (inputs, outputs) of an ONNX model, each a list of (name, sizes);
    a symbolic size is its name. Initializers are no inputs."""

    def first(message, number, default=b""):
        return next((v for n, v in fields(message) if n == number), default)

    def value(message):
        shape = first(first(first(message, 2), 1), 2)
        sizes = []
        for number, size in fields(shape):
            known = dict(fields(size)) if number == 1 else {}
            sizes.append(known[2].decode() if 2 in known else known.get(1))
        return first(message, 1).decode(), sizes

    graph = first(pathlib.Path(model).read_bytes(), 7)
    parts = {5: [], 11: [], 12: []}
    for number, part in fields(graph):
        if number in parts:
            parts[number].append(part)
    initializers = {first(part, 8).decode() for part in parts[5]}
    inputs = [v for v in map(value, parts[11]) if v[0] not in initializers]
    return inputs, [value(part) for part in parts[12]]
