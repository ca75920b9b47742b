#!/usr/bin/env python3
"""Writes a small model of tokens, with a table of positions that is trained, as nn text:
make_positions.py > m.mlir. It takes input_ids and labels [4, 8], numbers below 64."""
import math

WORDS, TOKENS, WIDTH, INNER = 64, 8, 16, 32
STATES = {"words": (WORDS, WIDTH), "positions": (TOKENS, WIDTH), "scale": (WIDTH,), "shift": (WIDTH,),
          "up": (INNER, WIDTH), "down": (WIDTH, INNER), "head": (WORDS, WIDTH)}


def kind(*shape, element="f64"):
    return f"tensor<{'x'.join(map(str, (*shape, element)))}>"


def matrix(shape, seed):
    number = iter(f"{math.sin(seed + 1.7 * i) / 2:.4f}" for i in range(math.prod(shape)))
    rows = [f"[{', '.join(next(number) for _ in range(shape[-1]))}]"
            for _ in range(math.prod(shape[:-1]))]
    return rows[0] if len(shape) == 1 else f"[{', '.join(rows)}]"


def main():
    rows, x = 4 * TOKENS, kind(4, TOKENS, WIDTH)
    ids, norm, line = kind(4, TOKENS, element="i64"), kind(WIDTH), kind(rows)
    wide, logits = kind(4, TOKENS, INNER), kind(4, TOKENS, WORDS)
    product = "nn.matmul {}, %{} {{transpose_rhs}} : ({}, {}) -> {}"
    print('module attributes {accel.phase = "nn"} {')
    for seed, (name, shape) in enumerate(STATES.items()):
        print(f"  nn.state @{name} : {kind(*shape)} = dense<{matrix(shape, seed)}>")
    arguments = [f'%{name}: {ids} {{nn.input = "{name}"}}' for name in ("input_ids", "labels")]
    arguments += [f"%{name}: {kind(*shape)} {{nn.state = @{name}}}" for name, shape in STATES.items()]
    print(f"""  func.func @main({', '.join(arguments)})
      -> ({kind()} {{nn.output = "loss"}}) attributes {{nn.entry}} {{
    %tokens = nn.gather %words, %input_ids dim 0 : ({kind(WORDS, WIDTH)}, {ids}) -> {x}
    %places = nn.broadcast %positions : ({kind(TOKENS, WIDTH)}) -> {x}
    %x = nn.add %tokens, %places : {x}
    %first = nn.layer_norm %x, %scale, %shift dim 2 epsilon 1.0e-5 : ({x}, {norm}, {norm}) -> {x}
    %wide = {product.format('%first', 'up', x, kind(INNER, WIDTH), wide)}
    %relu = nn.relu %wide : {wide}
    %narrow = {product.format('%relu', 'down', wide, kind(WIDTH, INNER), x)}
    %y = nn.add %x, %narrow : {x}
    %last = nn.layer_norm %y, %scale, %shift dim 2 epsilon 1.0e-5 : ({x}, {norm}, {norm}) -> {x}
    %logits = {product.format('%last', 'head', x, kind(WORDS, WIDTH), logits)}
    %rows = nn.reshape %logits : ({logits}) -> {kind(rows, WORDS)}
    %classes = nn.reshape %labels : ({ids}) -> {kind(rows, element='i64')}
    %each = nn.cross_entropy %rows, %classes : ({kind(rows, WORDS)}, {kind(rows, element='i64')}) -> {line}
    %loss = nn.reduce sum %each dims [0] : ({line}) -> {kind()}
    return %loss : {kind()}
  }}
}}""")


if __name__ == "__main__":
    main()
