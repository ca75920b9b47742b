"""Writes long.mlir, whose input and output have names of 300 bytes, same.mlir, whose inputs and
outputs would have one file each, and their inputs: in/ as .npy where there can be one, pb/."""

import pathlib
import struct
import sys

work = pathlib.Path(sys.argv[1])
TYPE = "tensor<2xf32>"


def write(name, inputs, outputs):
    places = [f'%{i}: {TYPE} {{nn.input = "{one}"}}' for i, one in enumerate(inputs)]
    results = [f'{TYPE} {{nn.output = "{one}"}}' for one in outputs]
    body = [f"    %y{i} = nn.neg %{i} : {TYPE}" for i in range(len(inputs))]
    made = ", ".join(f"%y{i}" for i in range(len(inputs)))
    lines = ['module attributes {accel.phase = "nn"} {',
             f"  func.func @main({', '.join(places)}) -> ({', '.join(results)})",
             "      attributes {nn.entry} {", *body,
             f"    return {made} : {', '.join([TYPE] * len(inputs))}", "  }", "}", ""]
    (work / name).write_text("\n".join(lines))


write("long.mlir", ["x" * 300], ["y" * 300])
write("same.mlir", ["a/b", "a%2Fb"], ["c/d", "c%2Fd"])
values = struct.pack("<2f", 1, 2)
header = "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }".ljust(117) + "\n"
(work / "in" / "a%2Fb.npy").write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) +
                                        header.encode() + values)
for number in range(2):  # a TensorProto: dims, data_type, raw_data
    (work / "pb" / f"input_{number}.pb").write_bytes(b"\x08\x02\x10\x01\x4a\x08" + values)
