"""What jax.jit takes to compile the decoder of compile_scale.py's preset `toy`: AdamW,
parameters and moments split over 8 devices (FSDP), blocks unrolled. Run with a Python
that has jax (pip install jax):

    /opt/accjax/bin/python benchmarks/compile_scale_jax.py --layers 24 48 126"""
import argparse
import os
import resource
import sys
import time

DEVICES = 8
os.environ["XLA_FLAGS"] = f"--xla_force_host_platform_device_count={DEVICES}"
os.environ["JAX_PLATFORMS"] = "cpu"

import jax  # noqa: E402  (devices are counted when it is imported)
import jax.numpy as jnp  # noqa: E402
from jax.sharding import Mesh, NamedSharding, PartitionSpec  # noqa: E402

WIDTH, HEADS, INNER, VOCABULARY, SEQUENCE, BATCH = 64, 4, 256, 128, 32, 8


def shapes(layers):
    yield "embed", (VOCABULARY, WIDTH)
    for layer in range(layers):
        for name in "qkvo":
            yield f"{layer}.{name}", (WIDTH, WIDTH)
        yield f"{layer}.gate", (WIDTH, INNER)
        yield f"{layer}.up", (WIDTH, INNER)
        yield f"{layer}.down", (INNER, WIDTH)
        yield f"{layer}.norm1", (WIDTH,)
        yield f"{layer}.norm2", (WIDTH,)
    yield "norm", (WIDTH,)
    yield "head", (WIDTH, VOCABULARY)


def norm(x, weight):
    return x * jax.lax.rsqrt(jnp.mean(x * x, -1, keepdims=True) + 1e-5) * weight


def rotate(x):
    width = WIDTH // HEADS
    angles = jnp.arange(SEQUENCE)[:, None] * 10000.0 ** (-jnp.arange(0, width, 2) / width)
    cos, sin = (jnp.concatenate([f(angles)] * 2, -1) for f in (jnp.cos, jnp.sin))
    first, second = jnp.split(x, 2, -1)
    return x * cos + jnp.concatenate([-second, first], -1) * sin


def block(p, layer, x):
    def heads(y):
        return y.reshape(BATCH, SEQUENCE, HEADS, WIDTH // HEADS).transpose(0, 2, 1, 3)

    h = norm(x, p[f"{layer}.norm1"])
    q, k, v = (heads(h @ p[f"{layer}.{name}"]) for name in "qkv")
    scores = rotate(q) @ rotate(k).transpose(0, 1, 3, 2) * (WIDTH // HEADS) ** -0.5
    scores = jnp.where(jnp.tril(jnp.ones((SEQUENCE, SEQUENCE), bool)), scores, -jnp.inf)
    mixed = (jax.nn.softmax(scores) @ v).transpose(0, 2, 1, 3).reshape(BATCH, SEQUENCE, WIDTH)
    x = x + mixed @ p[f"{layer}.o"]
    h = norm(x, p[f"{layer}.norm2"])
    return x + (jax.nn.silu(h @ p[f"{layer}.gate"]) * (h @ p[f"{layer}.up"])) @ p[f"{layer}.down"]


def loss(p, layers, tokens, labels):
    x = p["embed"][tokens]
    for layer in range(layers):
        x = block(p, layer, x)
    scores = jax.nn.log_softmax(norm(x, p["norm"]) @ p["head"])
    return -jnp.mean(jnp.take_along_axis(scores, labels[..., None], -1))


def step(p, m, v, count, tokens, labels, layers):
    value, gradients = jax.value_and_grad(loss)(p, layers, tokens, labels)
    count = count + 1
    size = jnp.sqrt(sum(jnp.sum(g * g) for g in gradients.values()))
    m = {n: 0.9 * m[n] + 0.1 * g for n, g in gradients.items()}
    v = {n: 0.999 * v[n] + 0.001 * g * g for n, g in gradients.items()}
    p = {n: x * (1 - 1e-5) - 1e-3 * (m[n] / (1 - 0.9 ** count)) /
         (jnp.sqrt(v[n] / (1 - 0.999 ** count)) + 1e-8) for n, x in p.items()}
    return p, m, v, count, value, size


def measure(layers):
    mesh = Mesh(jax.devices(), ("dp",))
    rows, whole = NamedSharding(mesh, PartitionSpec("dp")), NamedSharding(mesh, PartitionSpec())
    states = {name: jax.ShapeDtypeStruct(shape, jnp.float32, sharding=rows) for name, shape in shapes(layers)}
    tokens = jax.ShapeDtypeStruct((BATCH, SEQUENCE), jnp.int32, sharding=rows)
    kept = {name: rows for name in states}
    jitted = jax.jit(step, static_argnums=6, donate_argnums=(0, 1, 2),
                     out_shardings=(kept, kept, kept, whole, whole, whole))
    begin, cpu = time.monotonic(), time.process_time()
    lowered = jitted.lower(states, states, states, jax.ShapeDtypeStruct((), jnp.float32), tokens, tokens, layers)
    traced = time.monotonic()
    lowered.compile()
    return traced - begin, time.monotonic() - begin, time.process_time() - cpu


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--layers", type=int, nargs="+", default=[24, 48, 126])
    args = parser.parse_args()
    print(f"jax {jax.__version__}\nlayers  traced s    whole s  processor s  MiB")
    for layers in args.layers:
        traced, whole, cpu = measure(layers)
        most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(f"{layers:6d} {traced:9.2f} {whole:10.2f} {cpu:12.2f} {most:4.0f}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
