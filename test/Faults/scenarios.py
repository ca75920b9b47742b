"""The runs that are disturbed by inject.py and power.py, and what must hold however
they end: training with checkpoints, a resume, a save of weights and outputs, and a
compile with and without cached kernels. What must hold is compared byte by byte with
what the same run does when nobody disturbs it."""
import hashlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import threading

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "Integration"))
from acc import ROOT, Failed, tensorfiles  # noqa: E402

BUILD = pathlib.Path(os.environ.get("ACCEL_BUILD", ROOT / "build")).resolve()
# lit has the tools on its path; whoever starts a driver by hand need not.
if not shutil.which("accel-make-executable"):
    os.environ["PATH"] = f"{BUILD / 'bin'}:{os.environ['PATH']}"
MLP = ROOT / "test" / "Fixtures" / "mlp"
STEPS, EVERY = 4, 2
DUE = [step for step in range(1, STEPS + 1) if step % EVERY == 0]
FILES = ["checkpoint.json", "model.safetensors", "optimizer.safetensors"]
# Longer than any disturbed run takes, also on a loaded machine.
DEADLINE_S = 40


def make_work(name):
    """A temporary folder, in memory where there is such a place. Nothing there is called
    after acc: other tests would take it for what a run has left."""
    shared = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    return tempfile.TemporaryDirectory(prefix=name + "-", dir=shared)


def run(command, folder, preload=None, **environment):
    """Exit status, stdout and stderr. A status of None is a hang. Nothing of it lives
    on afterwards."""
    given = dict(os.environ, TMPDIR=str(folder), HOME=str(folder), TERM="dumb", **environment)
    given.setdefault("ACCEL_CACHE", str(folder / "cache"))
    if preload:
        given["LD_PRELOAD"] = str(preload)
    # A file, so that what was said by when can be told.
    with tempfile.TemporaryFile() as output:
        process = subprocess.Popen([str(word) for word in command], cwd=folder, env=given,
                                   stdin=subprocess.DEVNULL, stdout=output,
                                   stderr=subprocess.PIPE, start_new_session=True)
        try:
            _, stderr = process.communicate(timeout=DEADLINE_S)
            status = process.returncode
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, 9)
            (_, stderr), status = process.communicate(), None
        output.seek(0)
        stdout = output.read()
    # Ranks die with their parent, but not in the same instant.
    for _ in range(1000):
        try:
            os.killpg(process.pid, 0)
        except ProcessLookupError:
            break
        threading.Event().wait(0.005)
    else:
        raise Failed("a process lives on")
    return status, stdout.decode(errors="replace"), stderr.decode(errors="replace")


def tree(folder):
    """The bytes of each file below, by path; None for folders."""
    found = {}
    for path in sorted(folder.rglob("*")) if folder.exists() else []:
        found[str(path.relative_to(folder))] = None if path.is_dir() else path.read_bytes()
    return found


def digest(files):
    return hashlib.sha256(repr(sorted(files.items())).encode()).hexdigest()


def steps_told(stdout):
    """The losses of the steps' lines, whether the line of the whole run came, and the newest
    checkpoint that they tell of."""
    losses, ended, newest = {}, False, 0
    for line in stdout.splitlines():
        said = json.loads(line)
        if "step" in said:
            losses[said["step"]] = (said["loss"], said["grad_norm"])
            newest = said.get("checkpoint", newest)
        else:
            ended = True
    return losses, ended, newest


def is_temporary(name):
    return ".tmp" in name or name.startswith((".new-", "acc-kernels-")) or name == ".lock"


