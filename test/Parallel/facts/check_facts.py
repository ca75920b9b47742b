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
`5*all_reduce(b)`, or `none`. Where an answer has both, both must hold. acc's passes run
over all facts at once, and every line must say what acc does: an answer of acc that
changes fails, better or worse."""

import collections
import pathlib
import re
import subprocess
import sys
import tempfile

from program import Program

PROPAGATE = ["--dist-propagate=print-origins"]
PLACE = ["--dist-materialize", "--dist-plan-reshards", "--dist-localize"]
SPLIT = ["--dist-plan-reshards", "--dist-localize"]
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
