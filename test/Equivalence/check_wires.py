#!/usr/bin/env python3
"""Gives each collective of one rank's program that sends its own type a narrower one, one at a
time, and asks the proof:

  check_wires.py LOCAL LOGICAL

Every such program must be refused by name; the program itself is taken. Prints how many."""
import pathlib
import re
import subprocess
import sys
import tempfile

REFUSED = re.compile(r"error: does not follow from the logical program: rounds ")
# Where the type stands: before the attributes, the colon, or the end of a line that goes on.
COLLECTIVE = re.compile(r"(= dist\.(?:all_reduce|reduce_scatter|all_gather|all_to_all|permute) "
                        r"(?:(?! wire ).)*?)( \{dist\.| : |$)")


def prove(text, logical, folder):
    file = pathlib.Path(folder, "changed.mlir")
    file.write_text(text)
    return subprocess.run(["acc-opt", file, f"--dist-verify-equivalence=logical={logical}", "-o",
                           "/dev/null"], capture_output=True, text=True)


def main():
    local, logical = pathlib.Path(sys.argv[1]), sys.argv[2]
    lines = local.read_text().splitlines(keepends=True)
    with tempfile.TemporaryDirectory() as folder:
        first = prove("".join(lines), logical, folder)
        if first.returncode:
            sys.exit(f"the program itself is refused:\n{first.stderr[:2000]}")
        wired = sum(" wire " in line for line in lines)
        refused = 0
        for number, line in enumerate(lines):
            changed = COLLECTIVE.sub(r"\1 wire bf16\2", line, count=1)
            if changed == line:
                continue
            said = prove("".join([*lines[:number], changed, *lines[number + 1:]]), logical, folder)
            if said.returncode == 0 or not REFUSED.search(said.stderr):
                sys.exit(f"expected to be refused: {changed}{said.stderr[:2000]}")
            refused += 1
    print(f"{wired} sums of gradients taken, {refused} others refused")


if __name__ == "__main__":
    main()
