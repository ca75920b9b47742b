"""Writes the seeds of the fuzz targets that no fixture of the tree serves.

    make_seeds.py FOLDER [ACCX...]

FOLDER/TARGET/ gets small files, one for each thing that a format can say. Of every
ACCX (accel-make-executable, acc-opt) the seed of `accx` is the header's JSON, a NUL,
and the sections.
"""
import json
import pathlib
import random
import struct
import sys

folder = pathlib.Path(sys.argv[1])


def put(target, name, data):
    path = folder / target / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)


# .npy: each version, both orders, no dimension, an empty one.
def npy(descr, shape, data, fortran=False, version=1):
    text = f"{{'descr': '{descr}', 'fortran_order': {fortran}, 'shape': {shape}, }}\n".encode()
    size = struct.pack("<H" if version == 1 else "<I", len(text))
    return b"\x93NUMPY" + bytes([version, 0]) + size + text + data


put("npy", "f4", npy("<f4", (2, 3), bytes(24)))
put("npy", "i8-fortran", npy("<i8", (2, 2), bytes(32), fortran=True, version=2))
put("npy", "b1-scalar", npy("|b1", (), b"\1", version=3))
put("npy", "u2-empty", npy("<u2", (0, 4), b""))
put("npy", "raw-bf16", npy("|V2", (3,), bytes(6)))


# TensorProto: raw and typed fields, packed and not.
def field(number, value):
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    return varint(number << 3 | 2) + varint(len(value)) + value


def varint(value):
    result = b""
    while value > 127:
        result += bytes([value & 127 | 128])
        value >>= 7
    return result + bytes([value])


def tensor(kind, dims, *data):
    return b"".join(field(1, dim) for dim in dims) + field(2, kind) + b"".join(data)


put("tensorproto", "raw", tensor(1, (2, 2), field(8, b"x"), field(9, bytes(16))))
put("tensorproto", "floats", tensor(1, (2,), field(4, struct.pack("<2f", 1, 2))))
put("tensorproto", "doubles", tensor(11, (1,), field(10, struct.pack("<d", 1))))
put("tensorproto", "ints", tensor(7, (3,), field(7, b"\1\2\3"), field(12, b"text")))
put("tensorproto", "int-apart", tensor(6, (2,), field(5, 3), field(5, 4)))
put("tensorproto", "halves", tensor(10, (2,), field(5, b"\1\2")))

# Tokens: type asked for, length of a sample, the file.
put("tokens", "raw", b"\0\2" + bytes(8))
put("tokens", "int64", b"\5\1" + bytes(16))
put("tokens", "npy", b"\0\3" + npy("<i4", (2, 3), bytes(24)))
put("tokens", "stream", b"\1\2" + npy("<u2", (5,), bytes(10)))


# Safetensors: the length of a header, the header, the elements.
def entry(kind, shape, begin, end):
    return {"dtype": kind, "shape": shape, "data_offsets": [begin, end]}


def safetensors(entries, size):
    text = json.dumps(entries).encode()
    return struct.pack("<Q", len(text)) + text + bytes(size)


put("safetensors", "folded", safetensors({"__metadata__": {"format": "pt"}, "bias": entry("F32", [3], 0, 12),
                                          "weight": entry("BF16", [2, 2], 12, 20)}, 20))
put("safetensors", "empty", safetensors({"weight": entry("I64", [0, 3], 0, 0), "bias": entry("F32", [3], 0, 12)}, 12))
put("safetensors", "scalar", safetensors({"a": entry("BOOL", [], 0, 1)}, 1))

# Checkpoints of the training program of TinyTraining.h.
STATES = {"net/w": ("model", "parameter", "F32", [2, 2], 16), "rows": ("model", "parameter", "F32", [2], 8),
          "mask": ("model", "buffer", "F32", [3], 12), "exp_avg/net/w": ("optimizer", "moment", "F32", [2, 2], 16),
          "counter/call": ("optimizer", "counter", "I64", [], 8)}


def checkpoint(version, data):
    headers, ends, states = {"model": {}, "optimizer": {}}, {"model": 0, "optimizer": 0}, {}
    for name, (file, role, kind, shape, size) in STATES.items():
        headers[file][name] = entry(kind, shape, ends[file], ends[file] + size)
        ends[file] += size
        states[name] = {"file": file + ".safetensors", "role": role, "hash": "0" * 16}
    text = json.dumps({"format": "accel-checkpoint", "version": version, "step": 3, "seed": 7, **data,
                       "mesh": {"dp": 2}, "micro_batches": 1,
                       "files": {file + ".safetensors": "0" * 16 for file in headers}, "states": states})
    text = text[:-1] + ',\n "hash": "' + "0" * 16 + '"}\n'
    return "\x1e".join([text, *(json.dumps(header) for header in headers.values())]).encode()


cursor = {"samples": 9, "length": 4, "batch": 2, "seed": 7}
put("manifest", "now", checkpoint(2, {}))
put("manifest", "data", checkpoint(2, {"data": {**cursor, "file": "t.bin", "hash": "1" * 16, "read": 6}}))
put("manifest", "version-1", checkpoint(1, {"data": cursor}))

# Models of the importer's operators: every byte is a decision (RandomModel.cpp).
draw = random.Random(13)
for number in range(48):
    put("import", f"{number:02}", bytes(draw.randrange(256) for _ in range(96)))

for path in map(pathlib.Path, sys.argv[2:]):
    data = path.read_bytes()
    length = struct.unpack_from("<Q", data)[0]
    header = json.loads(data[8:8 + length])
    payload = data[(length + 16 + 4095) // 4096 * 4096:]
    # Kernels are not run: a few bytes stand for them.
    if kernels := header.get("section:code:cpu.so"):
        begin = kernels["data_offsets"][0]
        kernels.update(data_offsets=[begin, begin + 8], shape=[8])
        payload = payload[:begin + 8]
    put("accx", path.parent.name, json.dumps(header, separators=(",", ":")).encode() + b"\0" + payload)
