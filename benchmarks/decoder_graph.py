"""The ONNX graph of a decoder of any size, as torch.onnx.export writes a Llama
without optimisation: RMS norms, rotary positions, grouped-query attention, gated
MLPs, a loss. Its weights are declared with their real shapes and either lie in a
file beside it or are absent: what compiles a model need not read them. Written by
hand, so that tests may use it: they have no onnx.

    benchmarks/decoder_graph.py DIR --preset toy --layers 126"""
import argparse
import array
import dataclasses
import math
import pathlib
import random
import struct
import sys


def _varint(value):
    value &= (1 << 64) - 1  # negative numbers are those of 64 bits
    result = bytearray()
    while value > 127:
        result.append(value & 127 | 128)
        value >>= 7
    result.append(value)
    return bytes(result)


def _message(*fields):
    """A protobuf message of (number, value): integers, floats, text or bytes."""
    result = bytearray()
    for number, value in fields:
        if isinstance(value, int):
            result += _varint(number << 3) + _varint(value)
        elif isinstance(value, float):
            result += _varint(number << 3 | 5) + struct.pack("<f", value)
        else:
            value = value.encode() if isinstance(value, str) else value
            result += _varint(number << 3 | 2) + _varint(len(value)) + value
    return bytes(result)


FLOAT, INT64 = 1, 7  # TensorProto.DataType


def _tensor(shape, data_type, *fields):
    return _message(*((1, size) for size in shape), (2, data_type), *fields)


def _attribute(name, value):
    if isinstance(value, bytes):  # a tensor
        return _message((1, name), (5, value), (20, 4))
    if isinstance(value, str):
        return _message((1, name), (4, value), (20, 3))
    if isinstance(value, list):
        return _message((1, name), *((8, each) for each in value), (20, 7))
    return _message((1, name), (3 if isinstance(value, int) else 2, value),
                    (20, 2 if isinstance(value, int) else 1))


def _node(kind, inputs, result, name, **attributes):
    return _message(*((1, each) for each in inputs), (2, result), (3, name), (4, kind),
                    *((5, _attribute(*each)) for each in attributes.items()))


def _value(name, data_type, shape):
    dims = _message(*((1, _message((1, size))) for size in shape))
    return _message((1, name), (2, _message((1, _message((1, data_type), (2, dims))))))


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
    """Nodes in order, each with a name of its own: the path of its module, as exporters write it."""

    def __init__(self):
        self.nodes, self.count, self.module = [], 0, ""

    def op(self, kind, *inputs, **attributes):
        self.count += 1
        result = f"{kind.lower()}_{self.count}"
        path = self.module.replace(".", "/").replace("layers/", "layers.")
        name = f"/{path}/{result}" if path else f"node_{result}"
        self.nodes.append(_node(kind, inputs, result, name, **attributes))
        return result

    def constant(self, values):
        return self.op("Constant", value=_tensor([len(values)], INT64,
                                                 (9, struct.pack(f"<{len(values)}q", *values))))


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

    speeds = [10000.0 ** (-at / size.head_width) for at in range(0, size.head_width, 2)] * 2
    cos, sin = (graph.op("Constant", value=_tensor(
        [1, 1, size.sequence, size.head_width], FLOAT,
        (9, array.array("f", (f(at * speed) for at in range(size.sequence) for speed in speeds)).tobytes())))
        for f in (math.cos, math.sin))
    x = graph.op("Gather", "model.embed_tokens.weight", "input_ids", axis=0)
    for layer in range(size.layers):
        at = f"model.layers.{layer}."
        graph.module = at + "self_attn"
        x = graph.op("Add", x, _attention(graph, size, norm(x, at + "input_layernorm"), at, cos, sin))
        graph.module = at + "mlp"
        h = norm(x, at + "post_attention_layernorm")
        gate = linear(h, at + "mlp.gate_proj")
        inner = graph.op("Mul", graph.op("Mul", gate, graph.op("Sigmoid", gate)), linear(h, at + "mlp.up_proj"))
        x = graph.op("Add", x, linear(inner, at + "mlp.down_proj"))
    graph.module = ""
    logits = linear(norm(x, "model.norm"), "lm_head")
    rows = graph.op("Reshape", logits, graph.constant([-1, size.vocabulary]))
    labels = graph.op("Reshape", "labels", graph.constant([-1]))
    graph.nodes.append(_node("SoftmaxCrossEntropyLoss", [rows, labels], "loss", "node_loss",
                             ignore_index=-100, reduction="mean"))
    return graph


def _weights(shape, small):
    """The bytes of a parameter: ones, or small numbers that repeat."""
    count = math.prod(shape)
    if len(shape) == 1:
        return array.array("f", [1.0]) * count
    return small[count % 61:] * (count // len(small) + 2)


def write(size, folder, weights):
    """Writes FOLDER/model.onnx; its weights, of ones and small numbers, only if `weights`."""
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    graph = make_graph(size)
    draw = random.Random(0)
    small = array.array("f", (draw.gauss(0, 0.02) for _ in range(65521))) if weights else None
    offset, initializers = 0, []
    data = open(folder / "model.onnx.data", "wb") if weights else None
    for name, shape in size.parameters():
        length = 4 * math.prod(shape)
        entries = (("location", "model.onnx.data"), ("offset", str(offset)), ("length", str(length)))
        initializers.append(_tensor(shape, FLOAT, (8, name), *(
            (13, _message((1, key), (2, value))) for key, value in entries), (14, 1)))
        offset += length
        if data:
            data.write(_weights(shape, small)[:length // 4].tobytes())
    if data:
        data.close()
    tokens = [_value(name, INT64, [size.batch, size.sequence]) for name in ("input_ids", "labels")]
    body = _message(*((1, node) for node in graph.nodes), (2, "decoder"), *((5, each) for each in initializers),
                    *((11, each) for each in tokens), (12, _value("loss", FLOAT, [])))
    (folder / "model.onnx").write_bytes(
        _message((1, 10), (2, "acc benchmarks"), (7, body), (8, _message((1, ""), (2, 23)))))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--preset", choices=PRESETS, default="toy")
    parser.add_argument("--weights", action="store_true", help="write them, too")
    for field in dataclasses.fields(Decoder):
        parser.add_argument("--" + field.name.replace("_", "-"), type=int)
    args = parser.parse_args()
    given = {field.name: getattr(args, field.name) for field in dataclasses.fields(Decoder)}
    size = dataclasses.replace(PRESETS[args.preset], **{k: v for k, v in given.items() if v})
    write(size, args.folder, args.weights)


if __name__ == "__main__":
    sys.exit(main())
