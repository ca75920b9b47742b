"""States in the host's memory or in a file: the same bits, and as many bytes less on the device.

  check_offload.py MODEL --inputs FOLDER --work DIR --optimizer NAME --states optimizer,parameters --layouts "FLAGS;FLAGS" [FLAGS]

--where says where they lie (cpu, nvme; of parameters --where-parameters, if that differs). Each layout is compiled and trained with and without offload. Losses, norms, saved weights and checkpoints
must be equal bit for bit, and so must evaluations. Of each stage the arena of that place must have the states that the text of the plan calls
moments, or parameters, each aligned, and the others as much less, but for what is staged at the moment when
most is alive: never more than --room bytes. Each run goes on from the other's checkpoint, and from that of the layout
before. Of a file acc-run must tell that it has moved what the plan says, to the byte, and it must be gone."""
import argparse
import json
import pathlib
import re
import shutil

from acc import Failed, report_of, run
from same_bits import expect_same_bits

SPACES = {"cpu": ("host", 64), "nvme": ("nvme", 4096)}
STATES = {"optimizer": re.compile(r"nn\.state moment @(\"[^\"]*\"|[\w.]+) :"),
          "parameters": re.compile(r"nn\.state @(\"[^\"]*\"|[\w.]+) :")}
ROLES = {"optimizer": "moments", "parameters": "parameters"}
BUFFER = re.compile(r"plan\.buffer @(\"[^\"]*\"|[\w.]+) : state (\w+) at \d+, (\d+) bytes")


