#!/usr/bin/env python3
"""Trains a model for several layouts (ranks x micro-batches) and compares what
comes out with references in float64.

  run_train.py shared DIR    a folder of test material with loss_curves.json and
                             grad_K.pb: every gradient, and ten steps' losses of
                             AdamW, SGD and SGD with momentum
  run_train.py fixture NAME  one of the exports in test/Fixtures/gpt2_train: losses,
                             gradient norms and final parameters of --runs, gradients,
                             and the same bits when run a second time; with --f64
                             also all layouts against the first, in float64
  run_train.py batch NAME    --strategies in --layouts on a batch of --rows, in float64,
                             against one rank
  run_train.py bf16 NAME     the losses in bf16, beside those of PyTorch's autocast
  run_train.py home NAME     the weights saved after three steps: names, shapes, values

Every run's planned and allocated bytes must agree. Prints each comparison."""
import argparse
import itertools
import json
import pathlib
import sys

from acc import ROOT, Failed, bindings, report_of, run, sample, tensorfiles

FIXTURE = ROOT / "test" / "Fixtures" / "gpt2_train"
OPTIMIZERS = {
    "sgd": ["--optimizer=sgd", "--set", "optimizer.lr=0.05", "--set", "optimizer.momentum=0.9"],
    "sgd_lr0.1": ["--optimizer=sgd", "--set", "optimizer.lr=0.1"],
    "adamw": ["--optimizer=adamw", "--set", "optimizer.lr=1e-2", "--set",
              "optimizer.weight_decay=0.01"]}
# Of loss_curves.json, the optimizer and how far a loss may be from it.
CURVES = {"sgd_lr0.1": ("sgd_lr0.1", 1e-5), "sgd_lr0.05_mom0.9": ("sgd", 1e-5),
          "adamw_lr1e-2_wd0.01_b0.9_0.999_eps1e-8": ("adamw", 2e-5)}
STEPS = 10
STRATEGIES = {
    **{f"zero{stage}": ["--set", f"zero_stage={stage}"] for stage in (1, 2, 3)},
    "gather_once": ["--set", "zero_stage=3", "--set", "zero.gather_once=true"],
    "hybrid": ["--set", "zero_stage=3"]}


class Trainer:
    """Compiles and runs one model; every call makes files of its own."""

    def __init__(self, model, inputs, work):
        self.model, self.inputs, self.work = model, inputs, work
        self.dims, self.batch = bindings(model, inputs)
        self.dims += tensorfiles.folded_flags(model)
        (self.loss, _), = tensorfiles.graph_values(model)[1]
        work.mkdir(parents=True, exist_ok=True)

    def compile(self, label, layout, flags, strategy=None):
        ranks, parts = layout
        executable = self.work / f"{label}-{strategy or 'ddp'}-{ranks}x{parts}.accx"
        mesh = ["--mesh", f"dp={ranks}"] if ranks > 1 else []
        if strategy == "hybrid":
            mesh = ["--mesh", f"dp_replicate=2,dp_shard={ranks // 2}"]
        if strategy:
            mesh += STRATEGIES[strategy]
        run("acc-opt", self.model, "--train", "--loss", self.loss, *flags, *self.dims, *mesh,
            "--micro-batches", parts, "-o", executable)
        return Program(executable, self.inputs, ranks)


class Program:
    """An executable: `train` runs it from its first state."""

    def __init__(self, executable, inputs, ranks):
        self.executable, self.inputs, self.ranks = executable, inputs, ranks

    def train(self, steps, *flags, gradients=False):
        weights = self.executable.with_suffix(".safetensors")
        outputs = self.executable.with_suffix("")
        stdout, self.stderr = run(
            "acc-run", self.executable, "-n", self.ranks, "--steps", steps, "--inputs", self.inputs,
            "--outputs", outputs, "--save-weights", weights, "--json", *flags)
        lines, _ = report_of(stdout, self.ranks)
        if [line["step"] for line in lines] != list(range(1, steps + 1)):
            raise Failed(f"expected the steps 1 to {steps}, found {lines}")
        self.curve = {name: [line[name] for line in lines] for name in ("loss", "grad_norm")}
        self.bytes = weights.read_bytes()
        self.weights = tensorfiles.read_safetensors(weights)
        if gradients:
            self.gradients = {name.removesuffix(".grad"): tensor
                              for name, tensor in tensorfiles.read(outputs).items()
                              if name.endswith(".grad")}
        return self


