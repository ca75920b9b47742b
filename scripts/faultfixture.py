"""What scripts/faults trains: the GPT-2 of test/Fixtures on four ranks, on tokens of
its own, in layouts of which a seed picks, and what each of them does when nobody
disturbs it. All of it lies in a folder of work, the cache of kernels included."""
import hashlib
import os
import pathlib
import random
import shutil

import tensorfiles
from faultprocess import Deviation, Run

ROOT = pathlib.Path(__file__).resolve().parent.parent
MODEL = ROOT / "test" / "Fixtures" / "gpt2_train" / "default_dynamic" / "model.onnx"
BATCH, SEQUENCE, VOCABULARY, SAMPLES = 8, 12, 96, 40
RANKS = 4
# Long enough for several faults, short enough that lives are completed.
STEPS = 60
LAYOUTS = {
    "dp": ["--mesh", "dp=4"],
    "dp-micro": ["--mesh", "dp=4", "--micro-batches", "2"],
    "zero1": ["--mesh", "dp=4", "--set", "zero_stage=1"],
    "zero2-micro": ["--mesh", "dp=4", "--set", "zero_stage=2", "--micro-batches", "2"],
    "zero3": ["--mesh", "dp=4", "--set", "zero_stage=3"],
    "zero3-micro": ["--mesh", "dp=4", "--set", "zero_stage=3", "--micro-batches", "2"],
    "zero3-bf16": ["--mesh", "dp=4", "--set", "zero_stage=3", "--mixed-precision=bf16"],
    "hybrid": ["--mesh", "dp_replicate=2,dp_shard=2", "--set", "zero_stage=3"],
    "pipeline": ["--mesh", "pp=4", "--micro-batches", "4"],
    "pipeline-zero3": ["--mesh", "dp_shard=2,pp=2", "--set", "zero_stage=3",
                       "--micro-batches", "4", "--schedule", "zbv"]}
FILES = ["checkpoint.json", "model.safetensors", "optimizer.safetensors"]


def digest(path):
    return hashlib.blake2b(path.read_bytes()).hexdigest()


def digests(checkpoint):
    """The files of a checkpoint, each by its digest."""
    return {path.name: digest(path) for path in sorted(checkpoint.iterdir())}


class Layout:
    """An executable and its unbroken run: of each step the numbers and the digests
    of its checkpoint, and the weights after the last."""

    def __init__(self, name, fixture):
        self.name, self.fixture = name, fixture
        self.executable = fixture.work / f"{name}.accx"
        end = Run(fixture.compile_command(name, self.executable), fixture.environment()).finish()
        if end.code != 0:
            raise Deviation(f"expected to compile {name}, found {end.error[-600:]}")
        self.compiled = digest(self.executable)
        folder, weights = fixture.work / "unbroken", fixture.work / "unbroken.safetensors"
        shutil.rmtree(folder, ignore_errors=True)
        end = Run(self.train_command(STEPS, folder, 1, "--save-weights", weights),
                  fixture.environment()).finish()
        if end.code != 0 or len(end.steps) != STEPS:
            raise Deviation(f"expected {STEPS} steps of {name}, found {len(end.steps)}: {end.error}")
        self.curve = {line["step"]: numbers(line) for line in end.steps}
        self.checkpoints = {int(path.name[5:]): digests(path) for path in folder.glob("step-*")}
        self.sizes = {name: (folder / f"step-{STEPS:08}" / name).stat().st_size for name in FILES}
        self.weights = digest(weights)
        shutil.rmtree(folder)

    def train_command(self, steps, folder, every, *flags):
        return [self.fixture.tools / "acc-run", self.executable, "-n", RANKS, "--steps", steps,
                "--data", self.fixture.data, "--checkpoint", folder, "--save-every", every,
                "--json", *flags]


def numbers(line):
    """What a step's line says of the training; its times are others every time."""
    return {key: value for key, value in line.items() if key in ("loss", "grad_norm", "lr", "epoch")}


class Fixture:
    """The model and data in `work`, and the layouts, each made when it is first asked
    for."""

    def __init__(self, work, tools, seed):
        self.work, self.tools, self.layouts = work, tools, {}
        self.cache = work / "cache"
        self.model = work / "model.onnx"
        shutil.copy(MODEL, self.model)
        self.data = work / "tokens.npy"
        draw = random.Random(f"{seed}: tokens")
        tensorfiles.write_npy(self.data, ([SAMPLES, SEQUENCE], "int64", [
            draw.randrange(VOCABULARY) for _ in range(SAMPLES * SEQUENCE)]))

    def environment(self):
        return dict(os.environ, ACCEL_CACHE=str(self.cache))

    def compile_command(self, name, output):
        return [self.tools / "acc-opt", self.model, "--train", "--loss", "loss",
                "--optimizer", "adamw", "--set", "optimizer.lr=1e-3",
                "--set", "gradient_clipping=1.0", "--dim", f"batch={BATCH}",
                "--dim", f"sequence={SEQUENCE}", *LAYOUTS[name], "-o", output]

    def layout(self, name):
        if name not in self.layouts:
            self.layouts[name] = Layout(name, self)
        return self.layouts[name]