class Bench:
    """An executable that trains, and what it does undisturbed."""
    kind, flags = "train", []

    def __init__(self, work):
        self.work, self.seen, self.lock = work, {}, threading.Lock()
        work.mkdir(parents=True, exist_ok=True)
        self.base = work / "base"
        shutil.rmtree(self.base, ignore_errors=True)
        self.base.mkdir()
        self.make()
        self.prepare()
        # Twenty samples of eight tokens; only a run that is told so reads them.
        (self.base / "tokens.bin").write_bytes(bytes(i * 7 % 256 for i in range(2 * 8 * 20)))
        self.losses, _, _ = steps_told(self.must(*self.train("--checkpoint", "c")))
        self.checkpoints = self.saved(self.base / "c")
        if sorted(self.checkpoints) != DUE or sorted(self.losses) != list(range(1, STEPS + 1)):
            raise Failed(f"expected checkpoints of steps {DUE}, found {sorted(self.checkpoints)}")
        # A run that is told to end, or whose data end it, saves the step that it has come to.
        every_step = self.train("--checkpoint", "each")
        every_step[every_step.index("--save-every") + 1] = 1
        self.must(*every_step)
        due, self.checkpoints = self.checkpoints, self.saved(self.base / "each")
        if any(self.checkpoints[step] != files for step, files in due.items()):
            raise Failed("expected the same checkpoints, however many there are")

    def make(self):
        self.must("accel-make-executable", self.base, self.kind, 2, 2)

    def prepare(self):
        """Makes what its runs read."""

    def must(self, *command):
        status, stdout, stderr = run(command, self.base)
        if status != 0:
            raise Failed(f"{' '.join(map(str, command))}\nended with {status}:\n{stderr}")
        return stdout

    def train(self, *more):
        return ["acc-run", self.base / "m.accx", "--inputs", self.base, "--steps", STEPS,
                "--save-every", EVERY, "--threads", 1, "--json", *more,
                *(self.base / word if word == "tokens.bin" else word for word in self.flags)]

    def saved(self, folder):
        """The files of every checkpoint by step."""
        found = {}
        for path in folder.glob("step-*"):
            found[int(path.name[5:])] = {name: data for name, data in tree(path).items()}
        return found

    def check_whole(self, folder):
        """The steps of the checkpoints in `folder`, each the undisturbed run's."""
        found = self.saved(folder)
        for step, files in found.items():
            if files != self.checkpoints.get(step):
                raise Failed(f"half: the checkpoint of step {step} is not the undisturbed run's")
        return sorted(found)

    def check_losses(self, stdout, first=1):
        losses, ended, newest = steps_told(stdout)
        for step, pair in losses.items():
            if self.losses[step] != pair:
                raise Failed(f"step {step} has {pair}, undisturbed {self.losses[step]}")
        if ended and list(losses) != list(range(first, STEPS + 1)):
            raise Failed(f"expected the steps from {first} on, found {list(losses)}")
        return ended, newest

    def check_goes_on(self, folder, newest):
        """A run that nobody disturbs goes on in `folder`, a copy of which it gets, with
        the bits of the unbroken run. What was tried once is not tried again."""
        files = tree(folder)
        key = digest(files)
        with self.lock:
            if self.seen.setdefault(key, None) is True:
                return
        copy = self.work / f"on-{threading.get_ident()}"
        shutil.rmtree(copy, ignore_errors=True)
        copy.mkdir()
        if folder.exists():
            shutil.copytree(folder, copy / "c")
        resume = ["--resume", "c"] if newest else []
        status, stdout, stderr = run(self.train(*resume, "--checkpoint", "c"), copy)
        if status != 0:
            raise Failed(f"lost: no run goes on from step {newest}: {stderr}")
        self.check_losses(stdout, newest + 1)
        if newest < STEPS and not set(DUE) <= set(self.check_whole(copy / "c")):
            raise Failed(f"lost: expected the checkpoints of {DUE} after going on")
        left = [name for name in os.listdir(copy / "c") if not name.startswith("step-")]
        if left:
            raise Failed(f"expected only checkpoints after going on, found {left}")
        with self.lock:
            self.seen[key] = True


class DataBench(Bench):
    """Trains on a file of tokens, which a checkpoint knows by its hash."""
    kind, flags = "tokens", ["--data", "tokens.bin"]


class GivenBench(Bench):
    """Begins with given weights, of which a part is copied into checkpoints, and evaluates
    in the middle. Who goes on needs them no more."""
    kind = "given"

    def prepare(self):
        tensorfiles.write_safetensors(self.base / "w.safetensors", {
            name: (shape, "float32", values) for name, shape, values in (
                ("net/w", [2, 2], [1, 2, 3, 4]), ("tied", [2, 2], [1, 2, 3, 4]),
                ("rows", [4], [5, 6, 7, 8]), ("mask", [3], [9, 8, 7]))})

    def train(self, *more):
        weights = [] if "--resume" in more else ["--weights", self.base / "w.safetensors"]
        return super().train(*more, *weights, "--eval-every", EVERY, "--eval-inputs", self.base)


