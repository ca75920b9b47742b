#!/usr/bin/env python3
"""Trains the GPT-2 fixture on several layouts and kills what trains it.

  kill_resume.py ranks      --kills times, one rank at a random moment: the others
                            end within 5 s, the error names it, whatever checkpoints
                            are there are those of an unbroken run to the byte, and
                            training goes on from them
  kill_resume.py stored     the same with states in a file, whose bytes are on their way then; nothing
                            of it is left
  kill_resume.py launcher   acc-run itself: interrupted, told to end, or killed
  kill_resume.py disk       a disk that becomes full (a tmpfs, where one may be mounted)
"""
import argparse
import contextlib
import json
import os
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import time

from acc import ROOT, Failed, bindings, report_of, run, tensorfiles

FIXTURE = ROOT / "test" / "Fixtures" / "gpt2_train"
FLAGS = ["--optimizer=adamw", "--set", "optimizer.lr=1e-2", "--set", "optimizer.weight_decay=0.01",
         "--set", "gradient_clipping=1.0", "--set", "scheduler.type=linear",
         "--set", "scheduler.warmup_steps=3", "--set", "scheduler.total_steps=20"]
# Ranks, and what makes their layout.
LAYOUTS = {
    "one": (1, ["--micro-batches", "2"]),
    "dp2": (2, ["--mesh", "dp=2"]),
    "zero1": (2, ["--mesh", "dp=2", "--set", "zero_stage=1", "--micro-batches", "2"]),
    "zero2": (4, ["--mesh", "dp=4", "--set", "zero_stage=2", "--micro-batches", "3"]),
    "zero3": (4, ["--mesh", "dp=4", "--set", "zero_stage=3"]),
    # Three divide few dimensions: states are padded.
    "padded": (3, ["--mesh", "dp=3", "--set", "zero_stage=3", "--micro-batches", "2"]),
    "hybrid": (4, ["--mesh", "dp_replicate=2,dp_shard=2", "--set", "zero_stage=3"])}
STORED = {
    "stored": (2, ["--mesh", "dp=2", "--set", "zero_stage=3", "--set", "offload.optimizer=nvme",
                   "--set", "offload.parameters=nvme"]),
    "stored4": (4, ["--mesh", "dp=4", "--set", "zero_stage=1", "--set", "offload.optimizer=nvme"])}
STEPS = 10
FILES = ["checkpoint.json", "model.safetensors", "optimizer.safetensors"]


class Layout:
    """An executable, and what it does when nobody disturbs it."""

    def __init__(self, name, work, inputs):
        self.name, (self.ranks, flags), self.inputs = name, (LAYOUTS | STORED)[name], inputs
        self.disk = work / "disk"
        if name in STORED:
            self.disk.mkdir(exist_ok=True)
            flags = [*flags, "--set", f"offload.nvme_path={self.disk.resolve()}"]
        self.executable, model = work / f"{name}.accx", FIXTURE / "default_dynamic" / "model.onnx"
        dims, _ = bindings(model, inputs)
        run("acc-opt", model, "--train", "--loss", "loss", *FLAGS, *dims, *flags,
            "-o", self.executable)
        folder = work / f"{name}-unbroken"
        start = time.monotonic()
        self.curve, self.weights = self.train("--checkpoint", folder, "--save-every", 1)
        self.seconds = time.monotonic() - start
        self.checkpoints = contents(folder)
        if list(self.checkpoints) != list(range(1, STEPS + 1)):
            raise Failed(f"{name}: expected {STEPS} checkpoints, found {list(self.checkpoints)}")

    def command(self, *flags):
        return [str(word) for word in
                ["acc-run", self.executable, "--steps", STEPS, "--inputs", self.inputs,
                 "--json", *flags]]

    def train(self, *flags):
        """The losses by step, and the bytes of the weights."""
        weights = self.executable.with_suffix(".safetensors")
        stdout, _ = run(*self.command("--save-weights", weights, *flags))
        lines, _ = report_of(stdout, self.ranks)
        return ({line["step"]: (line["loss"], line["grad_norm"]) for line in lines},
                weights.read_bytes())


