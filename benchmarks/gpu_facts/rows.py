"""Kernels of a block a row, or of sums of columns in two stages of fixed order: layer norm, the
loss over a vocabulary, bias gradients."""

from emit import COLS, N, ROWS, THREAD, V8, kernel, load, splat, store, flat


# ---- row: layer norm with saved statistics, two passes over the row
def layernorm(d, block):
    r = N // d
    body = f"""{THREAD}
  %cD = arith.constant {d} : index
  %cB = arith.constant {block} : index
  %c4 = arith.constant 4 : index
  %base = arith.muli %b, %cD : index
  %t4 = arith.muli %t, %c4 : index
  %st = arith.muli %cB, %c4 : index
  %z = arith.constant 0.0 : f32
  %eps = arith.constant 1.0e-5 : f32
  %inv = arith.constant {1.0 / d} : f32
  %s = scf.for %c = %t4 to %cD step %st iter_args(%acc = %z) -> f32 {{
    %o = arith.addi %base, %c : index
  {load("v", "%a0", "%o", 4, "f32", N, 16)}
    %q = vector.reduction <add>, %v : vector<4xf32> into f32
    %n = arith.addf %acc, %q : f32
    scf.yield %n : f32
  }}
  %S = gpu.all_reduce add %s uniform {{}} : (f32) -> f32
  %mean = arith.mulf %S, %inv : f32
  %mv = vector.broadcast %mean : f32 to vector<4xf32>
  %s2 = scf.for %c = %t4 to %cD step %st iter_args(%acc = %z) -> f32 {{
    %o = arith.addi %base, %c : index
  {load("v", "%a0", "%o", 4, "f32", N, 16)}
    %d0 = arith.subf %v, %mv : vector<4xf32>
    %d1 = arith.mulf %d0, %d0 : vector<4xf32>
    %q = vector.reduction <add>, %d1 : vector<4xf32> into f32
    %n = arith.addf %acc, %q : f32
    scf.yield %n : f32
  }}
  %S2 = gpu.all_reduce add %s2 uniform {{}} : (f32) -> f32
  %var = arith.mulf %S2, %inv : f32
  %ve = arith.addf %var, %eps : f32
  %rs = math.rsqrt %ve : f32
  %rv = vector.broadcast %rs : f32 to vector<4xf32>
  scf.for %c = %t4 to %cD step %st {{
    %o = arith.addi %base, %c : index
  {load("v", "%a0", "%o", 4, "f32", N, 16)}
  {load("gm", "%a1", "%c", 4, "f32", d, 16)}
  {load("bt", "%a2", "%c", 4, "f32", d, 16)}
    %d0 = arith.subf %v, %mv : vector<4xf32>
    %d1 = arith.mulf %d0, %rv : vector<4xf32>
    %d2 = arith.mulf %d1, %gm : vector<4xf32>
    %d3 = arith.addf %d2, %bt : vector<4xf32>
  {store("%d3", "%a3", "%o", 4, "f32", N, 16)}
  }}
  %c0 = arith.constant 0 : index
  %first = arith.cmpi eq, %t, %c0 : index
  scf.if %first {{
    memref.store %mean, %a4[%b] : memref<{r}xf32>
    memref.store %rs, %a5[%b] : memref<{r}xf32>
  }}
"""
    kernel(
        f"layernorm_{d}",
        [("f32", N), ("f32", d), ("f32", d), ("f32", N), ("f32", r), ("f32", r)],
        body,
        r,
        block,
        bytes=8 * N,
    )


layernorm(768, 192)
layernorm(4096, 256)

