"""Runs the kernels by the driver API: errors against float64, bandwidth, bits.

usage: check_kernels.py CUBINS OUT.json PART...: attributes, fp8, sweep, backward, quantize, copies,
loops, rows, adamw, embed, xent."""

import ctypes as C
import json
import subprocess
import sys
import time
import traceback

import torch

DIR, OUT, *PARTS = sys.argv[1:]
K = json.load(open(f"{DIR}/kernels.json"))
cu = C.CDLL("libcuda.so.1")
R = {"math": {}, "kernels": {}, "attributes": {}}
torch.cuda.init()
torch.zeros(1, device="cuda")
D = "cuda"
DT = {"f32": torch.float32, "bf16": torch.bfloat16, "i32": torch.int32, "i16": torch.int16}


def ck(r, what=""):
    if r:
        raise RuntimeError(f"{what}: CUresult {r}")


def save():
    json.dump(R, open(OUT, "w"), indent=1, default=float)


class Kernel:
    def __init__(self, name):
        self.name, self.k = name, K[name]
        img = open(f"{DIR}/{name}.cubin", "rb").read()
        self.lib, self.f = C.c_void_p(), C.c_void_p()
        t = time.perf_counter()
        ck(cu.cuLibraryLoadData(C.byref(self.lib), img, None, None, 0, None, None, 0), name)
        ck(cu.cuLibraryGetKernel(C.byref(self.f), self.lib, name.encode()), name)
        self.load_us = (time.perf_counter() - t) * 1e6

    def __call__(self, *ts):
        p = [C.c_void_p(t.data_ptr()) for t in ts]
        a = (C.c_void_p * len(p))(*[C.cast(C.byref(x), C.c_void_p) for x in p])
        g = self.k["grid"]
        ck(
            cu.cuLaunchKernel(
                self.f,
                g[0],
                g[1],
                1,
                self.k["block"],
                1,
                1,
                0,
                C.c_void_p(torch.cuda.current_stream().cuda_stream),
                a,
                None,
            ),
            self.name,
        )


