"""What scripts/layer draws: of the values of a program (`acc-opt --explain=sharding --json`) those of
one copy of the block that it repeats, as few rows as say what happens, and at each row what
ranks exchange there (`--explain=collectives --json`)."""

import re

# Ops that change no number, and so are no row.
VIEWS = {"nn.reshape", "nn.transpose", "nn.slice", "nn.broadcast", "nn.concat", "nn.cast", "nn.constant", "nn.pad"}
# Ops that are rows of their own; others stand together until something reads them later.
ALONE = {"nn.matmul", "nn.attention", "nn.attention_grad", "nn.gather", "nn.scatter_add"}


class Problem(Exception):
    """What the user is told."""


class Row:
    """An op, or some; of an exchange (`label` is None) what it leaves. `numbers` are of collectives."""

    def __init__(self, label, value):
        self.label, self.value, self.numbers = label, value, []


class Layer:
    def __init__(self, sharding, collectives, entry, name):
        self.values = [row for row in sharding if row["kind"] == "value" and row["entry"] == entry]
        self.collectives = [row for row in collectives if row["entry"] == entry]
        if not self.values:
            known = sorted({row["entry"] for row in sharding if row["kind"] == "value"})
            raise Problem(f"expected an entry of {', '.join(known)}, found '{entry}'")
        self.states = {row["name"] for row in sharding if row["kind"] == "state"}
        self.name = name or self.find_copy()
        self.own = {state for state in self.states if state.startswith(self.name + ".")}
        if not self.own:
            raise Problem(f"expected the beginning of weights' names, found '{self.name}'")
        self.turn = next((v["number"] for v in self.values if "gradient" in v["name"] and v["op"] not in VIEWS),
                         len(self.values))
        # What follows is the update. What is done with weights and their gradients has bars of its own.
        self.end = 1 + max((v["number"] for v in self.values if v["name"].endswith(", gradient") or
                            ", gradient, " in v["name"]), default=-1)
        self.aside = {v["number"] for v in self.values
                      if v["name"].startswith("gradient of ") or v["name"] in self.states}
        self.readers, self.labels = self.find_readers(), {}
        self.constants, self.terms = self.find_constants(), self.find_terms()
        self.forward = self.rows(*self.cut(0, self.turn))
        self.backward = self.rows(*self.cut(self.turn, self.end)) if self.end > self.turn else []
        self.place()
        self.axes = sorted({axis for row in self.forward + self.backward for axis in
                            [each["axis"] for each in row.value["axes"]] + row.value["sums"]}
                           | {axis for row in self.collectives for axis in row["axes"].split(",")})

    def find_copy(self):
        """The second copy of what is numbered, as the first may differ."""
        copies = dict.fromkeys(found[1] for state in sorted(self.states)
                               if (found := re.match(r"([a-z_A-Z.]*\.\d+)\.", state)))
        if not copies:
            raise Problem("expected weights of a repeated block, whose names have a number, found none: "
                          "use --layer")
        return list(copies)[min(1, len(copies) - 1)]

    def find_readers(self):
        """The states that each value reads, through views, too."""
        found = {}
        for value in self.values:
            reads = [each for each in value["of"] if each in self.states]
            for each in value["of"]:
                if isinstance(each, int) and self.values[each]["op"] in VIEWS | {"dist.reshard"}:
                    reads += found[each]
            found[value["number"]] = reads
        return found

    def find_constants(self):
        """Numbers of the values that are made of constants alone."""
        found = set()
        for value in self.values:
            if all(each in found for each in value["of"]):
                found.add(value["number"])
        return found

    def find_terms(self):
        """The values that gradients of weights are made of, by their numbers."""
        found = {}
        for value in self.values:
            if value["op"] == "nn.gradient":
                source = value
                while source["of"] and source["op"] in VIEWS | {"nn.gradient", "dist.reshard", "dist.accumulate"}:
                    source = self.values[source["of"][0]]
                found[source["number"]] = self.shorten(value["name"].removeprefix("gradient of "))
        return found

    def shorten(self, state):
        return state.removeprefix(self.name + ".").removesuffix(".weight")

    def cut(self, begin, end):
        """Between what other layers read and what this one does, where least is alive."""
        numbers = range(begin, end)
        numbers = [n for n in numbers if self.values[n]["op"] not in VIEWS | {"dist.reshard"}]
        own = [n for n in numbers if self.own & set(self.readers[n])]
        if not own:
            raise Problem(f"expected ops that read weights of '{self.name}', found none")
        other = [n for n in numbers if set(self.readers[n]) - self.own]
        first = max((n for n in other if n < own[0]), default=begin - 1) + 1
        last = min((n for n in other if n > own[-1]), default=end)
        uses = {}
        for value in self.values[begin:end]:
            for each in value["of"] if value["number"] not in self.aside else []:
                if isinstance(each, int) and each >= begin and each not in self.constants:
                    uses[each] = value["number"]

        def alive(place):
            return sum(made < place <= used for made, used in uses.items())

        # The residual stream is made, and nothing of it yet; likewise after.
        start = min(range(own[0], first - 1, -1), key=alive)
        stop = min(range(own[-1] + 1, last + 1), key=alive)
        return start, stop

    def rows(self, start, stop):
        made, group, later = [], [], {}
        # What the backward or the end of a step reads tells nothing of where a row ends.
        for value in self.values[start:self.turn if start < self.turn else self.end]:
            for each in value["of"] if value["number"] not in self.aside else []:
                if isinstance(each, int):
                    later[each] = value["number"]

        def close():
            if group:
                made.append(Row(self.label(group), group[-1]))
                group.clear()

        for value in self.values[start:stop]:
            alone = value["op"] in ALONE or value["op"] == "dist.reshard"
            if alone and made and not group and made[-1].value["op"] == value["op"] != "nn.matmul" and (
                    value["of"] == made[-1].value["of"]):
                continue  # another result of the same op
            if value["op"] in VIEWS or value["number"] in self.aside:
                continue
            if alone:
                close()
            group.append(value)
            number = value["number"]
            if alone or self.readers[number] or number in self.terms or value["sums"] or (
                    later.get(number, 0) - number > 14):
                close()
        close()
        return made

    def label(self, group):
        """By the weight that is read, or by the ops; forward nodes lend theirs to gradients."""
        last = group[-1]
        if last["op"] == "dist.reshard":
            return None
        if last["number"] in self.terms:
            name = self.terms[last["number"]]
            return f"∂ {name}" + ("" if name.endswith(".bias") else ", weight")
        nodes = [name for value in group for name in value["name"].split(", ") if name != "gradient"]
        read = next((name for value in group for name in self.readers[value["number"]]), None)
        ops = list(dict.fromkeys(value["op"].split(".")[1] for value in group))
        if last["number"] >= self.turn:
            known = next((self.labels[node] for node in nodes if node in self.labels), None)
            return "sum of ∂" if ops == ["add"] else f"∂ {known or ops[-1]}"
        text = self.shorten(read) if read else " ".join(ops[:4]) + (" …" if len(ops) > 4 else "")
        for node in nodes:
            self.labels.setdefault(node, text)
        return text

    def place(self):
        """Each exchange at the row of its node; of weights' gradients those of a kind
        together, with what they are of; those of other places are counted."""
        left = {}
        for number, row in enumerate(self.collectives):
            left.setdefault((row["task_kind"] == "forward", row["node"]), []).append(number)
        for forward, rows in ((True, self.forward), (False, self.backward)):
            # An exchange has its own row, unless it is of an op itself.
            for row in sorted(rows, key=lambda row: row.label is not None):
                row.numbers = left.pop((forward, row.value["name"]), [])
        # By task: (kind, axes, how often) to numbers.
        self.weights, self.gradients, self.elsewhere = {}, {}, {}
        for (_, node), numbers in left.items():
            state = node.removeprefix("gradient of ")
            for number in numbers:
                row = self.collectives[number]
                kind = row["task_kind"], row["kind"], row["axes"], row["count"]
                if state in self.own:
                    of = self.weights if state == node else self.gradients
                    of.setdefault(kind, []).append(number)
                else:
                    self.elsewhere.setdefault(kind, []).append(number)
