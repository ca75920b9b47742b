"""The IR of a fact's program, which its table writes in statements (check_facts.py)."""

import sys

UNARY = {"neg", "exp", "erf", "abs", "sin", "cos", "tanh", "relu", "sqrt", "log"}
BINARY = {"add", "sub", "mul", "div", "min", "max"}


class Value:
    def __init__(self, text):
        shape, _, self.element = text.partition(":")
        self.shape = [int(size) for size in shape.split("x")] if shape != "scalar" else []
        self.element = self.element or "f32"

    def type(self, sharding=""):
        encoding = f", #dist.sharding<@mesh, {sharding}>" if sharding else ""
        return f"tensor<{''.join(f'{size}x' for size in self.shape)}{self.element}{encoding}>"


def made(shape, element="f32"):
    return Value(("x".join(map(str, shape)) or "scalar") + ":" + element)


def sharding(text):
    """`a.b?,-` as dist writes it."""
    def dim(word):
        axes = [axis for axis in word.rstrip("?").split(".") if axis not in ("", "-")]
        return "{%s}" % ", ".join(axes + ["?"] * word.endswith("?"))
    dims, _, partial = text.partition("+")
    lists = ", ".join(dim(word) for word in dims.split(",")) if dims != "scalar" else ""
    return f"[{lists}]" + (", partial = {%s}" % ", ".join(partial.split(".")) if partial else "")


