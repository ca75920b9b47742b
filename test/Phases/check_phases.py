#!/usr/bin/env python3
"""Law 11 and the phases' texts, for one model and one set of options:

    check_phases.py MODEL.onnx [acc-opt option...]

For every phase: its text parses back to the same text, and compiling on from it
gives the text that compiling from the model gives. For every phase after `nn` (of
a training step: after `train`, over two steps): the reference evaluator finds it
to mean what that one means on random inputs, in float64 (the program is compiled
with --dtype=f64 as well, so that the plan's bytes are float64)."""

import pathlib
import subprocess
import sys
import tempfile

PHASES = ["nn", "train", "dist", "decided", "local", "plan"]
TOLERANCE = "1e-9"
# The last phase that reads a flag; those of training that are not here: train.
READ_BY = {"--dim": "nn", "--dtype": "nn", "--tie": "nn", "--mesh": "dist", "--batch-dim": "dist",
           "--micro-batches": "dist", "--target": "plan", "--threads-per-rank": "plan"}


def run(*command):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(map(str, command))}\n{done.stdout[-2000:]}{done.stderr[-4000:]}")
    return done.stdout


def main():
    model, options = sys.argv[1], sys.argv[2:]
    trains = "--train" in options
    first, steps = ("train", ["--steps", "2"]) if trains else ("nn", [])
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        texts = {}
        for phase in PHASES:
            texts[phase] = folder / f"{phase}.mlir"
            run("acc-opt", model, *options, "--dtype=f64", f"--compile-to={phase}", "-o", texts[phase])
            again = run("acc-opt", texts[phase], f"--compile-to={phase}")
            if again.rstrip() != texts[phase].read_text().rstrip():
                sys.exit(f"{model}: the text of phase '{phase}' does not parse back to itself")
        for before, after in zip(PHASES, PHASES[1:]):
            flags = [word for word in options
                     if PHASES.index(READ_BY.get(word.split("=")[0], "train")) >= PHASES.index(after)]
            text = run("acc-opt", texts[before], *flags, f"--compile-to={after}")
            if text.rstrip() != texts[after].read_text().rstrip():
                sys.exit(f"{model}: compiling on from the text of '{before}' gives another '{after}'")
            if PHASES.index(after) <= PHASES.index(first):
                continue
            print(f"{after:8}", run("acc-eval", texts[first], "--compare", texts[after], "--f64", *steps,
                                    "--seed", "1", "--tolerance", TOLERANCE).strip())


if __name__ == "__main__":
    main()