def require(what, error, limit):
    print(f"  {what}: {error:.1e} (at most {limit:.1e})")
    if not error <= limit:
        raise Failed(f"{what}: differs by {error:.2e}, expected at most {limit:.1e}")


def curve_distance(found, expected):
    """The largest relative difference of a step."""
    return max(abs(a - b) / abs(b) for a, b in zip(found, expected, strict=True))


def named(tensors, names):
    """The tensor under the first of `names` that is there."""
    for name in names:
        if name in tensors:
            return tensors[name]
    raise Failed(f"expected one of {names}, found {sorted(tensors)}")


def check_gradients(what, found, expected, aliases, limit=1e-5):
    """Every gradient within `limit`, L2, of its own norm, or of 1e-4 of the norm of
    all: one that is all but zero is rounding and nothing else."""
    whole = sum(tensorfiles.norm(tensor)**2 for tensor in expected.values())**0.5
    worst, where = 0.0, None
    for name, tensor in expected.items():
        try:
            error = tensorfiles.distance(named(found, [name, *aliases.get(name, [])]), tensor)
        except tensorfiles.Mismatch as problem:
            raise Failed(f"{what}: gradient of '{name}': {problem}")
        error /= max(tensorfiles.norm(tensor), 1e-4 * whole)
        if not error <= worst:
            worst, where = error, name
    require(f"{what}: {len(expected)} gradients, worst '{where}'", worst, limit)


def check_weights(what, found, expected, limits):
    """Every tensor of `expected` under its name; prints the one nearest its limit."""
    nearest = (-1.0,)
    for name, tensor in expected.items():
        if name not in found:
            raise Failed(f"{what}: expected parameter '{name}', found {sorted(found)}")
        try:
            error = tensorfiles.distance(found[name], tensor) / tensorfiles.norm(tensor)
        except tensorfiles.Mismatch as problem:
            raise Failed(f"{what}: parameter '{name}': {problem}")
        limit = limits(name)
        nearest = max(nearest, (error / limit, error, limit, name))
    _, error, limit, name = nearest
    require(f"{what}: {len(expected)} parameters, nearest its limit '{name}'", error, limit)


def check_shared(options):
    folder = options.what
    (inputs,) = sorted(folder.glob("test_data_set_*"))
    trainer = Trainer(folder / "model.onnx", inputs, options.work)
    expected = tensorfiles.read(inputs, kind="grad")
    curves = next(v for v in json.loads((folder / "loss_curves.json").read_text()).values()
                  if isinstance(v, dict))
    names = folder / "parameters.json"
    aliases = json.loads(names.read_text())["names of each parameter"] if names.exists() else {}
    strategies = options.strategies.split(",") if options.strategies else [None]
    for layout, strategy in itertools.product(
            layouts(options, trainer.batch, "1x1,2x1,4x1,1x2,2x2"), strategies):
        for curve, (optimizer, limit) in CURVES.items():
            what = f"{layout[0]} ranks, {layout[1]} micro-batches, {strategy or 'ddp'}, {optimizer}"
            emit = ["--emit-gradients"] if optimizer == "sgd" else []
            program = trainer.compile(optimizer, layout, [*OPTIMIZERS[optimizer], *emit], strategy)
            if optimizer == "sgd":
                first = program.train(1, gradients=True)
                check_gradients(what, first.gradients, expected, aliases)
            found = program.train(STEPS).curve["loss"]
            require(f"{what}: losses", curve_distance(found, curves[curve]), limit)


def layouts(options, batch, default):
    """(ranks, micro-batches) that divide the batch."""
    pairs = [tuple(map(int, pair.split("x"))) for pair in (options.layouts or default).split(",")]
    return [(ranks, parts) for ranks, parts in pairs if batch % (ranks * parts) == 0]


