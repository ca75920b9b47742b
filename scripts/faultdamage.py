"""The faults of scripts/faults that lie in files: damaged checkpoints, inputs and
caches, and compilations that were killed."""
import shutil
import signal
import time

from faultfixture import FILES, digest
from faultprocess import Deviation, Run
from faultscene import Missed


def damage(draw, path):
    """Damages a file; says how."""
    data = bytearray(path.read_bytes())
    how = draw.choice(["bit", "bit", "bytes", "cut", "grow", "empty", "delete"])
    if how == "bit":
        at = draw.randrange(8 * len(data))
        data[at // 8] ^= 1 << at % 8
        how = f"bit {at}"
    elif how == "bytes":
        at = draw.randrange(len(data))
        data[at:at + 512] = bytes(255 - byte for byte in data[at:at + 512])
        how = f"512 bytes from {at}"
    elif how == "cut":
        del data[draw.randrange(len(data)):]
        how = f"cut to {len(data)}"
    elif how == "grow":
        data += bytes(draw.randint(1, 4096))
    if how == "delete":
        path.unlink()
    else:
        path.write_bytes(b"" if how == "empty" else data)
    return f"{how} of {path.name}"


def refused(scene, what, names, **more):
    """The next run refuses what is damaged, by name, and changes nothing."""
    end = scene.train(**more).finish()
    scene.life.check_lines(end, scene.before)
    if end.code != 1 or end.steps or not any(str(name) in end.error for name in names):
        raise Deviation(f"expected {what} to be refused by one of the names {names}, found "
                        f"{end.code} after {len(end.steps)} steps: {end.error[-600:]}")


def damage_checkpoint(scene):
    """The newest checkpoint is damaged: nobody resumes from it, or from another without
    having been told to. Then it is mended, or taken away."""
    life, draw = scene.life, scene.draw
    if not life.saved:
        raise Missed()
    newest = life.path(life.newest())
    backup = life.folder / "backup"
    shutil.copytree(newest, backup)
    older = sorted(life.saved)[-2:-1]
    name = draw.choice(FILES)
    if older and draw.random() < 0.2:
        shutil.copy(life.path(older[0]) / name, newest / name)
        what = f"{name} of step {older[0]}"
    elif draw.random() < 0.1:
        for file in FILES:
            (newest / file).unlink()
        what = "emptied folder"
    else:
        what = damage(draw, newest / name)
    refused(scene, what, [newest])
    shutil.rmtree(newest)
    mend = draw.random() < 0.5
    if mend:
        backup.rename(newest)
    else:
        shutil.rmtree(backup)
        life.saved.discard(life.newest())
    life.check_folder(may_leave=True)
    return what, "refused, then " + ("mended" if mend else "taken away")


def damage_input(scene):
    """The model's weights, the executable or the data are damaged between two runs: the
    run refuses them, or what changed was not read."""
    fixture, draw = scene.fixture, scene.draw
    paths = [fixture.model, scene.life.layout.executable]
    # A first run knows of no other data.
    path = draw.choice(paths + ([fixture.data] if scene.before else []))
    whole = path.read_bytes()
    try:
        what = damage(draw, path)
        run = scene.train(steps=scene.few_steps())
        end = run.finish()
    finally:
        path.write_bytes(whole)
    if end.code == 0:
        return what, scene.expect_well(end)
    scene.check(end, may_leave=True, may_be_silent=True)
    if end.code != 1 or (str(path) not in end.error and path.name not in end.error):
        raise Deviation(f"expected {path} to be refused by name, found {end.code}: "
                        f"{end.error[-600:]}")
    return what, "refused"


def compile_again(scene, what):
    """The executable is the one that it was, to the byte."""
    output = scene.fixture.work / "again.accx"
    command = scene.fixture.compile_command(scene.life.layout.name, output)
    end = Run(command, scene.fixture.environment()).finish()
    if end.code != 0:
        raise Deviation(f"{what}: expected to compile, found {end.code}: {end.error[-600:]}")
    same = digest(output) == scene.life.layout.compiled
    output.unlink()
    return same, end


def damage_cache(scene):
    """An entry of the cache of kernels is damaged: it is thrown away and made again,
    and the executable is what it was."""
    for path in scene.fixture.cache.glob("*.kernels"):
        path.unlink()
    compile_again(scene, "without its kernels")
    path = scene.draw.choice(sorted(scene.fixture.cache.glob("*.kernels")))
    whole = path.read_bytes()
    what = damage(scene.draw, path)
    same, end = compile_again(scene, what)
    if not same or path.read_bytes() != whole:
        raise Deviation(f"{what}: expected the executable and the entry that were, found others")
    if not what.startswith("delete") and str(path) not in end.error:
        raise Deviation(f"{what}: expected a warning that names {path}, found {end.error}")
    return what, "the same executable"


def kill_compile(scene):
    """acc-opt is killed while it compiles into a cache that lacks an entry."""
    output = scene.fixture.work / "killed.accx"
    for path in scene.fixture.cache.glob("*.kernels"):
        path.unlink()
    run = Run(scene.fixture.compile_command(scene.life.layout.name, output),
              scene.fixture.environment())
    delay = scene.draw.uniform(0, 1)
    time.sleep(delay)
    run.signal(signal.SIGKILL)
    end = run.finish()
    if output.exists() and digest(output) != scene.life.layout.compiled:
        raise Deviation("expected an executable to be whole or not at all, found a part")
    output.unlink(missing_ok=True)
    same, _ = compile_again(scene, "after kill -9 of a compilation")
    left = [path.name for path in scene.fixture.cache.iterdir()
            if path.suffix not in (".kernels", ".form")]
    if not same or len(left) > 4:
        raise Deviation(f"expected the same executable and a clean cache, found {same}, {left}")
    if end.code != -signal.SIGKILL:
        raise Missed()
    return f"after {1000 * delay:.0f} ms", "the same executable"
