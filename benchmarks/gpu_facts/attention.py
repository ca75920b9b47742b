"""cuDNN's device properties as JSON; attention forward and backward, its libraries side by side.

usage: attention.py OUT.json"""

import ctypes as C
import json
import sys
import traceback
import torch
import torch.nn.functional as F
from timing import time_us
from torch.nn.attention import SDPBackend, sdpa_kernel

OUT = sys.argv[1]
R = {"attention": []}
D = "cuda"


def save():
    json.dump(R, open(OUT, "w"), indent=1)


def deviceprop():
    torch.zeros(1, device=D)
    torch.backends.cudnn.version()
    F.conv2d(torch.zeros(1, 1, 8, 8, device=D), torch.zeros(1, 1, 3, 3, device=D))
    d = C.CDLL("libcudnn.so.9")
    log = R["deviceprop log"] = {}
    d.cudnnGetVersion.restype = C.c_size_t
    R["cudnn"] = d.cudnnGetVersion()
    for ty, v in ((23, C.c_int32(0)), (3, C.c_int64(0))):
        p = C.c_void_p()
        log[f"create {ty}"] = d.cudnnBackendCreateDescriptor(38, C.byref(p))
        log[f"set {ty}"] = d.cudnnBackendSetAttribute(p, 2700, ty, C.c_int64(1), C.byref(v))
        log[f"finalize {ty}"] = d.cudnnBackendFinalize(p)
        n = C.c_int64(0)
        log[f"size {ty}"] = d.cudnnBackendGetAttribute(p, 2702, 26, C.c_int64(0), C.byref(n), None)
        log[f"n {ty}"] = n.value
        if n.value > 0:
            b = C.create_string_buffer(n.value + 1)
            log[f"get {ty}"] = d.cudnnBackendGetAttribute(p, 2702, 26, n, C.byref(n), b)
            R["deviceprop"] = b.value.decode()
            return


def one(name, B, H, G, T, E, dt, causal=True):
    mk = lambda h: torch.randn(B, T, h, E, device=D, dtype=dt).transpose(1, 2).requires_grad_()
    q, k, v = mk(H), mk(G), mk(G)
    do = torch.randn(B, T, H, E, device=D, dtype=dt).transpose(1, 2)
    flop = 4 * B * H * T * T * E * (0.5 if causal else 1)
    row = dict(shape=name, type=str(dt), causal=causal)
    ref = None
    if T <= 1024:
        Q, K, V = (t.detach()[:2].double().requires_grad_() for t in (q, k, v))
        s = Q @ K.transpose(2, 3) / E**0.5
        s = s.masked_fill(torch.ones(T, T, device=D, dtype=bool).triu(1), -1e30) if causal else s
        o = torch.softmax(s, 3) @ V
        ref = [o.detach(), *torch.autograd.grad(o, (Q, K, V), do[:2].double())]
    for be in ("CUDNN_ATTENTION", "FLASH_ATTENTION", "EFFICIENT_ATTENTION"):
        try:
            with sdpa_kernel(getattr(SDPBackend, be)):
                fw = lambda: F.scaled_dot_product_attention(
                    q, k, v, is_causal=causal, enable_gqa=G != H
                )
                o = fw()
                bw = lambda: torch.autograd.grad(o, (q, k, v), do, retain_graph=True)
                g = bw()
                same = all(all(torch.equal(a, b) for a, b in zip(g, bw())) for _ in range(5))
                fsame = all(torch.equal(o, fw()) for _ in range(5))
                r = dict(
                    fwd_us=time_us(fw),
                    bwd_us=time_us(bw),
                    fwd_bits_repeat=fsame,
                    bwd_bits_repeat=same,
                )
                r["fwd_TFLOPs"], r["bwd_TFLOPs"] = (
                    flop / r["fwd_us"] / 1e6,
                    2.5 * flop / r["bwd_us"] / 1e6,
                )
                if ref:
                    r["rel"] = [
                        ((a[:2].double() - b).norm() / b.norm()).item()
                        for a, b in zip([o, *g], ref)
                    ]
                if be == "CUDNN_ATTENTION" and dt == torch.bfloat16:
                    torch.use_deterministic_algorithms(True)
                    try:
                        g = bw()
                        r["deterministic_bwd_repeat"] = all(
                            all(torch.equal(a, b) for a, b in zip(g, bw())) for _ in range(5)
                        )
                        r["deterministic_bwd_us"] = time_us(bw)
                    except Exception as e:
                        r["deterministic"] = str(e)[:200]
                    torch.use_deterministic_algorithms(False)
                row[be] = r
        except Exception as e:
            row[be] = str(e)[:200]
    # The fallback: products by cuBLAS, one pass of a softmax between.
    try:
        if B * H * T * T * 2 < 6e9 and G == H:
            Q, K, V, DO = (t.detach().contiguous().view(B * H, T, E) for t in (q, k, v, do))
            S = torch.bmm(Q, K.transpose(1, 2))
            P = torch.softmax(S, 2)
            DP = torch.bmm(DO, V.transpose(1, 2))
            parts = dict(
                scores=lambda: torch.bmm(Q, K.transpose(1, 2)),
                softmax=lambda: torch.softmax(S, 2),
                out=lambda: torch.bmm(P, V),
                dv=lambda: torch.bmm(P.transpose(1, 2), DO),
                dp=lambda: torch.bmm(DO, V.transpose(1, 2)),
                dsoftmax=lambda: torch.ops.aten._softmax_backward_data(DP, P, 2, dt),
                dq=lambda: torch.bmm(DP, K),
                dk=lambda: torch.bmm(DP.transpose(1, 2), Q),
            )
            ts = {n: time_us(f, 5) for n, f in parts.items()}
            row["products+softmax"] = dict(
                ts,
                fwd_us=ts["scores"] + ts["softmax"] + ts["out"],
                bwd_us=sum(ts[n] for n in ("dv", "dp", "dsoftmax", "dq", "dk")),
            )
    except Exception as e:
        row["products+softmax"] = str(e)[:200]
    R["attention"].append(row)
    save()
    torch.cuda.empty_cache()


try:
    deviceprop()
except Exception:
    R["deviceprop error"] = traceback.format_exc()
save()
bf = torch.bfloat16
for a in (
    ("gpt2 8x12x1024x64", 8, 12, 12, 1024, 64, bf),
    ("gpt2 f16", 8, 12, 12, 1024, 64, torch.float16),
    ("gpt2 f32", 8, 12, 12, 1024, 64, torch.float32),
    ("gpt2 not causal", 8, 12, 12, 1024, 64, bf, False),
    ("7b 2x32x2048x128", 2, 32, 32, 2048, 128, bf),
    ("7b 1x32x4096x128", 1, 32, 32, 4096, 128, bf),
    ("8b gqa 2x32/8x4096x128", 2, 32, 8, 4096, 128, bf),
    ("long gqa 1x32/8x16384x128", 1, 32, 8, 16384, 128, bf),
    ("head 96", 4, 16, 16, 1024, 96, bf),
    ("head 256", 2, 16, 16, 2048, 256, bf),
    ("head 80 T 1000", 4, 16, 16, 1000, 80, bf),
):
    try:
        one(*a)
    except Exception:
        R.setdefault("errors", []).append(traceback.format_exc()[-600:])
    save()
    print(a[0], flush=True)