class Expected:
    """What make_gpt2_train.py recorded. Constant folding takes the position
    embeddings out of default_static, whose references hold them."""

    def __init__(self, export):
        self.tensors = tensorfiles.read_safetensors(FIXTURE / "expected.safetensors")
        self.texts = json.loads((FIXTURE / "expected.json").read_text())
        self.held = "_held" if export == "default_static" else ""
        self.folded = {"transformer.wpe.weight"} if self.held else set()
        parameters = json.loads((FIXTURE / "parameters.json").read_text())
        self.aliases = {p["name"]: p["aliases"] for p in parameters}

    def group(self, prefix):
        """{name: tensor}, without what is not in the file."""
        return {name.removeprefix(prefix + "/"): tensor for name, tensor in self.tensors.items()
                if name.startswith(prefix + "/") and name.split("/")[1] not in self.folded}

    def curve(self, run):
        return self.texts["curves"][run + self.held]

    def weights(self, run, suffix=""):
        return self.group(run + self.held + suffix)

    def limits(self, run, suffix="", own=True):
        """SGD: 1e-5. AdamW divides a gradient by its own size, so where it is
        rounding and nothing else (of the keys' biases) so is the update: there,
        twice as far as PyTorch's own float32, the farther of its two attentions. Of
        programs in float64, 1e-6."""
        if run.startswith("sgd") or not own:
            return lambda name: 1e-5 if own else 1e-6
        distances = self.texts["fp32"][run + self.held + suffix].values()
        return lambda name: max(1e-5, 2 * max(tensors[name] for tensors in distances))


def flags_of(run):
    """The flags of a run of the fixture, such as 'adamw_clip'."""
    clip = ["--set", "gradient_clipping=1.0"] if run.endswith("_clip") else []
    return OPTIMIZERS[run.removesuffix("_clip")] + clip


ALL_LAYOUTS = "1x1,1x2,1x4,2x1,2x2,2x4,4x1,4x2,8x1"


