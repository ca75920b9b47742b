"""make_padded.py MODEL FOLDER: the model with inputs of four sequences of eight words, of which
three begin or end with padding: rows that see no word but padding, whose labels count all the
same, are what a mask of the most negative number makes of them."""
import pathlib
import shutil
import struct
import sys

ROWS, WORDS = 4, 8


def write(path, numbers):
    header = f"{{'descr': '<i8', 'fortran_order': False, 'shape': ({ROWS}, {WORDS}), }}"
    header += " " * (63 - (len(header) + 10) % 64) + "\n"
    path.write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode()
                     + struct.pack(f"<{ROWS * WORDS}q", *numbers))


model, folder = map(pathlib.Path, sys.argv[1:])
shutil.rmtree(folder, ignore_errors=True)
(folder / "inputs").mkdir(parents=True)
shutil.copyfile(model / "model.onnx", folder / "model.onnx")
places = [(row, word) for row in range(ROWS) for word in range(WORDS)]
seen = [range(5, 8), range(3, 8), range(0, 6), range(0, 8)]
write(folder / "inputs/input_ids.npy", [(row * 31 + word * 17) % 59 + 1 for row, word in places])
write(folder / "inputs/attention_mask.npy", [int(word in seen[row]) for row, word in places])
write(folder / "inputs/labels.npy", [(row * 13 + word * 29) % 59 + 1 for row, word in places])
