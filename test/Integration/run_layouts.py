#!/usr/bin/env python3
"""Trains a model (a folder of ../shared/models/train, or of acc-export's) in many layouts and
compares each with one rank:

  run_layouts.py MODEL [--layouts A;B] [--every N] [--experts|--pipelines] [--single] --work DIR

A layout is `mesh`, `mesh micro_batches stage`, or these and settings: "dp=2,tp=2 2 3
sequence_parallelism=true", among which schedule=NAME is that of a pipeline. In
float64, SGD without clipping: losses, the norm of the gradients, every gradient and the
weights after three steps, to 1e-9; then with AdamW and clipping losses and weights. Every
compile proves that the split program is the whole one, and the plan the split one. Without
--layouts all of up to eight ranks that the batch allows, of which --every takes each Nth; with
--experts those that have an axis ep, too, with --pipelines those of every schedule of two to
four stages.
With --single the layouts compute in float32, with SGD, and must be within 1e-5 of one rank's
float64. Where the folder has expected.json, one rank's losses and norms must be those, of PyTorch.
Where not all is swept (test/sampling.py) each layout has one of the two optimizers. Prints each
comparison."""
import argparse
import itertools
import json
import pathlib
import shutil
import sys

from acc import Failed, bindings, report_of, run, sample, tensorfiles

STEPS, CLOSE, CLOSE_SINGLE = 3, 1e-9, 1e-5
OPTIMIZERS = {"sgd": ["--optimizer=sgd", "--set", "optimizer.lr=0.05", "--emit-gradients"],
              "adamw": ["--optimizer=adamw", "--set", "optimizer.lr=1e-3", "--set",
                        "gradient_clipping=0.5"]}


def all_layouts(batch, experts=(1,)):
    """Meshes of data, states, sequences, tensors and experts, with micro-batches and ZeRO's
    stages."""
    for expert, replicas, shards, context, ulysses, tensor in itertools.product(
            experts, (1, 2, 4), (1, 2, 4), (1, 2, 4), (1, 2, 4), (1, 2, 4)):
        if not 1 < expert * replicas * shards * context * ulysses * tensor <= 8:
            continue
        # States are shared over all axes but dp_replicate and tp.
        stages = (1, 2, 3) if shards > 1 else (0, 3) if context * ulysses > 1 else (0,)
        for parts in (1, 2, 4):
            for stage in stages:
                if batch % (expert * replicas * shards * parts) == 0:
                    axes = (("dp_replicate", replicas), ("dp_shard", shards), ("ep", expert),
                            ("cp", context), ("sp", ulysses), ("tp", tensor))
                    mesh = ",".join(f"{name}={size}" for name, size in axes if size > 1)
                    yield f"{mesh} {parts} {stage}"
                    if tensor > 1:
                        yield f"{mesh} {parts} {stage} sequence_parallelism=true"
                    if context > 1:
                        yield f"{mesh} {parts} {stage} cp.strategy=ring"


SCHEDULES = ("gpipe", "1f1b", "eager-1f1b", "interleaved:2", "zb-h1", "zb-h2", "zbv", "dualpipev", "auto")


def all_pipelines(batch):
    """Every schedule, of 2, 3 and 4 stages, alone and beside ZeRO and tensor parallelism."""
    for stages, schedule, parts, (axes, zero) in itertools.product(
            (2, 3, 4), SCHEDULES, (1, 2, 4, 8),
            (("", 0), ("dp_shard=2,", 1), ("dp_shard=2,", 3), ("tp=2,", 0))):
        if batch % (parts * (2 if "dp" in axes else 1)) == 0:
            yield f"{axes}pp={stages} {parts} {zero} schedule={schedule}"


def largest(found, expected):
    """The largest difference of a tensor, relative to what is in it, and its name."""
    if found.keys() != expected.keys():
        raise Failed(f"expected {sorted(expected)}, found {sorted(found)}")
    whole = sum(tensorfiles.norm(tensor)**2 for tensor in expected.values())**0.5
    return max((tensorfiles.distance(found[name], tensor)
                / max(tensorfiles.norm(tensor), 1e-4 * whole), name)
               for name, tensor in expected.items())


