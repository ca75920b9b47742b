"""check_pipeline.py STAGES.json SCHEDULE.json KEPT...: holds the two reports of a
pipeline against each other: a stage is busy for the work of its chunks on every
micro-batch, idle for the rest, and keeps as many chunks as said, each with its bytes."""

import json
import sys

stages, schedule = (json.load(open(name)) for name in sys.argv[1:3])
kept = [int(count) for count in sys.argv[3:]]
batches = schedule["micro_batches"]


def near(one, other):
    return abs(one - other) <= 1e-9 * max(abs(one), abs(other))


assert batches == stages["micro_batches"]
assert len(kept) == len(schedule["stages"]) == len(stages["stages"])
mean = sum(one["work"] for one in stages["stages"]) / len(kept)
for played, stage, count in zip(schedule["stages"], stages["stages"], kept):
    chunks = [one for one in stages["chunks"] if one["stage"] == stage["stage"]]
    assert near(stage["work"], sum(one["work"] for one in chunks)), stage
    assert near(stage["of_mean"], stage["work"] / mean), stage
    assert near(played["work"], batches * stage["work"]), played
    assert near(played["idle"], 1 - played["work"] / schedule["work"]), played
    assert played["forwards"] == batches * len(chunks), played
    assert played["chunks_kept"] == count, played
    # Of a backward in two parts either may have nothing to do.
    whole = schedule["schedule"].split(":")[0] in ("gpipe", "1f1b", "interleaved")
    assert played["backwards"] % batches == 0 and played["backwards"] >= played["forwards"]
    if whole:
        assert played["backwards"] == played["forwards"], played
    if whole and len(chunks) == 1:
        assert played["bytes_kept_of_rank"] == count * chunks[0]["kept_bytes_of_micro_batch"]
idle = sum(one["idle"] for one in schedule["stages"]) / len(kept)
assert near(schedule["idle"], idle)
print(f"{len(stages['chunks'])} chunks on {len(kept)} stages agree")
