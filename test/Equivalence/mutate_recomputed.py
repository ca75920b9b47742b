"""Spoils what a local program computes again, or in chunks, one change of an op at a time, and asserts that the proof refuses each,
or that the program it accepts computes the same bits: clones that read another value of the same type (of another
layer, another mask, the value before), other numbers, other ops.

usage: mutate_recomputed.py decided.mlir train.mlir WORK least [attribute]

Ops of decided.mlir called %l0…, %l1… are computed again with their layer. least: how many mutants there must be.
attribute: what the ops to spoil carry, dist.recomputed if it is not said."""
import pathlib
import re
import subprocess
import sys

decided, train, work, least = sys.argv[1], sys.argv[2], pathlib.Path(sys.argv[3]), int(sys.argv[4])
ATTRIBUTE = sys.argv[5] if len(sys.argv) > 5 else "dist.recomputed"
OTHERS = {"nn.add": "nn.sub", "nn.mul": "nn.add", "nn.tanh": "nn.sigmoid", "nn.sigmoid": "nn.tanh",
          "compare lt": "compare ge", "gelu tanh": "gelu"}


def run(command, text=None):
    return subprocess.run([str(word) for word in command], input=text, capture_output=True, text=True)


def statements(text):
    """Ops on a line each."""
    lines = []
    for line in text.split("\n"):
        if lines and re.match(r"\s+: ", line):
            lines[-1] += " " + line.strip()
        else:
            lines.append(line)
    return lines


def mark(text):
    marked = []
    for line in statements(text):
        layer = re.match(r"\s*%l(\d)\w* = nn\.(?!constant|gradient)", line)
        if layer:
            line = re.sub(r"( \{([^}]*)\})? : ", lambda found: " {" + ", ".join(
                filter(None, [found[2], f'dist.recompute = "h.{layer[1]}"'])) + "} : ", line, count=1)
        marked.append(line)
    return "\n".join(marked)


def prove(text):
    """The proof's error; none if it accepts. What no longer verifies is refused as well."""
    done = run(["acc-opt", "-", f"--dist-verify-equivalence=logical={train}", "-o", "/dev/null"], text)
    if done.returncode not in (0, 1):
        sys.exit(f"expected an error, found exit status {done.returncode}:\n{done.stderr[-2000:]}")
    return done.stderr if done.returncode else None


def weights(text):
    """After two steps."""
    executable, saved = work / "m.accx", work / "m.safetensors"
    for command, given in ((["acc-opt", "-", f"--proved-against={train}", "-o", executable], text),
                           (["acc-run", executable, "--steps", 2, "--save-weights", saved], None)):
        done = run(command, given)
        if done.returncode:
            return done.stderr
    return saved.read_bytes()


def mutants(lines):
    types, functions, function = {}, [], -1
    for line in lines:
        function += "func.func" in line
        functions.append(function)
        made = re.match(r"\s*(%[\w.]+) = .*?(tensor<[^>]*>)$", line)
        if made:
            types[function, made[1]] = made[2]
        if "func.func" in line:
            types.update({(function, name): type
                          for name, type in re.findall(r"(%[\w.]+): (tensor<[^>]*>)", line)})
    for number, line in enumerate(lines):
        if ATTRIBUTE not in line:
            continue
        function = functions[number]

        def changed(new):
            return "\n".join([*lines[:number], new, *lines[number + 1:]])
        name, _, rest = line.partition(" = ")
        before = [made[1] for made in (re.match(r"\s*(%[\w.]+) = ", each) for each in
                                       lines[functions.index(function):number]) if made]
        before = [each for (of, each) in types if of == function and each not in before
                  and each not in {x.strip().split(" ")[0] for x in lines[number:]}] + before
        for operand in sorted(set(re.findall(r"%[\w.]+", rest))):
            own = types.get((function, operand))
            for other in [each for each in before if each != operand and types.get((function, each)) == own][-6:]:
                new = re.sub(re.escape(operand) + r"(?![\w.])", other, rest)
                yield f"{line.strip()} reads {other}", changed(f"{name} = {new}")
        for word, other in OTHERS.items():
            if f"{word} " in rest:
                yield f"{line.strip()} is {other}", changed(f"{name} = {rest.replace(f'{word} ', f'{other} ', 1)}")
        for number_in in re.findall(r"epsilon [\d.eE+-]+|dims? \[?\d|starts \[\d", rest):
            what, _, value = number_in.rpartition(" ")
            other = "1.0" if what == "epsilon" else value.replace("1", "0") if "1" in value else value.replace("0", "1")
            yield f"{line.strip()} with {what} {other}", changed(line.replace(number_in, f"{what} {other}", 1))


def main():
    work.mkdir(exist_ok=True)
    local = work / "local.mlir"
    done = run(["acc-opt", "-", "--compile-to=local", f"--proved-against={train}", "-o", local],
               mark(pathlib.Path(decided).read_text()))
    if done.returncode:
        sys.exit(done.stderr)
    # Names are numbers where a program is only read and printed.
    lines = statements(run(["acc-opt", local]).stdout)
    again = sum(ATTRIBUTE in line for line in lines)
    assert prove("\n".join(lines)) is None, "the program itself is refused"
    expected = weights("\n".join(lines))
    refused = same = count = 0
    for what, text in mutants(lines):
        count += 1
        if prove(text) is not None:
            refused += 1
        elif weights(text) == expected:
            same += 1
        else:
            sys.exit(f"accepted, and computes something else: {what}")
    print(f"{again} ops {ATTRIBUTE}, {count} mutants: {refused} refused, {same} that compute the same")
    sys.exit(count < least)


main()
