#!/usr/bin/env python3
"""Whatever a user asks for, the program means the same:

    check_random_constraints.py SEEDS MODEL.onnx [acc-opt option...]

For each seed, constraints of random axes are put on random values of the `nn`
program of MODEL. It must place and split, and the reference evaluator must find
both phases, on all virtual ranks, to mean what the unconstrained program means;
the proof must find so too, of the split against the unconstrained program.
Prints how many of each collective the programs had in all."""

import collections
import pathlib
import random
import re
import subprocess
import sys
import tempfile

TOLERANCE = "1e-9"
# Of several results the first: a forward program reads no log-sum-exp.
DEFINITION = re.compile(r"\s*(%\w+)(?:, %\w+)* = nn\.(\w+)(?:.* -> \(|.*)tensor<([^>]*)>(?:, tensor<[^>]*>\))?$")


def run(*command):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(map(str, command))}\n{done.stdout[-2000:]}{done.stderr[-4000:]}")
    return done.stdout


class Constrainer:
    """Copies a program line by line, and replaces values by constrained ones."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.axes = ["a", "b", "c"][: self.random.choice([2, 3])]
        self.share = self.random.choice([0.02, 0.1, 0.3])
        self.renamed = {}

    def constrain(self, name, text):
        """A line that constrains a value of type tensor<text>, or nothing."""
        shape = [int(size) for size in text.split("x")[:-1]]
        if not shape or self.random.random() >= self.share:
            return []
        dims = [[] for _ in shape]
        for axis in self.axes:
            dim = self.random.randrange(len(shape))
            if self.random.random() < 0.6 and shape[dim] % 2 ** (len(dims[dim]) + 1) == 0:
                dims[dim].append(axis)
        lists = ", ".join("{%s}" % ", ".join(dim + ["?"] * self.random.randrange(2)) for dim in dims)
        self.renamed[name] = "%constrained_" + name[1:]
        return [f"    {self.renamed[name]} = dist.constraint {name} to <@mesh, [{lists}]> : tensor<{text}>"]

    def lines(self, program):
        for line in program:
            if not line.strip().startswith("nn.state"):
                line_now = re.sub(r"%\w+", lambda use: self.renamed.get(use[0], use[0]), line)
            else:
                line_now = line
            yield line_now
            if line.startswith("module"):
                yield "dist.mesh @mesh [%s]" % ", ".join(f'"{axis}" = 2' for axis in self.axes)
            elif "func.func" in line:
                for name, text in re.findall(r"(%\w+): tensor<([^>]*)>", line):
                    yield from self.constrain(name, text)
            elif defined := DEFINITION.match(line):
                name, op, text = defined.groups()
                if op in ("compare", "is_nan"):  # written with the type that it looks at
                    text = "x".join(text.split("x")[:-1] + ["i1"])
                yield from self.constrain(name, text)


def main():
    seeds, model, options = int(sys.argv[1]), sys.argv[2], sys.argv[3:]
    counts = collections.Counter()
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        plain, asked, placed, split = (folder / f"{name}.mlir" for name in ("nn", "asked", "dist", "local"))
        run("acc-opt", model, *options, "--compile-to=nn", "-o", plain)
        # Read and printed again, values have numbers and signatures one line.
        program = run("acc-opt", plain).splitlines()
        for seed in range(seeds):
            asked.write_text("\n".join(Constrainer(seed).lines(program)))
            run("acc-opt", asked, "--compile-to=dist", "-o", placed)
            run("acc-opt", placed, "--compile-to=local", "-o", split)
            run("acc-opt", split, f"--dist-verify-equivalence=logical={plain}", "-o", folder / "proved.mlir")
            for phase in (placed, split):
                run("acc-eval", phase, "--compare", plain, "--tolerance", TOLERANCE)
            counts.update(re.findall(r" = dist\.(\w+)", split.read_text()))
    for kind, count in sorted(counts.items()):
        print(f"{kind}: {count}")


main()
