#!/usr/bin/env python3
"""Makes wrong plans of a right one and demands that each is refused:

    mutate_plan.py PLAN.mlir COUNT

Every mutation changes what the plan means or claims: a command dropped or moved
before what it depends on, a buffer moved onto another, out of line or out of its
arena, an arena of another size, a view beyond its buffer. The random choices are
seeded. `acc-opt --plan-verify` must accept the plan itself."""

import random
import re
import subprocess
import sys
import tempfile

COMMAND = re.compile(r"^ +plan\.(gemm|attention|kernel|collective|copy|read) ")
BUFFER = re.compile(r"plan\.buffer (@\S+) : (\w+) (\w+) at (\d+), (\d+) bytes")


def accepted(text):
    with tempfile.NamedTemporaryFile("w", suffix=".mlir") as file:
        file.write(text)
        file.flush()
        done = subprocess.run(["acc-opt", file.name, "--plan-verify", "-o", "/dev/null"],
                              capture_output=True, text=True)
    if done.returncode not in (0, 1):
        sys.exit(f"acc-opt ended with {done.returncode}:\n{done.stderr}")
    return done.returncode == 0, done.stderr


def works_in_place(line):
    """Then what it read is still there without it: wrong numbers, but no wrong bytes."""
    read, _, written = line.partition("->")
    return bool(set(re.findall(r"@[\w.]+\[", read)) & set(re.findall(r"@[\w.]+\[", written)))


def drop_command(lines, rng):
    at = rng.choice([i for i, line in enumerate(lines)
                     if COMMAND.match(line) and not works_in_place(line)])
    return lines[:at] + lines[at + 1:], f"dropped {lines[at].strip()[:60]}"


def swap_commands(lines, rng):
    """A command before the one that writes what it reads."""
    pairs = []
    for i, (first, second) in enumerate(zip(lines, lines[1:])):
        if COMMAND.match(first) and COMMAND.match(second) and "plan.read" not in first:
            written = re.findall(r"@[\w.]+", first.split("->")[1])[0]
            if re.search(re.escape(written) + r"\[", second.split("->")[0]):
                pairs.append(i)
    at = rng.choice(pairs)
    lines = list(lines)
    lines[at], lines[at + 1] = lines[at + 1], lines[at]
    return lines, f"swapped {lines[at].strip()[:60]}"


def resize_arena(lines, rng):
    at = rng.choice([i for i, line in enumerate(lines) if "plan.arena" in line])
    change = rng.choice([-64, 64, 4096])
    lines = list(lines)
    lines[at] = re.sub(r"(\d+) bytes", lambda m: f"{int(m[1]) + change} bytes", lines[at], count=1)
    return lines, f"arena changed by {change}"


def move_buffer(lines, rng):
    """A state onto an activation, out of line, or past the end."""
    found = [(i, BUFFER.search(line)) for i, line in enumerate(lines) if BUFFER.search(line)]
    states = [(i, m) for i, m in found if m[2] == "state"]
    others = [(i, m) for i, m in found if m[2] == "activation"]
    at, state = rng.choice(states)
    _, other = rng.choice(others)
    to = rng.choice([int(other[4]), int(state[4]) + 4, 1 << 30])
    lines = list(lines)
    lines[at] = lines[at].replace(f" at {state[4]},", f" at {to},", 1)
    return lines, f"moved {state[1]} to {to}"


def widen_view(lines, rng):
    at = rng.choice([i for i, line in enumerate(lines) if COMMAND.match(line)])
    lines = list(lines)
    lines[at] = re.sub(r"\[([0-9x]*[a-z]\w*)( at \d+)?", r"[\1 at 999999936", lines[at], count=1)
    return lines, f"view beyond its buffer in {lines[at].strip()[:60]}"


def main():
    text, count = open(sys.argv[1]).read(), int(sys.argv[2])
    good, errors = accepted(text)
    if not good:
        sys.exit(f"the plan itself was refused:\n{errors}")
    rng = random.Random(1)
    mutations = [drop_command, swap_commands, resize_arena, move_buffer, widen_view]
    for number in range(count):
        lines, what = mutations[number % len(mutations)](text.splitlines(), rng)
        good, errors = accepted("\n".join(lines))
        if good:
            sys.exit(f"mutant {number} was accepted: {what}")
        if "error:" not in errors:
            sys.exit(f"mutant {number} was refused without an error: {what}\n{errors}")
    print(f"refused {count} of {count} mutants")


if __name__ == "__main__":
    main()
