"""Activations in the host's memory: the same bits, fewer bytes on the device.

  check_offload_activations.py MODEL --inputs FOLDER --work DIR --least PERCENT --layouts "FLAGS;FLAGS" [--where nvme] [FLAGS]

Each layout is compiled and trained with and without offload. Losses, norms, saved weights and checkpoints
must be equal bit for bit, and each run goes on from the other's checkpoint. The arena `host` (`nvme`) has what
the text of the plan says is copied there, of each micro-batch in flight, and nothing else; the others have less,
and all stages together by at least so many percent of what that has. What a step copies more than without is
what the text says, counted by its run list, and what a file's blocks move is what the plan says."""
import argparse
import json
import pathlib
import re

from acc import Failed, report_of, run
from same_bits import expect_same_bits

SPACES = {"cpu": ("host", 64), "nvme": ("nvme", 4096)}
AWAY = re.compile(r"plan\.buffer @(\S+) : activation (?:host|nvme) at \d+, (\d+) bytes(?: slots (\d+))?")
COPY = re.compile(r"plan\.copy @\S+?\[(\d+)x(\w+)\] -> \S+ on activations")
SIZES = {"i1": 1, "i8": 1, "bf16": 2, "f16": 2, "f32": 4, "i32": 4, "f64": 8, "i64": 8}


def decode_all(text):
    decoder, objects = json.JSONDecoder(), []
    while text.strip():
        each, end = decoder.raw_decode(text.strip())
        objects.append(each)
        text = text.strip()[end:]
    return objects


class Case:
    def __init__(self, options, layout, offload):
        self.options = options
        self.flags = [options.model, "--train", "--loss", "loss", "--entries=step",
                      "--optimizer=adamw", *options.flags, *layout.split()]
        if offload:
            self.flags += ["--set", f"offload.activations={options.where}"]
            if options.where == "nvme":
                self.flags += ["--set", f"offload.nvme_path={options.work.resolve() / 'disk'}"]
                (options.work / "disk").mkdir(parents=True, exist_ok=True)
        self.work = options.work / ("host" if offload else "device")
        self.work.mkdir(parents=True, exist_ok=True)
        self.file = self.work / "model.accx"
        run("acc-opt", *self.flags, "-o", self.file)
        plan = self.work / "plan.mlir"
        run("acc-opt", *self.flags, "--compile-to=plan", "-o", plan)
        self.programs = plan.read_text().split("plan.program ")[1:]
        self.stages = decode_all(run("acc-opt", *self.flags, "--report=memory", "--json")[0])
        self.counts = decode_all(run("acc-opt", *self.flags, "--report=commands", "--json")[0])
        self.counts = self.counts[0]["programs"]
        self.ranks = self.stages[0]["ranks"]

    def train(self, steps, *flags):
        weights = self.work / "weights.safetensors"
        lines, report = report_of(run("acc-run", self.file, "-n", self.ranks, "--inputs",
                                 self.options.inputs, "--steps", steps, "--json", "--save-weights",
                                 weights, *flags)[0], self.ranks)
        for what in ("read", "written"):
            moved = [c["entries"]["step"]["storage"][f"bytes_{what}"] for c in self.counts
                     if "storage" in c["entries"]["step"]]
            if report.get(f"storage_{what}_bytes", 0) != len(lines) * max(moved, default=0):
                raise Failed(f"expected {moved} bytes {what} in a step, found {report}")
        return [(line["step"], line["loss"], line["grad_norm"]) for line in lines], \
            weights.read_bytes()

    def arenas(self, stage):
        return {a["space"]: a for a in self.stages[stage]["arenas"]}

    def copied(self, stage):
        return self.counts[stage]["entries"]["step"]["kinds"].get("copy", {}).get("bytes_read", 0)


def count_copied(program):
    """Of the copies beside the computation, the bytes of a step."""
    bytes_of = {}
    for body in program.split("plan.body @")[1:]:
        body, _, _ = body.partition("plan.entry @")
        bytes_of[re.match(r"[^\s{]+", body)[0]] = sum(
            int(count) * SIZES[kind] for count, kind in COPY.findall(body))
    step = program.partition("plan.entry @step")[2]
    total, trips = 0, 1
    for line in step.splitlines():
        if loop := re.match(r"      plan\.loop (\d+)", line):
            trips = int(loop[1])
        elif line == "      }":
            trips = 1
        elif task := re.match(r"\s+plan\.run @(\S+)", line):
            total += trips * bytes_of.get(task[1], 0)
    return total


def check_bytes(options, device, host):
    moved, less = 0, 0
    space, alignment = SPACES[options.where]
    for number, program in enumerate(host.programs):
        before, after = device.arenas(number), host.arenas(number)
        values = AWAY.findall(program)
        sizes = [-(-int(size) // alignment) * alignment * int(slots or 1) for _, size, slots in values]
        own = after.get(space, {"bytes": 0, "roles": {}})
        # The last one's end is not aligned.
        if not sum(sizes) - alignment < own["bytes"] <= sum(sizes):
            raise Failed(f"expected {sum(sizes)} bytes there, found {own}")
        if set(own["roles"]) - {"activations", "alignment and gaps"}:
            raise Failed(f"expected activations there alone, found {own}")
        for arena in after.values():
            if arena["predicted_bytes"] != arena["bytes"]:
                raise Failed(f"expected what was predicted, found {arena}")
        more = host.copied(number) - device.copied(number)
        if more != count_copied(program):
            raise Failed(f"expected {count_copied(program)} more bytes copied, found {more}")
        if host.counts[number]["waiting_for_copies"]:
            raise Failed(f"expected copies that hide, found {host.counts[number]}")
        moved += own["bytes"]
        less += sum(before[space]["bytes"] - after[space]["bytes"] for space in before)
    if not 0 < less <= moved or 100 * less < options.least * moved:
        raise Failed(f"expected {options.least} % of {moved} bytes less, found {less}")
    print(f"  {moved} bytes there, {less} less elsewhere")


def check(options, layout):
    device, host = Case(options, layout, False), Case(options, layout, True)
    check_bytes(options, device, host)
    expected = expect_same_bits(device, host)
    print(f"  the same bits, {len(expected[1])} bytes of weights")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("model", type=pathlib.Path)
    for name in ("inputs", "work"):
        parser.add_argument(f"--{name}", type=pathlib.Path, required=True)
    parser.add_argument("--layouts", default="")
    parser.add_argument("--where", choices=SPACES, default="cpu")
    parser.add_argument("--least", type=int, required=True)
    options, options.flags = parser.parse_known_args()
    try:
        for layout in options.layouts.split(";"):
            print(layout or "one rank")
            check(options, layout)
    except Failed as problem:
        raise SystemExit(f"check_offload_activations.py: {problem}")


if __name__ == "__main__":
    main()
