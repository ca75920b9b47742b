"""fill_npy.py FROM TO SCALE: a float32 file with the header of FROM, whose element k is
k * SCALE."""
import struct
import sys

data = open(sys.argv[1], "rb").read()
start = 10 + struct.unpack("<H", data[8:10])[0]
count = (len(data) - start) // 4
with open(sys.argv[2], "wb") as out:
    out.write(data[:start] + struct.pack(f"<{count}f", *(k * float(sys.argv[3]) for k in range(count))))
