#!/usr/bin/env python3
"""How compile time and memory grow with a decoder: its graph is written for each
number of layers, without weights, and acc-opt compiles it up to each phase and to a
.accx.

    benchmarks/compile_scale.py --preset toy --layers 12 24 48 63 126
    benchmarks/compile_scale.py --layers 126 --micro-batches 16 --json
    benchmarks/compile_scale.py --preset llama-3.1-405b --layers 126 --batch 16384 \\
        --mesh dp_replicate=128,dp_shard=128 --mixed-precision bf16 --phases accx

Seconds are of the whole command up to the phase, processor time in parentheses;
MiB the most memory it had. Kernels are made anew each time (an empty $ACCEL_CACHE).
For the machine's own target forms of products are measured, which takes its time
whatever the model: `forms` is the processor time of a first compilation less that of
a second one that remembers them. `warm` is one that remembers kernels, too."""
import argparse
import dataclasses
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

import decoder_graph
import harness

PHASES = ("nn", "train", "dist", "decided", "local", "plan", "accx")


def compile_to(acc_opt, model, phase, options, cache):
    """What a compilation up to a phase takes: {s, cpu_s, mib}."""
    target = [f"--compile-to={phase}"] if phase != "accx" else []
    command = [acc_opt, model, "--train", "--loss=loss", "--optimizer=adamw", *options, *target,
               "-o", model.parent / ("out.accx" if phase == "accx" else "out.mlir")]
    begin = time.monotonic()
    process = subprocess.Popen([str(part) for part in command], stderr=subprocess.PIPE, text=True,
                               env=harness.environment(ACCEL_CACHE=cache))
    said = process.stderr.read()
    _, status, usage = os.wait4(process.pid, 0)
    seconds = time.monotonic() - begin
    if status != 0:
        raise SystemExit(f"{' '.join(map(str, command))}\nended with {os.waitstatus_to_exitcode(status)}:\n{said}")
    return {"s": seconds, "cpu_s": usage.ru_utime + usage.ru_stime, "mib": usage.ru_maxrss / 1024}


def measure(acc_opt, model, phases, options, work):
    """Of each phase what a compilation with nothing remembered takes; of the last, if
    it makes kernels, what one takes that remembers forms, and one that remembers all."""
    taken = {}
    for phase in phases:
        with tempfile.TemporaryDirectory(dir=work) as cache:
            taken[phase] = compile_to(acc_opt, model, phase, options, cache)
            if phase != "accx":
                continue
            if list(pathlib.Path(cache).rglob("*.form")):
                for path in pathlib.Path(cache).rglob("*.kernels"):
                    path.unlink()
                again = compile_to(acc_opt, model, phase, options, cache)
                taken["forms"] = {"cpu_s": taken[phase]["cpu_s"] - again["cpu_s"]}
                taken[phase] = again
            taken["warm"] = compile_to(acc_opt, model, phase, options, cache)
    return taken


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--preset", choices=decoder_graph.PRESETS, default="toy")
    parser.add_argument("--layers", type=int, nargs="+", default=[12, 24, 48, 126])
    parser.add_argument("--batch", type=int, help="rows of a step, over all ranks (default: the preset's)")
    parser.add_argument("--mesh", default="dp=8")
    parser.add_argument("--zero-stage", type=int, default=3)
    parser.add_argument("--micro-batches", type=int, default=1)
    parser.add_argument("--mixed-precision", choices=["bf16"])
    parser.add_argument("--target", default="cpu:x86-64-v3")
    parser.add_argument("--phases", nargs="+", choices=PHASES, default=PHASES)
    parser.add_argument("--acc-opt", default=harness.HERE.parent / "build" / "bin" / "acc-opt")
    parser.add_argument("--json", action="store_true", help="print one object for each number of layers")
    args = parser.parse_args()
    options = [f"--mesh={args.mesh}", f"--set=zero_stage={args.zero_stage}", f"--target={args.target}",
               f"--micro-batches={args.micro_batches}"]
    if args.mixed_precision:
        options.append(f"--mixed-precision={args.mixed_precision}")
    columns = [phase for phase in PHASES if phase in args.phases] + ["warm"] * ("accx" in args.phases)
    if not args.json:
        print(f"{args.preset}, {' '.join(options)}, acc {harness.acc_version()}")
        print("layers " + "".join(f"{column:>16}" for column in columns) + "     MiB")
    for layers in args.layers:
        preset = decoder_graph.PRESETS[args.preset]
        size = dataclasses.replace(preset, layers=layers, batch=args.batch or preset.batch)
        with tempfile.TemporaryDirectory() as folder:
            work = pathlib.Path(folder)
            decoder_graph.write(size, work, weights=False)
            taken = measure(args.acc_opt, work / "model.onnx", args.phases, options, work)
        if args.json:
            print(json.dumps({"layers": layers, "phases": taken}), flush=True)
        else:
            cells = "".join(f"{taken[column]['s']:8.2f} ({taken[column]['cpu_s']:5.2f})" for column in columns)
            forms = f"   forms ({taken['forms']['cpu_s']:.2f})" if "forms" in taken else ""
            most = max(each.get("mib", 0) for each in taken.values())
            print(f"{layers:6d} {cells} {most:7.0f}{forms}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
