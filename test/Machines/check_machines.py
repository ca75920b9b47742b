#!/usr/bin/env python3
"""Runs the small GPT-2 of test/Fixtures under mpirun on machines that are network
namespaces: the losses and the saved weights are, bit for bit, those of one machine; a
machine that is gone ends the rest within five seconds, by name; a slow link does
not; checkpoints go on on other machines; what differs between machines is refused.
Needs root and Open MPI: else it says so, and its exit status is 77.

    test/Machines/check_machines.py [--only cut] [--tools build/bin]
"""

import argparse
import json
import os
import pathlib
import re
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

from machines import Machines, why_not

ROOT = pathlib.Path(__file__).resolve().parents[2]
FIXTURE = ROOT / "test/Fixtures/gpt2_train"
INPUTS = str(FIXTURE / "inputs")
TRAIN = ["--train", "--loss", "loss", "--set", "optimizer.lr=1e-2"]
LAYOUTS = {
    "dp": ["--mesh", "dp=4", "--micro-batches=2"],
    "zero3": ["--mesh", "dp=4", "--micro-batches=2", "--set", "zero_stage=3"],
    "tp": ["--mesh", "dp=2,tp=2"],
    "bf16": ["--mesh", "dp=4", "--set", "comm_hook=bf16"],
    "cp": ["--mesh", "cp=3"],
    "pp": ["--mesh", "dp=2,pp=2", "--micro-batches=4", "--schedule=zb-h1"],
}
# Mixtures of experts, whose rows go to the ranks that have their experts.
EXPERTS = ROOT / "test/Fixtures/experts"
EXPERT_LAYOUTS = {
    "mixtral ep": ["--dim", "batch=8", "--mesh", "ep=4"],
    "mixtral ep, parts": ["--dim", "batch=8", "--mesh", "dp=2,ep=2", "--micro-batches=2"],
    "sigmoid ep, tp": ["--dim", "batch=8", "--mesh", "ep=2,tp=2"],
    "shared ep, zero3": ["--dim", "batch=8", "--mesh", "dp_shard=2,ep=2",
                         "--set", "zero_stage=3"],
}
FOUR = [{"a": 2, "b": 2}, {"a": 3, "b": 1}, {"a": 1, "b": 2, "c": 1}]
THREE = [{"a": 1, "b": 1, "c": 1}, {"a": 2, "b": 1}]
CHECKS = {}


def check(function):
    CHECKS[function.__name__] = function
    return function


class Failure(Exception):
    pass


def expect(condition, what, *found):
    if not condition:
        raise Failure(what + "".join(f"\n  {text}" for text in found))


class Bench:
    def __init__(self, tools, folder):
        self.tools, self.folder = tools, folder
        self.environment = dict(os.environ)
        self.environment["PATH"] = f"{tools}:{os.environ['PATH']}"
        os.environ["PATH"] = self.environment["PATH"]
        self.known = {}

    def compiled(self, layout):
        path = f"{self.folder}/{layout}.accx"
        if not os.path.exists(path):
            flags = {**LAYOUTS, **EXPERT_LAYOUTS}[layout]
            subprocess.run(["acc-opt", str(self.model(layout)), *TRAIN, *flags, "-o", path],
                           check=True, stderr=subprocess.DEVNULL)
        return path

    @staticmethod
    def model(layout):
        if layout in EXPERT_LAYOUTS:
            return EXPERTS / layout.split()[0] / "model.onnx"
        return FIXTURE / "raw_static/model.onnx"

    def inputs(self, layout):
        return str(self.model(layout).parent / "inputs" if layout in EXPERT_LAYOUTS else INPUTS)

    def command(self, layout, steps, *more):
        return ["acc-run", self.compiled(layout), "--comm=mpi", "--steps", str(steps),
                "--json", "--inputs", self.inputs(layout), *more]

    def expected(self, layout, steps):
        """The lines and weights of one machine."""
        if (layout, steps) not in self.known:
            weights = f"{self.folder}/{layout}-{steps}.safetensors"
            command = [word for word in self.command(layout, steps) if word != "--comm=mpi"]
            out = subprocess.run(command + ["--save-weights", weights], check=True, text=True,
                                 capture_output=True).stdout
            self.known[layout, steps] = results(out), pathlib.Path(weights).read_bytes()
        return self.known[layout, steps]

    def same(self, machines, layout, ranks, options=(), steps=5):
        self.same_by(lambda command: machines.run(ranks, command, options), layout,
                     f"{layout} on {ranks}", steps)

    def same_by(self, run, layout, what, steps=5):
        """Runs acc-run by `run`, which returns exit status, stdout and stderr."""
        weights = f"{self.folder}/there.safetensors"
        code, out, err = run(self.command(layout, steps, "--save-weights", weights))
        lines, bytes_ = self.expected(layout, steps)
        expect(code == 0, f"{what}: exit status {code}", err)
        expect(results(out) == lines, f"{what}: other losses", out)
        expect(pathlib.Path(weights).read_bytes() == bytes_, f"{what}: other weights")
        left = [name for name in os.listdir(self.folder) if ".part." in name]
        expect(not left, f"{what}: left behind", str(left))


