"""show_safetensors.py FILE: checks what the format asks of a file's layout, with
nothing of ours, and prints a line `name type shape values` for each tensor."""
import json
import struct
import sys

data = open(sys.argv[1], "rb").read()
(length,) = struct.unpack("<Q", data[:8])
assert length % 8 == 0, "the header's length is no multiple of 8"
header = json.loads(data[8:8 + length])
assert header.pop("__metadata__") == {"format": "pt"}
payload, end = data[8 + length:], 0
for name, tensor in sorted(header.items(), key=lambda item: item[1]["data_offsets"]):
    begin, after = tensor["data_offsets"]
    assert begin == end, f"{name} starts at {begin}, not at {end}"
    end = after
    code = {"F32": "f", "F64": "d", "I64": "q", "F16": "e", "BF16": "H"}[tensor["dtype"]]
    count = (after - begin) // struct.calcsize(code)
    values = struct.unpack(f"<{count}{code}", payload[begin:after])
    if tensor["dtype"] == "BF16":  # the upper half of a float32
        values = [struct.unpack("<f", struct.pack("<I", value << 16))[0] for value in values]
    print(name, tensor["dtype"], tensor["shape"], *(f"{v:g}" for v in values))
assert end == len(payload), f"{len(payload)} bytes of elements, not {end}"
