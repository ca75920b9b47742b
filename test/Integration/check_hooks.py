#!/usr/bin/env python3
"""Trains test/Fixtures/hooks with gradients compressed between two ranks, and compares with
PyTorch's DistributedDataParallel under the same hook (make_hooks.py):

  check_hooks.py --work DIR

Of each hook, on plain data parallelism: losses, the first step's gradients and the weights after
the last step are PyTorch's with that hook, and nearer to them than to PyTorch's without.
In every stage of ZeRO, with and without micro-batches: what the hook changes in the gradients is
no more than its type rounds, and not nothing; and what ranks send of them is half. Prints
each comparison."""
import argparse
import json
import pathlib
import shutil
import sys

from acc import ROOT, Failed, run, tensorfiles

FIXTURE = ROOT / "test" / "Fixtures" / "hooks"
RATE = 0.5
# Half the distance between neighbours, relative: what one rounding can change.
ROUNDING = {"fp16": 2.0**-11, "bf16": 2.0**-8}
# mesh, micro-batches, stage
LAYOUTS = [("dp=2", 1, 0), ("dp=2", 2, 0), ("dp=2", 1, 1), ("dp=2", 2, 1), ("dp=2", 1, 2),
           ("dp=2", 2, 2), ("dp=2", 2, 3), ("dp_replicate=2,dp_shard=2", 1, 3)]


def compile_step(hook, layout, *more):
    mesh, parts, stage = layout
    flags = ["--set", f"zero_stage={stage}"] if stage else []
    return run("acc-opt", FIXTURE / "model.onnx", "--train", "--loss", "loss", "--entries=step",
               "--optimizer=sgd", "--set", f"optimizer.lr={RATE}", "--emit-gradients", "--mesh",
               mesh, "--micro-batches", parts, "--set", f"comm_hook={hook}", *flags, *more)


def train(work, hook, layout, steps):
    """Losses, the last step's gradients, and weights."""
    program, outputs, weights = work / "hooks.accx", work / "outputs", work / "weights"
    compile_step(hook, layout, "-o", program)
    shutil.rmtree(outputs, ignore_errors=True)
    stdout, _ = run("acc-run", program, "--steps", steps, "--inputs", FIXTURE / "inputs",
                    "--outputs", outputs, "--save-weights", weights, "--json")
    losses = [json.loads(line)["loss"] for line in stdout.splitlines()[:-1]]
    gradients = {name[:-len(".grad")]: tensor[2]
                 for name, tensor in tensorfiles.read(outputs).items() if name.endswith(".grad")}
    return losses, gradients, {name: tensor[2] for name, tensor in
                               tensorfiles.read_safetensors(weights).items()}


def distance(found, expected):
    """The L2 norm of the difference, relative to what is expected."""
    if found.keys() != expected.keys():
        raise Failed(f"expected {sorted(expected)}, found {sorted(found)}")
    pairs = [(a, b) for name in expected
             for a, b in zip(found[name], expected[name], strict=True)]
    return (sum((a - b)**2 for a, b in pairs) / sum(b * b for _, b in pairs))**0.5


def require(what, holds):
    print(f"  {what}", flush=True)
    if not holds:
        raise Failed(f"does not hold: {what}")


def check_torch(work, hook, expected):
    mine, other = expected[hook], expected["no"]
    losses, _, weights = train(work, hook, LAYOUTS[0], len(mine["losses"]))
    _, gradients, _ = train(work, hook, LAYOUTS[0], 1)
    worst = max(abs(a - b) / b for a, b in zip(losses, mine["losses"], strict=True))
    require(f"{hook}: losses as in PyTorch, {worst:.1e}", worst <= 1e-6 + ROUNDING[hook] * 1e-2)
    # In later steps what is a bit off in float32 is rounded the other way now and then.
    for kind, found, nearer in (("gradients", gradients, 100), ("weights", weights, 2)):
        near, far = distance(found, mine[kind]), distance(found, other[kind])
        require(f"{hook}: {kind} {near:.1e} from PyTorch's, {far:.1e} from those without it",
                near <= far / nearer)


def gradient_bytes(hook, layout):
    """What a rank sends of gradients in a step, and of all else."""
    rows = json.loads(compile_step(hook, layout, "--explain=collectives", "--json")[0])
    sums = [row for row in rows if row["kind"] in ("all_reduce", "reduce_scatter")
            and "gradient of" in row["node"]]
    total = sum(row["bytes"] * row["count"] for row in rows)
    part = sum(row["bytes"] * row["count"] for row in sums)
    reported = json.loads(compile_step(hook, layout, "--report=collectives", "--json")[0])
    if sum(row["bytes"] for row in reported["collectives"]) != total:
        raise Failed(f"explained and reported bytes differ: {hook}, {layout}")
    return part, total - part


def check_layouts(work):
    for layout in LAYOUTS:
        _, exact, _ = train(work, "no", layout, 1)
        bytes_exact, rest = gradient_bytes("no", layout)
        for hook, rounding in ROUNDING.items():
            _, rounded, _ = train(work, hook, layout, 1)
            error = distance(rounded, exact)
            # Each term, and their sum; rows of tables are sent as they are.
            require(f"{layout} {hook}: gradients differ by {error:.1e}",
                    rounding / 20 < error <= 2 * rounding)
            sent, others = gradient_bytes(hook, layout)
            require(f"{layout} {hook}: {sent} bytes instead of {bytes_exact}, "
                    f"and {others} of other things", 2 * sent == bytes_exact and others == rest)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--work", type=pathlib.Path, required=True)
    work = parser.parse_args().work
    work.mkdir(parents=True, exist_ok=True)
    expected = json.loads((FIXTURE / "expected.json").read_text())
    for hook in ROUNDING:
        check_torch(work, hook, expected)
    check_layouts(work)
    print(f"{len(ROUNDING)} hooks in {len(LAYOUTS)} layouts")


if __name__ == "__main__":
    try:
        main()
    except (Failed, tensorfiles.Mismatch) as problem:
        sys.exit(f"check_hooks: {problem}")