class Model:
    def __init__(self, folder, work):
        self.file, self.inputs, self.work = folder / "model.onnx", folder / "inputs", work
        if not self.inputs.is_dir():
            self.inputs = folder / "test_data_set_0"
        if not self.inputs.is_dir():
            self.inputs = folder.parent / "inputs"
        self.dims, self.batch = bindings(self.file, self.inputs)
        self.dims += tensorfiles.folded_flags(self.file)
        (self.loss, _), *_ = tensorfiles.graph_values(self.file)[1]
        self.flags = []  # acc-opt's, beside those of a layout
        work.mkdir(parents=True, exist_ok=True)

    def train(self, optimizer, layout, single=False):
        given = layout.split()
        mesh, parts, stage, *settings = given + ["", "1", "0"][len(given):]
        executable = self.work / "model.accx"
        flags = ["--mesh", mesh] if mesh else []
        flags += ["--set", f"zero_stage={stage}"] if stage != "0" else []
        for setting in settings:
            flags += [f"--{setting}"] if setting.startswith("schedule=") else ["--set", setting]
        flags += [] if single else ["--dtype=f64"]
        run("acc-opt", self.file, "--train", "--loss", self.loss, "--entries=step",
            *OPTIMIZERS[optimizer], *self.dims, *flags, *self.flags, "--micro-batches", parts, "-o", executable)
        ranks = 1
        for axis in filter(None, mesh.split(",")):
            ranks *= int(axis.split("=")[1])
        outputs, weights = self.work / "outputs", self.work / "weights.safetensors"
        shutil.rmtree(outputs, ignore_errors=True)
        stdout, _ = run("acc-run", executable, "--steps", STEPS, "--inputs", self.inputs, "--outputs",
                        outputs, "--save-weights", weights, "--json")
        lines, _ = report_of(stdout, ranks)
        gradients = {name: tensor for name, tensor in tensorfiles.read(outputs).items()
                     if name.endswith(".grad")} if optimizer == "sgd" else {}
        return lines, gradients, tensorfiles.read_safetensors(weights)


def worst_number(lines, expected):
    """The largest relative difference of losses and norms, and which it is."""
    return max((abs(a[key] - b[key]) / abs(b[key]), key)
               for a, b in zip(lines, expected, strict=True) for key in ("loss", "grad_norm"))


def check(what, error, where, close=CLOSE):
    print(f"  {what}: {error:.1e} at '{where}'", flush=True)
    if not error <= close:
        raise Failed(f"{what}: '{where}' differs by {error:.2e}, expected at most {close:.0e}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", type=pathlib.Path)
    parser.add_argument("--layouts", default="")
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--experts", action="store_true")
    parser.add_argument("--pipelines", action="store_true")
    parser.add_argument("--single", action="store_true")
    parser.add_argument("--work", type=pathlib.Path, required=True)
    options = parser.parse_args()
    model = Model(options.model, options.work)
    layouts = [layout for layout in options.layouts.split(";") if layout]
    every = (all_pipelines(model.batch) if options.pipelines else
             all_layouts(model.batch, (2, 4, 8) if options.experts else (1,)))
    layouts = layouts or list(every)[::options.every]
    count = 0
    optimizers = ["sgd"] if options.single else list(OPTIMIZERS)
    for number, optimizer in enumerate(optimizers):
        one, gradients, weights = model.train(optimizer, "")
        expected = options.model / "expected.json"
        if optimizer == "sgd" and expected.is_file():
            check("sgd, one rank and PyTorch", *worst_number(one, json.loads(expected.read_text())))
        for layout in sample(layouts, number, len(optimizers)):
            lines, found, saved = model.train(optimizer, layout, options.single)
            worst = [worst_number(lines, one), largest(saved, weights)]
            if gradients:
                worst.append(largest(found, gradients))
            check(f"{optimizer}, {layout}", *max(worst),
                  CLOSE_SINGLE if options.single else CLOSE)
            count += 1
    print(f"{count} runs of {len(layouts)} layouts equal one rank")


if __name__ == "__main__":
    try:
        main()
    except (Failed, tensorfiles.Mismatch) as problem:
        sys.exit(f"run_layouts: {problem}")