def seconds(f, n=20, rounds=5):
    for i in range(3):
        f(i)
    best = []
    for _ in range(rounds):
        a, b = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        a.record()
        for i in range(n):
            f(i)
        b.record()
        b.synchronize()
        best.append(a.elapsed_time(b) / 1e3 / n)
    return sorted(best)[len(best) // 2]


def graphed(f, n=50):
    """The time of one call inside a graph of n, without the cost of launches."""
    f(0)
    torch.cuda.synchronize()
    g = torch.cuda.CUDAGraph()
    with torch.cuda.graph(g):
        for i in range(n):
            f(i)
    return seconds(lambda i: g.replay(), 3) / n


def part(f):
    try:
        f()
    except Exception:
        R.setdefault("errors", []).append(traceback.format_exc())
        traceback.print_exc()
    save()
    print(f.__name__, "done", round(time.time() - T0, 1), flush=True)


T0 = time.time()


def attributes():
    d = C.c_int()
    cu.cuDeviceGet(C.byref(d), 0)
    v = C.c_int()
    for i in range(1, 160):
        if cu.cuDeviceGetAttribute(C.byref(v), i, d) == 0:
            R["attributes"][i] = v.value
    cu.cuDriverGetVersion(C.byref(v))
    R["driver"] = v.value
    R["torch"] = dict(
        version=torch.__version__,
        name=torch.cuda.get_device_name(),
        cudnn=torch.backends.cudnn.version(),
        nccl=torch.cuda.nccl.version(),
        memory=torch.cuda.mem_get_info(),
        props=str(torch.cuda.get_device_properties(0)),
    )
    R["smi"] = subprocess.run(
        "nvidia-smi -q | head -120", shell=True, capture_output=True, text=True
    ).stdout


F64 = {
    "exp": torch.exp,
    "exp2": torch.exp2,
    "log": torch.log,
    "log2": torch.log2,
    "log1p": torch.log1p,
    "expm1": torch.expm1,
    "tanh": torch.tanh,
    "erf": torch.erf,
    "rsqrt": torch.rsqrt,
    "sqrt": torch.sqrt,
    "sin": torch.sin,
    "cos": torch.cos,
    "recip": lambda x: 1 / x,
    "third": lambda x: x / 3,
    "half": lambda x: x * 0.5,
    "muladd": lambda x: (x * x) + 1.100000023841858,
}


def floats(bits):
    """Tensor of int64 bit patterns, modulo 2^32, as float32."""
    bits = bits % (1 << 32)
    return torch.where(bits >= 1 << 31, bits - (1 << 32), bits).to(torch.int32).view(torch.float32)


def ulp(y, ref):
    """|y - ref| in ulps of float32 at ref (subnormals have 2^-149)."""
    e = torch.frexp(ref.abs()).exponent.double()
    return (y.double() - ref).abs() / torch.exp2(torch.clamp(e - 24, min=-149))


def sweep():
    M = 1 << 24
    base = torch.arange(M, device=D, dtype=torch.int64)
    out = torch.empty(M, device=D)
    ks = {n[2:]: Kernel(n) for n in K if n.startswith("m_")}
    res = {
        n: dict(
            max=0.0,
            at=0.0,
            denormal_in_zeroed=0,
            denormal_out_zeroed=0,
            wrong_special=0,
            over1=0,
            tested=0,
            abs=0.0,
        )
        for n in ks
    }
    # every 8th float32 of all 2^32, in 32 chunks of 2^24
    for c in range(32):
        x = floats(base * 8 + c * (M * 8) + (c * 5) % 8)
        sub_in = (x.abs() < 1.17549435e-38) & (x != 0)
        refs = {}
        for n, k in ks.items():
            f = n.split("_")[0]
            if f not in refs:
                r64 = F64[f](x.double())
                r = r64.float()
                refs[f] = (r64, r)
            r64, r = refs[f]
            k(x, out)
            s = res[n]
            fin = r.isfinite() & x.isfinite()
            sub_out = fin & (r.abs() < 1.17549435e-38) & (r != 0)
            normal = fin & ~sub_in & ~sub_out & out.isfinite()
            u = torch.where(normal, ulp(out, r64), 0.0)
            m, i = u.max(0)
            if m.item() > s["max"]:
                s["max"], s["at"] = m.item(), x[i].item()
            # absolute error where arguments are of a network's size
            near = normal & (x.abs() < 16)
            s["abs"] = max(
                s["abs"], torch.where(near, (out.double() - r64).abs(), 0.0).max().item()
            )
            s["over1"] += int((u > 1).sum())
            s["tested"] += int(normal.sum())
            s["denormal_in_zeroed"] += int(
                (
                    sub_in & fin & (r != 0) & (out != r) & (out == F64[f](x.double() * 0).float())
                ).sum()
            )
            s["denormal_out_zeroed"] += int((sub_out & (out == 0)).sum())
            both = (out.isnan() & r.isnan()) | (out == r)
            s["wrong_special"] += int((~fin & ~both).sum()) + int(
                (fin & ~out.isfinite() & ~sub_in).sum()
            )
    R["math"] = res


def fp8():
    N = 8192 * 3072
    for f, t in (("e4m3", torch.float8_e4m3fn), ("e5m2", torch.float8_e5m2)):
        k = Kernel(f"to_{f}")
        top = torch.finfo(t).max
        bad = nan = 0
        for c in range(6):
            x = floats(torch.arange(N, device=D, dtype=torch.int64) * 170 + c * 28)
            y = torch.empty(N, device=D, dtype=torch.uint8)
            k(x, y)
            ref = torch.where(x.isnan(), x, x.clamp(-top, top)).to(t).view(torch.uint8)
            nanx = x.isnan()
            isn = y.view(t).float().isnan()
            bad += int(((y != ref) & ~nanx).sum())
            nan += int((nanx & ~isn).sum())
        sp = torch.zeros(N, device=D)
        vals = [float("inf"), -float("inf"), float("nan"), 1e9, -1e9, top * 1.04, 1e-9, -0.0]
        sp[:8] = torch.tensor(vals)
        y = torch.empty(N, device=D, dtype=torch.uint8)
        k(sp, y)
        R[f"fp8_{f}"] = dict(
            mismatch_with_clamp_then_torch=bad,
            nan_not_nan=nan,
            special={str(v): hex(b) for v, b in zip(vals, y[:8].tolist())},
        )


def rel(y, ref):
    y, ref = y.double(), ref.double()
    return ((y - ref).norm() / ref.norm()).item()


def timed(name, sets, check=None, calls=20):
    k = Kernel(name)
    k(*sets[0])
    torch.cuda.synchronize()
    r = dict(
        load_us=k.load_us,
        **{x: K[name][x] for x in ("regs", "spill", "smem", "bytes", "fma", "f64")},
    )
    if check:
        r["error"] = check(*sets[0])
    r["us"] = graphed(lambda i: k(*sets[i % len(sets)]), calls) * 1e6
    r["GBps"] = K[name]["bytes"] / r["us"] / 1e3
    R["kernels"][name] = r
    save()


def rand(n, t="f32", s=1.0):
    return (torch.randn(n, device=D) * s).to(DT[t])


def loops():
    N, CO = 8192 * 3072, 3072
    x = torch.empty(1 << 30, dtype=torch.uint8, device=D)
    y = torch.empty_like(x)
    t = seconds(lambda i: y.copy_(x), 5)
    R["copy_GBps"] = 2 * x.numel() / t / 1e9
    del x, y
    timed("copy_f32", [(rand(N), rand(N)) for _ in range(3)], lambda a, b: rel(b, a))
    timed(
        "cast_bf16",
        [(rand(N), rand(N, "bf16")) for _ in range(3)],
        lambda a, b: int((a.bfloat16() != b).sum()),
    )
    G = torch.nn.functional.gelu
    for n in [k for k in K if k.startswith("gelu")]:
        ap = "none" if "erf" in n else "tanh"
        timed(
            n,
            [(rand(N, "bf16", 2), rand(CO, "bf16"), rand(N, "bf16")) for _ in range(4)],
            lambda a, b, c: dict(
                rel=rel(c, G((a.view(-1, CO).double() + b.double()), approximate=ap).view(-1)),
                abs=(
                    c.double() - G((a.view(-1, CO).double() + b.double()), approximate=ap).view(-1)
                )
                .abs()
                .max()
                .item(),
                bits_off_from_rounded=int(
                    (
                        c
                        != G((a.view(-1, CO).double() + b.double()), approximate=ap)
                        .view(-1)
                        .bfloat16()
                    ).sum()
                ),
            ),
        )
    # torch.compile's peer is in peers.py; here eager's, for scale
    xs = [rand(N, "bf16") for _ in range(4)]
    R["kernels"]["torch_gelu_bf16_us"] = (
        graphed(lambda i: G(xs[i % 4], approximate="tanh"), 20) * 1e6
    )
    timed("philox_dropout", [(rand(N, "bf16"), rand(N, "bf16")) for _ in range(4)], philox)
    timed(
        "transpose_bf16",
        [(rand(N, "bf16"), rand(N, "bf16")) for _ in range(4)],
        lambda a, b: int((a.view(8192, 3072).t().contiguous().view(-1) != b).sum()),
    )


def philox(x, y):
    """The first 4096 counters against a Python Philox 4x32-10; the kept share."""
    key = [0x12345678, 0x9ABCDEF0]
    W = 0xFFFFFFFF
    bad = 0
    ys, xs = y[:16384].float().tolist(), x[:16384].float().tolist()
    for n in range(4096):
        c = [n, 0, 0, 0]
        k = list(key)
        for _ in range(10):
            a, b = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
            c = [(b >> 32) ^ c[1] ^ k[0], b & W, (a >> 32) ^ c[3] ^ k[1], a & W]
            k = [(k[0] + 0x9E3779B9) & W, (k[1] + 0xBB67AE85) & W]
        for j in range(4):
            keep = c[j] >= int(0.1 * 2**32)
            bad += (ys[4 * n + j] != 0) != (keep and xs[4 * n + j] != 0)
    return dict(mask_wrong=bad, kept=(y != 0).float().mean().item())


def rows():
    N = 8192 * 3072
    for d in (768, 4096):
        r = N // d

        def check(x, g, b, y, m, s):
            X = x.double().view(r, d)
            v, mu = torch.var_mean(X, 1, unbiased=False)
            return dict(
                y=rel(y, torch.nn.functional.layer_norm(X, (d,), g.double(), b.double()).view(-1)),
                mean_abs=(m - mu).abs().max().item(),
                rstd_rel=((s - (v + 1e-5).rsqrt()) / s).abs().max().item(),
            )

        timed(
            f"layernorm_{d}",
            [(rand(N), rand(d), rand(d), rand(N), rand(r), rand(r)) for _ in range(2)],
            check,
        )
        xs = [rand(N).view(r, d) for _ in range(3)]
        w = rand(d)
        R["kernels"][f"torch_layernorm_{d}_us"] = (
            graphed(lambda i: torch.nn.functional.layer_norm(xs[i % 3], (d,), w, w), 20) * 1e6
        )
    xs = [rand(N, "bf16") for _ in range(4)]
    part_, out = rand(128 * 3072), rand(3072)
    timed("colsum_stage1", [(x, part_) for x in xs])
    timed("colsum_stage2", [(part_, out)])
    Kernel("colsum_stage1")(xs[0], part_)
    Kernel("colsum_stage2")(part_, out)
    R["kernels"]["colsum_stage2"]["error"] = rel(out, xs[0].double().view(8192, 3072).sum(0))
    R["kernels"]["torch_colsum_us"] = graphed(lambda i: xs[i % 4].view(8192, 3072).sum(0), 20) * 1e6


def xent():
    V, r = 50257, 4096
    for name, ld in (("xent_50257", V), ("xent_50304", 50304)):
        x = rand(r * ld, "bf16", 2)
        t = torch.randint(0, V, (r,), device=D, dtype=torch.int32)
        loss = torch.empty(r, device=D)
        X = x.view(r, ld)[:, :V].double()
        ref = torch.nn.functional.cross_entropy(X, t.long(), reduction="none")
        g = torch.softmax(X, 1)
        g[torch.arange(r), t.long()] -= 1
        g /= r
        del X

        def check(a, b, c):
            return dict(
                loss_rel=rel(c, ref),
                grad_rel=rel(a.view(r, ld)[:, :V], g),
                padding_grad=a.view(r, ld)[:, V:].abs().sum().item(),
            )

        timed(name, [(x, t, loss)], check, 5)
        del g, ref
    x = rand(r * V, "bf16", 2).view(r, V).requires_grad_()
    tl = t.long()

    def tor(i):
        torch.autograd.grad(torch.nn.functional.cross_entropy(x, tl), x)

    R["kernels"]["torch_eager_xent_fwd_bwd_us"] = seconds(tor, 3, 3) * 1e6


def adamw():
    A = 1 << 26
    ts = [rand(A), rand(A), rand(A, s=0.1), rand(A, s=0.1).abs(), rand(A, "bf16")]
    sc = torch.tensor([1e-3, 0.9, 0.999, 1e-8, 0.1, 1.5, 20.0, 0], device=D)
    p, g, m, v = [t.double().clone() for t in ts[:4]]
    s = sc.double().tolist()

    def check(*a):
        m2 = m * s[1] + g * (1 - s[1])
        v2 = v * s[2] + g * g * (1 - s[2])
        q = p - s[0] * (m2 * s[5] / ((v2 * s[6]).sqrt() + s[3]) + s[4] * p)
        return dict(
            update_rel=rel(a[0].double() - p, q - p),
            p=rel(a[0], q),
            m=rel(a[2], m2),
            v=rel(a[3], v2),
            bf16=int((a[4] != a[0].bfloat16()).sum()),
        )

    timed("adamw", [(*ts, sc)], check, 5)


def embed():
    V, T, E = 50257, 8192, 768
    w, ids, o = (
        rand(V * E, "bf16"),
        torch.randint(0, V, (T,), device=D, dtype=torch.int32),
        rand(T * E, "bf16"),
    )
    timed(
        "embed_gather",
        [(w, ids, o)],
        lambda a, b, c: int((c.view(T, E) != a.view(V, E)[b.long()]).sum()),
    )
    z = (torch.rand(T, device=D) ** 6 * V).to(torch.int32)  # few words often, as text has
    same = torch.zeros(T, device=D, dtype=torch.int32)
    dy, g, order = (
        rand(T * E),
        torch.zeros(V * E, device=D),
        torch.empty(T, device=D, dtype=torch.int32),
    )
    for n, i in (("uniform", ids), ("skewed", z), ("one", same)):
        timed(
            "embed_rank",
            [(i, order)],
            lambda a, b: int((b.long() != torch.argsort(a, stable=True)).sum()),
        )
        timed("embed_sum", [(i, order, dy, g)], None, 5)
        g.zero_()
        Kernel("embed_sum")(i, order, dy, g)
        R["kernels"]["embed_sum_" + n] = dict(
            R["kernels"]["embed_sum"],
            rank_us=R["kernels"]["embed_rank"]["us"],
            distinct=len(i.unique()),
            error=rel(
                g.view(V, E),
                torch.zeros(V, E, device=D, dtype=torch.float64).index_add_(
                    0, i.long(), dy.double().view(T, E)
                ),
            ),
        )
        gg = torch.zeros(V, E, device=D)
        il = i.long()
        d2 = dy.view(T, E)
        R["kernels"]["embed_sum_" + n]["torch_index_add_us"] = (
            graphed(lambda _: gg.index_add_(0, il, d2), 10) * 1e6
        )


def quantize():
    N = 8192 * 3072
    for f in ("e4m3", "e5m2"):
        timed(
            f"to_{f}",
            [(rand(N), torch.zeros(N // 2, device=D, dtype=torch.int16)) for _ in range(3)],
        )


def backward():
    N, CO = 8192 * 3072, 3072
    sets = [
        (rand(N, "bf16", 2), rand(N, "bf16"), rand(N, "bf16"), rand(128 * CO)) for _ in range(3)
    ]

    def check(u, d, dx, part_):
        x = u.double().requires_grad_()
        (g,) = torch.autograd.grad(torch.nn.functional.gelu(x, approximate="tanh"), x, d.double())
        out = torch.empty(CO, device=D)
        Kernel("colsum_stage2")(part_, out)
        return dict(
            dx=rel(dx, g), off=int((dx != g.bfloat16()).sum()), bias=rel(out, g.view(-1, CO).sum(0))
        )

    timed("dgelu_bgrad", sets, check)


def copies():
    n = 1 << 28
    h, h2 = (torch.empty(n, dtype=torch.uint8, pin_memory=True) for _ in range(2))
    d, d2 = (torch.empty(n, dtype=torch.uint8, device=D) for _ in range(2))
    R["h2d_GBps"] = n / seconds(lambda i: d.copy_(h, non_blocking=True), 4) / 1e9
    R["d2h_GBps"] = n / seconds(lambda i: h.copy_(d, non_blocking=True), 4) / 1e9
    s = torch.cuda.Stream()

    def pair(i):
        s.wait_stream(torch.cuda.current_stream())
        d.copy_(h, non_blocking=True)
        with torch.cuda.stream(s):
            h2.copy_(d2, non_blocking=True)
        torch.cuda.current_stream().wait_stream(s)

    R["both_ways_GBps_each"] = n / seconds(pair, 4) / 1e9
    p = torch.empty(n, dtype=torch.uint8)
    t = time.perf_counter()
    d.copy_(p)
    torch.cuda.synchronize()
    R["h2d_pageable_GBps"] = n / (time.perf_counter() - t) / 1e9
    # From PTX: the driver's own compiler, first launch included.
    for n in ("gelu_tanh_bf16", "xent_50304", "embed_sum"):
        img = open(f"{DIR}/{n}.ptx", "rb").read() + b"\0"
        lib, f = C.c_void_p(), C.c_void_p()
        t = time.perf_counter()
        ck(cu.cuLibraryLoadData(C.byref(lib), img, None, None, 0, None, None, 0), "ptx")
        ck(cu.cuLibraryGetKernel(C.byref(f), lib, n.encode()))
        fn = C.c_void_p()
        ck(cu.cuKernelGetFunction(C.byref(fn), f))
        R.setdefault("jit_ms", {})[n] = (time.perf_counter() - t) * 1e3


for f in (attributes, backward, quantize, copies, loops, rows, adamw, embed, xent, fp8, sweep):
    if f.__name__ in PARTS:
        part(f)
