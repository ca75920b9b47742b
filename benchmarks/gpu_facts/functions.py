"""One function of float32 a kernel, as its default, with fastmath<afn> and with ftz; and the smallest
kernel, for the cost of a launch."""

from emit import flat, kernel, load, splat, store

F4 = "vector<4xf32>"
M = 1 << 24


def unary(name, op, options=""):
    kernel(
        "m_" + name,
        [("f32", M), ("f32", M)],
        flat(256, 4)
        + "\n"
        + load("x", "%a0", "%i", 4, "f32", M, 16)
        + op
        + store("%y", "%a1", "%i", 4, "f32", M, 16),
        M // 1024,
        256,
        bytes=8 * M,
        options=options,
    )


for f in "exp exp2 log log2 log1p expm1 tanh erf rsqrt sqrt sin cos".split():
    unary(f, f"  %y = math.{f} %x : {F4}\n")
for f in "exp exp2 log log2 tanh rsqrt sqrt sin cos".split():
    unary(f + "_afn", f"  %y = math.{f} %x fastmath<afn> : {F4}\n")
for f in "exp log rsqrt sqrt".split():
    unary(f + "_ftz", f"  %y = math.{f} %x : {F4}\n", "ftz ")
unary("recip", splat("one", 1.0, 4) + f"  %y = arith.divf %one, %x : {F4}\n")
unary(
    "recip_arcp", splat("one", 1.0, 4) + f"  %y = arith.divf %one, %x fastmath<arcp,afn> : {F4}\n"
)
unary("third", splat("three", 3.0, 4) + f"  %y = arith.divf %x, %three : {F4}\n")
unary(
    "muladd",
    splat("c", 1.1, 4) + f"  %q = arith.mulf %x, %x : {F4}\n  %y = arith.addf %q, %c : {F4}\n",
)
unary(
    "muladd_contract",
    splat("c", 1.1, 4)
    + f"  %q = arith.mulf %x, %x fastmath<contract> : {F4}\n  %y = arith.addf %q, %c fastmath<contract> : {F4}\n",
)
unary("half", splat("c", 0.5, 4) + f"  %y = arith.mulf %x, %c : {F4}\n")


def inline(name, asm):
    op = (
        "".join(
            f"""  %e{j} = vector.extract %x[{j}] : f32 from vector<4xf32>
  %f{j} = llvm.inline_asm "{asm} $0, $1;", "=f,f" %e{j} : (f32) -> f32
"""
            for j in range(4)
        )
        + f"  %y = vector.from_elements %f0, %f1, %f2, %f3 : {F4}\n"
    )
    unary(name, op)


inline("sqrt_rn", "sqrt.rn.f32")
inline("tanh_asm", "tanh.approx.f32")
# a small kernel for the cost of a launch: one block
kernel(
    "tiny",
    [("f32", 1024), ("f32", 1024)],
    flat(256, 4)
    + "\n"
    + load("x", "%a0", "%i", 4, "f32", 1024, 16)
    + f"  %y = arith.addf %x, %x : {F4}\n"
    + store("%y", "%a1", "%i", 4, "f32", 1024, 16),
    1,
    256,
    bytes=8192,
)