def align(size, alignment=64):
    return -(-size // alignment) * alignment


def values_of(text):
    """The JSON values that follow each other in a text."""
    values, decoder, text = [], json.JSONDecoder(), text.strip()
    while text:
        value, end = decoder.raw_decode(text)
        values.append(value)
        text = text[end:].lstrip()
    return values


def find_states(plan, kinds):
    """Of each program of the plan, {name: (space, bytes)} of the states of these kinds."""
    text = plan.read_text()
    states = {name for kind in kinds for name in STATES[kind].findall(text)}
    return [{name: (space, int(size)) for name, space, size in BUFFER.findall(part)
             if name in states}
            for part in text.split("plan.program ")[1:]]


class Case:
    def __init__(self, options, layout, offload):
        self.options = options
        self.flags = [options.model, "--train", *options.flags, *layout.split(),
                      "--optimizer", options.optimizer]
        if offload:
            for kind, where in options.places.items():
                self.flags += ["--set", f"offload.{kind}={where}"]
            if "nvme" in options.places.values():
                self.flags += ["--set", f"offload.nvme_path={options.work.resolve() / 'disk'}",
                               "--set", f"aio.block_size={options.block}", "--set", "aio.queue_depth=3"]
            if options.tile:
                self.flags += ["--set", f"offload.tile={options.tile}"]
            if options.buffers:
                self.flags += ["--set", f"offload.buffer_count={options.buffers}"]
        self.work = options.work / ("offload" if offload else "device")
        for folder in (self.work, options.work / "disk"):
            folder.mkdir(parents=True, exist_ok=True)
        self.file = self.work / "model.accx"
        run("acc-opt", *self.flags, "-o", self.file)
        plan = self.work / "plan.mlir"
        run("acc-opt", *self.flags, "--compile-to=plan", "-o", plan)
        self.states = find_states(plan, options.states)
        self.stages = values_of(run("acc-opt", *self.flags, "--report=memory", "--json")[0])
        commands = json.loads(run("acc-opt", *self.flags, "--report=commands", "--json")[0])
        self.moved = [program["entries"]["step"].get("storage") for program in commands["programs"]]
        self.ranks = self.stages[0]["ranks"]

    def train(self, steps, *flags):
        weights = self.work / "weights.safetensors"
        lines, report = report_of(
            run("acc-run", self.file, "-n", self.ranks, "--inputs", self.options.inputs, "--steps",
                steps, "--json", "--save-weights", weights, *flags)[0], self.ranks)
        self.check_moved(report, len(lines))
        return [(line["step"], line["loss"], line["grad_norm"]) for line in lines], \
            weights.read_bytes()

    def check_moved(self, report, steps):
        """What went through the file, of the rank that moved most, and that nothing is left of it."""
        if not any(self.moved):
            if "storage_bytes" in report:
                raise Failed(f"expected no file, found {report}")
            return
        for what, key in (("read", "bytes_read"), ("written", "bytes_written")):
            planned = steps * max(moved[key] for moved in self.moved if moved)
            if report[f"storage_{what}_bytes"] != planned:
                raise Failed(f"expected {planned} bytes {what}, found {report}")
        if left := list((self.options.work / "disk").iterdir()):
            raise Failed(f"expected no file to be left, found {left}")

    def evaluate(self):
        """What evaluations after each of two steps tell."""
        file = self.work / "evaluated.accx"
        flags = [flag for flag in self.flags if not str(flag).startswith("--entries")]
        run("acc-opt", *flags, "--entries=step,eval", "-o", file)
        out, _ = run("acc-run", file, "-n", self.ranks, "--inputs", self.options.inputs, "--steps", 2,
                     "--eval-every", 1, "--eval-inputs", self.options.inputs, "--json", "--poison")
        return [value for line in out.splitlines()
                if (value := json.loads(line).get("eval_loss")) is not None]

    def arena(self, stage, space):
        return next((a["bytes"] for a in self.stages[stage]["arenas"] if a["space"] == space), 0)


def check_bytes(options, device, offload):
    for number, (before, after) in enumerate(zip(device.states, offload.states, strict=True)):
        if not before or {name: size for name, (_, size) in before.items()} != {
                name: size for name, (_, size) in after.items()}:
            raise Failed(f"expected the same states, found {before} and {after}")
        less = sum(device.arena(number, space) - offload.arena(number, space)
                   for space in ("device", "shared"))
        moved = 0
        for where in sorted(set(options.places.values())):
            space, alignment = SPACES[where]
            sizes = [size for found, size in after.values() if found == space]
            if not sizes:
                raise Failed(f"expected states in '{space}', found {after}")
            *others, last = sizes
            expected = sum(align(size, alignment) for size in others) + last
            if offload.arena(number, space) != expected:
                raise Failed(f"expected {expected} bytes of {space}, "
                             f"found {offload.arena(number, space)}")
            moved += sum(map(align, others)) + (align(last) if moved else last)
        if outside := set(space for space, _ in after.values()) - {
                SPACES[where][0] for where in options.places.values()}:
            raise Failed(f"expected all of them elsewhere, found some in {outside}")
        # Where states lie between others the arena's end is aligned.
        if less < moved - options.room:
            raise Failed(f"expected {moved} bytes less, or up to {options.room} fewer, found {less}")
        if options.room == 0 and less > align(moved):
            raise Failed(f"expected {moved} bytes less, found {less}")
        print(f"  stage {number}: {moved} bytes elsewhere, {less} less on the device")
        for arena in offload.stages[number]["arenas"]:
            if arena["predicted_bytes"] != arena["bytes"]:
                raise Failed(f"expected what was predicted, found {arena}")
            for kind, where in options.places.items():
                if (ROLES[kind] in arena["roles"]) != (arena["space"] == SPACES[where][0]):
                    raise Failed(f"expected {ROLES[kind]} in {where}'s rows alone, found {arena}")
        memory = sum(arena["bytes"] for arena in offload.stages[number]["arenas"]
                     if arena["space"] != "nvme")
        if offload.stages[number]["planned_peak_bytes"] != memory:
            raise Failed(f"expected a peak of {memory} bytes of memory, found {offload.stages[number]}")


def check(options, layout, before):
    device, offload = Case(options, layout, False), Case(options, layout, True)
    check_bytes(options, device, offload)
    expected = expect_same_bits(device, offload)
    if before and offload.train(4, "--resume", before) != device.train(4, "--resume", before):
        raise Failed("expected to go on from another layout's checkpoint bit for bit")
    losses = device.evaluate()
    if len(losses) < 2 or offload.evaluate() != losses:
        raise Failed(f"expected the evaluations {losses}")
    print(f"  the same bits, {len(expected[1])} bytes of weights")
    kept = options.work / "kept"
    shutil.rmtree(kept, ignore_errors=True)
    return (offload.work / "checkpoint").rename(kept)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("model", type=pathlib.Path)
    for name in ("inputs", "work"):
        parser.add_argument(f"--{name}", type=pathlib.Path, required=True)
    parser.add_argument("--optimizer", default="adamw")
    parser.add_argument("--layouts", default="")
    parser.add_argument("--states", type=lambda text: text.split(","), default=["optimizer"])
    parser.add_argument("--where", choices=SPACES, default="cpu")
    parser.add_argument("--where-parameters", default="")
    parser.add_argument("--block", type=int, default=4096)
    parser.add_argument("--buffers", type=int, default=0)
    parser.add_argument("--tile", type=int, default=0)
    parser.add_argument("--room", type=int, default=0)
    options, options.flags = parser.parse_known_args()
    options.places = {kind: options.where for kind in options.states}
    if options.where_parameters:
        options.places["parameters"] = options.where_parameters
    before = None
    try:
        for layout in options.layouts.split(";"):
            print(layout or "one rank", options.optimizer, options.places, options.buffers)
            before = check(options, layout, before)
    except Failed as problem:
        raise SystemExit(f"check_offload.py: {problem}")


if __name__ == "__main__":
    main()
