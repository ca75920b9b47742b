"""The faults that scripts/faults draws from: each starts a run of the life, does
something to it, and says what it did and how the run ended."""
import os
import resource
import signal
import time

from faultdamage import damage_cache, damage_checkpoint, damage_input, kill_compile
from faultfixture import RANKS
from faultprocess import Deviation, Run
from faultscene import Missed, plain_account

SIGNALS = [signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2]


def kill_rank(scene):
    """A rank is killed: the others end, and the error names it."""
    run, rank = scene.train(), scene.draw.randrange(RANKS)
    which = scene.draw.choice([signal.SIGKILL, signal.SIGKILL, signal.SIGSEGV, signal.SIGABRT])
    moment = scene.moment(run)
    hit = run.signal_rank(rank, which)
    end = run.finish()
    if not hit:
        scene.expect_well(end)
        raise Missed()
    return f"rank {rank}, {which.name}, {moment}", scene.expect_error(
        end, rf"error: rank {rank}, [^\n]*ended by signal {which.value} ")


def kill_parent(scene):
    """The parent is killed, with a rank that is stopped or not: the ranks die, too."""
    run, stop = scene.train(), scene.draw.random() < 0.3
    # Nothing ends a rank that is stopped before it has asked to die with its parent.
    moment = scene.moment(run, while_loading=0 if stop else 0.3)
    if stop:
        run.signal_rank(scene.draw.randrange(RANKS), signal.SIGSTOP)
    run.signal(signal.SIGKILL)
    end = run.finish()
    return moment + (", a rank stopped" if stop else ""), scene.expect_error(
        end, "", code=-9, may_leave=True, may_be_silent=True)


def stop_rank(scene):
    """A rank stops for ever: within --hang-after the run ends, and names it alone as
    not waiting for the others."""
    run, rank = scene.train(hang_after=2), scene.draw.randrange(RANKS)
    moment = scene.moment(run)
    hit = run.signal_rank(rank, signal.SIGSTOP)
    stopped = run.pace.seconds
    end = run.finish()
    if not hit:
        scene.expect_well(end)
        raise Missed()
    said = scene.expect_error(end, "error: no rank made progress for 2 s: ")
    places = end.last_error().split(" s: ", 1)[1].split("; the last")[0].split("; no check")[0]
    idle = [place for place in places.split("; ")
            if "waiting for others" not in place and "has finished" not in place]
    if len(idle) != 1 or not idle[0].startswith(f"rank {rank}, "):
        raise Deviation(f"expected rank {rank} alone not to wait, found {places}")
    # 2 s of silence, a grace of one, and what a busy machine adds.
    if end.pace - stopped > 15:
        raise Deviation(f"expected the end within 15 s, found {end.pace - stopped:.1f} s")
    return f"rank {rank}, {moment}", said


def pause_rank(scene):
    """A rank stops for a while: nobody minds."""
    run, rank = scene.train(steps=scene.few_steps()), scene.draw.randrange(RANKS)
    moment, pause = scene.moment(run), scene.draw.uniform(0.02, 0.5)
    hit = run.signal_rank(rank, signal.SIGSTOP)
    time.sleep(pause)
    run.signal_rank(rank, signal.SIGCONT)
    said = scene.expect_well(run.finish())
    if not hit:
        raise Missed()
    return f"rank {rank}, {1000 * pause:.0f} ms, {moment}", said


def slow_rank(scene):
    """A rank gets a part of its time only."""
    run, rank = scene.train(steps=scene.few_steps()), scene.draw.randrange(RANKS)
    moment, bursts, hits = scene.moment(run), scene.draw.randint(5, 25), 0
    for _ in range(bursts):
        hits += run.signal_rank(rank, signal.SIGSTOP)
        time.sleep(scene.draw.uniform(0.005, 0.05))
        run.signal_rank(rank, signal.SIGCONT)
        time.sleep(scene.draw.uniform(0.001, 0.02))
    said = scene.expect_well(run.finish())
    if not hits:
        raise Missed()
    return f"rank {rank}, {bursts} bursts, {moment}", said


def suspend_run(scene):
    """All of the run is stopped (Ctrl-Z) for longer than a hang may last, or the parent
    alone for a while."""
    alone = scene.draw.random() < 0.7
    run = scene.train(steps=scene.few_steps(), hang_after=30 if alone else 1)
    moment, pause = scene.moment(run), scene.draw.uniform(0.1, 0.5) if alone else 1.5
    run.signal(signal.SIGSTOP, group=not alone)
    time.sleep(pause)
    run.signal(signal.SIGCONT, group=not alone)
    said = scene.expect_well(run.finish())
    return f"{'the parent' if alone else 'all'}, {1000 * pause:.0f} ms, {moment}", said


def interrupt(scene):
    """SIGTERM, Ctrl-C, SIGHUP or what a scheduler sends: the step at hand is finished and saved, and nothing
    more; the exit code is 128 + its number."""
    run, which, group = scene.train(), scene.draw.choice(SIGNALS), scene.draw.random() < 0.5
    moment = scene.moment(run)
    run.signal(which, group)
    end = run.finish()
    what = f"{which.name}{' to all' if group else ''}, {moment}"
    if end.code == -which:  # before anything was opened
        scene.check(end, may_leave=True, may_be_silent=True)
        return what, "ended by it before it loaded"
    said = scene.expect_error(end, "error: interrupted by ", code=128 + which)
    last = end.steps[-1]["step"] if end.steps else scene.before
    if f" after step {scene.life.newest()} of {scene.steps}" not in end.error and end.steps:
        raise Deviation(f"expected the last step to be saved, found {end.last_error()!r}")
    if last > scene.life.newest():
        raise Deviation(f"expected step {last} to be saved, found {scene.life.newest()}")
    return what, said


