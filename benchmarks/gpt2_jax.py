"""GPT-2 in plain JAX, as its parameters are named in transformers, without the
prefix `transformer.`. In `dtype` bfloat16 it does as PyTorch's autocast: products
of matrices in bfloat16, norms, softmax and the residual stream's sums in float32."""
import jax
import jax.numpy as jnp
import numpy as np

PREFIX = "transformer."


def forward(p, tokens, config, dtype=jnp.float32, place=lambda kind, x: x):
    """The logits. `config` has transformers' names. `place` says where on a mesh the
    queries, keys and values ("heads") are, what attention leaves ("mixed") and what the
    logits are made of ("last"). The weight of query, key and value may be in three parts."""
    heads = config["n_head"]

    def norm(x, name):
        x = x.astype(jnp.float32)
        centred = x - x.mean(-1, keepdims=True)
        scale = jax.lax.rsqrt(jnp.square(centred).mean(-1, keepdims=True) + 1e-5)
        return centred * scale * p[name + ".weight"] + p[name + ".bias"]

    def linear(x, name):
        weight, bias = p[name + ".weight"].astype(dtype), p[name + ".bias"].astype(dtype)
        return jnp.tensordot(x.astype(dtype), weight, 1) + bias

    def attention(x, name):
        batch, length, width = x.shape

        def split(t):
            t = place("heads", t.reshape(batch, length, heads, width // heads))
            return t.transpose(0, 2, 1, 3)

        made = linear(x, name + ".c_attn")
        parts = jnp.split(made, 3, axis=-1) if made.ndim == 3 else (made[:, :, i] for i in range(3))
        q, k, v = map(split, parts)
        scores = q @ k.transpose(0, 1, 3, 2) / np.sqrt(width // heads).astype(np.float32)
        causal = jnp.tril(jnp.ones((length, length), bool))
        scores = jnp.where(causal, scores.astype(jnp.float32), -jnp.inf)
        weights = jax.nn.softmax(scores, axis=-1).astype(dtype)
        mixed = (weights @ v).transpose(0, 2, 1, 3).reshape(batch, length, width)
        return linear(place("mixed", mixed), name + ".c_proj")

    x = p["wte.weight"][tokens] + p["wpe.weight"][: tokens.shape[1]]
    for i in range(config["n_layer"]):
        h = f"h.{i}"
        x = x + attention(norm(x, h + ".ln_1"), h + ".attn").astype(jnp.float32)
        inner = jax.nn.gelu(linear(norm(x, h + ".ln_2"), h + ".mlp.c_fc"), approximate=True)
        x = x + linear(inner, h + ".mlp.c_proj").astype(jnp.float32)
    return place("last", norm(x, "ln_f")).astype(dtype) @ p["wte.weight"].astype(dtype).T
