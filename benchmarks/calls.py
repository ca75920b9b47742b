"""What a call costs: steps that a program asks for one by one (docs/Embedding.md) beside those
that acc-run makes by itself, on the same batch. A small decoder, whose step is so short that
the call is seen, and one of GPT-2's size (124M, one sequence).

Runs alternate, and the fastest round of each counts, since others work on the machine, too.
A step of acc-run is the time between its first and its last line, over the steps between; one
of a program the time of its loop, from Python, the batch copied or already in place. Beside
the step: what the slowest rank does not count as part of it (the mean of acc-run's, the median
of calls).

    benchmarks/calls.py [--rounds 5] [--small-steps 2000] [--large-steps 8] [--ranks 1,2]

Needs build/bin and NumPy."""
import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

import numpy as np

import harness

BUILD = harness.HERE.parent / "build"
BIN = BUILD / "bin"
os.environ["ACC_BIN"] = str(BIN)
sys.path.insert(0, str(harness.HERE.parent / "python"))
import acc  # noqa: E402

# layers, width, heads, inner, words, batch, length
MODELS = {"small, 2 layers of 64": (2, 64, 4, 256, 512, 2, 32),
          "GPT-2's size, 12 layers of 768": (12, 768, 12, 2048, 50257, 1, 64)}


def make(folder, sizes, ranks):
    layers, width, heads, inner, words, batch, length = map(str, sizes)
    subprocess.run([sys.executable, str(harness.HERE / "decoder_graph.py"), str(folder), "--layers", layers,
                    "--width", width, "--heads", heads, "--kv-heads", heads, "--inner", inner,
                    "--vocabulary", words, "--sequence", length, "--batch",
                    str(max(int(batch), ranks)), "--weights"], check=True)
    program = folder / f"{ranks}.accx"
    subprocess.run([str(BIN / "acc-opt"), str(folder / "model.onnx"), "--train", "--loss", "loss",
                    "--entries", "step", "--mesh", f"dp={ranks}", "-o", str(program)], check=True)
    return program


def own_loop(program, steps, folder):
    """Seconds of a step, and those of them that the slowest rank does not count."""
    process = subprocess.Popen([str(BIN / "acc-run"), str(program), "--json", "--steps", str(steps),
                                "--inputs", str(folder)], stdout=subprocess.PIPE, text=True)
    times, seconds = [], []
    for line in process.stdout:
        if '"loss"' in line:
            times.append(time.monotonic())
            seconds.append(json.loads(line)["time_s"])
    if process.wait():
        raise SystemExit(f"acc-run ended with {process.returncode}")
    each = (times[-1] - times[0]) / (steps - 1)
    return each, each - sum(seconds[1:]) / (steps - 1)


def called(run, steps, batch):
    all_of_it, beside = [], []
    for _ in range(steps):
        begin = time.monotonic()
        result = run.step(batch)
        all_of_it.append(time.monotonic() - begin)
        beside.append(all_of_it[-1] - result.time_s)
    return sum(all_of_it) / steps, float(np.median(beside))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--small-steps", type=int, default=2000)
    parser.add_argument("--large-steps", type=int, default=8)
    parser.add_argument("--ranks", default="1,2")
    args = parser.parse_args()
    machine = harness.machine(sorted(os.sched_getaffinity(0)))
    print(f"{machine['cpu']}, {len(os.sched_getaffinity(0))} processors; acc {harness.acc_version()}; "
          f"the fastest of {args.rounds} rounds; load {os.getloadavg()[0]:.1f}\n")
    print("| model | ranks | acc-run's loop | called, batch in place | called, batch copied | "
          "beside the step: acc-run | in place | copied |\n|---|---|---|---|---|---|---|---|")
    for steps, (name, sizes) in zip((args.small_steps, args.large_steps), MODELS.items()):
        for ranks in map(int, args.ranks.split(",")):
            with tempfile.TemporaryDirectory(prefix="acc-calls-") as path:
                folder = pathlib.Path(path)
                program = make(folder, sizes, ranks)
                with acc.load(program) as run:
                    draw = np.random.default_rng(0)
                    batch = {each: draw.integers(0, sizes[4], array.shape)
                             for each, array in run.inputs.items()}
                    for each, value in batch.items():
                        np.save(folder / f"{each}.npy", value)
                rows = {"own": [], "placed": [], "copied": []}
                for _ in range(args.rounds):
                    rows["own"].append(own_loop(program, steps, folder))
                    for kind in ("placed", "copied"):
                        with acc.load(program) as run:
                            run.step(batch)
                            rows[kind].append(called(run, steps, None if kind == "placed" else batch))
                (own, loop), (placed, call), (copied, more) = (min(row) for row in rows.values())
                print(f"| {name} | {ranks} | {own * 1e6:,.0f} µs | {placed * 1e6:,.0f} µs | "
                      f"{copied * 1e6:,.0f} µs | {loop * 1e6:,.0f} µs | {call * 1e6:,.0f} µs | "
                      f"{more * 1e6:,.0f} µs |", flush=True)


if __name__ == "__main__":
    main()
