"""What reading data costs: steps on files far larger than memory, shuffled, beside steps on
one batch of --inputs, which stays in memory. Two files: tokens and a .npy for an input; both
sparse, so that they are there at any size, and a third one of random tokens, whose pages are
put out of memory before each run, so that they come from the disk.

Runs alternate; of the steps of all runs behind the first ones of each the fastest tenth is
looked at, since others work on the machine, too: the mean of that. Steps of a small model
(some ms) show more of what reading costs than those of a large one. Processor time, of whole
runs with what loading takes, does not depend on others. A run's memory is what the system says of all ranks while it runs (VmRSS of /proc/PID/status, every
20 ms, pages of files that are mapped and of shared memory included), less the arenas that the
plan grants; the same of a run on --inputs tells what data add.

    benchmarks/data.py [--gigabytes 100] [--disk-gigabytes 8] [--steps 300] [--rounds 5] [--ranks 1,2]
        [--width 64] [--sequence 64]

Needs build/bin and NumPy."""
import argparse
import json
import os
import pathlib
import resource
import statistics
import subprocess
import sys
import tempfile
import threading
import time

import numpy as np

import harness

BIN = harness.HERE.parent / "build" / "bin"
SKIPPED = 20  # steps, in which caches fill
BATCH, WORDS = 8, 1024


def model(width, length):
    return ("--layers", 2, "--width", width, "--heads", 4, "--kv-heads", 4, "--inner", 4 * width,
            "--vocabulary", WORDS, "--sequence", length, "--batch", BATCH, "--weights")


def words(values):
    return [str(value) for value in values]


def resident(parent):
    """Bytes of a process and of those that it has forked."""
    total, waiting = 0, [parent]
    while waiting:
        pid = waiting.pop()
        try:
            for line in open(f"/proc/{pid}/status"):
                if line.startswith("VmRSS"):
                    total += int(line.split()[1]) << 10
            waiting += map(int, open(f"/proc/{pid}/task/{pid}/children").read().split())
        except OSError:
            pass
    return total


def run(program, steps, options):
    """(seconds of each step, most bytes resident beside the arenas, processor seconds of a
    step, loading included)."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    process = subprocess.Popen([str(BIN / "acc-run"), str(program), "--json", "--steps", str(steps),
                                *words(options)], stdout=subprocess.PIPE, text=True,
                               env=harness.environment())
    most = [0]

    def watch():
        while process.poll() is None:
            most[0] = max(most[0], resident(process.pid))
            time.sleep(0.02)

    watcher = threading.Thread(target=watch)
    watcher.start()
    lines = [json.loads(line) for line in process.stdout]
    watcher.join()
    if process.wait():
        raise SystemExit(f"acc-run ended with {process.returncode}")
    result = lines[-1]
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (result["times_s"][SKIPPED:],
            most[0] - result["ranks"] * result["measured_peak_bytes"],
            (used.ru_utime - before.ru_utime + used.ru_stime - before.ru_stime) / steps)


def npy_header(samples, length):
    text = str({"descr": "<u2", "fortran_order": False, "shape": (samples, length)})
    text += " " * (-(len(text) + 11) % 64) + "\n"
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text.encode()


def sparse(path, size, header=b""):
    path.write_bytes(header)
    os.truncate(path, len(header) + size)


def forget(path):
    """Puts a file's pages out of memory."""
    with open(path, "rb") as file:
        os.fsync(file.fileno())
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--gigabytes", type=int, default=100)
    parser.add_argument("--disk-gigabytes", type=int, default=8)
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--ranks", default="1,2")
    parser.add_argument("--width", type=int, default=64)
    parser.add_argument("--sequence", type=int, default=64)
    args = parser.parse_args()
    length = args.sequence
    folder = pathlib.Path(tempfile.mkdtemp(prefix="acc-data-"))
    subprocess.run([sys.executable, str(harness.HERE / "decoder_graph.py"), str(folder), *words(model(args.width, length))],
                   check=True)
    samples = args.gigabytes * 10 ** 9 // (2 * length)
    tokens, array, disk = folder / "tokens.bin", folder / "rows.npy", folder / "disk.bin"
    sparse(tokens, samples * 2 * length)
    sparse(array, samples * 2 * length, npy_header(samples, length))
    draw = np.random.default_rng(0)
    with open(disk, "wb") as file:
        for _ in range(args.disk_gigabytes * 10):
            file.write(draw.integers(0, WORDS, 50_000_000, dtype=np.uint16).tobytes())
    names = ("input_ids", "labels")
    for name in names:
        np.save(folder / f"{name}.npy", draw.integers(0, WORDS, (BATCH, length)))
    cases = {"in memory": ("--inputs", folder),
             f"{args.gigabytes} GB of tokens, sparse": ("--data", tokens),
             f"{args.gigabytes} GB in .npy, sparse":
                 ("--data", ",".join(f"{name}={array}" for name in names)),
             f"{args.disk_gigabytes} GB of tokens on the disk": ("--data", disk)}
    machine = harness.machine(sorted(os.sched_getaffinity(0)))
    print(f"{machine['cpu']}, {len(os.sched_getaffinity(0))} processors; acc {harness.acc_version()}; "
          f"{args.steps} steps of {BATCH} × {length} tokens, {args.rounds} runs each, shuffled; load "
          f"{os.getloadavg()[0]:.1f}\n")
    print("| ranks | data | s a step | of in memory | processor, ms a step | resident beside the arenas, MiB | more than in memory |")
    print("| ---: | --- | ---: | ---: | ---: | ---: | ---: |")
    for ranks in map(int, args.ranks.split(",")):
        program = folder / f"{ranks}.accx"
        subprocess.run([str(BIN / "acc-opt"), str(folder / "model.onnx"), "--train", "--loss", "loss",
                        "--optimizer", "adamw", "--mesh", f"dp={ranks}", "-o", str(program)],
                       check=True, stderr=subprocess.DEVNULL)
        found = {name: [] for name in cases}
        for _ in range(args.rounds):
            for name, options in cases.items():
                forget(disk)
                found[name].append(run(program, args.steps, options))
        def fastest(runs):
            steps = sorted(step for steps, *_ in runs for step in steps)
            return statistics.mean(steps[:max(1, len(steps) // 10)])

        base, room = fastest(found["in memory"]), min(run[1] for run in found["in memory"])
        for name, runs in found.items():
            seconds, bytes_ = fastest(runs), max(run[1] for run in runs)
            spent = min(run[2] for run in runs)
            print(f"| {ranks} | {name} | {seconds:.5f} | {100 * base / seconds:.1f} % | "
                  f"{1000 * spent:.2f} | {bytes_ / 2 ** 20:.1f} | {(bytes_ - room) / 2 ** 20:.1f} |")
    for path in sorted(folder.iterdir()):
        path.unlink()
    folder.rmdir()


if __name__ == "__main__":
    main()
