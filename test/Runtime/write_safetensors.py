"""write_safetensors.py FILE NAME=VALUE,VALUE…: a file of float32 vectors."""
import json
import struct
import sys

header, payload = {}, b""
for argument in sys.argv[2:]:
    name, text = argument.split("=")
    values = [float(value) for value in text.split(",")]
    begin = len(payload)
    payload += struct.pack(f"<{len(values)}f", *values)
    header[name] = {"dtype": "F32", "shape": [len(values)],
                    "data_offsets": [begin, len(payload)]}
text = json.dumps(header).encode()
with open(sys.argv[1], "wb") as file:
    file.write(struct.pack("<Q", len(text)) + text + payload)
