"""Prints a module of phase nn: a product of 256 x 256 matrices, the right one a
state whose value is in the text. With the argument `loss`, the product's sum.
With the arguments `input FILE`, writes a left one to FILE (.npy) instead."""

import struct
import sys

SIZE = 256
if "input" in sys.argv[1:]:
    import pathlib

    import tensorfiles
    numbers = [(i * 53 % 211 - 105) / 64.1 for i in range(SIZE * SIZE)]
    tensorfiles.write_npy(pathlib.Path(sys.argv[2]), ((SIZE, SIZE), "float32", numbers))
    sys.exit()
value = b"".join(struct.pack("<f", (i * 37 % 101 - 50) / 50) for i in range(SIZE * SIZE))
tensor = f"tensor<{SIZE}x{SIZE}xf32>"
result, kind = "%0", tensor
total = ""
if "loss" in sys.argv[1:]:
    result, kind = "%1", "tensor<f32>"
    total = f"    %1 = nn.reduce sum %0 dims [0, 1] : ({tensor}) -> {kind}\n"
print(f'''module attributes {{accel.phase = "nn"}} {{
  nn.state @w : {tensor} = dense<"0x{value.hex().upper()}">
  func.func @main(%x: {tensor} {{nn.input = "x"}}, %w: {tensor} {{nn.state = @w}})
      -> ({kind} {{nn.output = "y"}}) attributes {{nn.entry}} {{
    %0 = nn.matmul %x, %w : ({tensor}, {tensor}) -> {tensor}
{total}    return {result} : {kind}
  }}
}}''')
