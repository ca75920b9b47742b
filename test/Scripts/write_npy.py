"""write_npy.py FILE DESCR SHAPE VALUE...: writes a small .npy file."""
import array
import sys

path, descr, shape, *values = sys.argv[1:]
shape = "(" + "".join(size + "," for size in shape.split(",")) + ")"
header = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}"
header += " " * (-(len(header) + 11) % 64) + "\n"
code, number = {"<f4": ("f", float), "<f8": ("d", float), "<i8": ("q", int)}[descr]
with open(path, "wb") as file:
    file.write(b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header.encode())
    file.write(array.array(code, map(number, values)).tobytes())
