"""check_trace.py TRACE EXECUTABLE CALL...: a trace of acc-run holds, for every rank and
these calls in their order, every command of the executable once for each run of its body;
spans nest, and those of a row do not overlap. With --killed ranks may have stopped anywhere.
Prints the processes with their threads, then the numbers of what there is."""
import collections
import json
import re
import struct
import sys

killed = "--killed" in sys.argv
path, executable, *calls = [word for word in sys.argv[1:] if word != "--killed"]
with open(path) as stream:
    events = json.load(stream)["traceEvents"]
with open(executable, "rb") as stream:
    (length,) = struct.unpack("<Q", stream.read(8))
    plan = json.loads(stream.read(length))["accx"]


def planned(entry, pid):
    """The commands of a call of a rank by stream: what a span says of each."""
    found = collections.defaultdict(collections.Counter)
    stage = re.search(r"\bpp (\d+)", names[pid])
    program = next(one for one in plan["programs"] if one["stage"] == int(stage[1] if stage else 0))
    for loop in next(one for one in program["entries"] if one["name"] == entry)["loops"]:
        for turn in range(loop["trips"]):
            for run in (run for segment in loop["segments"] for run in segment["runs"]):
                for command in program["bodies"][run["body"]].get("commands", []):
                    batch = run["micro_batch"] + turn if loop["trips"] > 1 else None
                    found[command["stream"]][(command["kind"], command["node"],
                                              command.get("inserted_by"), batch)] += 1
    return found


def check(condition, *what):
    if not condition:
        sys.exit(" ".join(map(str, what)))


names, threads, rows = {}, {}, collections.defaultdict(list)
for event in events:
    if event["name"] == "process_name":
        names[event["pid"]] = event["args"]["name"]
    elif event["name"] == "thread_name":
        threads[event["pid"], event["tid"]] = event["args"]["name"]
    elif event["ph"] == "X":
        rows[event["pid"], event["tid"]].append(event)
    else:
        check(event["ph"] == "M", "an event of another kind:", event)
for pid in sorted(names):
    print(f"{names[pid]}:", *(threads[row] for row in sorted(threads) if row[0] == pid))

LEVELS = {"call": 0, "body": 1, "command": 2, "communication": 2, "poison": 2, "wait": 3}
totals = collections.Counter()
for row, spans in sorted(rows.items()):
    check(row in threads, "a span in a row without a name:", row)
    done = collections.defaultdict(lambda: collections.defaultdict(collections.Counter))
    order, open_spans, ends = [], [], {}
    for span in spans:  # each stands behind what it is in
        begin = round(span["ts"] * 1000)
        end = begin + round(span["dur"] * 1000)
        level = LEVELS[span["cat"]] - (span["name"] == "wait")  # a command that waits for an event
        check(begin >= 0 and end >= begin, "no time:", span)
        open_spans = open_spans[:level]
        check(len(open_spans) == level, "a span without what it is in:", span)
        for around, (low, high) in enumerate(open_spans):
            check(low <= begin and end <= high, "a span beyond level", around, span)
        check(ends.get(level, 0) <= begin, "spans overlap:", span)
        ends = {**{deeper: at for deeper, at in ends.items() if deeper < level}, level: end}
        open_spans.append((begin, end))
        totals[span["cat"]] += 1
        if level == 0:
            order.append(span["name"])
        elif level == 2 and span["cat"] != "poison":
            arguments = span["args"]
            check(arguments["node"], "a command without a node:", span)
            check(span["cat"] != "communication" or arguments["bytes"] > 0, "no bytes:", span)
            done[len(order) - 1][threads[row]][(arguments["kind"], arguments["node"],
                                                arguments.get("inserted_by"),
                                                arguments.get("micro_batch"))] += 1
            totals["unfinished"] += "unfinished" in arguments
            totals["inserted"] += "inserted_by" in arguments
        elif level == 3:
            totals["waits for others"] += 1
    wanted = [call for call in calls if planned(call.split()[0], row[0])[threads[row]]]
    check(killed or order == wanted, "expected the calls", wanted, "found", order)
    for number, call in enumerate(order):
        missing = planned(call.split()[0], row[0])[threads[row]]
        missing.subtract(done[number][threads[row]])
        wrong = {what: count for what, count in missing.items() if count}
        check(killed or not wrong, "commands that are missing (or too many):", row, call, wrong)
for what, count in sorted(totals.items()):
    print(f"{what}: {count}")
