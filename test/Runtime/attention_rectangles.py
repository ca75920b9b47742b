#!/usr/bin/env python3
"""Prints the attention of test/Fixtures/make_attention.py and its gradient as a program:

    attention_rectangles.py whole
    attention_rectangles.py own|final N

cut into N by N rectangles of scores, each of which is an attention of its own, combined by
their log-sum-exps. The gradient of a rectangle is made of its `own` result and log-sum-exp, as
differentiating the combination makes it, or of the `final` ones of whole rows, as a ring of ranks
does. All print the same outputs: y, lse, dq, dk, dv."""
import sys

BATCH, HEADS, GROUPS, LENGTH, WIDTH, HIDDEN = 2, 4, 2, 16, 4, 3


class Program:
    """The text of a function of f64, one op a line."""

    def __init__(self):
        self.lines, self.shapes, self.count = [], {}, 0

    def type(self, shape, element="f64"):
        return "tensor<" + "".join(f"{size}x" for size in shape) + element + ">"

    def emit(self, op, operands, shapes, attributes="", keywords=None, elements=None):
        """The results of one op; `keywords` stands in place of the list of its operands."""
        name = f"%t{self.count}"
        self.count += 1
        types = [self.type(*each) for each in zip(shapes, elements or ["f64"] * len(shapes))]
        taken = ", ".join(self.shapes[each] for each in operands)
        given = types[0] if len(types) == 1 else "(" + ", ".join(types) + ")"
        self.lines.append(f"  {name}:{len(types)} = nn.{op} {keywords or ', '.join(operands)}"
                          f"{attributes} : ({taken}) -> {given}")
        results = [f"{name}#{number}" for number in range(len(types))]
        self.shapes.update(zip(results, types))
        return results if len(results) > 1 else results[0]

    def constant(self, value, shape):
        name = f"%t{self.count}"
        self.count += 1
        type = self.type(shape)
        self.lines.append(f"  {name} = nn.constant dense<{value}> : {type}")
        self.shapes[name] = type
        return name

    def binary(self, op, lhs, rhs, shape):
        return self.emit(op, [lhs, rhs], [shape])

    def select(self, test, value, then, other, shape):
        """`then` where `test` equals `value`, `other` elsewhere."""
        compared = self.emit("compare", [test, value], [shape], elements=["i1"],
                             keywords=f"eq {test}, {value}")
        return self.emit("select", [compared, then, other], [shape])

    def slice(self, value, shape, first):
        ones = [1] * len(shape)
        return self.emit("slice", [value], [shape],
                         f" starts {[0, 0, first, 0][:len(shape)]} sizes {list(shape)} steps {ones}")

    def wide(self, value, rows):
        """A number for each row, for each element of it."""
        column = self.emit("reshape", [value], [(BATCH, HEADS, rows, 1)])
        return self.emit("broadcast", [column], [(BATCH, HEADS, rows, WIDTH)])

    def attention(self, q, k, v, rows, columns, first_row, first_column):
        return self.emit("attention", [q, k, v],
                         [(BATCH, HEADS, rows, WIDTH), (BATCH, HEADS, rows)],
                         self.causal(first_row, first_column))

    def gradient(self, q, k, v, y, lse, g, of_lse, rows, columns, first_row, first_column):
        last = [g] + ([of_lse] if of_lse else [])
        return self.emit("attention_grad", [q, k, v, y, lse, *last],
                         [(BATCH, HEADS, rows, WIDTH)] + [(BATCH, GROUPS, columns, WIDTH)] * 2,
                         self.causal(first_row, first_column),
                         f"{q}, {k}, {v} output {y}, {lse} gradient {', '.join(last)}")

    @staticmethod
    def causal(first_row, first_column):
        return (f" {{causal, row_offset = {first_row}, column_offset = {first_column + HIDDEN}, "
                "scale = 0.5, zero_masked_rows}")

    def combine(self, parts, rows):
        """The result and log-sum-exp of parts of the same rows, and each part's share."""
        each, whole = (BATCH, HEADS, rows), (BATCH, HEADS, rows, WIDTH)
        none, zero = self.constant("0xFFF0000000000000", each), self.constant("0.0", each)
        most = parts[0][1]
        for _, lse in parts[1:]:
            most = self.binary("max", most, lse, each)
        shift = self.select(most, none, zero, most, each)
        weights = [self.emit("exp", [self.binary("sub", lse, shift, each)], [each])
                   for _, lse in parts]
        total = weights[0]
        for weight in weights[1:]:
            total = self.binary("add", total, weight, each)
        lse = self.binary("add", shift, self.emit("log", [total], [each]), each)
        divisor = self.select(total, zero, self.constant("1.0", each), total, each)
        shares = [self.binary("div", weight, divisor, each) for weight in weights]
        y = None
        for (part, _), share in zip(parts, shares):
            term = self.binary("mul", part, self.wide(share, rows), whole)
            y = self.binary("add", y, term, whole) if y else term
        return y, lse, shares

    def parts_of_gradient(self, part, y, g, share, rows):
        """What the combination's gradient is to one part's result and log-sum-exp."""
        each, whole = (BATCH, HEADS, rows), (BATCH, HEADS, rows, WIDTH)
        to_result = self.binary("mul", g, self.wide(share, rows), whole)
        off = self.binary("mul", g, self.binary("sub", part, y, whole), whole)
        sums = self.emit("reduce", [off], [each], keywords=f"sum {off} dims [3]")
        return to_result, self.binary("mul", sums, share, each)

    def join(self, values, shape):
        return values[0] if len(values) == 1 else self.emit("concat", values, [shape], " dim 2")

    def add_up(self, terms, shape):
        total = terms[0]
        for term in terms[1:]:
            total = self.binary("add", total, term, shape)
        return total


