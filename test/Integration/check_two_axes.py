"""Goldens of ZeRO on a mesh of two axes, dp_shard x tp, or dp_shard and cp or sp, which share states
together, from what acc-opt explains: no weight is gathered over tp, or before it is needed; ZeRO-3
gathers a weight in each micro-batch once forward and at most once backward, of each rank's piece;
ZeRO-2 gathers it once a step, in the update; gradients are summed over the axes that share states by
one reduce_scatter alone.

  check_two_axes.py SHARDING COLLECTIVES STAGE MICRO_BATCHES SIZE_OF_EACH_AXIS [SHARING_AXES]"""

import collections
import json
import math
import sys

sharding, collectives = (json.load(open(path)) for path in sys.argv[1:3])
stage, batches, dp = map(int, sys.argv[3:6])
sharing = sys.argv[6] if len(sys.argv) > 6 else "dp_shard"
states = {row["name"]: row for row in sharding if row["kind"] == "state"}
gathers, scattered = collections.Counter(), collections.Counter()
for row in collectives:
    if row["entry"] != "step":
        continue
    name = row["node"].removeprefix("gradient of ").removeprefix("update of ")
    if name not in states:
        if "dp_shard" in row["axes"] and row["bytes"] > 4:
            sys.exit(f"expected weights, gradients and numbers alone over dp_shard, found {row}")
        continue
    pieces = 1
    for each in states[name]["axes"]:
        pieces *= 2 if each["axis"] == "tp" else dp if stage == 3 else 1
    bytes_of_piece = 4 * math.prod(states[name]["shape"]) // pieces
    if row["kind"] == "all_gather":
        if row["axes"] != sharing:
            sys.exit(f"expected gathers of '{name}' over {sharing} alone, found {row}")
        if stage == 2 and (row["task"] != "update" or row["count"] != 1):
            sys.exit(f"expected '{name}' gathered once, in the update, found {row}")
        if stage == 3 and (row["task"] not in ("forward", "backward") or row["count"] != batches
                           or row["bytes"] != bytes_of_piece):
            sys.exit(f"expected '{name}' gathered in each micro-batch, {bytes_of_piece} bytes, found {row}")
        gathers[name, row["task"]] += 1
    elif set(sharing.split(",")) & set(row["axes"].split(",")):
        if row["kind"] != "reduce_scatter" or row["axes"] != sharing or row["count"] != batches:
            sys.exit(f"expected a reduce_scatter of the gradient of '{name}' in each micro-batch, found {row}")
        scattered[name] += 1
trained = {name for name in states if f"exp_avg/{name}" in states}
if set(scattered) != trained:
    sys.exit(f"expected gradients of {len(trained)} weights scattered, found {len(scattered)}: "
             f"{sorted(trained ^ set(scattered))}")
# A table that is read at both ends is in two units.
twice = {name for name, count in scattered.items() if count > 1}
if len(twice) > 1:
    sys.exit(f"expected one gradient in two units at most, found {sorted(twice)}")
wanted = {name for name, _ in gathers}
if wanted != trained:
    sys.exit(f"expected {len(trained)} weights gathered, found {len(wanted)}: {sorted(trained ^ wanted)}")
for (name, task), count in gathers.items():
    if count > (2 if name in twice else 1):
        sys.exit(f"expected '{name}' gathered once in {task}, found {count} times")
both = {name for name in trained if gathers[name, "forward"] and gathers[name, "backward"]}
split = sum(any(each["axis"] == "tp" for each in states[name]["axes"]) for name in trained)
print(f"zero_stage {stage}: {len(trained)} weights, {split} of them over tp, {len(both)} gathered twice")