def results(out):
    """What a run said of steps, without its times."""
    return re.findall(r'"step": \d+, "loss": \S+ "grad_norm": \S+ "lr": \S+', out)


def processes(machines, name, command="acc-run"):
    found = []
    for process in machines.processes(name):
        try:
            if pathlib.Path(f"/proc/{process}/comm").read_text().strip() == command:
                found.append(process)
        except OSError:
            pass
    return found


def wait_until(what, condition, seconds, left=lambda: ""):
    begin = time.monotonic()
    while not condition():
        if time.monotonic() - begin > seconds:
            raise Failure(f"{what}: not within {seconds} s{left()}")
        time.sleep(0.02)
    return time.monotonic() - begin


def describe(machines, name):
    """What still lives on a machine, for a failure."""
    numbers = ",".join(map(str, machines.processes(name)))
    return "\n" + subprocess.run(["ps", "-o", "pid,ppid,stat,wchan:20,etime,args", "-p", numbers],
                                 capture_output=True, text=True).stdout


def started(bench, machines, ranks, *more, options=()):
    return after_steps(machines.start(ranks, bench.command("zero3", 1000000, *more), options))


def after_steps(process):
    """The same process, once it has told of three steps."""
    first = process.stdout.readline()
    while first and '"step": 3,' not in first:
        first = process.stdout.readline()
    expect(first, "no step", process.stderr.read() if process.poll() is not None else "")
    # It writes on until it ends, and would wait for a reader.
    threading.Thread(target=process.stdout.read, daemon=True).start()
    return process


def ended(machines, process, names, seconds=5):
    """Waits for all of acc-run to be gone; returns what it said."""
    took = wait_until("end of all ranks", lambda: not any(
        processes(machines, name) for name in names), seconds)
    # Its daemon on a machine that is cut off is Open MPI's own affair.
    wait_until("end of mpirun", lambda: not machines.processes(names[0]), 15,
               lambda: describe(machines, names[0]))
    for name in names:
        machines.kill(name)
    err = process.stderr.read()
    process.wait(timeout=15)
    return took, process.returncode, err


@check
def bits(bench):
    """Losses and weights of every layout on every pattern of machines."""
    with Machines(3) as machines:
        for layout in LAYOUTS:
            for ranks in THREE if layout == "cp" else FOUR:
                bench.same(machines, layout, ranks)
        # Ranks that take turns: no machine has two that follow each other.
        bench.same(machines, "zero3", {"a": 2, "b": 2}, ["--map-by", "node"])


@check
def experts(bench):
    """Rows fetched from other machines, of every pattern, and by MPI alone."""
    with Machines(3) as machines:
        for layout in EXPERT_LAYOUTS:
            for ranks in FOUR:
                bench.same(machines, layout, ranks)
            bench.same(machines, layout, {"a": 2, "b": 2}, ["--map-by", "node"])
        for layout in ("mixtral ep", "dp", "tp"):
            bench.same(machines, layout, {"a": 2, "b": 2}, ["-x", "ACCEL_MESSAGES=mpi"])


