"""Llama in plain JAX, as its parameters are named in transformers, without the prefix
`model.`. In `dtype` bfloat16 it does as PyTorch's autocast: products of matrices in
bfloat16, norms, rotation, softmax and the residual stream's sums in float32. Query heads
that share a key head are one dimension of the products, so no key is repeated."""
import jax
import jax.numpy as jnp
import numpy as np

PREFIX = "model."


def forward(p, tokens, config, dtype=jnp.float32, place=lambda kind, x: x):
    """The logits. `config` has transformers' names. `place` says where on a mesh the
    queries, keys and values ("heads") are, what attention leaves ("mixed") and what the
    logits are made of ("last")."""
    heads, groups = config["num_attention_heads"], config["num_key_value_heads"]
    width = config["hidden_size"] // heads

    def norm(x, name):
        x = x.astype(jnp.float32)
        return x * jax.lax.rsqrt(jnp.square(x).mean(-1, keepdims=True) + 1e-6) * p[name + ".weight"]

    def linear(x, name):
        return x.astype(dtype) @ p[name + ".weight"].astype(dtype).T

    angles = np.arange(tokens.shape[1])[:, None] / 10000.0 ** (np.arange(0, width, 2) / width)
    cos, sin = (jnp.asarray(np.tile(f(angles), 2)[:, None], jnp.float32) for f in (np.cos, np.sin))

    def rotate(x):
        x = x.astype(jnp.float32)
        low, high = jnp.split(x, 2, axis=-1)
        return (x * cos + jnp.concatenate([-high, low], axis=-1) * sin).astype(dtype)

    def attention(x, name):
        batch, length, _ = x.shape

        def split(kind, count):
            made = linear(x, f"{name}.{kind}_proj").reshape(batch, length, count, width)
            return place("heads", made)

        q = rotate(split("q", heads)).reshape(batch, length, groups, heads // groups, width)
        k, v = rotate(split("k", groups)), split("v", groups)
        scores = jnp.einsum("bsgrd,btgd->bgrst", q, k).astype(jnp.float32) / np.float32(np.sqrt(width))
        causal = jnp.tril(jnp.ones((length, length), bool))
        weights = jax.nn.softmax(jnp.where(causal, scores, -jnp.inf), axis=-1).astype(dtype)
        mixed = jnp.einsum("bgrst,btgd->bsgrd", weights, v).reshape(batch, length, heads * width)
        return linear(place("mixed", mixed), name + ".o_proj")

    x = p["embed_tokens.weight"][tokens]
    for i in range(config["num_hidden_layers"]):
        layer = f"layers.{i}"
        x = x + attention(norm(x, layer + ".input_layernorm"), layer + ".self_attn").astype(jnp.float32)
        inner = norm(x, layer + ".post_attention_layernorm")
        gated = jax.nn.silu(linear(inner, layer + ".mlp.gate_proj")) * linear(inner, layer + ".mlp.up_proj")
        x = x + linear(gated, layer + ".mlp.down_proj").astype(jnp.float32)
    return place("last", norm(x, "norm")).astype(dtype) @ p["embed_tokens.weight"].astype(dtype).T
