#!/usr/bin/env python3
"""Runs the passes that place and split a step with every two neighbours swapped, and each of
them twice: check_order.py --work DIR MODEL FLAGS...

A swap is refused, with the property, who establishes it and the way out, or changes nothing in
the program that comes out. Twice is refused. Prints what became of each."""
import argparse
import pathlib
import re
import subprocess
import sys

REFUSED = re.compile(r"error: (\S+) comes too (?:late|early): .*(?:: run it before \S+|before it)$", re.M)
TWICE = re.compile(r"error: (\S+) has run: what it establishes \(.*\) is there: run it once$", re.M)


def acc_opt(*arguments):
    return subprocess.run(["acc-opt", *arguments], text=True, capture_output=True)


def divide(pipeline):
    """The passes of "any(a{x=1,y=2},b)"."""
    passes, depth = [""], 0
    for letter in pipeline:
        depth += (letter in "{(") - (letter in "})")
        if letter == "," and depth == 0:
            passes.append("")
        else:
            passes[-1] += letter
    return passes


class Program:
    def __init__(self, arguments, work):
        self.train, self.placed = work / "train.mlir", work / "placed.mlir"
        self.run(arguments + ["--compile-to=train", "-o", str(self.train)])
        dump = self.run(arguments + ["--compile-to=local", "--dump-pass-pipeline", "-o", str(work / "local.mlir")])
        text = dict(re.findall(r"^// phase (\w+)\nany\((.*)\)$", dump.stderr, re.M))
        # What checks, or keeps the program for a proof, changes nothing.
        phases = {name: [one for one in divide(passes) if not re.match(r"keep-program|(dist|local|search)-verify|local-merge", one)]
                  for name, passes in text.items()}
        self.dist, self.local = phases["dist"], phases["decided"] + phases["local"]

    @staticmethod
    def run(arguments):
        done = acc_opt(*arguments)
        if done.returncode:
            sys.exit(f"acc-opt {' '.join(arguments)} failed:\n{done.stderr}")
        return done

    def compile(self, dist, local):
        """What the two lists of passes make of the step: its text, or the errors."""
        done = acc_opt(str(self.train), f"--pass-pipeline=builtin.module({','.join(dist)})")
        if done.returncode == 0:
            # The end of the phase.
            text = re.sub(r"accel\.established = \[[^]]*\], ", "", done.stdout)
            self.placed.write_text(text.replace('accel.phase = "train"', 'accel.phase = "dist"'))
            done = acc_opt(str(self.placed), f"--pass-pipeline=builtin.module({','.join(local)})")
        # The record is in the order in which the passes ran.
        return re.sub(r"accel\.established = \[[^]]*\]", "", done.stdout), done.stderr


def name_of(one):
    return one.split("{")[0]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--work", type=pathlib.Path, required=True)
    options, arguments = parser.parse_known_args()
    options.work.mkdir(parents=True, exist_ok=True)
    program = Program(arguments, options.work)
    whole = program.dist + program.local
    border = len(program.dist)
    expected, errors = program.compile(program.dist, program.local)
    if not expected:
        sys.exit(f"in their own order:\n{errors}")
    wrong = []
    for at in range(len(whole) - 1):
        if at + 1 == border:
            continue  # between phases: search-decide asks for the phase
        order = whole[:at] + [whole[at + 1], whole[at]] + whole[at + 2:]
        found, errors = program.compile(order[:border], order[border:])
        refused = not found and REFUSED.search(errors)
        print(f"{name_of(whole[at])} {name_of(whole[at + 1])}: "
              f"{'refused' if refused else 'as before' if found == expected else 'WRONG'}")
        if not refused and found != expected:
            wrong.append(f"{name_of(whole[at + 1])} before {name_of(whole[at])}: {errors or 'another program'}")
    for at, one in enumerate(whole):
        name = name_of(one)
        if not name.startswith("dist-") or name in ("dist-propagate", "dist-verify-equivalence"):
            continue
        order = whole[:at] + [one] + whole[at:]
        end = border + (at < border)
        found, errors = program.compile(order[:end], order[end:])
        if found or not TWICE.search(errors):
            wrong.append(f"{name} twice: {errors or 'nothing was said'}")
    if wrong:
        sys.exit("\n".join(wrong))


main()