def main():
    form, cuts = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 1
    program = Program()
    arguments = {"q": HEADS, "k": GROUPS, "v": GROUPS, "g": HEADS}
    for name, heads in arguments.items():
        program.shapes[f"%{name}"] = program.type((BATCH, heads, LENGTH, WIDTH))
    size = LENGTH // cuts
    rows, columns = (BATCH, HEADS, size, WIDTH), (BATCH, GROUPS, size, WIDTH)
    cut = {name: [program.slice(f"%{name}", (BATCH, heads, size, WIDTH), size * number)
                  for number in range(cuts)] for name, heads in arguments.items()}
    ys, lses, dqs = [], [], []
    dks, dvs = [[] for _ in range(cuts)], [[] for _ in range(cuts)]
    for row in range(cuts):
        q, g = cut["q"][row], cut["g"][row]
        places = [(size, size, row * size, column * size) for column in range(cuts)]
        parts = [program.attention(q, k, v, *place)
                 for k, v, place in zip(cut["k"], cut["v"], places)]
        y, lse, shares = (*parts[0], None) if form == "whole" else program.combine(parts, size)
        terms = []
        for column, (k, v, place) in enumerate(zip(cut["k"], cut["v"], places)):
            of_result, of_lse, given = g, None, (y, lse)
            if form == "own":
                given = parts[column]
                of_result, of_lse = program.parts_of_gradient(given[0], y, g, shares[column], size)
            dq, dk, dv = program.gradient(q, k, v, *given, of_result, of_lse, *place)
            terms.append(dq)
            dks[column].append(dk)
            dvs[column].append(dv)
        ys.append(y)
        lses.append(lse)
        dqs.append(program.add_up(terms, rows))
    results = {
        "y": program.join(ys, (BATCH, HEADS, LENGTH, WIDTH)),
        "lse": program.join(lses, (BATCH, HEADS, LENGTH)),
        "dq": program.join(dqs, (BATCH, HEADS, LENGTH, WIDTH)),
        "dk": program.join([program.add_up(each, columns) for each in dks],
                           (BATCH, GROUPS, LENGTH, WIDTH)),
        "dv": program.join([program.add_up(each, columns) for each in dvs],
                           (BATCH, GROUPS, LENGTH, WIDTH)),
    }
    taken = ", ".join(f'%{name}: {program.shapes["%" + name]} {{nn.input = "{name}"}}'
                      for name in arguments)
    given = ", ".join(f'{program.shapes[value]} {{nn.output = "{name}"}}'
                      for name, value in results.items())
    print('module attributes {accel.phase = "nn"} {')
    print(f"func.func @main({taken}) -> ({given}) attributes {{nn.entry}} {{")
    print("\n".join(program.lines))
    print(f"  return {', '.join(results.values())} : "
          f"{', '.join(program.shapes[value] for value in results.values())}\n}}\n}}")


if __name__ == "__main__":
    main()
