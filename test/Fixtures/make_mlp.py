#!/usr/bin/env python3
"""Makes mlp/: a two-layer network with a residual connection.

Writes model.onnx (symbolic batch), inputs/x.npy and expected/y.npy, computed in
float64 by numpy. Needs the environment of requirements.txt; run it from here."""

import math
import pathlib

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

WIDTH, HIDDEN, BATCH = 16, 32, 8


def main():
    rng = np.random.default_rng(7)
    values = {
        "up.weight": rng.normal(0, WIDTH**-0.5, (WIDTH, HIDDEN)),
        "up.bias": rng.normal(0, 0.1, HIDDEN),
        "down.weight": rng.normal(0, HIDDEN**-0.5, (HIDDEN, WIDTH)),
        "norm.weight": 1 + rng.normal(0, 0.1, WIDTH),
        "norm.bias": rng.normal(0, 0.1, WIDTH),
    }
    values = {name: value.astype(np.float32) for name, value in values.items()}
    nodes = [
        helper.make_node("MatMul", ["x", "up.weight"], ["up_product"], "up/MatMul"),
        helper.make_node("Add", ["up_product", "up.bias"], ["up_out"], "up/Add"),
        helper.make_node("Gelu", ["up_out"], ["hidden"], "act/Gelu", approximate="none"),
        helper.make_node("MatMul", ["hidden", "down.weight"], ["down_out"], "down/MatMul"),
        helper.make_node("Add", ["x", "down_out"], ["residual"], "residual/Add"),
        helper.make_node("LayerNormalization", ["residual", "norm.weight", "norm.bias"],
                         ["y"], "norm/LayerNormalization", axis=-1, epsilon=1e-5),
    ]
    shape = ["batch", WIDTH]
    graph = helper.make_graph(
        nodes, "mlp",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, shape)],
        [numpy_helper.from_array(value, name) for name, value in values.items()])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)],
                              ir_version=10, producer_name="make_mlp.py")
    onnx.checker.check_model(model)

    folder = pathlib.Path(__file__).parent / "mlp"
    for name in ("inputs", "expected"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    onnx.save(model, folder / "model.onnx")
    x = rng.normal(0, 1, (BATCH, WIDTH)).astype(np.float32)
    np.save(folder / "inputs" / "x.npy", x)

    w = {name: value.astype(np.float64) for name, value in values.items()}
    hidden = x.astype(np.float64) @ w["up.weight"] + w["up.bias"]
    erf = np.vectorize(math.erf)
    hidden = hidden / 2 * (1 + erf(hidden / math.sqrt(2)))
    y = x + hidden @ w["down.weight"]
    centred = y - y.mean(-1, keepdims=True)
    y = centred / np.sqrt((centred**2).mean(-1, keepdims=True) + 1e-5)
    np.save(folder / "expected" / "y.npy",
            (y * w["norm.weight"] + w["norm.bias"]).astype(np.float32))


if __name__ == "__main__":
    main()
