"""What the kernels' files share: pieces of MLIR text, the table of kernels, and the way from
`gpu` dialect to a cubin (mlir-opt-22 and ptxas on the PATH; no GPU). Arguments are flat arrays,
`%a0` and on, with one element type and one static size each."""

import json
import os
import re
import subprocess

KERNELS = {}


def kernel(name, args, body, grid, block, attrib="", bytes=0, options=""):
    """Adds a kernel: `args` as (type, size), `body` the text between `gpu.func`'s braces, `bytes`
    what it must move, `options` further ones of nvvm-attach-target."""
    KERNELS[name] = dict(
        args=args, body=body, grid=grid, block=block, attrib=attrib, bytes=bytes, options=options
    )


# Which block this is, and which thread of it.
THREAD = """
  %b = gpu.block_id x
  %t = gpu.thread_id x"""


# The index of this thread among all, times `per`.
def flat(block, per):
    return f"""{THREAD}
  %cB = arith.constant {block} : index
  %cP = arith.constant {per} : index
  %b0 = arith.muli %b, %cB : index
  %g = arith.addi %b0, %t : index
  %i = arith.muli %g, %cP : index"""


def splat(name, value, n=8, t="f32"):
    return f"  %{name} = arith.constant dense<{value}> : vector<{n}x{t}>\n"


def load(name, mem, idx, n, t, size, a):
    return f"  %{name} = vector.load {mem}[{idx}] {{alignment = {a} : i64}} : memref<{size}x{t}>, vector<{n}x{t}>\n"


def store(val, mem, idx, n, t, size, a):
    return f"  vector.store {val}, {mem}[{idx}] {{alignment = {a} : i64}} : memref<{size}x{t}>, vector<{n}x{t}>\n"


V8 = "vector<8xf32>"
ROWS, COLS = 8192, 3072
N = ROWS * COLS

PIPE = (
    "builtin.module(gpu.module(convert-vector-to-scf,expand-strided-metadata,lower-affine,convert-scf-to-cf,math-extend-to-supported-types{target-type=f32},"
    "canonicalize,cse,convert-gpu-to-nvvm{use-bare-ptr-memref-call-conv=1 has-redux=1},canonicalize,cse,reconcile-unrealized-casts),"
    "nvvm-attach-target{chip=sm_90a features=+ptx80 O=3 %s},gpu-module-to-binary{format=isa})"
)


def assemble(out, only=()):
    """Writes each kernel's MLIR, PTX and cubin and a table, kernels.json, into folder `out`."""
    os.makedirs(out, exist_ok=True)
    table = {}
    for name, k in KERNELS.items():
        if only and not any(word in name for word in only):
            continue
        args = ", ".join(f"%a{i}: memref<{n}x{t}>" for i, (t, n) in enumerate(k["args"]))
        mlir = f"gpu.module @m {{\n gpu.func @{name}({args}) {k['attrib']}kernel attributes {{known_block_size = array<i32: {k['block']}, 1, 1>}} {{{k['body']}  gpu.return\n }}\n}}\n"
        open(f"{out}/{name}.mlir", "w").write(mlir)
        r = subprocess.run(
            ["mlir-opt-22", f"{out}/{name}.mlir", "--pass-pipeline=" + PIPE % k["options"]],
            capture_output=True,
            text=True,
            env=dict(os.environ, CUDA_ROOT="/usr/local/cuda"),
        )
        if r.returncode:
            print(name, r.stderr[:1500])
            continue
        m = re.search(r'assembly = "(.*?)(?<!\\)"', r.stdout, re.S)
        ptx = (
            re.sub(r"\\([0-9A-F]{2})", lambda h: chr(int(h.group(1), 16)), m.group(1))
            .replace("\\\\", "\\")
            .rstrip("\0")
        )
        open(f"{out}/{name}.ptx", "w").write(ptx)
        r = subprocess.run(
            [
                "ptxas",
                "-v",
                "-arch=sm_90a",
                "-O3",
                f"{out}/{name}.ptx",
                "-o",
                f"{out}/{name}.cubin",
            ],
            capture_output=True,
            text=True,
        )
        if r.returncode:
            print(name, r.stderr[:1500])
            continue
        e = r.stderr
        grab = lambda p: int((re.search(p, e) or [0, 0])[1])
        table[name] = dict(
            grid=k["grid"] if isinstance(k["grid"], tuple) else (k["grid"], 1),
            block=k["block"],
            args=k["args"],
            bytes=k["bytes"],
            regs=grab(r"Used (\d+) registers"),
            spill=grab(r"(\d+) bytes spill stores"),
            stack=grab(r"(\d+) bytes stack"),
            smem=grab(r"(\d+) bytes smem"),
            f64=len(re.findall(r"\.f64", ptx)),
            v4=len(re.findall(r"\.v4\.|\.v2\.b64|\.b128", ptx)),
            fma=len(re.findall(r"fma\.rn", ptx)),
        )
        print(
            name,
            {x: table[name][x] for x in ("regs", "spill", "stack", "smem", "f64", "v4", "fma")},
        )
    json.dump(table, open(f"{out}/kernels.json", "w"))
