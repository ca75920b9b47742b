#!/usr/bin/env python3
"""Makes every single call fail that acc-run and acc-opt make of the system: for each
kind of call, each process and each n, the n-th call fails, once or from then on. After
each run it must have succeeded with the same bits as ever, or ended with exit status 1
and an error that says what failed; whatever has a final name must be whole; no
checkpoint that was there or was announced may be gone; and a run must go on from it with
the bits of the unbroken run. See docs/Faults.md.

  inject.py                                every n of every kind, in every scenario
  inject.py --most 3                       at most three n of each, the same every time
  inject.py --only save:1:write:4:ENOSPC+  these: SCENARIO:PROCESS:KIND:N:HOW,..."""
import argparse
import collections
import concurrent.futures
import errno
import os
import pathlib
import re
import shutil
import struct
import sys
import threading
import time

from scenarios import BUILD, DEADLINE_S, SCENARIOS, Bench, Failed, is_temporary, make_work, run

HEADER = (pathlib.Path(__file__).parent / "FaultKinds.h").read_text()
KINDS = re.findall(r'"(\w+)"', HEADER.split("kFaultKinds[kNumFaultKinds] =")[1].split("}")[0])
PROCESSES = int(re.search(r"kMostFaultProcesses = (\d+)", HEADER)[1])
# What each kind of call may say.
HOWS = {"allocate": ["ENOMEM"], "map": ["ENOMEM"], "protect": ["ENOMEM"],
        "read": ["EIO", "EINTR", "short", "zero"],
        "write": ["ENOSPC", "EIO", "EINTR", "short", "zero"], "sync": ["EIO", "EINTR"],
        "size": ["ENOSPC", "EINTR"], "lock": ["ENOLCK"], "close": ["EIO", "EINTR"],
        "open": ["EMFILE", "EACCES", "EINTR"], "list": ["EIO"], "rename": ["ENOSPC", "EIO"],
        "remove": ["EACCES"], "folder": ["ENOSPC"], "stat": ["EIO"], "fork": ["EAGAIN"],
        "wait": ["EINTR"], "random": ["ENOSYS"], "load": ["EIO"], "futex": ["EINTR", "ENOMEM"],
        "ring": ["EPERM", "ENOSYS"], "direct": ["EINVAL"],
        "block": ["EIO", "ENOSPC", "EINTR", "short", "zero", "slow"]}


class Fault:
    """One call of one process, and how it fails."""

    def __init__(self, scenario, process, kind, turn, how):
        self.scenario, self.process, self.kind, self.turn, self.how = \
            scenario, process, kind, turn, how

    @staticmethod
    def parse(text):
        scenario, process, kind, turn, how = text.split(":")
        return Fault(scenario, int(process), kind, turn, how)

    def spec(self):
        how = self.how.rstrip("+")
        number = str(getattr(errno, how)) if how.startswith("E") else how
        return f"{self.process}:{self.kind}:{self.turn}:{number}{'+' * self.how.endswith('+')}"

    def __str__(self):
        return f"{self.scenario}:{self.process}:{self.kind}:{self.turn}:{self.how}"


class State:
    """The memory that FailCalls.cpp counts in."""

    def __init__(self, path):
        self.path = path
        path.write_bytes(bytes(64 + 8 * PROCESSES * len(KINDS)))

    def read(self):
        data = self.path.read_bytes()
        processes, hits = struct.unpack_from("II", data)
        calls = [dict(zip(KINDS, struct.unpack_from(f"{len(KINDS)}Q", data, 64 + 8 * len(KINDS) * i)))
                 for i in range(PROCESSES)]
        return calls[:processes], hits, data[8:64].rstrip(b"\0").decode()


