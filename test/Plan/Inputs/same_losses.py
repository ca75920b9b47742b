"""Compares the losses and gradient norms of two runs' lines of JSON, to 1e-12 relative."""

import json
import math
import sys


def steps(path):
    with open(path) as file:
        lines = [json.loads(line) for line in file]
    return [(line["loss"], line["grad_norm"]) for line in lines if "step" in line]


one, other = steps(sys.argv[1]), steps(sys.argv[2])
if not one or len(one) != len(other):
    sys.exit(f"expected as many steps, found {len(one)} and {len(other)}")
for number, pair in enumerate(zip(one, other), 1):
    for lhs, rhs in zip(*pair):
        if not math.isclose(lhs, rhs, rel_tol=1e-12):
            sys.exit(f"expected the same in step {number}, found {lhs} and {rhs}")
