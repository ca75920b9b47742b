#!/usr/bin/env python3
"""Compiles models for the null target, runs them on the null device, and holds what
was counted, rank by rank and kind by kind, against what acc-opt predicts of the plan.

  check_null.py WORK MODEL...          each .onnx: where it has a loss, a step of ZeRO-3 on
                                       four ranks in two micro-batches, else forward on
                                       two, as far as its batch can be split
  check_null.py WORK --drop MODEL      takes each command of a step's executable out: what is
                                       left is refused, or counted as lacking it

  check_null.py WORK --file ACCX       an executable of a step, for whatever target

A model that is refused must be refused for every target. Prints a line for each."""
import argparse
import json
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "scripts"))
sys.path.insert(0, str(ROOT / "test" / "Integration"))
sys.dont_write_bytecode = True
import tensorfiles  # noqa: E402
from acc import Failed, bindings, run, sample  # noqa: E402

BATCH = 4  # of models whose inputs nobody gives
TRAINING = ["--train", "--optimizer=adamw", "--allow-folded"]


def inputs_of(model):
    """A folder of inputs of the right shapes; none if there is none."""
    folder = model.parent
    dynamic = "_dynamic" if folder.name.endswith("dynamic") else ""
    for place in (folder / "test_data_set_0", folder.parent / f"inputs{dynamic}",
                  folder.parent / "inputs"):
        if place.is_dir():
            return place
    return None


def dims_of(model):
    inputs = inputs_of(model)
    if inputs:
        return bindings(model, inputs)
    flags, bound = [], set()
    for _, sizes in tensorfiles.graph_values(model)[0]:
        for symbol in sizes:
            if isinstance(symbol, str) and symbol not in bound:
                bound.add(symbol)
                flags += ["--dim", f"{symbol}={BATCH}"]
    sizes = tensorfiles.graph_values(model)[0][0][1]
    return flags, BATCH if not sizes or isinstance(sizes[0], str) else sizes[0]


def predicted(executable):
    plan = executable.with_suffix(".plan.mlir")
    plan.write_text(run("acc-opt", executable, "--compile-to=plan")[0])
    text, _ = run("acc-opt", plan, "--report=commands", "--json")
    programs = json.loads(text)["programs"]
    return [program["entries"] for program in programs for _ in range(program["ranks"])]


def counted(executable, calls):
    """What each rank counted, or the error of a file that is refused."""
    result = subprocess.run(["acc-run", executable, "--device=null", "--json", *calls],
                            capture_output=True, text=True)
    if result.returncode:
        return result.stderr
    report = json.loads(result.stdout.splitlines()[-1])
    if report["planned_peak_bytes"] != report["measured_peak_bytes"]:
        raise Failed(f"planned and allocated bytes differ: {report}")
    ranks = report["counts"]
    if [rank.pop("rank") for rank in ranks] != list(range(report["ranks"])):
        raise Failed(f"expected the ranks in order, found {report}")
    return ranks


def counted_all(executable, expected):
    """What each rank counted in each entry that is expected, or the error of a file that is
    refused. What `load` comes to is the same whatever is called after it."""
    found = [{} for _ in expected]
    for entry in expected[0]:
        if entry == "load":
            continue
        calls = ["--steps", "2"] if entry == "step" else ["--repeat", "2"]
        each = counted(executable, ["--entry", entry, *calls])
        if isinstance(each, str):
            return each
        for rank, counts in zip(found, each, strict=True):
            if rank and rank["load"] != counts["load"]:
                raise Failed(f"{executable}: counted {rank['load']} in load, then {counts['load']}")
            rank.update(counts)
    return found


def check(name, executable, training):
    expected = predicted(executable)
    found = counted_all(executable, expected)
    if found != expected:
        raise Failed(f"{name}: predicted {expected}, counted {found}")
    entry = found[0]["step" if training else "forward"]
    print(f"{name}: {len(found)} ranks, each {entry['commands']} commands, "
          f"{entry['bytes_read'] + entry['bytes_written']} bytes, {entry['flops']} flops")