def interrupt_twice(scene):
    """A second signal ends a run at once that could not finish its step."""
    run, which = scene.train(), scene.draw.choice(SIGNALS)
    again = scene.draw.choice(SIGNALS)
    moment = scene.moment(run, while_loading=0)
    hit = run.signal_rank(scene.draw.randrange(RANKS), signal.SIGSTOP)
    run.signal(which)
    time.sleep(0.6)
    run.signal(again)
    second = run.pace.seconds
    end = run.finish()
    said = scene.expect_error(end, "error: interrupted by ", code=128 + which)
    if not hit:
        raise Missed()
    if end.pace - second > 12:
        raise Deviation(f"expected the end at once, found {end.pace - second:.1f} s")
    return f"{which.name}, {again.name}, {moment}", said


def limit_files(scene):
    """No file may grow any more, as on a full disk."""
    run, limit = scene.train(), scene.draw.randrange(scene.life.layout.sizes["model.safetensors"])
    moment, hit = scene.moment(run), 0
    for process in [run.process.pid, *run.ranks()]:
        try:
            resource.prlimit(process, resource.RLIMIT_FSIZE, (limit, limit))
            hit += 1
        except ProcessLookupError:
            pass
    end = run.finish()
    return f"{limit} bytes, {moment}", scene.expect_error(
        end, "File too large", may_be_silent=not end.steps)


def fill_disk(scene):
    """The folder of checkpoints lies on a disk with room for a few more of them."""
    life, layout = scene.life, scene.life.layout
    one = sum((size + 4095) // 4096 * 4096 for size in layout.sizes.values()) + 4096
    room = int(one * scene.draw.uniform(0.1, 3)) // 4096 * 4096
    size = one * len(life.saved) + room + 8192
    life.checkpoints.mkdir(exist_ok=True)
    aside = life.folder / "aside"
    aside.mkdir()
    command = " ".join(map(str, scene.command()))
    # The disk is seen by this shell alone, and gone with it.
    script = (f"mount --bind {life.checkpoints} {aside} && "
              f"mount -t tmpfs -o size={size} none {life.checkpoints} && "
              f"cp -a {aside}/. {life.checkpoints}/ || exit 77\n"
              f"{command}; code=$?; rm -rf {aside}/.lock {aside}/.tmp*; cp -an {life.checkpoints}/. {aside}/; exit $code")
    private = ["unshare", "--mount"] + (["--map-root-user"] if os.geteuid() else [])
    end = Run([*private, "sh", "-c", script], scene.fixture.environment()).finish()
    aside.rmdir()
    if end.code == 77 or "unshare" in end.error:
        raise Missed()
    return f"room for {room / one:.1f}", scene.expect_error(end, "No space left on device")


def read_only(scene):
    """The folder becomes one that nobody may write to. Root would not notice, and runs
    it as somebody else."""
    folder, account = scene.life.checkpoints, plain_account()
    folder.mkdir(exist_ok=True)
    places = [scene.life.weights.parent, folder, *folder.rglob("*")]
    for path in places if account else []:
        os.chown(path, *account)
    run = scene.train(account=account)
    moment = scene.moment(run)
    folder.chmod(0o555)
    end = run.finish()
    folder.chmod(0o755)
    for path in [scene.life.weights.parent, folder, *folder.rglob("*")] if account else []:
        os.chown(path, 0, 0)
    if account and "Permission denied" in end.error and "acc-run: error" not in end.error:
        raise Missed()  # the tools lie where that account may not go
    return moment, scene.expect_error(
        end, "Permission denied", may_leave=True, may_be_silent=not end.steps)


def close_output(scene):
    """Whoever read the steps has gone: the run ends, and what was trained is saved."""
    read, write = os.pipe()
    run = scene.train(stdout=write)
    os.close(write)
    delay = scene.draw.uniform(0, 0.2)
    time.sleep(delay)
    os.close(read)
    end = run.finish()
    return f"after {1000 * delay:.0f} ms", scene.expect_error(
        end, "cannot write to the standard output")


def run_twice(scene):
    """A second run wants to write to the same folder: it is refused, the first goes on."""
    run = scene.train(steps=scene.few_steps())
    run.wait_for_lines(1)
    hit = run.signal_rank(0, signal.SIGSTOP)  # so that it goes on for long enough
    other = hit and Run(scene.life.layout.train_command(scene.steps, scene.life.checkpoints, 1),
                        scene.fixture.environment()).finish()
    run.signal_rank(0, signal.SIGCONT)
    said = scene.expect_well(run.finish())
    if not hit:
        raise Missed()
    if other.code != 1 or "found another" not in other.error:
        raise Deviation(f"expected the second run to be refused, found {other.code}: {other.error}")
    return "", said


# How often each is drawn, of all.
KINDS = {kill_rank: 20, kill_parent: 14, stop_rank: 5, pause_rank: 6, slow_rank: 5,
         suspend_run: 3, interrupt: 12, interrupt_twice: 4, limit_files: 7, fill_disk: 4,
         read_only: 6, close_output: 4, run_twice: 3, damage_checkpoint: 14, damage_input: 6,
         damage_cache: 2, kill_compile: 2}