@check
def slow(bench):
    """A link of 10 Mbit/s."""
    with Machines(2) as machines:
        for name in "ab":
            machines.slow(name, "10mbit")
        bench.same(machines, "zero3", {"a": 2, "b": 2})


@check
def cut(bench):
    """A cable that is pulled."""
    with Machines(2) as machines:
        process = started(bench, machines, {"a": 2, "b": 2})
        machines.cut("b")
        took, code, err = ended(machines, process, "ab")
        expect(code != 0, "exit status 0")
        # mpirun may notice first, and end the run: then it is said why.
        expect(re.search(r"acc-run: error: (rank [23]: machine 'b' has given|interrupted by "
                         r"SIGTERM; machine 'b' \(rank 2, 3\) gives) no sign of life", err),
               "the error names no machine", err)


@check
def kill(bench):
    """A machine whose processes are all gone at once."""
    with Machines(2) as machines:
        process = started(bench, machines, {"a": 2, "b": 2})
        machines.kill("b")
        took, code, err = ended(machines, process, "ab")
        expect(code != 0, "exit status 0")
        expect(re.search(r"acc-run: error: .*machine 'b'", err), "the error names no machine", err)


@check
def kill_rank(bench):
    """One rank's process."""
    with Machines(2) as machines:
        process = started(bench, machines, {"a": 2, "b": 2})
        # A rank's parent is its keeper, which is of the same name.
        ranks = [one for one in processes(machines, "b") if parent(one) in
                 processes(machines, "b")]
        os.kill(ranks[0], signal.SIGKILL)
        took, code, err = ended(machines, process, "ab")
        expect(code == 1, f"exit status {code}", err)
        expect(re.search(r"acc-run: error: rank [23],.* ended by signal 9", err),
               "the error names no rank", err)


def parent(process):
    try:
        stat = pathlib.Path(f"/proc/{process}/stat").read_text()
        return int(stat.rsplit(")", 1)[1].split()[1])
    except OSError:
        return 0


@check
def resume(bench):
    """Interrupted on two machines, gone on with on three, on one, and without mpirun."""
    folder = f"{bench.folder}/checkpoints"
    shutil.rmtree(folder, ignore_errors=True)
    with Machines(3) as machines:
        process = started(bench, machines, {"a": 2, "b": 2}, "--checkpoint", folder,
                          options=["--mca", "odls_base_sigkill_timeout", "5"])
        os.kill(processes(machines, "a", "mpirun")[0], signal.SIGTERM)
        _, code, err = ended(machines, process, "ab", 20)
        expect(code != 0 and "the last checkpoint is" in err, f"exit status {code}", err)
        step = max(int(name[5:]) for name in os.listdir(folder) if name.startswith("step-"))
        expected, weights = bench.expected("zero3", step + 3)
        for ranks in ({"a": 2, "b": 1, "c": 1}, {"a": 4}):
            saved = f"{bench.folder}/resumed.safetensors"
            code, out, err = machines.run(ranks, bench.command(
                "zero3", step + 3, "--resume", folder, "--save-weights", saved))
            expect(code == 0, f"going on on {ranks}: exit status {code}", err)
            expect(results(out) == expected[-3:], f"going on on {ranks}: other losses", out)
            expect(pathlib.Path(saved).read_bytes() == weights, "other weights")


