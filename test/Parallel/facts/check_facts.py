#!/usr/bin/env python3
"""What other systems say of shardings, and what acc says of the same programs:

    check_facts.py FILE.facts...

A line of a table is a fact: NAME | MESH | PROGRAM | THEY SAY, and where acc says
otherwise | WE SAY | REASON, the word of a paragraph `# REASON: …` at the table's head.
The program is written in statements with `;` between them:

    x 4x8 a,-        a given tensor: dim 0 split over axis `a`, dim 1 whole. `a?` and `?`
                     take more axes, `a.b` is two, a type follows the shape (4x8:i64)
    w 8x6            a given tensor, of which nothing is said
    y = matmul x w   an op; `: -,b` behind it is a constraint on its result
    y = reshard x -,b   a reshard of a given tensor, and nothing else

and an answer is `y=a,-` for each value that it speaks of, after propagation, or
collectives in their order after splitting, `all_reduce(b)`, how many of each,
`5*all_reduce(b)`, or `none`. Where an answer has both, both must hold. acc's passes run over all facts at once, and every line must
say what acc does: an answer of acc that changes fails, better or worse."""

import collections
import pathlib
import re
import subprocess
import sys
import tempfile

PROPAGATE = ["--dist-propagate=print-origins"]
PLACE = ["--dist-materialize", "--dist-plan-reshards", "--dist-localize"]
SPLIT = ["--dist-plan-reshards", "--dist-localize"]
UNARY = {"neg", "exp", "abs", "sin", "cos", "tanh", "relu", "sqrt", "log"}
BINARY = {"add", "sub", "mul", "div", "min", "max"}
COLLECTIVE = re.compile(r" = dist\.(all_reduce|all_gather|all_slice|all_to_all|permute|reduce_scatter)\b.*? over @mesh \{([^}]*)\}")

Fact = collections.namedtuple("Fact", "name mesh program theirs ours reason")


class Table:
    """The facts of a file, and the reasons that its head gives."""

    def __init__(self, path):
        self.path, self.facts, self.reasons = path, [], {}
        for number, line in enumerate(path.read_text().splitlines(), 1):
            if found := re.match(r"# ([a-z-]+): ", line):
                self.reasons[found[1]] = 0
            if not line or line.startswith("#"):
                continue
            cells = [cell.strip() for cell in line.split("|")]
            if len(cells) not in (4, 6):
                sys.exit(f"{path}:{number}: expected 4 cells, or 6, found {len(cells)}")
            fact = Fact(*cells, *([""] * (6 - len(cells))))
            if fact.reason and fact.reason not in self.reasons:
                sys.exit(f"{path}:{number}: no reason '{fact.reason}' in the table's head")
            if fact.reason:
                self.reasons[fact.reason] += 1
            self.facts.append(fact)
        for reason, facts in self.reasons.items():
            if not facts:
                sys.exit(f"{path}: no fact differs for the reason '{reason}'")
        names = collections.Counter(fact.name for fact in self.facts)
        for name, times in names.items():
            if times > 1:
                sys.exit(f"{path}: {times} facts are named '{name}'")


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


def run(passes, programs):
    """What acc-opt prints of all programs, each a module of its own: errors and IR."""
    starts, text = [], []
    for program in programs:
        starts.append(len(text) + 1)
        text += program.lines() + ["// -----"]
    with tempfile.NamedTemporaryFile("w", suffix=".mlir") as file:
        file.write("\n".join(text[:-1]) + "\n")
        file.flush()
        done = subprocess.run(["acc-opt", file.name, "-split-input-file", "--mlir-print-op-on-diagnostic=false", *passes],
                              capture_output=True, text=True)
    problems = [line for line in done.stderr.splitlines() if ": error: " in line]
    for problem in problems:
        line = int(problem.split(":")[1])
        which = max(index for index, start in enumerate(starts) if start <= line)
        print(f"{programs[which].name}: {problem.split(': ', 1)[1]}\n  {text[line - 1]}")
    if done.returncode or problems:
        sys.exit(f"acc-opt {' '.join(passes)}: {done.stderr[-1000:] if not problems else 'failed'}")
    return starts, done.stderr, done.stdout


