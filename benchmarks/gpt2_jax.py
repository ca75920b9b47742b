"""GPT-2 in plain JAX, as its parameters are named in transformers, without the
prefix `transformer.`. In `dtype` bfloat16 it does as PyTorch's autocast: products
of matrices in bfloat16, norms, softmax and the residual stream's sums in float32."""
import jax
import jax.numpy as jnp
import numpy as np


def load(path):
    with np.load(path) as arrays:
        return {name.removeprefix("transformer."): jnp.asarray(arrays[name])
                for name in arrays.files}


def forward(p, tokens, heads, layers, dtype=jnp.float32):
    """The logits."""

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
    for i in range(layers):
        h = f"h.{i}"
        x = x + attention(norm(x, h + ".ln_1"), h + ".attn").astype(jnp.float32)
        inner = jax.nn.gelu(linear(norm(x, h + ".ln_2"), h + ".mlp.c_fc"), approximate=True)
        x = x + linear(inner, h + ".mlp.c_proj").astype(jnp.float32)
    return norm(x, "ln_f").astype(dtype) @ p["wte.weight"].astype(dtype).T


def loss(p, tokens, labels, heads, layers, dtype):
    """The mean cross-entropy; labels are shifted here, as in transformers."""
    logits = forward(p, tokens, heads, layers, dtype)[:, :-1].astype(jnp.float32)
    picked = jnp.take_along_axis(logits, labels[:, 1:, None], axis=-1)[..., 0]
    return (jax.nn.logsumexp(logits, axis=-1) - picked).mean()


def train_step(heads, layers, dtype, settings):
    """A function of (parameters, moments, step, tokens, labels) that returns the new
    ones and the loss: clipping and AdamW as PyTorch has them."""
    first, second = settings["betas"]

    def step(p, moments, count, tokens, labels):
        value, g = jax.value_and_grad(loss)(p, tokens, labels, heads, layers, dtype)
        total = jnp.sqrt(sum(jnp.sum(jnp.square(v)) for v in g.values()))
        scale = jnp.minimum(1.0, settings["clip"] / (total + 1e-6))
        count = count + 1
        new, kept = {}, {}
        for name in p:
            gradient = g[name] * scale
            m, v = moments[name]
            m = first * m + (1 - first) * gradient
            v = second * v + (1 - second) * jnp.square(gradient)
            kept[name] = (m, v)
            update = m / (1 - first**count)
            update /= jnp.sqrt(v / (1 - second**count)) + settings["eps"]
            decayed = p[name] * (1 - settings["lr"] * settings["weight_decay"])
            new[name] = decayed - settings["lr"] * update
        return new, kept, count, value

    return step
