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
    def __init__(self, label, value):
        self.label, self.value = label, value
        self.before, self.after = [], []


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
        self.end = next((v["number"] for v in self.values if v["name"].startswith("gradient of")),
                        len(self.values))
        self.readers, self.labels = self.find_readers(), {}
        self.forward = self.rows(*self.cut(0, self.turn))
        self.backward = self.rows(*self.cut(self.turn, self.end)) if self.end > self.turn else []
        self.backward += self.gradients()
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

    def cut(self, begin, end):
        """Between what other layers read and what this one does, where least is alive."""
        numbers = range(begin, end)
        own = [n for n in numbers if self.own & set(self.readers[n])]
        if not own:
            raise Problem(f"expected ops that read weights of '{self.name}', found none")
        other = [n for n in numbers if set(self.readers[n]) - self.own and self.values[n]["op"] not in VIEWS]
        first = max((n for n in other if n < own[0]), default=begin - 1) + 1
        last = min((n for n in other if n > own[-1]), default=end)
        uses = {}
        for value in self.values[begin:end]:
            for each in value["of"]:
                if isinstance(each, int) and each >= begin:
                    uses[each] = value["number"]

        def alive(place):
            return sum(made < place <= used for made, used in uses.items())

        # The residual stream is made, and nothing of it yet; likewise after.
        start = min(range(own[0], first - 1, -1), key=alive)
        stop = min(range(own[-1] + 1, last + 1), key=alive)
        return start, stop

    def rows(self, start, stop):
        made, group = [], []
        later = {}
        for value in self.values[start:]:
            for each in value["of"]:
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
            if value["op"] in VIEWS:
                continue
            if alone:
                close()
            group.append(value)
            if alone or self.readers[value["number"]] or later.get(value["number"], 0) - value["number"] > 14 or (
                    value["sums"]):
                close()
        close()
        return made

    def label(self, group):
        """By the weight that is read, or by the ops; forward nodes lend theirs to gradients."""
        last = group[-1]
        nodes = [name for value in group for name in value["name"].split(", ") if name != "gradient"]
        backward = last["number"] >= self.turn
        read = next((name for value in group for name in self.readers[value["number"]]), None)
        if last["op"] == "dist.reshard":
            return "exchanged" if last["op"] else ""
        if backward:
            known = list(dict.fromkeys(self.labels[node] for node in nodes if node in self.labels))
            text = "∂ " + (known[0] if known else last["op"].split(".")[1])
            if last["op"] == "nn.matmul":
                text += "" if read else ", weight"
            return text
        if read:
            text = read.removeprefix(self.name + ".").removesuffix(".weight")
        elif len(group) == 1:
            text = group[0]["op"].split(".")[1]
        else:
            ops = list(dict.fromkeys(value["op"].split(".")[1] for value in group))
            text = " ".join(ops[:4]) + (" …" if len(ops) > 4 else "")
        for node in nodes:
            self.labels.setdefault(node, text)
        return text

    def gradients(self):
        """What becomes of the weights' own gradients."""
        rows = []
        for value in self.values:
            if value["op"] == "nn.gradient" and value["name"].removeprefix("gradient of ") in self.own:
                name = value["name"].removeprefix("gradient of ").removeprefix(self.name + ".")
                rows.append(Row("∂ " + name.removesuffix(".weight"), value))
        return rows

    def place(self):
        """Each exchange at the row of its node; those of other places are counted."""
        left = {}
        for number, row in enumerate(self.collectives):
            left.setdefault((row["task"] == "forward", row["node"]), []).append(number)
        for forward, rows in ((True, self.forward), (False, self.backward)):
            for row in rows:
                numbers = left.pop((forward, row.value["name"]), [])
                (row.before if row.value["op"] != "dist.reshard" else row.after).extend(numbers)
        self.elsewhere = {}
        for numbers in left.values():
            for number in numbers:
                row = self.collectives[number]
                self.elsewhere.setdefault((row["task"], row["kind"], row["axes"]), []).append(number)
        for numbers in self.elsewhere.values():
            numbers.sort()
