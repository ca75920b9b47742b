"""A training step in plain JAX around any model's `forward`: the loss of transformers,
clipping and AdamW as PyTorch has them."""
import jax
import jax.numpy as jnp
import numpy as np


def load(path, prefix):
    """Parameters under transformers' names without the prefix."""
    with np.load(path) as arrays:
        return {name.removeprefix(prefix): jnp.asarray(arrays[name]) for name in arrays.files}


def mean_loss(logits, labels):
    """The mean cross-entropy; labels are shifted here, as in transformers."""
    logits = logits[:, :-1].astype(jnp.float32)
    picked = jnp.take_along_axis(logits, labels[:, 1:, None], axis=-1)[..., 0]
    return (jax.nn.logsumexp(logits, axis=-1) - picked).mean()


def train_step(forward, settings, criterion=mean_loss):
    """A function of (parameters, moments, step, tokens, labels) that returns the new
    ones and the loss; `forward` gives the logits of (parameters, tokens), `criterion`
    the loss of (logits, labels)."""
    first, second = settings["betas"]

    def loss(p, tokens, labels):
        return criterion(forward(p, tokens), labels)

    def step(p, moments, count, tokens, labels):
        value, g = jax.value_and_grad(loss)(p, tokens, labels)
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