@check
def background(bench):
    """Checkpoints that are written while steps go on have one machine's bytes."""
    found = {}
    with Machines(2) as machines:
        for what, run in (("one", lambda command: (0, subprocess.run(
                [word for word in command if word != "--comm=mpi"], check=True, text=True,
                capture_output=True).stdout, "")),
                          ("two", lambda command: machines.run({"a": 2, "b": 2}, command))):
            folder = pathlib.Path(bench.folder, f"background-{what}")
            shutil.rmtree(folder, ignore_errors=True)
            log = folder.with_suffix(".jsonl")
            code, out, err = run(bench.command("zero3", 40, "--checkpoint", str(folder),
                                               "--save-every", "7", "--log", str(log)))
            expect(code == 0, f"{what}: exit status {code}", err)
            expect(log.read_text().splitlines() == out.splitlines()[:40], f"{what}: other log")
            told = [json.loads(line).get("checkpoint", 0) for line in out.splitlines()]
            expect(max(told) == 40 and len(set(told)) > 3, f"{what}: not told of checkpoints", out)
            found[what] = {path.relative_to(folder): path.read_bytes()
                           for path in folder.rglob("*.safetensors")}
    expect(len(found["one"]) == 12 and found["one"] == found["two"], "other checkpoints",
           str(sorted(found["two"])))


@check
def notice(bench):
    """SIGUSR1 to mpirun, which passes it on and kills nobody."""
    folder = f"{bench.folder}/noticed"
    with Machines(2) as machines:
        process = started(bench, machines, {"a": 2, "b": 2}, "--checkpoint", folder)
        os.kill(processes(machines, "a", "mpirun")[0], signal.SIGUSR1)
        _, code, err = ended(machines, process, "ab", 20)
        expect(code == 128 + signal.SIGUSR1 and "interrupted by SIGUSR1 after step" in err and
               "the last checkpoint is" in err, f"exit status {code}", err)
        expect(any(name.startswith("step-") for name in os.listdir(folder)), "nothing is saved")


@check
def differences(bench):
    """Another executable, and too few processes."""
    here = ["mpirun", "--allow-run-as-root", "--oversubscribe", "--bind-to", "none"]
    tail = ["--comm=mpi", "--steps", "2", "--inputs", INPUTS]
    def part(name, layout, *more):
        return ["-np", "2", "-x", f"ACCEL_MACHINE={name}", "acc-run",
                bench.compiled(layout), *tail, *more]
    for other, message in (
            (part("b", "tp"), "expected the same executable (its hash) on all machines"),
            (part("b", "dp", "--threads", "3"), "expected the same --threads on all machines")):
        done = subprocess.run(here + part("a", "dp") + [":"] + other, text=True,
                              capture_output=True, timeout=60)
        expect(done.returncode == 1 and message in done.stderr and
               "on 'a' (rank 0)" in done.stderr and "on 'b' (rank 2)" in done.stderr and
               done.stderr.count("acc-run: error") == 1, "no refusal", done.stderr)
    done = subprocess.run(here + part("a", "dp"), text=True, capture_output=True, timeout=60)
    expect(done.returncode == 1 and "expected 4 processes for --comm=mpi" in done.stderr,
           "no refusal", done.stderr)
    done = subprocess.run(here + part("a", "dp", "--trace", f"{bench.folder}/t.json"), text=True,
                          capture_output=True, timeout=60)
    expect(done.returncode == 1 and "cannot use option '--trace' with --comm=mpi" in done.stderr,
           "no refusal of a trace", done.stderr)


