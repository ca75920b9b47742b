"""write_safetensors.py FILE NAME[:RANK]=VALUE,VALUE…: a file of float32 vectors,
or with RANK of tensors with so many dimensions, all but the last of them 1."""
import json
import struct
import sys

header, payload = {}, b""
for argument in sys.argv[2:]:
    name, text = argument.split("=")
    name, _, rank = name.partition(":")
    values = [float(value) for value in text.split(",")]
    begin = len(payload)
    payload += struct.pack(f"<{len(values)}f", *values)
    header[name] = {"dtype": "F32", "shape": [1] * (int(rank or 1) - 1) + [len(values)],
                    "data_offsets": [begin, len(payload)]}
text = json.dumps(header).encode()
with open(sys.argv[1], "wb") as file:
    file.write(struct.pack("<Q", len(text)) + text + payload)
