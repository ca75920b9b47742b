"""Two predictions of one rank's step, the second of a rank that is half as fast."""
import json
import sys


def step(path):
    with open(path) as file:
        return json.load(file)["programs"][0]["entries"]["step"]


fast, slow = map(step, sys.argv[1:])
for one in (fast, slow):
    assert one["exchanges"] == [] and one["exchanging"] == one["waiting"] == 0, one
    assert abs(one["computing"] - one["seconds"]) < 1e-12 * one["seconds"], one
# Each command takes its arithmetic or its bytes, at 1e9 a second: no less than all arithmetic.
assert fast["seconds"] >= fast["flops_of_rank"] / 1e9 > 0, fast
assert abs(slow["seconds"] / fast["seconds"] - 2) < 1e-9, (fast, slow)