def size_of(entry):
    """In bytes; 0 of a file that is gone."""
    try:
        return entry.stat().st_size
    except FileNotFoundError:
        return 0


class StoredBench(Bench):
    """A compiled model, whose parameters and moments lie in a file."""

    def make(self):
        (self.base / "disk").mkdir()
        fixture = ROOT / "test" / "Fixtures" / "gpt2_train"
        shutil.copytree(fixture / "inputs", self.base, dirs_exist_ok=True)
        self.must("acc-opt", fixture / "default_dynamic" / "model.onnx", "--dim", "batch=8", "--dim",
                  "sequence=12", "--train", "--loss", "loss", "--entries=step", "--optimizer", "adamw",
                  "--mesh", "dp=2", "--set", "zero_stage=3", "--set", "offload.optimizer=nvme", "--set",
                  "offload.parameters=nvme", "--set", f"offload.nvme_path={self.base / 'disk'}",
                  "--set", "aio.block_size=4096", "--set", "aio.queue_depth=2", "-o", "m.accx")

    def check_goes_on(self, folder, newest):
        # A file that cannot lose its name is empty; a rank may take its own away just now.
        with os.scandir(self.base / "disk") as entries:
            left = [entry.name for entry in entries if size_of(entry)]
        if left:
            raise Failed(f"expected nothing to be left of the file, found {left}")
        super().check_goes_on(folder, newest)


class Scenario:
    """A command, the folder it finds, and what must hold afterwards."""
    tool, environment = "acc-run", {}

    def __init__(self, bench):
        self.bench = bench

    def prepare(self, folder):
        """Fills an empty folder."""

    def check(self, folder, status, stdout, stderr):
        """Raises Failed where something does not hold."""


class Train(Scenario):
    first, before = 1, []

    def command(self):
        return self.bench.train("--checkpoint", "c")

    def check(self, folder, status, stdout, stderr):
        found = self.bench.check_whole(folder / "c")
        ended, newest = self.bench.check_losses(stdout, self.first)
        # A step's line names the newest that is there; the run's comes after all.
        told = [step for step in DUE if newest >= step or ended]
        lost = [step for step in self.before + told if step not in found]
        if lost or (status == 0 and not ended):
            raise Failed(f"lost: expected the checkpoints of {told}, found {found}")
        if status == 1:
            named = re.search(r"; the last checkpoint is '[^']*/step-0*(\d+)'", stderr)
            if named and int(named[1]) != max(found, default=0):
                raise Failed(f"expected {max(found, default=0)} as the last checkpoint: {stderr}")
            if "no checkpoint was saved" in stderr and found:
                raise Failed(f"expected to be told of the checkpoints of {found}: {stderr}")
        if status != 0 or found != DUE:
            self.bench.check_goes_on(folder / "c", max(found, default=0))


class Resume(Train):
    first, before = DUE[0] + 1, DUE[:1]

    def prepare(self, folder):
        name = f"step-{DUE[0]:08}"
        shutil.copytree(self.bench.base / "c" / name, folder / "c" / name)

    def command(self):
        return self.bench.train("--checkpoint", "c", "--resume", "c")


class Stale(Resume):
    """Beside what a killed run was writing."""

    def prepare(self, folder):
        super().prepare(folder)
        left = folder / "c" / f".tmp-step-{STEPS:08}"
        left.mkdir()
        for name in FILES[1:]:
            (left / name).write_bytes(self.bench.checkpoints[STEPS][name][:100])


class Data(Resume):
    """On a file of tokens."""

    def __init__(self, bench):
        super().__init__(DataBench(bench.work / "data"))


class Given(Train):
    """From given weights, with evaluations."""

    def __init__(self, bench):
        super().__init__(GivenBench(bench.work / "given"))


class Stored(Train):
    """With states in a file."""

    def __init__(self, bench):
        super().__init__(StoredBench(bench.work / type(self).__name__))


class StoredPlain(Stored):
    """The same where the kernel grants no io_uring, and the file system no file without a name."""
    environment = {"ACCEL_NO_RING": "1", "ACCEL_NO_UNNAMED": "1"}


