"""Holds the schedule that --report=decisions tells to what --report=schedule counts in the
split program: the same bytes kept, and the same time but for the order of the ops before the
gradient that leaves a backward."""
import json
import sys

# Floating-point operations a second of the table of the target (lib/Cost/Machine.h).
FLOPS_PER_SECOND = 6.4e11

decisions, schedule = (json.load(open(name)) for name in sys.argv[1:])
(told,) = [each for each in decisions if each["decision"] == "schedule"]
assert told["value"] == schedule["schedule"], (told, schedule["schedule"])
assert abs(told["seconds"] * FLOPS_PER_SECOND / schedule["work"] - 1) < 1e-4, (told, schedule["work"])
kept = max(stage["bytes_kept_of_rank"] for stage in schedule["stages"])
assert told["bytes"] == kept, (told["bytes"], kept)
assert told["value"] not in [other["value"] for other in told["alternatives"]]