class Driver:
    def __init__(self, options):
        self.options, self.bench = options, Bench(options.work)
        self.scenarios = {name: SCENARIOS[name](self.bench) for name in options.scenarios}
        self.library = options.library
        self.counts = collections.defaultdict(collections.Counter)
        self.bad, self.lock = [], threading.Lock()

    def undisturbed(self, name):
        """How many calls of each kind each process makes."""
        folder = self.fresh(name)
        state = State(folder.parent / f"{folder.name}.state")
        scenario = self.scenarios[name]
        status, _, stderr = run(scenario.command(), folder, self.library,
                                ACCEL_FAULT=str(state.path), **scenario.environment)
        if status != 0:
            raise Failed(f"{name}: expected to succeed undisturbed, found {status}: {stderr}")
        return state.read()[0]

    def fresh(self, name):
        folder = self.options.work / f"run-{threading.get_ident()}"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        self.scenarios[name].prepare(folder)
        return folder

    def faults(self, name, calls):
        """Every n of a kind, or as many as were asked for, evenly spread."""
        if self.options.only:
            for fault in self.options.only:
                if fault.scenario == name:
                    first, _, last = fault.turn.partition("-")
                    if first == "each":
                        first, last = 1, calls[fault.process][fault.kind]
                    for turn in range(int(first), int(last or first) + 1):
                        yield Fault(name, fault.process, fault.kind, turn, fault.how)
            return
        for process, counts in enumerate(calls):
            for kind, count in counts.items():
                if self.options.kinds and kind not in self.options.kinds:
                    continue
                most = self.options.most
                if kind == "allocate":
                    most = min(most, self.options.allocations)
                step = max(1, -(-count // most))
                turns = range(1 + (step // 2 if step > 1 else 0), count + 1, step)
                for how in HOWS[kind]:
                    yield from (Fault(name, process, kind, n, how) for n in turns)
                    # From then on: what one call survives, the next may not. (No
                    # file takes nothing for ever, nor is a call always interrupted.)
                    if how.startswith("E") and how != "EINTR" or how == "zero" and kind in ("read", "block"):
                        once = turns if kind != "allocate" else turns[::16]
                        yield from (Fault(name, process, kind, n, how + "+") for n in once)

    def inject(self, fault):
        folder = self.fresh(fault.scenario)
        state = State(folder.parent / f"{folder.name}.state")
        scenario = self.scenarios[fault.scenario]
        status, stdout, stderr = run(scenario.command(), folder, self.library,
                                     ACCEL_FAULT=f"{state.path}:{fault.spec()}",
                                     **scenario.environment)
        _, hits, name = state.read()
        try:
            self.check_end(fault, scenario, status, stderr)
            self.check_fallback(fault, scenario, hits, status, stderr)
            self.check_synced(fault, name, status)
            scenario.check(folder, status, stdout, stderr)
            end = "not reached" if not hits else "succeeded" if status == 0 else "said an error"
        except Failed as problem:
            end = "WRONG"
            with self.lock:
                self.bad.append(f"{fault} ({name}): {problem}")
                print(f"  {self.bad[-1]}", flush=True)
        left = [path for path in folder.rglob("*") if is_temporary(path.name)]
        with self.lock:
            counts = self.counts[fault.scenario, fault.kind]
            counts[end] += 1
            counts["left a temporary"] += bool(left)

    def check_end(self, fault, scenario, status, stderr):
        if status is None:
            raise Failed(f"hang: no end within {DEADLINE_S} s: {stderr[-300:]}")
        if status == 0:
            return
        # Before a program starts its libraries are loaded, and some of them ask for
        # memory: the loader's status.
        if status == 127 and fault.kind == "allocate" and "cannot allocate memory" in stderr.lower():
            return
        if status == 1 and fault.kind == "allocate" and "libgomp: Out of memory" in stderr:
            return
        if status != 1:
            raise Failed(f"signal or status {status}: {stderr[-300:]}")
        if f"{scenario.tool}: error: " not in stderr and ": error: " not in stderr:
            raise Failed(f"expected an error, found {stderr[-300:]!r}")
        # What the linker, or LLVM's way of finding and starting it, makes of a fault is
        # their business, as long as we say that it was the linker.
        if scenario.tool == "acc-opt" and "ld.lld' to link the kernels: " in stderr.rstrip():
            return
        # oneDNN does without code that it may not make executable; the plan does not.
        if fault.kind == "protect" and "of scratch a thread" in stderr:
            return
        reason = fault.how.rstrip("+")
        # A thread's memory is asked for by the system's library, which says EAGAIN.
        if fault.kind == "allocate" and "cannot start thread" in stderr:
            return
        known = {"allocate": "memory", "fork": "cannot start", "load": "/made/to/fail"}.get(fault.kind)
        if known is None and reason.startswith("E"):
            known = os.strerror(getattr(errno, reason))
        if known and known not in stderr and known.lower() not in stderr:
            raise Failed(f"expected an error that says '{known}', found {stderr[-300:]!r}")

    def check_fallback(self, fault, scenario, hits, status, stderr):
        """Without a ring, or without O_DIRECT, a run goes on, and rank 0 says why once. What is
        slow, or came in part, is no error."""
        if fault.kind in ("ring", "direct") and hits:
            told = stderr.count("warning: space 'nvme' in '")
            tells = fault.process == self.teller or "ACCEL_NO_RING" in scenario.environment
            if status != 0 or told != tells:
                raise Failed(f"expected to hear of it once, and no error, found {status}: {stderr[-300:]}")
        if fault.kind == "block" and fault.how in ("slow", "short", "EINTR", "zero") and status != 0:
            raise Failed(f"expected no error, found {stderr[-300:]}")
        if fault.kind == "block" and status == 1:
            for word in ("device 'cpu'", " state '", " the file in '", " expected ", " found "):
                if word not in stderr:
                    raise Failed(f"expected an error that says '{word}', found {stderr[-500:]!r}")

    def check_synced(self, fault, name, status):
        """What did not reach storage is not said to be there. (sync_file_range only
        begins; what a cache loses costs time.)"""
        if (status == 0 and fault.kind == "sync" and fault.how.startswith("EIO")
                and name in ("fsync", "syncfs") and not fault.scenario.startswith("compile-")):
            raise Failed(f"expected an error of {name}, found success")

    def run(self):
        for name in self.options.scenarios:
            calls = self.undisturbed(name)
            # Rank 0: of those that have a file the first.
            self.teller = next((process for process, counts in enumerate(calls) if counts["ring"]), None)
            faults = list(self.faults(name, calls))
            start = time.monotonic()
            with concurrent.futures.ThreadPoolExecutor(self.options.jobs) as pool:
                for done in concurrent.futures.as_completed(
                        [pool.submit(self.inject, fault) for fault in faults]):
                    done.result()
            self.report(name, calls, len(faults), time.monotonic() - start)

    def report(self, name, calls, faults, seconds):
        print(f"{name}: {faults} faults in {len(calls)} processes, {seconds:.0f} s")
        for kind in KINDS:
            counts = self.counts.get((name, kind))
            if not counts:
                continue
            total = sum(each[kind] for each in calls)
            ends = ", ".join(f"{counts[end]} {end}" for end in (
                "succeeded", "said an error", "not reached", "WRONG", "left a temporary")
                if counts[end])
            print(f"  {kind}: {total} calls: {ends}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scenarios", type=lambda text: text.split(","), default=list(SCENARIOS))
    parser.add_argument("--kinds", type=lambda text: text.split(","))
    parser.add_argument("--most", type=int, default=1 << 60, help="n of a kind, process and way to fail")
    parser.add_argument("--allocations", type=int, default=8000, help="the same of allocations")
    parser.add_argument("--only", type=lambda text: [Fault.parse(word) for word in text.split(",")],
                        help="these faults, N a number, FROM-TO, or 'each'")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--work", type=pathlib.Path, help="an empty folder (default: a temporary one)")
    parser.add_argument("--library", type=pathlib.Path, default=BUILD / "lib" / "accel-fail-calls.so")
    options = parser.parse_args()
    if options.only:
        options.scenarios = sorted({fault.scenario for fault in options.only})
    with make_work("inject") as folder:
        options.work = options.work or pathlib.Path(folder)
        try:
            driver = Driver(options)
            driver.run()
        except Failed as problem:
            print(f"error: {problem}", file=sys.stderr)
            return 1
    wrong = len(driver.bad)
    print("signals, hangs, half files, lost checkpoints, unclear errors:", wrong)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