# ---- column: sums over 8192 rows of bf16, in two stages of a fixed order
G = 64
P = ROWS // G
# Eight columns a thread, of the G rows of block y: where they begin, and a sum of nothing.
COLUMNS = f"""{THREAD}
  %y = gpu.block_id y
  %c8 = arith.constant 8 : index
  %cC = arith.constant {COLS} : index
  %cG = arith.constant {G} : index
  %c1 = arith.constant 1 : index
  %c0 = arith.constant 0 : index
  %cB = arith.constant 32 : index
  %b0 = arith.muli %b, %cB : index
  %g = arith.addi %b0, %t : index
  %c = arith.muli %g, %c8 : index
  %r0 = arith.muli %y, %cG : index
  %z = arith.constant dense<0.0> : {V8}
"""
body = f"""{COLUMNS}  %s = scf.for %r = %c0 to %cG step %c1 iter_args(%acc = %z) -> {V8} {{
    %rr = arith.addi %r0, %r : index
    %o0 = arith.muli %rr, %cC : index
    %o = arith.addi %o0, %c : index
  {load("v", "%a0", "%o", 8, "bf16", N, 16)}
    %f = arith.extf %v : vector<8xbf16> to {V8}
    %n = arith.addf %acc, %f : {V8}
    scf.yield %n : {V8}
  }}
  %o1 = arith.muli %y, %cC : index
  %o2 = arith.addi %o1, %c : index
""" + store("%s", "%a1", "%o2", 8, "f32", P * COLS, 16)
kernel("colsum_stage1", [("bf16", N), ("f32", P * COLS)], body, (COLS // 256, P), 32, bytes=2 * N)
body = (
    flat(128, 1)
    + f"""
  %cC = arith.constant {COLS} : index
  %cP2 = arith.constant {P} : index
  %c1 = arith.constant 1 : index
  %c0 = arith.constant 0 : index
  %z = arith.constant 0.0 : f32
  %s = scf.for %r = %c0 to %cP2 step %c1 iter_args(%acc = %z) -> f32 {{
    %o0 = arith.muli %r, %cC : index
    %o = arith.addi %o0, %i : index
    %v = memref.load %a0[%o] : memref<{P * COLS}xf32>
    %n = arith.addf %acc, %v : f32
    scf.yield %n : f32
  }}
  memref.store %s, %a1[%i] : memref<{COLS}xf32>
"""
)
kernel(
    "colsum_stage2", [("f32", P * COLS), ("f32", COLS)], body, COLS // 128, 128, bytes=4 * P * COLS
)

# The gradient of a biased gelu: dx, and the bias's partial sums of 64 rows, in one pass.
a2 = 2 * 0.7978845608
body = (
    COLUMNS
    + splat("one", 1.0)
    + splat("ka", a2)
    + splat("kl", -a2 * 1.4426950408889634)
    + splat("kb", 0.044715)
    + splat("kb3", 3 * 0.044715)
    + f"""
  %s = scf.for %r = %c0 to %cG step %c1 iter_args(%acc = %z) -> {V8} {{
    %rr = arith.addi %r0, %r : index
    %o0 = arith.muli %rr, %cC : index
    %o = arith.addi %o0, %c : index
  {load("ub", "%a0", "%o", 8, "bf16", N, 16)}
  {load("db", "%a1", "%o", 8, "bf16", N, 16)}
    %u = arith.extf %ub : vector<8xbf16> to {V8}
    %d = arith.extf %db : vector<8xbf16> to {V8}
    %u2 = arith.mulf %u, %u : {V8}
    %p = arith.mulf %u2, %kb : {V8}
    %p1 = arith.addf %p, %one : {V8}
    %q = arith.mulf %u, %p1 : {V8}
    %ql = arith.mulf %q, %kl : {V8}
    %e = math.exp2 %ql fastmath<afn> : {V8}
    %e1 = arith.addf %e, %one : {V8}
    %sg = arith.divf %one, %e1 fastmath<arcp,afn> : {V8}
    %m = arith.subf %one, %sg : {V8}
    %ss = arith.mulf %sg, %m : {V8}
    %h = arith.mulf %u2, %kb3 : {V8}
    %h1 = arith.addf %h, %one : {V8}
    %h2 = arith.mulf %h1, %ka : {V8}
    %h3 = arith.mulf %h2, %u : {V8}
    %h4 = arith.mulf %h3, %ss : {V8}
    %gr = arith.addf %h4, %sg : {V8}
    %dx = arith.mulf %d, %gr : {V8}
    %dxb = arith.truncf %dx : {V8} to vector<8xbf16>
  {store("%dxb", "%a2", "%o", 8, "bf16", N, 16)}
    %n = arith.addf %acc, %dx : {V8}
    scf.yield %n : {V8}
  }}
  %o1 = arith.muli %y, %cC : index
  %o2 = arith.addi %o1, %c : index
"""
    + store("%s", "%a3", "%o2", 8, "f32", P * COLS, 16)
)
kernel(
    "dgelu_bgrad",
    [("bf16", N), ("bf16", N), ("bf16", N), ("f32", P * COLS)],
    body,
    (COLS // 256, P),
    32,
    bytes=6 * N,
)

# ---- row, online: cross entropy and its gradient in place, over 50257 classes
VOC = 50257


def xent(name, ld, vec, rows, block):
    n = rows * ld
    one = vec == 1
    vt, bt = ("f32", "bf16") if one else (f"vector<{vec}xf32>", f"vector<{vec}xbf16>")
    ld_ = (
        f"    %xb = memref.load %a0[%o] : memref<{n}xbf16>\n"
        if one
        else load("xb", "%a0", "%o", vec, "bf16", n, 16)
    )
    st_ = (
        f"    memref.store %db, %a0[%o] : memref<{n}xbf16>\n"
        if one
        else store("%db", "%a0", "%o", vec, "bf16", n, 16)
    )
    bcf = lambda d, s: "" if one else f"    %{d} = vector.broadcast %{s} : f32 to {vt}\n"
    nm = lambda d, s: f"%{s}" if one else f"%{d}"
    steps = (
        ""
        if one
        else f"""
  %lane = arith.constant dense<[{", ".join(map(str, range(vec)))}]> : vector<{vec}xi32>
  %vocv = arith.constant dense<{VOC}> : vector<{vec}xi32>
  %ninfv = arith.constant dense<0xFF800000> : {vt}
"""
    )
    masked = (
        f"    %x = arith.extf %xb : {bt} to {vt}\n"
        if one
        else f"""    %x_ = arith.extf %xb : {bt} to {vt}
    %ci = arith.index_cast %c : index to i32
    %cv = vector.broadcast %ci : i32 to vector<{vec}xi32>
    %cl = arith.addi %cv, %lane : vector<{vec}xi32>
    %in = arith.cmpi slt, %cl, %vocv : vector<{vec}xi32>
    %x = arith.select %in, %x_, %ninfv : vector<{vec}xi1>, {vt}
"""
    )
    redmax = (
        "    %cm = arith.maximumf %x, %x : f32\n"
        if one
        else f"    %cm = vector.reduction <maxnumf>, %x : {vt} into f32\n"
    )
    redsum = (
        "    %cs = arith.addf %e, %z : f32\n"
        if one
        else f"    %cs = vector.reduction <add>, %e : {vt} into f32\n"
    )
    hit = (
        """    %h = arith.cmpi eq, %ci2, %tgt : i32
    %oh = arith.select %h, %onef, %z : f32
"""
        if one
        else f"""    %cv2 = vector.broadcast %ci2 : i32 to vector<{vec}xi32>
    %cl2 = arith.addi %cv2, %lane : vector<{vec}xi32>
    %tv = vector.broadcast %tgt : i32 to vector<{vec}xi32>
    %h = arith.cmpi eq, %cl2, %tv : vector<{vec}xi32>
    %ov = vector.broadcast %onef : f32 to {vt}
    %zv = vector.broadcast %z : f32 to {vt}
    %oh = arith.select %h, %ov, %zv : vector<{vec}xi1>, {vt}
"""
    )
    end = VOC if one else ld
    body = f"""{THREAD}
  %cL = arith.constant {ld} : index
  %cE = arith.constant {end} : index
  %cV = arith.constant {vec} : index
  %st = arith.constant {block * vec} : index
  %base = arith.muli %b, %cL : index
  %t4 = arith.muli %t, %cV : index
  %z = arith.constant 0.0 : f32
  %onef = arith.constant 1.0 : f32
  %low = arith.constant -3.0e38 : f32
  %l2e = arith.constant 1.4426950408889634 : f32
  %ln2 = arith.constant 0.6931471805599453 : f32
  %scale = arith.constant {1.0 / rows} : f32
  {steps}
  %ti = memref.load %a1[%b] : memref<{rows}xi32>
  %tgt = arith.addi %ti, %zi : i32
  %tidx = arith.index_cast %ti : i32 to index
  %to = arith.addi %base, %tidx : index
  %tb = memref.load %a0[%to] : memref<{n}xbf16>
  %tx = arith.extf %tb : bf16 to f32
  %m, %s = scf.for %c = %t4 to %cE step %st iter_args(%am = %low, %as = %z) -> (f32, f32) {{
    %o = arith.addi %base, %c : index
{ld_}{masked}{redmax}
    %nm = arith.maximumf %am, %cm : f32
{bcf("nmv", "nm")}
    %d = arith.subf %x, {nm("nmv", "nm")} : {vt}
{bcf("l2v", "l2e")}
    %d2 = arith.mulf %d, {nm("l2v", "l2e")} : {vt}
    %e = math.exp2 %d2 fastmath<afn> : {vt}
{redsum}
    %q = arith.subf %am, %nm : f32
    %q2 = arith.mulf %q, %l2e : f32
    %r = math.exp2 %q2 fastmath<afn> : f32
    %as2 = arith.mulf %as, %r : f32
    %ns = arith.addf %as2, %cs : f32
    scf.yield %nm, %ns : f32, f32
  }}
  %M = gpu.all_reduce maxnumf %m uniform {{}} : (f32) -> f32
  %w = arith.subf %m, %M : f32
  %w2 = arith.mulf %w, %l2e : f32
  %w3 = math.exp2 %w2 fastmath<afn> : f32
  %s1 = arith.mulf %s, %w3 : f32
  %S = gpu.all_reduce add %s1 uniform {{}} : (f32) -> f32
  %lg = math.log %S : f32
  %lse = arith.addf %lg, %M : f32
  %loss = arith.subf %lse, %tx : f32
  %c0 = arith.constant 0 : index
  %first = arith.cmpi eq, %t, %c0 : index
  scf.if %first {{
    memref.store %loss, %a2[%b] : memref<{rows}xf32>
  }}
  scf.for %c = %t4 to %cE step %st {{
    %o = arith.addi %base, %c : index
{ld_}{masked}
{bcf("lv", "lse")}
    %d = arith.subf %x, {nm("lv", "lse")} : {vt}
{bcf("l2v", "l2e")}
    %d2 = arith.mulf %d, {nm("l2v", "l2e")} : {vt}
    %e = math.exp2 %d2 fastmath<afn> : {vt}
    %ci2 = arith.index_cast %c : index to i32
{hit}
    %g0 = arith.subf %e, %oh : {vt}
{bcf("sv", "scale")}
    %g1 = arith.mulf %g0, {nm("sv", "scale")} : {vt}
    %db = arith.truncf %g1 : {vt} to {bt}
{st_}
  }}
"""
    body = "  %zi = arith.constant 0 : i32\n" + body
    kernel(
        name, [("bf16", n), ("i32", rows), ("f32", rows)], body, rows, block, bytes=rows * VOC * 6
    )


xent("xent_50257", VOC, 1, 4096, 512)
xent("xent_50304", 50304, 8, 4096, 512)
