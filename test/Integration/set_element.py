"""set_element.py FILE.npy INDEX VALUE: the file with one i64 element changed."""
import struct
import sys

data = bytearray(open(sys.argv[1], "rb").read())
start = 10 + struct.unpack("<H", data[8:10])[0] + 8 * int(sys.argv[2])
data[start:start + 8] = struct.pack("<q", int(sys.argv[3]))
sys.stdout.buffer.write(data)