class Program:
    """The IR of a fact; lines that say where a value is, in `places`."""

    def __init__(self, fact):
        self.values, self.arguments, self.body = {}, [], []
        self.places = {}  # line of the body, or ("argument", i): name of a value
        self.returned = []
        self.reshards = False
        self.name = fact.name
        for statement in fact.program.split(";"):
            words = statement.split()
            if words[1:2] == ["="]:
                self.op(words[0], *words[2:])
            else:
                self.given(*words)
        axes = [axis.split("=") for axis in fact.mesh.split(",")]
        self.mesh = ", ".join(f'"{axis}" = {size}' for axis, size in axes)

    def place(self, name, line):
        self.places[len(self.body)] = name
        self.body.append("  " + line)
        self.returned.append(name)

    def constrain(self, name, text):
        self.places = {line: value for line, value in self.places.items() if value != name}
        kind = self.values[name].type()
        self.body.append(f"  %c_{name} = dist.constraint %{name} to <@mesh, {sharding(text)}> : {kind}")
        self.places[len(self.body) - 1] = name

    def use(self, name):
        return f"%c_{name}" if any(line.startswith(f"  %c_{name} =") for line in self.body) else f"%{name}"

    def given(self, name, shape, dims=""):
        self.values[name] = Value(shape)
        self.arguments.append((name, dims))
        self.places["argument", len(self.arguments) - 1] = name
        if dims:
            self.constrain(name, dims)

    def op(self, name, op, *words):
        words = list(words)
        dims = ""
        if ":" in words:
            dims = words[words.index(":") + 1]
            words = words[:words.index(":")]
        for word in words:  # what is read no longer is a result
            if word in self.returned:
                self.returned.remove(word)
        if op == "reshard":
            return self.reshard(name, *words)
        inputs = [word for word in words if word in self.values]
        rest = [word for word in words if word not in self.values]
        uses = ", ".join(self.use(value) for value in inputs)
        kinds = [self.values[value] for value in inputs]
        self.values[name], attributes, form = self.shape(op, kinds, *rest)
        result = self.values[name].type()
        if op == "constant":
            self.place(name, f"%{name} = nn.constant dense<1.0> : {result}")
        elif form == "one":
            self.place(name, f"%{name} = nn.{op} {uses}{attributes} : {result}")
        else:
            head = f"%{name} = nn.{op.split('_')[0] if op.startswith(('reduce_', 'matmul_')) else op}"
            head += f" {op.split('_')[1]}" if op.startswith("reduce_") else ""
            given = ", ".join(kind.type() for kind in kinds)
            self.place(name, f"{head} {uses}{attributes} : ({given}) -> {result}")
        if dims:
            self.constrain(name, dims)

    def shape(self, op, kinds, *rest):
        """The result of an op, its attributes as text, how its types are written."""
        first = kinds[0].shape if kinds else []
        element = kinds[0].element if kinds else "f32"
        if op in UNARY or op in BINARY:
            return kinds[0], "", "one"
        if op == "constant":
            return Value(rest[0]), "", "one"
        if op == "select":
            return kinds[1], "", "one"
        if op in ("softmax", "cumsum"):
            return kinds[0], f" dim {rest[0]}", "one"
        if op in ("matmul", "matmul_t"):
            last = kinds[1].shape[-2 if op == "matmul_t" else -1]
            batch = first[:-2] if len(first) >= len(kinds[1].shape) else kinds[1].shape[:-2]
            if len(first) == len(kinds[1].shape):
                batch = [max(pair) for pair in zip(first[:-2], kinds[1].shape[:-2])]
            return made(batch + [first[-2], last]), " {transpose_rhs}" * (op == "matmul_t"), "all"
        if op.startswith("reduce_"):
            dims = [int(dim) for dim in rest[0].split(".")]
            kept = [size for dim, size in enumerate(first) if dim not in dims]
            return made(kept, element), f" dims {dims}", "all"
        if op in ("reshape", "broadcast"):
            return Value(f"{rest[0]}:{element}"), "", "all"
        if op == "transpose":
            order = [int(dim) for dim in rest[0].split(".")]
            return made([first[dim] for dim in order], element), f" {order}", "all"
        if op == "slice":
            ranges = [[int(number) for number in word.split(":")] for word in rest[0].split(",")]
            starts = [word[0] for word in ranges]
            steps = [word[2] if len(word) > 2 else 1 for word in ranges]
            sizes = [len(range(word[0], word[1], step)) for word, step in zip(ranges, steps)]
            return made(sizes, element), f" starts {starts} sizes {sizes} steps {steps}", "all"
        if op == "concat":
            dim = int(rest[0])
            whole = list(first)
            whole[dim] = sum(kind.shape[dim] for kind in kinds)
            return made(whole, element), f" dim {dim}", "all"
        if op == "pad":
            pairs = [[int(number) for number in word.split(":")] for word in rest[0].split(",")]
            sizes = [low + size + high for (low, high), size in zip(pairs, first)]
            return made(sizes, element), f" low {[p[0] for p in pairs]} high {[p[1] for p in pairs]}", "all"
        if op == "gather":
            dim = int(rest[0])
            return made(first[:dim] + kinds[1].shape + first[dim + 1:], element), f" dim {dim}", "all"
        if op == "scatter_add":
            return kinds[0], f" dim {rest[0]}", "all"
        if op == "layer_norm":
            return kinds[0], f" dim {rest[0]} epsilon 1.0e-5", "all"
        sys.exit(f"{self.name}: no op '{op}'")

    def reshard(self, name, source, dims):
        self.reshards = True
        value = self.values[source]
        before = dict(self.arguments)[source]
        self.body = [f"  %{name} = dist.reshard %{source} : {value.type(sharding(before))} -> {value.type(sharding(dims))}",
                     f"  return %{name} : {value.type(sharding(dims))}"]
        self.arguments = [(source, before)]
        self.result = value.type(sharding(dims))

    def lines(self):
        if self.reshards:
            (source, before), = self.arguments
            given = f"%{source}: {self.values[source].type(sharding(before))}"
            return ["dist.mesh @mesh [%s]" % self.mesh, f"func.func @f({given}) -> {self.result} {{", *self.body, "}"]
        given = ", ".join(f"%{name}: {self.values[name].type()}" for name, _ in self.arguments)
        kinds = ", ".join(self.values[name].type() for name in self.returned)
        values = ", ".join(self.use(name) for name in self.returned)
        return ["dist.mesh @mesh [%s]" % self.mesh, f"func.func @f({given}) -> ({kinds}) {{", *self.body,
                f"  return {values} : {kinds}" if values else "  return", "}"]