class Save(Scenario):
    """Weights and outputs over files that are there until the new ones are."""

    def __init__(self, bench):
        super().__init__(bench)
        folder = bench.work / "saved"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        status, _, stderr = run(self.command(), folder)
        if status != 0:
            raise Failed(f"expected to save weights, found {stderr}")
        self.new = {name: data for name, data in tree(folder).items() if data is not None}
        self.old = {name: f"{name} as it was".encode() for name in self.new}

    def command(self):
        return ["acc-run", self.bench.base / "m.accx", "--inputs", self.bench.base, "--threads", 1,
                "--json", "--steps", 2, "--save-weights", "w.safetensors", "--outputs", "o"]

    def prepare(self, folder):
        for name, data in self.old.items():
            (folder / name).parent.mkdir(exist_ok=True)
            (folder / name).write_bytes(data)

    def check(self, folder, status, stdout, stderr):
        found = tree(folder)
        for name, new in self.new.items():
            if found.get(name) not in ([new] if status == 0 else [new, self.old[name]]):
                raise Failed(f"half: {name} is neither what it was nor what it should become")
        kept = re.search(r"; the weights are in '([^']*)'", stderr)
        if kept and (folder / kept[1]).read_bytes() != self.new["w.safetensors"]:
            raise Failed(f"half: {kept[1]} does not hold the weights")
        for step, pair in steps_told(stdout)[0].items():
            if self.bench.losses[step] != pair:
                raise Failed(f"step {step} has {pair}, undisturbed {self.bench.losses[step]}")


class SaveNamed(Save):
    """The same where a file system has no files without a name."""
    environment = {"ACCEL_NO_UNNAMED": "1"}


class Compile(Scenario):
    """A model, over an executable that was there; the cache has what a compile needs."""
    tool, cached, flags = "acc-opt", True, ["--mlir-disable-threading"]

    def __init__(self, bench):
        super().__init__(bench)
        self.folder = bench.work / type(self).__name__
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir()
        status, _, stderr = run(self.command(), self.folder)
        if status != 0:
            raise Failed(f"expected to compile, found {stderr}")
        self.cache = tree(self.folder / "cache")
        self.new = (self.folder / "m.accx").read_bytes()

    def command(self):
        return ["acc-opt", MLP / "model.onnx", "--dim", "batch=8", *self.flags, "-o", "m.accx"]

    def results(self, folder):
        """What the executable computes; why it does not."""
        status, _, stderr = run(Product.command_for("m.accx"), folder)
        return tree(folder / "o") if status == 0 else stderr

    def prepare(self, folder):
        (folder / "m.accx").write_bytes(b"old")
        if self.cached:
            shutil.copytree(self.folder / "cache", folder / "cache")

    def check(self, folder, status, stdout, stderr):
        found = (folder / "m.accx").read_bytes()
        if found == b"old" and status == 0:
            raise Failed("half: there is no new m.accx")
        # oneDNN may have found other code for a product than ever; not other numbers.
        if found not in (self.new, b"old") and self.results(folder) != self.results(self.folder):
            raise Failed("half: m.accx is neither what it was nor what it should become")
        for name, data in tree(folder / "cache").items():
            if not is_temporary(name) and data != self.cache.get(name):
                raise Failed(f"half: the cache's {name} is not what was compiled")


class CompileCold(Compile):
    cached = False


class CompileThreads(CompileCold):
    """With MLIR's threads: which call is the n-th is not the same in every run."""
    flags = []


class Product(Scenario):
    """A run of what was compiled: products by oneDNN, kernels of ours."""

    def __init__(self, bench):
        super().__init__(bench)
        self.compiled = Compile(bench)
        self.new = self.compiled.results(self.compiled.folder)

    @staticmethod
    def command_for(executable):
        return ["acc-run", executable, "--inputs", MLP / "inputs", "--outputs", "o", "--threads", 2]

    def command(self):
        return self.command_for(self.compiled.folder / "m.accx")

    def check(self, folder, status, stdout, stderr):
        found = {name: data for name, data in tree(folder / "o").items() if not is_temporary(name)}
        if found != self.new and (status == 0 or found):
            raise Failed("half: the outputs are not those of an undisturbed run")


SCENARIOS = {"train": Train, "resume": Resume, "stale": Stale, "data": Data, "given": Given,
             "stored": Stored, "stored-plain": StoredPlain,
             "save": Save, "save-named": SaveNamed, "product": Product, "compile": Compile,
             "compile-cold": CompileCold, "compile-threads": CompileThreads}
