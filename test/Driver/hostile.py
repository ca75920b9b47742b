"""hostile.py KIND N: the textproto of a small ONNX model of which N says how much a
compiler could make of it. Chains of N steps: silu, twice, tanh (each value is read
twice), halves (turned round by slices and a concat), rotate (x + x transposed), double (x beside itself). join:
one concat of N operands; split: one Split into N; ranges: N constants of 2^24 numbers;
products: a constant product of N^3. rows: a loss of N rows, each cut out alone. layers: a loss behind N
products with weights of their own. named: a node of no operator that is called N; long: by N letters."""
import sys

kind, n = sys.argv[1], sys.argv[2]
n = n if kind == "named" else int(n)
if kind == "long":
    kind, n = "named", "n" * n
F, I = 1, 7


def tensor(name, dims, type, values):
    data = "float_data" if type == F else "int64_data"
    return (f'initializer {{ name: "{name}" data_type: {type} '
            + "".join(f"dims: {dim} " for dim in dims)
            + "".join(f"{data}: {value} " for value in values) + "}")


def value(kind, name, dims, type=F):
    shape = "".join(f"dim {{ dim_value: {dim} }} " for dim in dims)
    return (f'{kind} {{ name: "{name}" type {{ tensor_type {{ elem_type: {type} '
            f"shape {{ {shape}}} }} }} }}")


def node(op, inputs, outputs, *attributes):
    return ("node { " + "".join(f'input: "{name}" ' for name in inputs)
            + "".join(f'output: "{name}" ' for name in outputs)
            + f'op_type: "{op}" ' + " ".join(attributes) + " }")


def integer(name, number):
    return f'attribute {{ name: "{name}" i: {number} type: INT }}'


def chain(step, shape=(4, 8), extra=()):
    lines = [value("input", "h0", shape), *extra]
    for i in range(n):
        lines += step(f"h{i}", f"h{i + 1}", f"t{i}")
    return lines + [value("output", f"h{n}", shape)]


def halves(x, y, t):
    return [node("Slice", [x, "0", "4", "1"], [t + "a"]),
            node("Slice", [x, "4", "8", "1"], [t + "b"]),
            node("Concat", [t + "b", t + "a"], [t], integer("axis", 1)),
            node("Add", [x, t], [y])]


numbers = [tensor(str(k), [1], I, [k]) for k in (0, 1, 4, 8)]
names = [f"p{i}" for i in range(n)] if kind in ("join", "split", "rows") else []
graph = {
    "silu": lambda: chain(lambda x, y, t: [
        node("Sigmoid", [x], [t]), node("Mul", [x, t], [y])]),
    "twice": lambda: chain(lambda x, y, t: [node("Add", [x, x], [y])]),
    "tanh": lambda: chain(lambda x, y, t: [
        node("Tanh", [x], [t]), node("Add", [x, t], [y])]),
    "halves": lambda: chain(halves, extra=numbers),
    "rotate": lambda: chain(lambda x, y, t: [
        node("Transpose", [x], [t]), node("Add", [x, t], [y])], (8, 8)),
    "double": lambda: [
        value("input", "h0", [1]),
        *(node("Concat", [f"h{i}"] * 2, [f"h{i + 1}"], integer("axis", 0)) for i in range(n)),
        value("output", f"h{n}", [2 ** n])],
    "neg": lambda: chain(lambda x, y, t: [node("Neg", [x], [y])]),
    "join": lambda: [
        value("input", "x", [1]), node("Concat", ["x"] * n, ["y"], integer("axis", 0)),
        value("output", "y", [n])],
    "split": lambda: [
        value("input", "x", [n]),
        node("Split", ["x"], names, integer("axis", 0), integer("num_outputs", n)),
        node("Concat", names[::-1], ["y"], integer("axis", 0)),
        value("output", "y", [n])],
    "ranges": lambda: [
        tensor("a", [], I, [0]), tensor("b", [], I, [1 << 24]), tensor("c", [], I, [1]),
        *[line for i in range(n) for line in (
            tensor(f"k{i}", [], I, [i + 2]),
            node("Range", ["a", "b", "c"], [f"r{i}"]),
            node("Mul", [f"r{i}", f"k{i}"], [f"q{i}"]),
            value("output", f"q{i}", [1 << 24], I))]],
    "products": lambda: [
        tensor("s", [2], I, [n, n]),
        node("ConstantOfShape", ["s"], ["a"]), node("Exp", ["a"], ["b"]),
        node("MatMul", ["b", "b"], ["y"]), value("output", "y", [n, n])],
    "rows": lambda: [
        tensor("one", [1], I, [1]), tensor("w", [4, 4], F, [0.5] * 16), value("input", "x", [n, 4]),
        node("MatMul", ["x", "w"], ["h"]),
        *[line for i in range(n) for line in (
            tensor(f"from{i}", [1], I, [i]), tensor(f"to{i}", [1], I, [i + 1]),
            node("Slice", ["h", f"from{i}", f"to{i}"], [f"p{i}"]))],
        node("Sum", names, ["y"]), node("ReduceMean", ["y"], ["loss"], integer("keepdims", 0)),
        value("output", "loss", [])],
    "layers": lambda: chain(lambda x, y, t: [
        tensor(f"layer.{t}.weight", [8, 8], F, [0.125] * 64),
        node("MatMul", [x, f"layer.{t}.weight"], [y])]) + [
        node("ReduceMean", [f"h{n}"], ["loss"], integer("keepdims", 0)),
        value("output", "loss", [])],
    "named": lambda: [
        value("input", "x", [1]), node("NoSuchOp", ["x"], ["y"], f'name: "{n}"'),
        value("output", "y", [1])],
    "product": lambda: [
        value("input", "a", [n, n]), value("input", "b", [n, n]),
        node("MatMul", ["a", "b"], ["y"]), value("output", "y", [n, n])],
}[kind]()
print('ir_version: 8\nopset_import { version: 18 }\ngraph { name: "g"')
print("\n".join(graph) + "\n}")
