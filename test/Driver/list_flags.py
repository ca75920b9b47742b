"""Prints acc-opt's own flags from `acc-opt --help` on standard input, one per line, by
the alphabet: those of every group but LLVM's."""

import re
import sys

group, flags = "", []
for line in sys.stdin.read().partition("\nOPTIONS:\n")[2].splitlines():
    if line and not line.startswith(" "):
        group = line
    elif group not in ("General options:", "Generic Options:") and (
            found := re.match(r"\s+(--[^ ]+(?: [^ ]+>)?)\s+- ", line)):
        flags.append(found[1])
print("\n".join(sorted(flags, key=lambda flag: flag.partition("=")[0])))
