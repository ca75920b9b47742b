#!/usr/bin/env python3
"""Makes line/: the linear regression that docs/Tour.md follows through the phases, the mean
of (x w - t)² over a batch.

Writes model.onnx (symbolic batch), inputs/x.npy and t.npy, and expected/curve.json: the losses
of ten steps of SGD, computed in float64 by numpy. Needs the environment of requirements.txt;
run it from here."""

import json
import pathlib

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

WIDTH, OUT, BATCH, RATE = 4, 2, 8, 0.1


def main():
    rng = np.random.default_rng(11)
    weight = rng.normal(0, WIDTH**-0.5, (WIDTH, OUT)).astype(np.float32)
    nodes = [
        helper.make_node("MatMul", ["x", "weight"], ["y"], "line/MatMul"),
        helper.make_node("Sub", ["y", "t"], ["error"], "error/Sub"),
        helper.make_node("Mul", ["error", "error"], ["square"], "square/Mul"),
        helper.make_node("ReduceMean", ["square"], ["loss"], "loss/ReduceMean", keepdims=0),
    ]
    graph = helper.make_graph(
        nodes, "line",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", WIDTH]),
         helper.make_tensor_value_info("t", TensorProto.FLOAT, ["batch", OUT])],
        [helper.make_tensor_value_info("loss", TensorProto.FLOAT, [])],
        [numpy_helper.from_array(weight, "weight")])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)],
                              ir_version=10, producer_name="make_line.py")
    onnx.checker.check_model(model)

    folder = pathlib.Path(__file__).parent / "line"
    for name in ("inputs", "expected"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    onnx.save(model, folder / "model.onnx")
    x = rng.normal(0, 1, (BATCH, WIDTH)).astype(np.float32)
    t = (x @ rng.normal(0, 1, (WIDTH, OUT))).astype(np.float32)
    np.save(folder / "inputs" / "x.npy", x)
    np.save(folder / "inputs" / "t.npy", t)

    x, t, w = (value.astype(np.float64) for value in (x, t, weight))
    losses = []
    for _ in range(10):
        error = x @ w - t
        losses.append(float((error**2).mean()))
        w -= RATE * 2 * x.T @ error / error.size
    (folder / "expected" / "curve.json").write_text(json.dumps({"loss": losses}) + "\n")


if __name__ == "__main__":
    main()
