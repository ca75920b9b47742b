#!/usr/bin/env python3
"""Writes train.mlir, which adds up many powers of a value from the first, and local.mlir,
which adds them up from the last: write_many_terms.py COUNT FOLDER."""
import pathlib
import sys

count, folder = int(sys.argv[1]), pathlib.Path(sys.argv[2])
powers = ["%power0 = nn.tanh %x : tensor<4xf32>"]
powers += [f"%power{i} = nn.mul %power{i - 1}, %power0 : tensor<4xf32>" for i in range(1, count)]


def add(order):
    sums = [f"%sum1 = nn.add %power{order[0]}, %power{order[1]} : tensor<4xf32>"]
    sums += [f"%sum{i} = nn.add %sum{i - 1}, %power{order[i]} : tensor<4xf32>" for i in range(2, count)]
    return sums


SCHEDULE = """  dist.schedule @sc entry @main micro_batches 1 {
    dist.stage 0 {
      dist.run @main[0]
    }
  }
"""


def write(name, phase, mesh, layout, task, schedule, order):
    body = "\n".join(f"    {line}" for line in powers + add(order))
    (folder / name).write_text(f"""module attributes {{accel.phase = "{phase}"}} {{
{mesh}  func.func @main(%x: tensor<4xf32> {{{layout}nn.input = "x"}}) -> (tensor<4xf32> {{{layout}nn.output = "s"}})
      attributes {{{task}nn.entry}} {{
{body}
    return %sum{count - 1} : tensor<4xf32>
  }}
{schedule}}}
""")


write("train.mlir", "train", "", "", "", "", list(range(count)))
write("local.mlir", "local", '  dist.mesh @mesh ["dp" = 2]\n', "dist.layout = #dist.layout<@mesh [4]>, ",
      "dist.task = #dist.task<forward stage 0>, ", SCHEDULE, list(reversed(range(count))))
