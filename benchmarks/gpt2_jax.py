"""GPT-2 in plain JAX, as its parameters are named in transformers, without the
prefix `transformer.`. In `dtype` bfloat16 it does as PyTorch's autocast: products
of matrices in bfloat16, norms, softmax and the residual stream's sums in float32."""
import jax
import jax.numpy as jnp
import numpy as np

PREFIX = "transformer."


def forward(p, tokens, config, dtype=jnp.float32):
    """The logits. `config` has transformers' names."""
    heads = config["n_head"]

    def norm(x, name):
        x = x.astype(jnp.float32)
        centred = x - x.mean(-1, keepdims=True)
        scale = jax.lax.rsqrt(jnp.square(centred).mean(-1, keepdims=True) + 1e-5)
        return centred * scale * p[name + ".weight"] + p[name + ".bias"]

    def linear(x, name):
        weight, bias = p[name + ".weight"].astype(dtype), p[name + ".bias"].astype(dtype)
        return x.astype(dtype) @ weight + bias

    def attention(x, name):
        batch, length, width = x.shape

        def split(t):
            return t.reshape(batch, length, heads, width // heads).transpose(0, 2, 1, 3)

        q, k, v = map(split, jnp.split(linear(x, name + ".c_attn"), 3, axis=-1))
        scores = q @ k.transpose(0, 1, 3, 2) / np.sqrt(width // heads).astype(np.float32)
        causal = jnp.tril(jnp.ones((length, length), bool))
        scores = jnp.where(causal, scores.astype(jnp.float32), -jnp.inf)
        weights = jax.nn.softmax(scores, axis=-1).astype(dtype)
        mixed = (weights @ v).transpose(0, 2, 1, 3).reshape(batch, length, width)
        return linear(mixed, name + ".c_proj")

    x = p["wte.weight"][tokens] + p["wpe.weight"][: tokens.shape[1]]
    for i in range(config["n_layer"]):
        h = f"h.{i}"
        x = x + attention(norm(x, h + ".ln_1"), h + ".attn").astype(jnp.float32)
        inner = jax.nn.gelu(linear(norm(x, h + ".ln_2"), h + ".mlp.c_fc"), approximate=True)
        x = x + linear(inner, h + ".mlp.c_proj").astype(jnp.float32)
    return norm(x, "ln_f").astype(dtype) @ p["wte.weight"].astype(dtype).T
