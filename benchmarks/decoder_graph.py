"""The ONNX graph of a decoder of any size, as torch.onnx.export writes a Llama
without optimisation: RMS norms, rotary positions, grouped-query attention, gated
MLPs, a loss. Its weights are declared with their real shapes and either lie in a
file beside it or are absent: what compiles a model need not read them."""
import dataclasses
import pathlib

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper


@dataclasses.dataclass(frozen=True)
class Decoder:
    layers: int
    width: int
    heads: int
    kv_heads: int
    inner: int
    vocabulary: int
    sequence: int
    batch: int

    @property
    def head_width(self):
        return self.width // self.heads

    def parameters(self):
        """(name, shape) of each, as in transformers' state_dict."""
        kv = self.kv_heads * self.head_width
        yield "model.embed_tokens.weight", (self.vocabulary, self.width)
        for layer in range(self.layers):
            at = f"model.layers.{layer}."
            yield at + "self_attn.q_proj.weight", (self.width, self.width)
            yield at + "self_attn.k_proj.weight", (kv, self.width)
            yield at + "self_attn.v_proj.weight", (kv, self.width)
            yield at + "self_attn.o_proj.weight", (self.width, self.width)
            yield at + "mlp.gate_proj.weight", (self.inner, self.width)
            yield at + "mlp.up_proj.weight", (self.inner, self.width)
            yield at + "mlp.down_proj.weight", (self.width, self.inner)
            yield at + "input_layernorm.weight", (self.width,)
            yield at + "post_attention_layernorm.weight", (self.width,)
        yield "model.norm.weight", (self.width,)
        yield "lm_head.weight", (self.vocabulary, self.width)


PRESETS = {
    "toy": Decoder(layers=12, width=64, heads=4, kv_heads=4, inner=256, vocabulary=128, sequence=32, batch=8),
    "llama-3.1-8b": Decoder(32, 4096, 32, 8, 14336, 128256, 8192, 2048),
    "llama-3.1-70b": Decoder(80, 8192, 64, 8, 28672, 128256, 8192, 2048),
    "llama-3.1-405b": Decoder(126, 16384, 128, 8, 53248, 128256, 8192, 2048),
}


class _Graph:
    """Nodes in order, each with a name of its own."""

    def __init__(self):
        self.nodes, self.initializers, self.count = [], [], 0

    def op(self, kind, *inputs, **attributes):
        self.count += 1
        result = f"{kind.lower()}_{self.count}"
        self.nodes.append(helper.make_node(kind, list(inputs), [result], name=f"node_{result}", **attributes))
        return result

    def constant(self, values, dtype=np.int64):
        return self.op("Constant", value=numpy_helper.from_array(np.asarray(values, dtype)))


def _rotate(graph, x, half, width, cos, sin):
    begin, middle, end = graph.constant([0]), graph.constant([half]), graph.constant([width])
    last = graph.constant([3])
    first, second = graph.op("Slice", x, begin, middle, last), graph.op("Slice", x, middle, end, last)
    turned = graph.op("Concat", graph.op("Neg", second), first, axis=-1)
    return graph.op("Add", graph.op("Mul", x, cos), graph.op("Mul", turned, sin))


def _attention(graph, size, x, at, cos, sin):
    def project(name, heads):
        weight = graph.op("Transpose", f"{at}self_attn.{name}.weight", perm=[1, 0])
        rows = graph.op("Reshape", graph.op("MatMul", x, weight),
                        graph.constant([size.batch, size.sequence, heads, size.head_width]))
        return graph.op("Transpose", rows, perm=[0, 2, 1, 3])

    q, k, v = project("q_proj", size.heads), project("k_proj", size.kv_heads), project("v_proj", size.kv_heads)
    half = size.head_width // 2
    q, k = (_rotate(graph, t, half, size.head_width, cos, sin) for t in (q, k))
    mixed = graph.op("Attention", q, k, v, is_causal=1, scale=size.head_width ** -0.5)
    rows = graph.op("Reshape", graph.op("Transpose", mixed, perm=[0, 2, 1, 3]),
                    graph.constant([size.batch, size.sequence, size.width]))
    return graph.op("MatMul", rows, graph.op("Transpose", f"{at}self_attn.o_proj.weight", perm=[1, 0]))


def make_graph(size):
    """The nodes, their constants and the name of the loss."""
    graph = _Graph()

    def linear(x, name):
        return graph.op("MatMul", x, graph.op("Transpose", name + ".weight", perm=[1, 0]))

    def norm(x, name):
        return graph.op("RMSNormalization", x, name + ".weight", axis=-1, epsilon=1e-5)

    angles = np.outer(np.arange(size.sequence),
                      10000.0 ** (-np.arange(0, size.head_width, 2) / size.head_width))
    angles = np.concatenate([angles, angles], -1)[None, None]
    cos, sin = (graph.constant(f(angles), np.float32) for f in (np.cos, np.sin))
    x = graph.op("Gather", "model.embed_tokens.weight", "input_ids", axis=0)
    for layer in range(size.layers):
        at = f"model.layers.{layer}."
        x = graph.op("Add", x, _attention(graph, size, norm(x, at + "input_layernorm"), at, cos, sin))
        h = norm(x, at + "post_attention_layernorm")
        gate = linear(h, at + "mlp.gate_proj")
        inner = graph.op("Mul", graph.op("Mul", gate, graph.op("Sigmoid", gate)), linear(h, at + "mlp.up_proj"))
        x = graph.op("Add", x, linear(inner, at + "mlp.down_proj"))
    logits = linear(norm(x, "model.norm"), "lm_head")
    rows = graph.op("Reshape", logits, graph.constant([-1, size.vocabulary]))
    labels = graph.op("Reshape", "labels", graph.constant([-1]))
    graph.nodes.append(helper.make_node("SoftmaxCrossEntropyLoss", [rows, labels], ["loss"], name="node_loss",
                                        ignore_index=-100, reduction="mean"))
    return graph


def write(size, folder, weights):
    """Writes FOLDER/model.onnx; its weights, of ones and small numbers, only if `weights`."""
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    graph = make_graph(size)
    offset, rng = 0, np.random.default_rng(0)
    data = open(folder / "model.onnx.data", "wb") if weights else None
    for name, shape in size.parameters():
        tensor = TensorProto(name=name, dims=shape, data_type=TensorProto.FLOAT,
                             data_location=TensorProto.EXTERNAL)
        length = 4 * int(np.prod(shape, dtype=np.int64))
        for key, value in (("location", "model.onnx.data"), ("offset", offset), ("length", length)):
            tensor.external_data.add(key=key, value=str(value))
        graph.initializers.append(tensor)
        offset += length
        if data:
            values = np.ones(shape) if len(shape) == 1 else rng.normal(0, 0.02, shape)
            data.write(values.astype(np.float32).tobytes())
    if data:
        data.close()
    tokens = [helper.make_tensor_value_info(name, TensorProto.INT64, [size.batch, size.sequence])
              for name in ("input_ids", "labels")]
    loss = helper.make_tensor_value_info("loss", TensorProto.FLOAT, [])
    model = helper.make_model(helper.make_graph(graph.nodes, "decoder", tokens, [loss], graph.initializers),
                              opset_imports=[helper.make_opsetid("", 23)], producer_name="acc benchmarks",
                              ir_version=10)
    onnx.save(model, folder / "model.onnx")
