"""Prints the flags of the category 'acc-opt options' from `acc-opt --help` on
standard input, one per line."""

import re
import sys

text = sys.stdin.read()
start = text.index("acc-opt options:")
for line in text[start:].splitlines()[1:]:
    if line and not line.startswith(" "):
        break
    if found := re.match(r"\s+(--[^ ]+(?: [^ ]+>)?)\s+- ", line):
        print(found[1])