def compile_for_null(model, flags, executable):
    """Whether it could be compiled; otherwise no target may be the reason."""
    command = ["acc-opt", model, *flags]
    result = subprocess.run([*command, "--target=null", "-o", executable],
                            capture_output=True, text=True)
    if result.returncode == 0:
        return True
    before = subprocess.run([*command, "--compile-to=local"], capture_output=True, text=True)
    if before.returncode == 0:
        raise Failed(f"{model}: refused for the null target alone:\n{result.stderr}")
    return False


def name_of(model, work):
    place = model.relative_to(ROOT) if model.is_relative_to(ROOT) else model
    return work / ("-".join(place.with_suffix("").parts[-4:]) + ".accx")


def compile_step(model, work):
    """The executable of a training step; None if the model has no loss, or none that is
    trained."""
    loss = next((name for name, sizes in tensorfiles.graph_values(model)[1] if not sizes), None)
    if loss is None:
        return None
    dims, batch = dims_of(model)
    ranks = next(n for n in (4, 2, 1) if batch % n == 0)
    flags = [*dims, *TRAINING, "--loss", loss, "--mesh", f"dp={ranks}", "--set", "zero_stage=3"]
    flags += ["--micro-batches", "2"] if batch % (2 * ranks) == 0 else []
    executable = name_of(model, work)
    return executable if compile_for_null(model, flags, executable) else None


def compile_forward(model, work):
    dims, batch = dims_of(model)
    executable = name_of(model, work)
    flags = [*dims, "--mesh", f"dp={2 if batch % 2 == 0 else 1}"]
    return executable if compile_for_null(model, flags, executable) else None


def check_model(model, work):
    """Whether there was something to count."""
    step = compile_step(model, work)
    executable = step or compile_forward(model, work)
    if not executable:
        print(f"{model.parent.name}/{model.stem}: refused for every target")
        return False
    check(f"{model.parent.name}/{model.stem}", executable, training=step is not None)
    return True


def check_drops(model, work):
    """Each command of a step's executable is taken out once."""
    executable = compile_step(model, work)
    expected = predicted(executable)
    mutant, refused, missed = work / "mutant.accx", 0, 0
    for index in range(10**6):
        kind, _ = run("accel-mutate-executable", executable, mutant, f"drop={index}")
        if not kind:
            break
        kind = kind.strip()
        found = counted_all(mutant, expected)
        if isinstance(found, str):
            refused += 1
            continue
        less = [before["kinds"][kind]["commands"] - after["kinds"].get(kind, {"commands": 0})["commands"]
                for rank, other in zip(expected, found) for before, after in
                ((rank[entry], other[entry]) for entry in rank) if kind in before["kinds"]]
        if max(less) < 1:
            raise Failed(f"counted as before without command {index}, a {kind}")
        missed += 1
    if not missed:
        raise Failed("every executable that lacks a command is refused")
    print(f"without each command of {model.parent.name}: {refused} refused, {missed} counted as missing")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("work", type=pathlib.Path)
    parser.add_argument("models", type=pathlib.Path, nargs="*")
    parser.add_argument("--file", type=pathlib.Path)
    parser.add_argument("--drop", type=pathlib.Path)
    options = parser.parse_args()
    options.work.mkdir(parents=True, exist_ok=True)
    try:
        if options.file:
            check(options.file.name, options.file, training=True)
            return 0
        if options.drop:
            check_drops(options.drop, options.work)
            return 0
        models = sorted({found for place in options.models
                         for found in ([place] if place.suffix == ".onnx" else place.rglob("*.onnx"))})
        models = sample(models, "null")
        done = sum(check_model(model, options.work) for model in models)
        print(f"{done} of {len(models)} models counted as predicted")
    except (Failed, tensorfiles.Mismatch) as problem:
        print(f"error: {problem}", file=sys.stderr)
        return 1
    return 0


sys.exit(main())
