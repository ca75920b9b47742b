"""nest.py FOLDER N: writes IR that nests N deep in each of MLIR's ways; flat.mlir
does not nest, but looks as if it did."""
import sys

folder, n = sys.argv[1], int(sys.argv[2])


def wrapped(opening, inner, closing):
    return opening * n + inner + closing * n


def function_of(type):
    return f"func.func private @f({type})"


def module_with(attribute):
    return "module attributes {a.b = " + attribute + "} {}"


def aliases():
    lines = ["!a0 = tuple<i32>"]
    lines += [f"!a{i + 1} = tuple<!a{i}>" for i in range(n)]
    return "\n".join(lines + [function_of(f"!a{n}")])


def flat():
    lines = [
        f'func.func private @f{i}(() -> i32) attributes {{a.b = "{{[(<\\"<", '
        "a.c = affine_set<(d0) : (d0 - 1 >= 0)>}  // {[(<\""
        for i in range(n)]
    lines += [f"!b{i} = tuple<i32>\nfunc.func private @g{i}(!b{i})"
              for i in range(n)]
    return "\n".join(lines)


for kind, write in {
    "tuple": lambda: function_of(wrapped("tuple<", "i32", ">")),
    "array": lambda: module_with(wrapped("[", "", "]")),
    "dict": lambda: module_with(wrapped("{x = ", "1", "}")),
    "region": lambda: wrapped("module {", "", "}"),
    "callsite": lambda: "module {} loc("
                        + wrapped('callsite("a" at ', "unknown", ")") + ")",
    "paren": lambda: "#m = affine_map<(d0) -> ("
                     + wrapped("(", "d0", ")") + ")>",
    "plus": lambda: "#m = affine_map<(d0) -> (d0" + " + d0" * n + ")>",
    "minus": lambda: "#m = affine_map<(d0) -> (" + "-" * n + "d0)>",
    "alias": aliases,
    "flat": flat,
}.items():
    with open(f"{folder}/{kind}.mlir", "w") as stream:
        stream.write(write() + "\n")
