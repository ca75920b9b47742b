"""Kernels of one pass over flat arrays: copies, casts, GELUs, AdamW, Philox dropout, fp8, and a
transpose by tiles of shared memory."""

from emit import COLS, N, ROWS, V8, flat, kernel, load, splat, store

# ---- loop: copy, casts, gelu
kernel(
    "copy_f32",
    [("f32", N), ("f32", N)],
    flat(256, 4)
    + "\n"
    + load("x", "%a0", "%i", 4, "f32", N, 16)
    + store("%x", "%a1", "%i", 4, "f32", N, 16),
    N // 1024,
    256,
    bytes=8 * N,
)
kernel(
    "cast_bf16",
    [("f32", N), ("bf16", N)],
    flat(256, 8)
    + "\n"
    + load("x", "%a0", "%i", 8, "f32", N, 16)
    + f"  %y = arith.truncf %x : {V8} to vector<8xbf16>\n"
    + store("%y", "%a1", "%i", 8, "bf16", N, 16),
    N // 2048,
    256,
    bytes=6 * N,
)


def gelu_tanh(fm=""):
    return (
        splat("half", 0.5)
        + splat("one", 1.0)
        + splat("c0", 0.7978845608)
        + splat("c1", 0.044715)
        + f"""  %x2 = arith.mulf %x, %x : {V8}
  %x3 = arith.mulf %x2, %c1 : {V8}
  %x4 = arith.addf %x3, %one : {V8}
  %x5 = arith.mulf %x, %x4 : {V8}
  %u = arith.mulf %x5, %c0 : {V8}
  %th = math.tanh %u {fm}: {V8}
  %th1 = arith.addf %th, %one : {V8}
  %xh = arith.mulf %x, %half : {V8}
  %y = arith.mulf %xh, %th1 : {V8}
"""
    )


def gelu_erf():
    return (
        splat("half", 0.5)
        + splat("one", 1.0)
        + splat("c0", 0.70710678118)
        + f"""  %u = arith.mulf %x, %c0 : {V8}
  %th = math.erf %u : {V8}
  %th1 = arith.addf %th, %one : {V8}
  %xh = arith.mulf %x, %half : {V8}
  %y = arith.mulf %xh, %th1 : {V8}
"""
    )


# tanh(u) = 1 - 2 / (1 + exp(2u)), by ex2.approx and rcp
def gelu_exp():
    return (
        splat("one", 1.0)
        + splat("c0", -2 * 0.7978845608 * 1.4426950408889634)
        + splat("c1", 0.044715)
        + f"""  %x2 = arith.mulf %x, %x : {V8}
  %x3 = arith.mulf %x2, %c1 : {V8}
  %x4 = arith.addf %x3, %one : {V8}
  %x5 = arith.mulf %x, %x4 : {V8}
  %u = arith.mulf %x5, %c0 : {V8}
  %e = math.exp2 %u fastmath<afn> : {V8}
  %e1 = arith.addf %e, %one : {V8}
  %y = arith.divf %x, %e1 : {V8}
"""
    )


