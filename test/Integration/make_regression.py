"""make_regression.py FOLDER [nan]: inputs x (8 x 16 floats, the last one NaN if
asked) and labels (8, one of them ignored) for the MLP fixture.
make_regression.py FILE.safetensors is-first MODEL.onnx: whether every tensor of the
file still stands, byte for byte, in the model it was trained from."""
import json
import struct
import sys


def write(path, descr, shape, code, data):
    header = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}"
    header += " " * (63 - (len(header) + 10) % 64) + "\n"
    with open(path, "wb") as file:
        file.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode())
        file.write(struct.pack(f"<{len(data)}{code}", *data))


if "is-first" in sys.argv:
    saved, model = open(sys.argv[1], "rb").read(), open(sys.argv[3], "rb").read()
    start = 8 + struct.unpack("<Q", saved[:8])[0]
    for name, entry in json.loads(saved[8:start]).items():
        if name != "__metadata__":
            begin, end = entry["data_offsets"]
            if saved[start + begin:start + end] not in model:
                sys.exit(f"{name} has changed")
else:
    x = [((i * 37) % 11 - 5) / 5 for i in range(128)]
    if "nan" in sys.argv:
        x[-1] = float("nan")
    write(sys.argv[1] + "/x.npy", "<f4", (8, 16), "f", x)
    if "nan" not in sys.argv:
        write(sys.argv[1] + "/labels.npy", "<i8", (8,), "q", [1, 2, 3, 4, 5, 6, -100, 7])
