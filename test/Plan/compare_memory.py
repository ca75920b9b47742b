"""compare_memory.py PLAN OTHER: whether the arenas of PLAN, its states aside, are at
most as large as those of OTHER."""
import pathlib
import re
import sys


def count(path):
    text = pathlib.Path(path).read_text()
    arenas = sum(map(int, re.findall(r"plan\.arena \w+ (\d+) bytes", text)))
    states = sum(map(int, re.findall(r"plan\.buffer @.* : state .* (\d+) bytes", text)))
    return arenas - states


mine, other = map(count, sys.argv[1:])
print(f"{mine} bytes beside the states, {other} of the other")
sys.exit(mine > other)