def dozen(work):
    """A folder with the fixture's inputs, half of them twice: twelve samples, which
    two, three and four ranks divide."""
    folder = work / "inputs"
    folder.mkdir(parents=True, exist_ok=True)
    for name, (shape, kind, values) in tensorfiles.read(FIXTURE / "inputs").items():
        shape = [shape[0] * 3 // 2, *shape[1:]]
        values = (values * 2)[:len(values) * 3 // 2]
        tensorfiles.write_npy(folder / f"{name}.npy", (shape, kind, values))
    return folder


def contents(folder):
    """The files of every checkpoint by step. Anything else in the folder is wrong."""
    found = {}
    for path in sorted(folder.iterdir()) if folder.exists() else []:
        if not path.name.startswith("step-") or sorted(os.listdir(path)) != FILES:
            raise Failed(f"expected nothing but checkpoints, found {path}: {os.listdir(path)}")
        found[int(path.name[5:])] = {name: (path / name).read_bytes() for name in FILES}
    return found


def newest_step(folder):
    """The step of the newest checkpoint; 0 without one."""
    return max((int(path.name[5:]) for path in folder.glob("step-*")), default=0)


def check_contents(layout, folder, what):
    """Every checkpoint is the unbroken run's, byte by byte; returns the newest step."""
    found = contents(folder)
    for step, files in found.items():
        for name, data in files.items():
            if data != layout.checkpoints[step][name]:
                raise Failed(f"{what}: {name} of step {step} is not the unbroken run's")
        tensorfiles.read_safetensors(folder / f"step-{step:08}" / "model.safetensors")
    return max(found, default=0)


def children(process):
    try:
        with open(f"/proc/{process.pid}/task/{process.pid}/children") as stream:
            return [int(child) for child in stream.read().split()]
    except OSError:
        return []


def is_alive(process):
    try:
        with open(f"/proc/{process}/stat") as stream:
            return stream.read().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


class Run:
    """acc-run at work, with all its ranks started."""

    def __init__(self, layout, *flags):
        self.shared = set(os.listdir("/dev/shm"))
        self.process = subprocess.Popen(layout.command(*flags), stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, text=True, start_new_session=True)
        self.ranks = []
        while len(self.ranks) < layout.ranks and self.process.poll() is None:
            self.ranks = children(self.process)

    def wait_for_checkpoint(self, folder, step):
        """Returns once a checkpoint of `step` or a later one is there, or the run has ended."""
        while newest_step(folder) < step and self.process.poll() is None:
            time.sleep(0.0005)

    def end(self, limit=5):
        """Exit code, stderr and seconds; nothing may be left."""
        start = time.monotonic()
        try:
            _, stderr = self.process.communicate(timeout=limit)
        except subprocess.TimeoutExpired:
            raise Failed(f"expected an end within {limit} s")
        seconds = time.monotonic() - start
        while any(map(is_alive, self.ranks)) and time.monotonic() - start < limit:
            time.sleep(0.001)
        left = [rank for rank in self.ranks if is_alive(rank)]
        # Other tests share the machine: only what has our names would be ours.
        left += [name for name in set(os.listdir("/dev/shm")) - self.shared if "acc" in name]
        if left:
            raise Failed(f"expected nothing to be left, found {left}")
        return self.process.returncode, stderr, seconds


def go_on(layout, folder, newest, curve, what, *flags):
    """Trains on from the newest checkpoint; returns how far losses are from `curve`."""
    found, weights = layout.train("--resume", folder, *flags)
    if list(found) != list(range(newest + 1, STEPS + 1)):
        raise Failed(f"{what}: expected the steps from {newest + 1} on, found {list(found)}")
    far = [abs(found[k][0] - curve[k][0]) / abs(curve[k][0]) for k in found]
    return found, weights, max(far, default=0.0)


def kill_ranks(options, layouts):
    draw, worst, slowest, steps, places = random.Random(options.seed), 0.0, 0.0, {}, {}
    names = [name for name in layouts if layouts[name].ranks > 1]
    kills = attempts = 0
    while kills < options.kills:
        attempts += 1
        if attempts > 20 * options.kills:
            raise Failed(f"expected {options.kills} kills, found {kills} of {attempts} in time")
        layout, other = layouts[draw.choice(names)], layouts[draw.choice(list(layouts))]
        rank, every = draw.randrange(layout.ranks), draw.choice([1, 2, 3])
        folder = options.work / "killed"
        shutil.rmtree(folder, ignore_errors=True)
        what = f"kill {kills + 1} ({layout.name}, rank {rank}, then {other.name})"
        # Three has no common divisor with ten steps: any ten attempts in a row begin at ten steps,
        # on a machine of any speed.
        after = 3 * attempts % STEPS
        moment = draw.uniform(0, layout.seconds / (STEPS if after else 2))
        victim = Run(layout, "--checkpoint", folder, "--save-every", every)
        victim.wait_for_checkpoint(folder, after)
        time.sleep(moment)
        if len(victim.ranks) == layout.ranks and victim.process.poll() is None:
            with contextlib.suppress(ProcessLookupError):  # it may just have ended
                os.kill(victim.ranks[rank], signal.SIGKILL)
        code, stderr, seconds = victim.end()
        if code == 0:
            continue  # it had ended
        kills += 1
        slowest = max(slowest, seconds)
        error = stderr.strip().splitlines()[-1]
        if code != 1 or f"error: rank {rank}, " not in error or "signal 9 (Killed)" not in error:
            raise Failed(f"{what}: expected an error that names it, found {code}: {stderr}")
        place = error.split(f"rank {rank}, ")[1].split(":")[0].split(" of node")[0]
        places[place] = places.get(place, 0) + 1
        newest = check_contents(layout, folder, what)
        steps[newest] = steps.get(newest, 0) + 1
        if newest == 0:
            if "no checkpoint was saved" not in error:
                raise Failed(f"{what}: expected to hear that none was saved, found {error}")
            continue
        if f"the last checkpoint is '{folder}/step-" not in error:
            raise Failed(f"{what}: expected the place of the last checkpoint, found {error}")
        _, _, far = go_on(other, folder, newest, layout.curve, what)
        if not far <= 1e-5:
            raise Failed(f"{what}: losses differ by {far:.1e} from the unbroken run's")
        worst = max(worst, far)
        found, weights, _ = go_on(layout, folder, newest, layout.curve, what, "--checkpoint", folder,
                                  "--save-every", every)
        if any(layout.curve[k] != pair for k, pair in found.items()) or weights != layout.weights:
            raise Failed(f"{what}: expected the bits of the unbroken run, found others")
        if check_contents(layout, folder, what) != STEPS:
            raise Failed(f"{what}: expected a checkpoint of step {STEPS}, found none")
    print(f"  {kills} kills; newest checkpoint by step: {dict(sorted(steps.items()))}")
    print(f"  {places}")
    print(f"  slowest end {slowest:.2f} s; losses on another layout within {worst:.1e}")
    if len([step for step in steps if step]) < 3 or kills == steps.get(0):
        raise Failed(f"expected kills at several steps, found {steps}")


def kill_stored(options, layouts):
    kill_ranks(options, {name: layouts[name] for name in ["one", *STORED]})
    if left := os.listdir(layouts["stored"].disk):
        raise Failed(f"expected nothing to be left of the files, found {left}")


def kill_launcher(options, layouts):
    draw = random.Random(options.seed)
    layout, folder = layouts["zero3"], options.work / "ended"
    for kind in ["SIGINT", "SIGTERM", "group", "SIGKILL"] * 3:
        shutil.rmtree(folder, ignore_errors=True)
        victim = Run(layout, "--checkpoint", folder, "--save-every", 1)
        victim.wait_for_checkpoint(folder, 1)
        time.sleep(draw.uniform(0, layout.seconds / 4))
        if kind == "group":  # as a terminal does
            with contextlib.suppress(ProcessLookupError):
                os.killpg(victim.process.pid, signal.SIGINT)
        else:
            victim.process.send_signal(getattr(signal, kind))
        code, stderr, _ = victim.end()
        if code == 0:
            continue
        if kind == "SIGKILL":
            # The temporary of a save may be left: the next run removes it.
            newest = newest_step(folder)
        else:
            newest = check_contents(layout, folder, kind)
            expected = f"; the last checkpoint is '{folder}/step-{newest:08}'"
            ended = 143 if kind == "SIGTERM" else 130
            if code != ended or "error: interrupted by" not in stderr or expected not in stderr:
                raise Failed(f"{kind}: expected {expected}, found {code}: {stderr}")
        print(f"  {kind}: newest checkpoint {newest}")
        if newest < STEPS:
            go_on(layout, folder, newest, layout.curve, kind, "--checkpoint", folder, "--save-every", 1)
            check_contents(layout, folder, kind)


def fill_disk(options, layouts):
    layout, disk = layouts["zero3"], options.work / "disk"
    disk.mkdir(exist_ok=True)
    size = sum(map(len, layout.checkpoints[1].values()))
    mount = ["mount", "-t", "tmpfs", "-o", f"size={int(3.5 * size) // 4096 * 4096}", "none", disk]
    inside = ["unshare", "--mount"] + (["--map-root-user"] if os.geteuid() else [])
    command = layout.command("--checkpoint", disk / "c", "--save-every", 1)
    # The disk is seen by this one shell alone, and gone with it.
    script = " ".join(map(str, mount)) + " || exit 77; " + " ".join(command) + \
        f" > {options.work}/out; code=$?; find {disk} -type f | sort; exit $code"
    result = subprocess.run([*inside, "sh", "-c", script], capture_output=True, text=True)
    if result.returncode == 77 or "unshare" in result.stderr:
        print(f"  no disk can be mounted here: {result.stderr.strip()}")
        return
    expected = sorted(f"{disk}/c/step-{step:08}/{name}" for step in (1, 2, 3) for name in FILES)
    if (result.returncode != 1 or "cannot save the checkpoint" not in result.stderr
            or "No space left on device; the last checkpoint is" not in result.stderr
            or result.stdout.split() != expected):
        raise Failed(f"expected three checkpoints and a full disk, found {result}")
    print(f"  {result.stderr.strip().splitlines()[-1]}")


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    modes = {"ranks": kill_ranks, "stored": kill_stored, "launcher": kill_launcher, "disk": fill_disk}
    parser.add_argument("modes", nargs="+", choices=modes)
    parser.add_argument("--work", type=pathlib.Path, required=True)
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    options.work.mkdir(parents=True, exist_ok=True)
    try:
        inputs = dozen(options.work)
        names = [*(["one"] if options.modes == ["stored"] else LAYOUTS),
                 *(STORED if "stored" in options.modes else [])]
        layouts = {name: Layout(name, options.work, inputs) for name in names}
        for mode in options.modes:
            print(mode, flush=True)
            modes[mode](options, layouts)
    except (Failed, tensorfiles.Mismatch) as problem:
        print(f"error: {problem}", file=sys.stderr)
        return 1
    return 0


sys.exit(main())
