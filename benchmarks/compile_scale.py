#!/usr/bin/env python3
"""How compile time and memory grow with a decoder: its graph is written for each
number of layers, and acc-opt compiles it up to each phase and to a .accx.

    benchmarks/compile_scale.py --preset toy --layers 12 24 48 126
    benchmarks/compile_scale.py --layers 126 --micro-batches 16 --json

Seconds are of the whole command up to the phase, processor time in parentheses;
MiB the most memory it had. Kernels and their forms are made anew each time
(an empty $ACCEL_CACHE), for a target that every x86-64 machine of today has."""
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


def compile_to(acc_opt, model, phase, options, work):
    """What a compilation up to a phase takes: {s, cpu_s, mib}."""
    target = [f"--compile-to={phase}"] if phase != "accx" else []
    with tempfile.TemporaryDirectory(dir=work) as cache:
        command = [acc_opt, model, "--train", "--loss=loss", "--optimizer=adamw", "--target=cpu:x86-64-v3",
                   *options, *target, "-o", work / ("out.accx" if phase == "accx" else "out.mlir")]
        begin = time.monotonic()
        process = subprocess.Popen([str(part) for part in command], stderr=subprocess.PIPE, text=True,
                                   env=harness.environment(ACCEL_CACHE=cache))
        said = process.stderr.read()
        _, status, usage = os.wait4(process.pid, 0)
        seconds = time.monotonic() - begin
    if status != 0:
        raise SystemExit(f"{' '.join(map(str, command))}\nended with {os.waitstatus_to_exitcode(status)}:\n{said}")
    return {"s": seconds, "cpu_s": usage.ru_utime + usage.ru_stime, "mib": usage.ru_maxrss / 1024}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--preset", choices=decoder_graph.PRESETS, default="toy")
    parser.add_argument("--layers", type=int, nargs="+", default=[12, 24, 48, 126])
    parser.add_argument("--mesh", default="dp=8")
    parser.add_argument("--zero-stage", type=int, default=3)
    parser.add_argument("--micro-batches", type=int, default=1)
    parser.add_argument("--acc-opt", default=harness.HERE.parent / "build" / "bin" / "acc-opt")
    parser.add_argument("--json", action="store_true", help="print one object for each number of layers")
    args = parser.parse_args()
    options = [f"--mesh={args.mesh}", f"--set=zero_stage={args.zero_stage}",
               f"--micro-batches={args.micro_batches}"]
    if not args.json:
        print(f"{args.preset}, {' '.join(options)}, acc {harness.acc_version()}")
        print("layers " + "".join(f"{phase:>16}" for phase in PHASES) + "     MiB")
    for layers in args.layers:
        size = dataclasses.replace(decoder_graph.PRESETS[args.preset], layers=layers)
        with tempfile.TemporaryDirectory() as folder:
            work = pathlib.Path(folder)
            decoder_graph.write(size, work, weights=True)
            taken = {phase: compile_to(args.acc_opt, work / "model.onnx", phase, options, work) for phase in PHASES}
        if args.json:
            print(json.dumps({"layers": layers, "phases": taken}), flush=True)
        else:
            cells = "".join(f"{taken[phase]['s']:8.2f} ({taken[phase]['cpu_s']:5.2f})" for phase in PHASES)
            print(f"{layers:6d} {cells} {max(t['mib'] for t in taken.values()):7.0f}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
