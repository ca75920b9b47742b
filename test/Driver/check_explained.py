"""Holds the bytes that --explain=collectives explains against those of
--report=collectives, by entry, kind and axes, and every collective to a reason of its
own."""

import collections
import json
import sys

explained, reported = (json.load(open(path)) for path in sys.argv[1:])
sums = [collections.Counter(), collections.Counter()]
for row in explained:
    sums[0][row["entry"], row["kind"], row["axes"]] += row["count"] * row["bytes"]
    if not row["node"] or not all(axis in because for axis, because in
                                  zip(row["axes"].split(","), row["because"], strict=True)):
        sys.exit(f"no reason: {row}")
for row in reported["collectives"]:
    sums[1][row["entry"], row["kind"], row["axes"]] += row["bytes"]
if sums[0] != sums[1]:
    sys.exit(f"explained: {sums[0]}\nreported: {sums[1]}")
print(f"{len(explained)} collectives, {sum(sums[0].values())} bytes, all explained")
