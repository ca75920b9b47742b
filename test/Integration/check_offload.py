"""States in the host's memory: the same bits, and as many bytes less on the device.

  check_offload.py MODEL --inputs FOLDER --work DIR --optimizer NAME --states optimizer,parameters --layouts "FLAGS;FLAGS" [FLAGS]

Each layout is compiled and trained with and without offload. Losses, norms, saved weights and checkpoints
must be equal bit for bit. Of each stage the arena `host` must have the states that the text of the plan calls
moments, or parameters, each aligned, and the others as much less, but for what is staged at the moment when
most is alive: never more than --room bytes. Each run goes on from the other's checkpoint."""
import argparse
import json
import pathlib
import re
import shutil

from acc import Failed, report_of, run

ALIGNMENT = 64
STATES = {"optimizer": re.compile(r"nn\.state moment @(\"[^\"]*\"|[\w.]+) :"),
          "parameters": re.compile(r"nn\.state @(\"[^\"]*\"|[\w.]+) :")}
ROLES = {"optimizer": "moments", "parameters": "parameters"}
BUFFER = re.compile(r"plan\.buffer @(\"[^\"]*\"|[\w.]+) : state (\w+) at \d+, (\d+) bytes")


def align(size):
    return -(-size // ALIGNMENT) * ALIGNMENT


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
            for kind in options.states:
                self.flags += ["--set", f"offload.{kind}=cpu"]
            if options.buffers:
                self.flags += ["--set", f"offload.buffer_count={options.buffers}"]
        self.work = options.work / ("host" if offload else "device")
        self.work.mkdir(parents=True, exist_ok=True)
        self.file = self.work / "model.accx"
        run("acc-opt", *self.flags, "-o", self.file)
        plan = self.work / "plan.mlir"
        run("acc-opt", *self.flags, "--compile-to=plan", "-o", plan)
        self.states = find_states(plan, options.states)
        text = run("acc-opt", *self.flags, "--report=memory", "--json")[0]
        self.stages, decoder, at = [], json.JSONDecoder(), 0
        while at < len(text.rstrip()):
            stage, end = decoder.raw_decode(text[at:].lstrip())
            at = len(text) - len(text[at:].lstrip()) + end
            self.stages.append(stage)
        self.ranks = self.stages[0]["ranks"]

    def train(self, steps, *flags):
        weights = self.work / "weights.safetensors"
        lines, _ = report_of(run("acc-run", self.file, "-n", self.ranks, "--inputs",
                                 self.options.inputs, "--steps", steps, "--json", "--save-weights",
                                 weights, *flags)[0], self.ranks)
        return [(line["step"], line["loss"], line["grad_norm"]) for line in lines], \
            weights.read_bytes()

    def arena(self, stage, space):
        return next((a["bytes"] for a in self.stages[stage]["arenas"] if a["space"] == space), 0)


def check_bytes(options, device, host):
    for number, (before, after) in enumerate(zip(device.states, host.states, strict=True)):
        if not before or {name: size for name, (_, size) in before.items()} != {
                name: size for name, (_, size) in after.items()}:
            raise Failed(f"expected the same states, found {before} and {after}")
        if {space for space, _ in after.values()} != {"host"}:
            raise Failed(f"expected all of them on the host, found {after}")
        *others, last = [size for _, size in after.values()]
        moved = sum(map(align, others)) + last
        if host.arena(number, "host") != moved:
            raise Failed(f"expected {moved} bytes on the host, found {host.arena(number, 'host')}")
        less = sum(device.arena(number, space) - host.arena(number, space)
                   for space in ("device", "shared"))
        # Where states lie between others the arena's end is aligned.
        if less < moved - options.room:
            raise Failed(f"expected {moved} bytes less, or up to {options.room} fewer, found {less}")
        if options.room == 0 and less > align(moved):
            raise Failed(f"expected {moved} bytes less, found {less}")
        print(f"  stage {number}: {moved} bytes on the host, {less} less elsewhere")
        for arena in host.stages[number]["arenas"]:
            if arena["predicted_bytes"] != arena["bytes"]:
                raise Failed(f"expected what was predicted, found {arena}")
            for kind in options.states:
                if (ROLES[kind] in arena["roles"]) != (arena["space"] == "host"):
                    raise Failed(f"expected {ROLES[kind]} among the host's rows alone, found {arena}")


def check(options, layout):
    device, host = Case(options, layout, False), Case(options, layout, True)
    check_bytes(options, device, host)
    expected = device.train(4)
    if host.train(4, "--poison") != expected:
        raise Failed("expected the same losses, norms and weights, bit for bit")
    for first, second in ((device, host), (host, device)):
        checkpoint = first.work / "checkpoint"
        shutil.rmtree(checkpoint, ignore_errors=True)
        begun = first.train(2, "--checkpoint", checkpoint)
        ended = second.train(4, "--resume", checkpoint)
        if begun[0] + ended[0] != expected[0] or ended[1] != expected[1]:
            raise Failed(f"expected to go on from the other's checkpoint bit for bit, found {ended[0]}")
    print(f"  the same bits, {len(expected[1])} bytes of weights")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("model", type=pathlib.Path)
    for name in ("inputs", "work"):
        parser.add_argument(f"--{name}", type=pathlib.Path, required=True)
    parser.add_argument("--optimizer", default="adamw")
    parser.add_argument("--layouts", default="")
    parser.add_argument("--states", type=lambda text: text.split(","), default=["optimizer"])
    parser.add_argument("--buffers", type=int, default=0)
    parser.add_argument("--room", type=int, default=0)
    options, options.flags = parser.parse_known_args()
    try:
        for layout in options.layouts.split(";"):
            print(layout or "one rank", options.optimizer, options.states, options.buffers)
            check(options, layout)
    except Failed as problem:
        raise SystemExit(f"check_offload.py: {problem}")


if __name__ == "__main__":
    main()
