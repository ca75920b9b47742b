"""Holds the tables of Megatron-LM's arguments against the list of its own parser
(Inputs/megatron-arguments.txt): each is known, takes as many values as there and of the
same types and words, and no others."""

import json
import pathlib
import subprocess
import sys

here = pathlib.Path(__file__).parent
rows = [line.split() for line in
        (here / "Inputs" / "megatron-arguments.txt").read_text().splitlines()
        if line[0] != "#"]
failures = 0


def good_value(kind):
    return {"int": "1", "float": "0.5", "str": "x"}.get(kind, kind.split(",")[0])


def bad_value(kind):
    """A value that Megatron-LM's parser refuses; none of what takes any text."""
    return {"int": "many", "float": "many", "str": None}.get(kind, "no-such-word")


def run(lines):
    path = pathlib.Path(sys.argv[1])
    path.write_text("\n".join(lines) + "\n")
    return subprocess.run(["acc-opt", "--config", str(path), "--print-config", "--json",
                           "--set", "num_processes=1"], capture_output=True, text=True)


def report(text):
    global failures
    print(text)
    failures += 1


# As Megatron-LM takes them: whatever is refused is called "not supported yet".
lines = []
for name, arity, *kind in rows:
    value = "" if arity == "switch" else good_value(kind[0])
    lines.append(f"{name} {' '.join([value] * (3 if arity == '3' else 1))}")
    if arity in ("more", "any"):
        lines[-1] += f" {value}"
refused = [line.split(": error: ", 1)[1] for line in run(lines).stderr.splitlines()]
for message in refused:
    # Lengths in steps and in samples stand beside each other here.
    if "' is not supported yet" not in message and "', whose unit is another" not in message:
        report(message)
unsupported = {message.split(":")[0].strip("'") for message in refused}

# What is not refused is read, and said to be done or noted.
read = run([line for line in lines if line.split()[0] not in unsupported
            and line.split()[0] not in (  # they contradict each other, or need others
                "--checkpoint-activations", "--moe-layer-recompute", "--fp16", "--fp4-format",
                "--sequence-parallel", "--lr-decay-iters", "--min-lr", "--lr-decay-style",
                "--lr-warmup-init", "--lr-warmup-iters", "--lr-warmup-fraction",
                "--train-samples", "--lr-decay-samples", "--start-weight-decay", "--end-weight-decay", "--lr-warmup-samples",
                "--num-layers-per-virtual-pipeline-stage", "--num-virtual-stages-per-pipeline-rank", "--decoder-seq-length")])
if read.returncode:
    report(read.stderr)
else:
    keys = json.loads(read.stdout)["keys"]
    if len(keys) < 780:
        report(f"expected 780 keys to be read, found {len(keys)}")
    for one in keys:
        if one["fate"] not in ("done", "noted", "idle", "later"):
            report(f"{one['key']} is {one['fate']}")

# As it does not take them.
lines = []
for name, arity, *kind in rows:
    if arity == "switch":
        lines.append(f"{name} yes")
    elif bad_value(kind[0]) is not None:
        lines.append(f"{name} {bad_value(kind[0])}")
    elif arity == "one":
        lines.append(f"{name} x y")
    else:
        continue
found = []
for first in range(0, len(lines), 100):  # as many errors as are told at once
    found += run(lines[first:first + 100]).stderr.splitlines()
for line in lines:
    name = line.split()[0]
    if not any(f" as '{name}', found" in message for message in found):
        report(f"'{line}' is taken")
print(f"{len(rows)} arguments, {len(unsupported)} refused, {failures} failures")
sys.exit(failures > 0)