def resize(inputs, rows, folder):
    """A folder with a batch of `rows`: those of `inputs`, again and again."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, (shape, kind, values) in tensorfiles.read(inputs).items():
        row = len(values) // shape[0]
        values = (values * (rows // shape[0] + 1))[:rows * row]
        tensorfiles.write_npy(folder / f"{name}.npy", ([rows, *shape[1:]], kind, values))
    return folder


def check_batch(options):
    """In float64, strategies on a batch of --rows, against one rank."""
    inputs = resize(FIXTURE / "inputs", options.rows, options.work / "inputs")
    trainer = Trainer(FIXTURE / options.what / "model.onnx", inputs, options.work)
    for name in options.runs.split(","):
        one = trainer.compile(name, (1, 1), [*flags_of(name), "--dtype=f64"]).train(STEPS)
        for strategy in options.strategies.split(","):
            for layout in layouts(options, trainer.batch, ""):
                what = f"{name}, {strategy}, {layout[0]} ranks, {layout[1]} micro-batches"
                found = trainer.compile(
                    name, layout, [*flags_of(name), "--dtype=f64"], strategy).train(STEPS)
                for key, curve in found.curve.items():
                    require(f"{what}: {key}", curve_distance(curve, one.curve[key]), 1e-9)
                check_weights(what, found.weights, one.weights, lambda name: 1e-9)


def check_fixture(options):
    expected = Expected(options.what.name)
    trainer = Trainer(FIXTURE / options.what / "model.onnx", FIXTURE / "inputs", options.work)
    precision = ["--dtype=f64"] if options.f64 else []
    # In float64, what is left is the constants' float32, and the references'.
    close = 1e-6 if options.f64 else 1e-5
    places = [(None, layout) for layout in layouts(options, trainer.batch, ALL_LAYOUTS)]
    if options.strategies:
        places = [(None, (1, 1))] + [
            (strategy, layout) for strategy in options.strategies.split(",")
            for layout in layouts(options, trainer.batch, "2x1,2x2,4x1,4x2,8x1")]
    runs = options.runs.split(",")
    for number, name in enumerate(runs):
        one = None
        for strategy, layout in [places[0], *sample(places[1:], number, max(2, len(runs)))]:
            what = f"{name}, {strategy or 'ddp'}, {layout[0]} ranks, {layout[1]} micro-batches"
            program = trainer.compile(
                name, layout, [*flags_of(name), *precision, "--emit-gradients"], strategy)
            if layout in ((1, 1), (2, 2)) and "clip" not in name:
                first = program.train(1, gradients=True)
                check_gradients(what, first.gradients, expected.group("gradient"),
                                expected.aliases, close)
            found = program.train(STEPS)
            curve, weights, data = found.curve, found.weights, found.bytes
            for key in curve:
                limit = close if name.startswith("sgd") or key == "grad_norm" else 2 * close
                require(f"{what}: {key}", curve_distance(curve[key], expected.curve(name)[key]), limit)
            values = expected.weights(name)
            if values:
                check_weights(what, weights, values, expected.limits(name, own=not options.f64))
            if options.f64 and one:
                for key in curve:
                    require(f"{what}: {key}, from one rank", curve_distance(curve[key], one[0][key]), 1e-9)
                check_weights(f"{what}, from one rank", weights, one[1], lambda name: 1e-9)
            one = one or (curve, weights)
            again = program.train(STEPS)
            if again.curve != curve or again.bytes != data:
                raise Failed(f"{what}: a second run differs")


def check_bf16(options):
    expected = Expected(options.what.name)
    trainer = Trainer(FIXTURE / options.what / "model.onnx", FIXTURE / "inputs", options.work)
    exact = expected.curve("adamw_clip")["loss"]

    def far(curve):
        return max(abs(a - b) for a, b in zip(curve, exact, strict=True))

    peers = {k: far(v) for k, v in expected.texts["autocast"]["adamw_clip"].items()}
    for key, error in peers.items():
        print(f"  PyTorch autocast, {key} micro-batches: {error:.1e}")
    for layout in layouts(options, trainer.batch, "1x1,1x2,1x4,2x1,2x2,4x1"):
        program = trainer.compile("bf16", layout, [*flags_of("adamw_clip"), "--mixed-precision=bf16"])
        error = far(program.train(STEPS).curve["loss"])
        require(f"bf16, {layout[0]} ranks, {layout[1]} micro-batches: loss", error,
                2 * max(peers.values()))
        # In float32 they are 1e-6 away, and the nearest of PyTorch's in bf16 3e-3.
        if error < 1e-4:
            raise Failed(f"expected losses in bf16, found them {error:.1e} from float64's")


def check_home(options):
    expected = Expected(options.what.name)
    trainer = Trainer(FIXTURE / options.what / "model.onnx", FIXTURE / "inputs", options.work)
    program = trainer.compile("home", (1, 1), flags_of("adamw_clip"))
    start = expected.group("start")
    names = [n for name in start for n in (name, *expected.aliases[name])]
    found = program.train(3)
    for name in expected.folded:
        if f"'{name}'" not in found.stderr:
            raise Failed(f"expected a warning that names '{name}', found: {found.stderr}")
    check_home_file(found.weights, names, expected)
    if not expected.folded:
        return
    every = {name.removeprefix("start/"): tensor for name, tensor in expected.tensors.items()
             if name.startswith("start/")}
    original = options.work / "original.safetensors"
    tensorfiles.write_safetensors(original, every)
    found = program.train(3, "--original-weights", original)
    check_home_file(found.weights, [*names, *expected.folded], expected)
    for name in expected.folded:
        if found.weights[name] != every[name]:
            raise Failed(f"expected the original value of '{name}', found another")


def check_home_file(found, names, expected):
    if sorted(found) != sorted(names):
        raise Failed(f"expected the parameters {sorted(names)}, found {sorted(found)}")
    kinds = {kind for _, kind, _ in found.values()}
    if kinds != {"float32"}:
        raise Failed(f"expected float32 tensors, found {kinds}")
    check_weights("saved after three steps", found, expected.weights("adamw_clip", "_3"),
                  expected.limits("adamw_clip", "_3"))
    for name, aliases in expected.aliases.items():
        for alias in aliases:
            if found[alias] != found[name]:
                raise Failed(f"expected the values of '{name}' in '{alias}', found others")


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    modes = {"shared": check_shared, "fixture": check_fixture, "batch": check_batch,
             "bf16": check_bf16, "home": check_home}
    parser.add_argument("mode", choices=modes)
    parser.add_argument("what", type=pathlib.Path, help="a folder, or an export of the fixture")
    parser.add_argument("--work", type=pathlib.Path, required=True)
    parser.add_argument("--layouts", help="RANKSxMICROBATCHES by comma")
    parser.add_argument("--rows", type=int, help="of the batch")
    parser.add_argument("--runs", default="sgd,adamw_clip", help="of the fixture, by comma")
    parser.add_argument("--strategies", help=f"how states are shared: {', '.join(STRATEGIES)}")
    parser.add_argument("--f64", action="store_true")
    options = parser.parse_args()
    print(f"{options.mode} {options.what.name}")
    try:
        modes[options.mode](options)
    except (Failed, tensorfiles.Mismatch) as problem:
        print(f"error: {problem}", file=sys.stderr)
        return 1
    return 0


sys.exit(main())
