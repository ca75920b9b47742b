"""GPT-2 124M's step in plain JAX (benchmarks/gpt2_jax.py, jax_training.py), bf16 products. usage: jax_peer.py FOLDER"""

import json
import os
import sys
import time
import jax
import jax.numpy as jnp
import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import gpt2_jax  # noqa: E402
import jax_training  # noqa: E402

folder = sys.argv[1]
B, T, C, L, V = 8, 1024, 768, 12, 50257
rng = np.random.default_rng(0)
p = {"wte.weight": (V, C), "wpe.weight": (T, C), "ln_f.weight": (C,), "ln_f.bias": (C,)}
for i in range(L):
    for n, s in (
        ("ln_1", (C,)),
        ("attn.c_attn", (C, 3 * C)),
        ("attn.c_proj", (C, C)),
        ("ln_2", (C,)),
        ("mlp.c_fc", (C, 4 * C)),
        ("mlp.c_proj", (4 * C, C)),
    ):
        p[f"h.{i}.{n}.weight"] = s
        p[f"h.{i}.{n}.bias"] = s[-1:]
p = {
    n: jnp.asarray(
        np.ones(s, np.float32)
        if ".ln" in n and "weight" in n or n == "ln_f.weight"
        else np.zeros(s, np.float32)
        if n.endswith("bias")
        else rng.normal(0, 0.02, s).astype(np.float32)
    )
    for n, s in p.items()
}
m = {n: (jnp.zeros_like(v), jnp.zeros_like(v)) for n, v in p.items()}
cfg = dict(n_head=12, n_layer=L)
set_ = dict(betas=(0.9, 0.999), clip=1e30, eps=1e-8, lr=1e-4, weight_decay=0.1)
step = jax.jit(
    jax_training.train_step(lambda q, t: gpt2_jax.forward(q, t, cfg, jnp.bfloat16), set_),
    donate_argnums=(0, 1),
)
ids = jnp.asarray(rng.integers(0, V, (B, T)))
n = jnp.float32(0)
t = time.time()
p, m, n, loss = step(p, m, n, ids, ids)
l0 = float(loss)
warm = time.time() - t
open(f"{folder}/jax.ready", "w").close()
while not os.path.exists(f"{folder}/jax.go"):
    time.sleep(0.05)
ts = []
for _ in range(4):
    t = time.perf_counter()
    for _ in range(6):
        p, m, n, loss = step(p, m, n, ids, ids)
    loss.block_until_ready()
    ts.append((time.perf_counter() - t) / 6)
s = sorted(ts[1:])[1]
json.dump(
    dict(
        name="gpt2-bf16-jax",
        step_ms=s * 1e3,
        tokens_per_s=B * T / s,
        peak_GiB=jax.devices()[0].memory_stats().get("peak_bytes_in_use", 0) / 2**30,
        warm_s=warm,
        loss=[l0, float(loss)],
        jax=jax.__version__,
    ),
    open(f"{folder}/jax.json", "w"),
)