def propagate(programs):
    """Where each value of each program is: {name: 'a,-'}."""
    starts, errors, _ = run(PROPAGATE, programs)
    said = [{} for _ in programs]
    for line, text in re.findall(r"\.mlir:(\d+):\d+: remark: (.*)", errors):
        which = max(index for index, start in enumerate(starts) if start <= int(line))
        program, row = programs[which], int(line) - starts[which] - 2
        argument = re.match(r"argument (\d+): ", text)
        name = program.places.get(("argument", int(argument[1])) if argument else row)
        if name:
            lists = re.search(r"\[(.*?)\]", text)[1]
            dims = [axes.replace(", ", ".") or "-" for axes in re.findall(r"\{([^}]*)\}", lists)]
            said[which][name] = ",".join(dims) or "scalar"
    return said


def collectives(passes, programs):
    """The collectives of each program, in their order."""
    if not programs:
        return []
    _, _, text = run(passes, programs)
    modules = text.split("// -----")
    if len(modules) != len(programs):
        sys.exit(f"expected {len(programs)} modules, found {len(modules)}")
    return [normal(COLLECTIVE.findall(module)) for module in modules]


def normal(found):
    """Collectives as tables name them: what is cut within a rank comes first and at once,
    gathers that follow each other are one, axes stand in alphabetical order; a permutation
    says no axes, as it says none in Shardy."""
    cut, messages = [], []
    for kind, axes in found:
        axes = axes.split(", ")
        if kind == "all_slice":
            cut += axes
        elif kind == "all_gather" and messages and messages[-1][0] == kind:
            messages[-1][1].extend(axes)
        else:
            messages.append((kind, [] if kind == "permute" else axes))
    steps = [("all_slice", cut)] * bool(cut) + messages
    return " ".join(kind + ("(%s)" % ".".join(sorted(axes)) if axes else "") for kind, axes in steps) or "none"


def main():
    tables = [Table(pathlib.Path(path)) for path in sys.argv[1:]]
    facts = [(table, fact) for table in tables for fact in table.facts]
    programs = {id(fact): Program(fact) for _, fact in facts}
    speaks = {id(fact): (re.search(r"\w=", fact.theirs), re.search(r"\(|permute|none", fact.theirs)) for _, fact in facts}
    places, moves = {}, {}
    asked = [fact for _, fact in facts if speaks[id(fact)][0]]
    for fact, said in zip(asked, propagate([programs[id(fact)] for fact in asked])):
        places[id(fact)] = said
    for passes, reshards in ((PLACE, False), (SPLIT, True)):
        asked = [fact for _, fact in facts if speaks[id(fact)][1] and programs[id(fact)].reshards == reshards]
        for fact, said in zip(asked, collectives(passes, [programs[id(fact)] for fact in asked])):
            moves[id(fact)] = said
    wrong = 0
    for table, fact in facts:
        told = re.findall(r"(\w+)=", fact.theirs)
        found = [f"{name}={places[id(fact)].get(name)}" for name in told]
        if speaks[id(fact)][1]:
            found.append(moves[id(fact)])
        found, expected = " ".join(found), fact.ours or fact.theirs
        if "*" in expected:
            times = collections.Counter(found.split())
            found = " ".join(f"{times[kind]}*{kind}" for kind in sorted(times))
        if found != expected:
            wrong += 1
            print(f"{table.path.name}: {fact.name}: {fact.program}: they say '{fact.theirs}', expected '{expected}', found '{found}'")
        elif fact.ours == fact.theirs and fact.ours:
            wrong += 1
            print(f"{table.path.name}: {fact.name}: agrees, and says that it differs")
    if wrong:
        sys.exit(f"{wrong} of {len(facts)} facts are not as the tables say")
    for table in tables:
        differ = sum(bool(fact.reason) for fact in table.facts)
        print(f"{table.path.stem}: {len(table.facts) - differ} of {len(table.facts)} facts agree, {differ} differ as explained")
    differ = sum(bool(fact.reason) for _, fact in facts)
    print(f"{len(facts) - differ} of {len(facts)} facts agree, {differ} differ as explained")


main()
