"""Goldens of hpZ from what acc-opt explains, of groups of two among four ranks that share states: the
forward gathers each weight over the groups, of each rank's piece, and within the group, of what that
makes; the backward within the group alone; gradients are scattered over both at once.

  check_secondary.py SHARDING COLLECTIVES MEMORY MICRO_BATCHES"""

import collections
import json
import math
import sys

sharding, explained, memory = (json.load(open(path)) for path in sys.argv[1:4])
batches = int(sys.argv[4])
states = {row["name"]: row for row in sharding if row["kind"] == "state"}
trained = {name for name in states if f"exp_avg/{name}" in states}
gathers, scattered = collections.Counter(), collections.Counter()
for row in explained:
    name = row["node"].removeprefix("gradient of ").removeprefix("update of ")
    if row["entry"] != "step" or name not in trained:
        continue
    whole = 4 * math.prod(states[name]["shape"])
    if row["count"] != batches:
        sys.exit(f"expected an exchange of '{name}' in each of {batches} micro-batches, found {row}")
    if row["kind"] == "reduce_scatter" and row["axes"] == "dp_shard,dp_groups":
        scattered[name] += 1
        continue
    pieces = {"dp_groups": 4, "dp_shard": 2}.get(row["axes"])
    if row["kind"] != "all_gather" or not pieces or row["bytes"] != whole // pieces:
        sys.exit(f"expected '{name}' gathered over dp_groups, of a quarter, or dp_shard, of a half, found {row}")
    if row["task"] == "backward" and row["axes"] == "dp_groups":
        sys.exit(f"expected the backward to gather '{name}' within groups, found {row}")
    gathers[name, row["task"], row["axes"]] += 1
twice = {name for name, count in scattered.items() if count > 1}
for name in trained:
    over, within = (gathers[name, "forward", axis] for axis in ("dp_groups", "dp_shard"))
    again = gathers[name, "backward", "dp_shard"]
    most = 2 if name in twice else 1
    if over != 1 or within != most or again > most or not scattered[name]:
        sys.exit(f"expected '{name}' gathered once over groups and {most} times within them, and as often "
                 f"in the backward at most, found {over}, {within}, {again}, scattered {scattered[name]}")
again = {name for name in trained if gathers[name, "backward", "dp_shard"]}
# What the backward gathers again is kept, and nothing else is when most is.
least = sum(4 * math.prod(states[name]["shape"]) for name in again) // 2
every = sum(4 * math.prod(states[name]["shape"]) for name in trained) // 2
if not least <= memory["secondary_copy_bytes"] <= every:
    sys.exit(f"expected from {least} to {every} bytes of second copies, found {memory['secondary_copy_bytes']}")
print(f"{len(trained)} weights, {len(again)} of them gathered again within groups")
