#!/usr/bin/env python3
"""Runs the small GPT-2 of test/Fixtures under Slurm, on nodes that are network
namespaces (slurm.py): started by srun, by sbatch and by mpirun in what salloc gives, the
losses and the saved weights are, bit for bit, those of one machine; a rank, a task or
a node that is lost ends the rest within five seconds; scancel saves, where there are
checkpoints; nothing is left behind.
Needs root, Open MPI and Slurm: else it says so, and its exit status is 77.

    test/Machines/check_slurm.py [--only kill_rank] [--tools build/bin]
"""

import os
import re
import shutil
import signal
import sys
import threading

from check_machines import (after_steps, expect, main, parent, processes, results,
                            wait_until)
from slurm import Slurm, why_not

# Of docs/Machines.md. Two ranks on each of two nodes.
SRUN = ["srun", "-N", "2", "--ntasks-per-node", "2", "--mpi=pmix"]
CHECKS = {}


def check(function):
    CHECKS[function.__name__] = function
    return function


def started(bench, slurm, *more, start=SRUN):
    return after_steps(slurm.start(start + bench.command("zero3", 1000000, *more)))


def ended(slurm, process, names="ab"):
    """Waits for all to be gone, acc-run within what is promised; returns the exit
    status, and what was said."""
    wait_until("end of all ranks", lambda: not any(
        processes(slurm, name) for name in names), 5)
    wait_until("end of the command", lambda: process.poll() is not None, 15)
    wait_until("end of the job", lambda: not slurm.jobs(), 15)
    for name in names:
        left = slurm.shared_memory(name)
        expect(not left, f"left in the /dev/shm of '{name}'", str(left))
    return process.returncode, process.stderr.read()


def tasks(slurm, name):
    """What Slurm started on a node: acc-run, whose parent is another program."""
    every = processes(slurm, name)
    return [one for one in every if parent(one) not in every]


def ranks(slurm, name):
    """What tasks started."""
    return sorted(set(processes(slurm, name)) - set(tasks(slurm, name)))


@check
def bits(bench):
    """Losses and weights, by every way to start and to place ranks."""
    def by_sbatch(command):
        script, said = f"{bench.folder}/job", f"{bench.folder}/said"
        with open(script, "w") as file:
            file.write("#!/bin/bash\n#SBATCH -N 2 --ntasks-per-node 2\n"
                       f"exec srun --mpi=pmix {' '.join(command)}\n")
        code, _, err = slurm.run(["sbatch", "-o", said, script])
        expect(code == 0, "sbatch", err)
        wait_until("end of the job", lambda: not slurm.jobs(), 30)
        with open(said) as file:
            out = file.read()
        return 0, out, ""

    mpirun = ["salloc", "-N", "2", "--ntasks-per-node", "2", "mpirun", "--allow-run-as-root"]
    with Slurm(3) as slurm:
        for layout, start in (
                ("zero3", SRUN), ("tp", SRUN),
                ("zero3", ["srun", "-N", "3", "-n", "4", "--mpi=pmix"]),
                ("cp", ["srun", "-N", "3", "-n", "3", "--mpi=pmix"]),
                # Ranks that take turns: no node has two that follow each other.
                ("zero3", [*SRUN, "--distribution=cyclic"]),
                ("zero3", ["env", "SLURM_MPI_TYPE=pmix", *SRUN[:-1]]),
                ("zero3", ["env", "ACCEL_MESSAGES=mpi", *SRUN]),
                ("zero3", mpirun)):
            bench.same_by(lambda command: slurm.run(start + command), layout,
                          f"{layout} by {' '.join(start)}")
        bench.same_by(by_sbatch, "zero3", "zero3 by sbatch")


@check
def kill_rank(bench):
    """One rank's process."""
    with Slurm(2) as slurm:
        process = started(bench, slurm)
        os.kill(ranks(slurm, "b")[0], signal.SIGKILL)
        code, err = ended(slurm, process)
        expect(code == 1, f"exit status {code}", err)
        expect(re.search(r"acc-run: error: rank [23],.* ended by signal 9", err),
               "the error names no rank", err)


@check
def kill_task(bench):
    """A process that Slurm started: Slurm ends the others, and names it."""
    with Slurm(2) as slurm:
        process = started(bench, slurm)
        os.kill(tasks(slurm, "b")[0], signal.SIGKILL)
        code, err = ended(slurm, process)
        expect(code == 128 + signal.SIGKILL, f"exit status {code}", err)
        expect(re.search(r"srun: error: b: tasks? [23](-3)?: Killed", err),
               "the error names no task", err)


@check
def lose(bench):
    """A node whose cable is pulled. srun waits on for it: that is Slurm's to say."""
    with Slurm(2) as slurm:
        process = started(bench, slurm)
        said = []
        threading.Thread(target=lambda: said.extend(process.stderr), daemon=True).start()
        slurm.cut("b")
        wait_until("end of all ranks", lambda: not any(
            processes(slurm, name) for name in "ab"), 5)
        wait_until("an error that names the machine", lambda: any(re.search(
            r"acc-run: error: rank [23]: machine 'b' has given no sign of life", line)
            for line in list(said)), 2, lambda: "".join(said))


@check
def interrupt(bench):
    """Signals by scancel save what was done; it is gone on with on other nodes."""
    folder = f"{bench.folder}/checkpoints"
    for options, code in ((["--signal=TERM"], 128 + signal.SIGTERM),
                          (["--signal=INT"], 128 + signal.SIGINT),
                          ([], 128 + signal.SIGTERM)):
        shutil.rmtree(folder, ignore_errors=True)
        with Slurm(3) as slurm:
            process = started(bench, slurm, "--checkpoint", folder)
            slurm.ask("scancel", *options, *slurm.jobs())
            found, err = ended(slurm, process)
            what = f"scancel {' '.join(options)}"
            expect(found == code and "the last checkpoint is" in err,
                   f"{what}: exit status {found}", err)
            if options != ["--signal=TERM"]:
                continue
            step = max(int(name[5:]) for name in os.listdir(folder) if name.startswith("step-"))
            expected, _ = bench.expected("zero3", step + 3)
            found, out, err = slurm.run(
                ["srun", "-N", "3", "-n", "4", "--mpi=pmix",
                 *bench.command("zero3", step + 3, "--resume", folder)])
            expect(found == 0, f"going on: exit status {found}", err)
            expect(results(out) == expected[-3:], "going on: other losses", out)


@check
def kill_all(bench):
    """What Slurm kills at once, as it does where srun is told to end, leaves nothing."""
    with Slurm(2) as slurm:
        process = started(bench, slurm)
        process.send_signal(signal.SIGTERM)
        code, err = ended(slurm, process)
        expect(code == 128 + signal.SIGKILL, f"exit status {code}", err)


@check
def refusals(bench):
    """As many tasks as ranks are needed, and a Slurm that tells MPI of them."""
    command = bench.command("zero3", 2)
    with Slurm(2) as slurm:
        for start, message in (
                (["srun", "-N", "2", "-n", "3", "--mpi=pmix"], "expected 4 processes for --comm=mpi"),
                (["srun", "-N", "2", "-n", "4", "--mpi=none"],
                 "OMPI was not built with SLURM's PMI support")):
            code, _, err = slurm.run(start + command)
            expect(code == 1 and message in err, f"{' '.join(start)}: exit status {code}", err)


if __name__ == "__main__":
    sys.exit(main(__doc__, CHECKS, why_not))
