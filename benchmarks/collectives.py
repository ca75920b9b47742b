#!/usr/bin/env python3
"""Sums over machines: acc-run beside plain MPI, on machines that are network namespaces.

Each round runs both, in turns, on the same ranks: a program of MPI that calls MPI_Allreduce or
MPI_Reduce_scatter, and acc-run on an executable whose call is as many such collectives. A figure
is seconds of one collective, the least of all calls of all rounds. Needs root, mpicc and
`ninja -C build acc-run accel-mpi acc-make-collective`."""
import argparse
import datetime
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

import harness

ROOT = harness.HERE.parent
sys.path.insert(0, str(ROOT / "test/Machines"))
from machines import Machines, why_not  # noqa: E402

SIZES = [4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20, 4 << 20, 16 << 20, 64 << 20, 256 << 20]
KINDS = ["all_reduce", "reduce_scatter"]
CALLS = 5


def times(size):
    """Collectives in a call: some hundredths of a second of them, that count its rest as nothing."""
    return max(2, min(1000, (64 << 20) // size))


def name(size):
    return f"{size >> 20} MiB" if size >= 1 << 20 else f"{size >> 10} KiB"


def run(machines, ranks, command, options=()):
    code, out, err = machines.run(ranks, command, options, seconds=300)
    if code != 0:
        raise SystemExit(f"{' '.join(command)}: exit status {code}\n{err}")
    return json.loads(out.splitlines()[-1])


def acc(machines, ranks, kind, size, folder, tools):
    count = sum(ranks.values())
    path = f"{folder}/{kind}-{count}-{size}.accx"
    if not os.path.exists(path):
        subprocess.run([tools / "acc-make-collective", kind, str(count), str(size),
                        str(times(size)), path], check=True)
    found = run(machines, ranks, [str(tools / "acc-run"), path, "--comm=mpi", "--json",
                                  "--threads", "1", "--repeat", str(CALLS)])
    return [seconds / times(size) for seconds in found["times_s"][1:]]


def mpi(machines, ranks, kind, size, program):
    # It spins where it waits: with more ranks than cores it is told to let others run.
    crowded = sum(ranks.values()) > len(os.sched_getaffinity(0))
    found = run(machines, ranks, [program, kind, str(size), str(times(size)), str(CALLS)],
                ["--mca", "mpi_yield_when_idle", "1"] if crowded else [])
    return [seconds / times(size) for seconds in found[1:]]


def table(rows):
    lines = ["| collective | bytes of a rank | ranks | acc, µs | MPI, µs | times as fast | medians |",
             "|---|---|---|---|---|---|---|"]
    for row in rows:
        best, peer = min(row["acc"]), min(row["mpi"])
        middle = statistics.median(row["mpi"]) / statistics.median(row["acc"])
        lines.append(f"| {row['kind']} | {name(row['bytes'])} | {row['ranks']} | {best * 1e6:.1f} "
                     f"| {peer * 1e6:.1f} | **{peer / best:.2f}** | {middle:.2f} |")
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tools", default=str(ROOT / "build/bin"), type=pathlib.Path)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--kinds", default=",".join(KINDS))
    parser.add_argument("--each", default="1,2", help="ranks of each machine")
    parser.add_argument("--sizes", default=",".join(map(str, SIZES)), help="bytes")
    parser.add_argument("--name", default="machines-collectives")
    parser.add_argument("--results", default=harness.HERE / "results", type=pathlib.Path)
    arguments = parser.parse_args()
    if reason := why_not():
        raise SystemExit(f"collectives.py: {reason}")
    host = harness.machine(os.sched_getaffinity(0))
    harness.warn_if_busy(host)
    rows = []
    with tempfile.TemporaryDirectory(prefix="acc-collectives-") as folder:
        program = f"{folder}/mpi-collectives"
        subprocess.run(["mpicc", "-O3", "-o", program,
                        str(harness.HERE / "collectives/mpi-collectives.c")], check=True)
        with Machines(2) as machines:
            for each in map(int, arguments.each.split(",")):
                ranks = {"a": each, "b": each}
                for kind in arguments.kinds.split(","):
                    for size in map(int, arguments.sizes.split(",")):
                        row = {"kind": kind, "bytes": size, "ranks": f"2 x {each}", "times": times(size),
                               "acc": [], "mpi": []}
                        for _ in range(arguments.rounds):
                            row["acc"] += acc(machines, ranks, kind, size, folder, arguments.tools)
                            row["mpi"] += mpi(machines, ranks, kind, size, program)
                        rows.append(row)
                        print(table([row]).splitlines()[-1], flush=True)
    date = datetime.date.today().isoformat()
    result = {"date": date, "machine": host, "acc": harness.acc_version(), "rows": rows,
              "mpi": subprocess.run(["mpirun", "--version"], capture_output=True,
                                    text=True).stdout.splitlines()[0]}
    text = (f"# Sums over two machines beside MPI\n\n{harness.describe(date, host)} "
            f"{result['mpi']}.\n\n{table(rows)}")
    harness.write(arguments.results, arguments.name, result, text)


if __name__ == "__main__":
    main()