def predicted_bytes(bench, layout, machines):
    """What --report=scale says that the busiest link takes in a step, each way."""
    links = pathlib.Path(f"{bench.folder}/links.json")
    ranks = 3 if layout == "cp" else 4
    levels = [{"name": "memory", "ranks": ranks // machines, "seconds": 0, "bytes_per_second": 1},
              {"name": "network", "seconds": 0, "bytes_per_second": 1}]
    links.write_text(json.dumps({"levels": levels, "rank": {
        "flops_per_second": 1, "bytes_per_second": 1, "seconds_per_command": 0}}))
    out = subprocess.run(["acc-opt", str(FIXTURE / "raw_static/model.onnx"), *TRAIN, *LAYOUTS[layout],
                          "--report=scale", f"--links={links}", "--json"],
                         check=True, text=True, capture_output=True).stdout
    step = json.loads(out)["programs"][0]["entries"]["step"]
    return step["levels"][1]["bytes_of_busiest"]


@check
def traffic(bench):
    """As many bytes go through the busiest link as --report=scale says. What else there is of
    them, TCP's own and signs of life, is not in it."""
    few, many = 5, 45
    for layout, ranks in (("dp", {"a": 2, "b": 2}), ("zero3", {"a": 2, "b": 2}),
                          ("tp", {"a": 2, "b": 2}), ("zero3", {"a": 1, "b": 1, "c": 1, "d": 1}),
                          ("dp", {"a": 1, "b": 1, "c": 1, "d": 1}), ("cp", {"a": 1, "b": 1, "c": 1})):
        with Machines(len(ranks)) as machines:
            counts = [machines.bytes()]
            for steps in (few, many):
                code, _, err = machines.run(ranks, bench.command(layout, steps))
                expect(code == 0, f"{layout} on {ranks}: exit status {code}", err)
                counts.append(machines.bytes())
        measured = max(third - 2 * second + first
                       for first, second, third in zip(*counts, strict=True)) / (many - few)
        expected = predicted_bytes(bench, layout, len(ranks))
        print(f"  {layout} on {len(ranks)} machines: {expected:.0f} bytes predicted, {measured:.0f} measured")
        expect(expected <= measured <= 1.25 * expected + 4096,
               f"{layout} on {ranks}: {measured:.0f} bytes of a step, expected {expected:.0f}")


def doors(process):
    """Addresses and ports at which acc-run listens on the machine of a process, each with the
    processes that do. MPI's are not among them: it listens at any address."""
    found, sockets = {}, {}
    for other in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            if (other / "comm").read_text() == "acc-run\n":
                for file in (other / "fd").iterdir():
                    sockets.setdefault(os.readlink(file), []).append(int(other.name))
        except OSError:
            pass
    for line in pathlib.Path(f"/proc/{process}/net/tcp").read_text().splitlines()[1:]:
        words = line.split()
        address, port = (int(word, 16) for word in words[1].split(":"))
        owners = sockets.get(f"socket:[{words[9]}]")
        if words[3] == "0A" and address and owners:
            found[socket.inet_ntoa(address.to_bytes(4, "little")), port] = owners
    return found


def tell(processes, what):
    """Sends a signal to those that are still there."""
    for process in processes:
        try:
            os.kill(process, what)
        except ProcessLookupError:
            pass


@check
def strangers(bench):
    """A machine of the same network, which knows nothing, tries to be heard from before a run
    begins until it ends: it says nothing, half of a greeting, what no rank would say, and
    what it heard."""
    knocker = str(pathlib.Path(__file__).with_name("stranger.py"))
    with Machines(2) as machines:
        machines.add_stranger()
        anchors = {name: machines.inside(name, ["sleep", "1000"]) for name in "ab"}
        for turn in range(12):  # doors are open for some milliseconds: one may not be seen
            stranger = machines.inside("s", [sys.executable, knocker], stdin=subprocess.PIPE,
                                       stdout=subprocess.PIPE)
            process = machines.start({"a": 2, "b": 2}, bench.command("zero3", 200, "--hang-after", "20"))
            seen, begin = set(), time.monotonic()
            while process.poll() is None and time.monotonic() - begin < 60:
                for name, anchor in anchors.items():
                    for place, owners in doors(anchor.pid).items():
                        if place in seen:
                            continue
                        # However busy the machine is, there is time to knock at this one.
                        held = not seen
                        if held:
                            tell(owners, signal.SIGSTOP)
                            if place not in doors(anchor.pid):
                                tell(owners, signal.SIGCONT)
                                continue
                        seen.add(place)
                        print(*place, file=stranger.stdin, flush=True)
                        if held:
                            # A machine that says nothing for 3 s counts as gone.
                            select.select([stranger.stdout], [], [], 1.5)
                            tell(owners, signal.SIGCONT)
                time.sleep(0.002)
            out, err = process.communicate(timeout=60)
            heard = stranger.communicate(timeout=60)[0]
            expect(process.returncode == 0, f"exit status {process.returncode}", err)
            expect(results(out) == bench.expected("zero3", 200)[0], "other losses", out)
            expect({address for address, _ in seen} <= {"10.77.0.1", "10.77.0.2"},
                   "doors at addresses that were not chosen", str(seen))
            if int(heard.split()[-1]) > 100:
                break
        expect(int(heard.split()[-1]) > 100, "the stranger found no door", heard, str(seen))
        for anchor in anchors.values():
            anchor.kill()


@check
def closed(bench):
    """Once ranks train, nobody can knock any more."""
    with Machines(2) as machines:
        process = started(bench, machines, {"a": 2, "b": 2})
        for name in "ab":
            found = doors(processes(machines, name)[0])
            expect(not found, f"{name} still listens", str(found))
        os.killpg(process.pid, signal.SIGKILL)
        for name in "ab":
            machines.kill(name)
        process.wait(timeout=15)


@check
def folders(bench):
    """What is written to a folder that machines do not share."""
    own = f"{bench.folder}/own"
    os.makedirs(own, exist_ok=True)
    with Machines(2, own) as machines:
        for option, path, message in (
                ("--save-weights", f"{own}/w.safetensors", "in a folder that all machines share"),
                ("--checkpoint", own, "all machines must share the folder")):
            code, out, err = machines.run(
                {"a": 2, "b": 2}, bench.command("zero3", 3, option, path))
            # Whichever rank of b finds it first says so, and no other.
            expect(code == 1 and message in err and
                   re.search(r"acc-run: error: rank [23]\b", err) and
                   err.count("acc-run: error") == 1,
                   f"{option}: no refusal", f"exit status {code}", err)
            # mpirun kills who is still there: that may leave a temporary, and a lock that
            # nobody holds, but nothing that has a name of its own.
            left = [name for name in os.listdir(own) if ".part." not in name and name != ".lock"]
            expect(not left, f"{option}: left behind", str(left))


@check
def allocations(bench):
    """Ranks allocate nothing of their own once they are loaded."""
    counter = os.path.abspath(f"{bench.tools}/../lib/accel-count-allocations.so")
    command = ["-x", f"LD_PRELOAD={counter}", *bench.command("zero3", 20)]
    done = subprocess.run(
        ["mpirun", "--allow-run-as-root", "--oversubscribe", "--bind-to", "none",
         "-np", "2", "-x", "ACCEL_MACHINE=a", *command, ":",
         "-np", "2", "-x", "ACCEL_MACHINE=b", *command],
        text=True, capture_output=True, timeout=60)
    found = re.findall(r"allocations after load: (\d+) of ours", done.stdout + done.stderr)
    expect(found == ["0"] * 4, "allocations", str(found), done.stderr)


def main(document, checks, why_not):
    """Runs checks, all or those that the command line names; returns the exit status."""
    program = pathlib.Path(sys.argv[0]).stem
    parser = argparse.ArgumentParser(description=document.splitlines()[0])
    parser.add_argument("--tools", default=str(ROOT / "build/bin"))
    parser.add_argument("--only", choices=list(checks), action="append")
    parser.add_argument("--times", type=int, default=1)
    arguments = parser.parse_args()
    reason = why_not()
    if not reason and not os.path.exists(f"{arguments.tools}/../lib/libaccel-mpi.so"):
        reason = "acc is built without MPI"
    if reason:
        print(f"{program}: skipped: {reason}")
        return 77
    failed = 0
    with tempfile.TemporaryDirectory(prefix="acc-machines-") as folder:
        bench = Bench(os.path.abspath(arguments.tools), folder)
        for turn in range(arguments.times):
            for name in arguments.only or checks:
                begin = time.monotonic()
                try:
                    checks[name](bench)
                    said = "passed"
                except Failure as error:
                    failed += 1
                    said = f"FAILED: {error}"
                print(f"{name}: {said} ({time.monotonic() - begin:.1f} s)", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(__doc__, CHECKS, why_not))