def bias_gelu(name, math):
    body = (
        flat(256, 8)
        + f"""
  %cC = arith.constant {COLS} : index
  %c = arith.remui %i, %cC : index
"""
        + load("xb", "%a0", "%i", 8, "bf16", N, 16)
        + load("bb", "%a1", "%c", 8, "bf16", COLS, 16)
        + f"""
  %x0 = arith.extf %xb : vector<8xbf16> to {V8}
  %bi = arith.extf %bb : vector<8xbf16> to {V8}
  %x = arith.addf %x0, %bi : {V8}
"""
        + math
        + f"  %yb = arith.truncf %y : {V8} to vector<8xbf16>\n"
        + store("%yb", "%a2", "%i", 8, "bf16", N, 16)
    )
    kernel(name, [("bf16", N), ("bf16", COLS), ("bf16", N)], body, N // 2048, 256, bytes=4 * N)


bias_gelu("gelu_tanh_bf16", gelu_tanh())
bias_gelu("gelu_tanh_afn_bf16", gelu_tanh("fastmath<afn> "))
bias_gelu("gelu_exp_bf16", gelu_exp())
bias_gelu(
    "gelu_exp_rcp_bf16",
    gelu_exp().replace(
        "  %y = arith.divf %x, %e1 :",
        f"  %r = arith.divf %one, %e1 fastmath<arcp,afn> : {V8}\n  %y = arith.mulf %x, %r :",
    ),
)
bias_gelu("gelu_erf_bf16", gelu_erf())

# ---- AdamW: parameters, moments, gradients in float32; a bf16 copy of the parameters; step scalars in memory
A = 1 << 26
ops = (
    flat(256, 4)
    + "\n"
    + "".join(load(n, f"%a{k}", "%i", 4, "f32", A, 16) for k, n in enumerate(["p", "gr", "m", "v"]))
)
for k, n in enumerate(["lr", "b1", "b2", "eps", "wd", "r1", "r2"]):
    ops += f"  %k{n} = arith.constant {k} : index\n  %s{n} = memref.load %a5[%k{n}] : memref<8xf32>\n  %v{n} = vector.broadcast %s{n} : f32 to vector<4xf32>\n"
F4 = "vector<4xf32>"
ops += (
    splat("one", 1.0, 4)
    + f"""
  %c1 = arith.subf %one, %vb1 : {F4}
  %c2 = arith.subf %one, %vb2 : {F4}
  %m0 = arith.mulf %m, %vb1 : {F4}
  %m1 = arith.mulf %gr, %c1 : {F4}
  %mn = arith.addf %m0, %m1 : {F4}
  %g2 = arith.mulf %gr, %gr : {F4}
  %v0 = arith.mulf %v, %vb2 : {F4}
  %v1 = arith.mulf %g2, %c2 : {F4}
  %vn = arith.addf %v0, %v1 : {F4}
  %mh = arith.mulf %mn, %vr1 : {F4}
  %vh = arith.mulf %vn, %vr2 : {F4}
  %sq = math.sqrt %vh : {F4}
  %dn = arith.addf %sq, %veps : {F4}
  %u = arith.divf %mh, %dn : {F4}
  %pw = arith.mulf %p, %vwd : {F4}
  %uw = arith.addf %u, %pw : {F4}
  %ul = arith.mulf %uw, %vlr : {F4}
  %pn = arith.subf %p, %ul : {F4}
  %pb = arith.truncf %pn : {F4} to vector<4xbf16>
"""
    + store("%pn", "%a0", "%i", 4, "f32", A, 16)
    + store("%mn", "%a2", "%i", 4, "f32", A, 16)
    + store("%vn", "%a3", "%i", 4, "f32", A, 16)
    + store("%pb", "%a4", "%i", 4, "bf16", A, 8)
)
kernel(
    "adamw",
    [("f32", A), ("f32", A), ("f32", A), ("f32", A), ("bf16", A), ("f32", 8)],
    ops,
    A // 1024,
    256,
    bytes=30 * A,
)

# ---- Philox 4x32-10 dropout of bf16, p = 0.1: one counter per 4 elements
ph = (
    flat(256, 8)
    + "\n"
    + load("xb", "%a0", "%i", 8, "bf16", N, 16)
    + f"""
  %x = arith.extf %xb : vector<8xbf16> to {V8}
  %z = arith.constant 0 : i32
  %ma = arith.constant {0xD2511F53 - (1 << 32)} : i32
  %mb = arith.constant {0xCD9E8D57 - (1 << 32)} : i32
  %g32 = arith.index_cast %g : index to i32
  %two = arith.constant 2 : i32
  %g2 = arith.muli %g32, %two : i32
"""
)
for half in range(2):
    ph += f"  %h{half} = arith.constant {half} : i32\n  %n{half} = arith.addi %g2, %h{half} : i32\n"
    c = [f"%n{half}", "%z", "%z", "%z"]
    for r in range(10):
        k0 = (0x12345678 + r * 0x9E3779B9) & 0xFFFFFFFF
        k1 = (0x9ABCDEF0 + r * 0xBB67AE85) & 0xFFFFFFFF
        s = f"{half}_{r}"
        ph += f"""  %l0_{s}, %u0_{s} = arith.mului_extended %ma, {c[0]} : i32
  %l1_{s}, %u1_{s} = arith.mului_extended %mb, {c[2]} : i32
  %k0_{s} = arith.constant {k0 if k0 < 1 << 31 else k0 - (1 << 32)} : i32
  %k1_{s} = arith.constant {k1 if k1 < 1 << 31 else k1 - (1 << 32)} : i32
  %x0_{s} = arith.xori %u1_{s}, {c[1]} : i32
  %y0_{s} = arith.xori %x0_{s}, %k0_{s} : i32
  %x2_{s} = arith.xori %u0_{s}, {c[3]} : i32
  %y2_{s} = arith.xori %x2_{s}, %k1_{s} : i32
"""
        c = [f"%y0_{s}", f"%l1_{s}", f"%y2_{s}", f"%l0_{s}"]
    ph += "".join(f"  %r{half * 4 + j} = arith.addi {v}, %z : i32\n" for j, v in enumerate(c))
ph += "  %rv = vector.from_elements " + ", ".join(f"%r{j}" for j in range(8)) + " : vector<8xi32>\n"
ph += (
    splat("thr", int(0.1 * 2**32), 8, "i32")
    + splat("sc", 1 / 0.9)
    + splat("zf", 0.0)
    + f"""
  %keep = arith.cmpi uge, %rv, %thr : vector<8xi32>
  %xs = arith.mulf %x, %sc : {V8}
  %y = arith.select %keep, %xs, %zf : vector<8xi1>, {V8}
  %yb = arith.truncf %y : {V8} to vector<8xbf16>
"""
    + store("%yb", "%a1", "%i", 8, "bf16", N, 16)
)
kernel("philox_dropout", [("bf16", N), ("bf16", N)], ph, N // 2048, 256, bytes=4 * N)

# ---- tile: transpose of a bf16 matrix [8192, 3072] through a 64x64 tile of shared memory, 256 threads
tr = f"""
  %bx = gpu.block_id x
  %by = gpu.block_id y
  %t = gpu.thread_id x
  %c8 = arith.constant 8 : index
  %c64 = arith.constant 64 : index
  %c32 = arith.constant 32 : index
  %c0 = arith.constant 0 : index
  %cC = arith.constant {COLS} : index
  %cR = arith.constant {ROWS} : index
  %tc = arith.remui %t, %c8 : index
  %trow = arith.divui %t, %c8 : index
  %cc = arith.muli %tc, %c8 : index
  %r0 = arith.muli %by, %c64 : index
  %q0 = arith.muli %bx, %c64 : index
"""
for h in range(2):
    tr += f"""  %hh{h} = arith.constant {32 * h} : index
  %rr{h} = arith.addi %trow, %hh{h} : index
  %gr{h} = arith.addi %r0, %rr{h} : index
  %gm{h} = arith.muli %gr{h}, %cC : index
  %ga{h} = arith.addi %gm{h}, %q0 : index
  %go{h} = arith.addi %ga{h}, %cc : index
""" + load(f"x{h}", "%a0", f"%go{h}", 8, "bf16", N, 16)
    for j in range(8):
        tr += f"""  %j{h}_{j} = arith.constant {j} : index
  %sc{h}_{j} = arith.addi %cc, %j{h}_{j} : index
  %e{h}_{j} = vector.extract %x{h}[{j}] : bf16 from vector<8xbf16>
  memref.store %e{h}_{j}, %tile[%sc{h}_{j}, %rr{h}] : memref<64x66xbf16, #gpu.address_space<workgroup>>
"""
tr += "  gpu.barrier\n"
for h in range(2):
    tr += f"""  %gt{h} = arith.addi %q0, %rr{h} : index
  %gu{h} = arith.muli %gt{h}, %cR : index
  %gv{h} = arith.addi %gu{h}, %r0 : index
  %gw{h} = arith.addi %gv{h}, %cc : index
"""
    for j in range(8):
        tr += f"  %f{h}_{j} = memref.load %tile[%rr{h}, %sc{h}_{j}] : memref<64x66xbf16, #gpu.address_space<workgroup>>\n"
    tr += (
        f"  %w{h} = vector.from_elements "
        + ", ".join(f"%f{h}_{j}" for j in range(8))
        + " : vector<8xbf16>\n"
        + store(f"%w{h}", "%a1", f"%gw{h}", 8, "bf16", N, 16)
    )
kernel(
    "transpose_bf16",
    [("bf16", N), ("bf16", N)],
    tr,
    (COLS // 64, ROWS // 64),
    256,
    attrib="workgroup(%tile : memref<64x66xbf16, #gpu.address_space<workgroup>>) ",
    bytes=4 * N,
)

# ---- fp8 conversions: float32 -> e4m3 and e5m2 (saturating), 16 a thread
for f, ty in (("e4m3", "f8E4M3FN"), ("e5m2", "f8E5M2")):
    q = flat(256, 16) + "\n" + load("x", "%a0", "%i", 16, "f32", N, 16)
    for j in range(8):
        q += f"""  %l{j} = vector.extract %x[{2 * j}] : f32 from vector<16xf32>
  %h{j} = vector.extract %x[{2 * j + 1}] : f32 from vector<16xf32>
  %p{j} = nvvm.convert.f32x2.to.f8x2 %h{j}, %l{j} {{rnd = #nvvm.fp_rnd_mode<rn>, sat = #nvvm.sat_mode<satfinite>}} : i16 ({ty})
"""
    q += (
        "  %y = vector.from_elements "
        + ", ".join(f"%p{j}" for j in range(8))
        + " : vector<8xi16>\n  %c2 = arith.constant 2 : index\n  %i2 = arith.divui %i, %c2 : index\n"
        + store("%y", "%a1", "%i2", 8, "i16", N // 2, 16)
    )
    kernel(f"to_{f}", [("f32", N), ("i16", N // 2)], q, N // 4096, 256, bytes=5 * N)
