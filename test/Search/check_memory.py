"""Holds the memory that is predicted when a step is decided against what is planned, for
models and layouts: within 1 % for every stage, all arenas together.

    check_memory.py ACC-OPT FIXTURES MODELS BENCHMARKS WORK [--verbose]

Models of few layers are tried as they are; a decoder of many, written by
benchmarks/decoder_graph.py, is planned without most of its layers."""

import argparse
import concurrent.futures
import json
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from sampling import sample  # noqa: E402

MOST_PERCENT = 1

LAYOUTS = {
    "1": [],
    "1, M = 4": ["--micro-batches=4"],
    "bf16": ["--micro-batches=4", "--mixed-precision=bf16"],
    "dp": ["--mesh=dp=2", "--micro-batches=2"],
    "zero 1": ["--mesh=dp=2", "--micro-batches=2", "--set=zero_stage=1"],
    "zero 2": ["--mesh=dp=2", "--micro-batches=2", "--set=zero_stage=2"],
    "zero 3": ["--mesh=dp=2", "--micro-batches=2", "--set=zero_stage=3"],
    "zero 3, bf16": ["--mesh=dp=2", "--micro-batches=2", "--set=zero_stage=3", "--mixed-precision=bf16"],
    "tp": ["--mesh=tp=2"],
    "tp and sequences": ["--mesh=tp=2", "--set=sequence_parallelism=true"],
    "1f1b": ["--mesh=pp=2", "--micro-batches=4", "--schedule=1f1b"],
    "zb-h1": ["--mesh=pp=2", "--micro-batches=4", "--schedule=zb-h1"],
    "interleaved": ["--mesh=pp=2", "--micro-batches=4", "--schedule=interleaved:2"],
    "recompute": ["--micro-batches=2", "--recompute=full"],
    "recompute some": ["--mesh=dp=2", "--micro-batches=2", "--set=zero_stage=3", "--recompute=full:block:7"],
    "recompute mlp": ["--mesh=tp=2", "--recompute=selective:mlp"],
    "1f1b, zero 3": ["--mesh=pp=2,dp=2", "--micro-batches=2", "--schedule=1f1b", "--set=zero_stage=3"],
}


def find_models(fixtures, models, work):
    """Of each name the file, the loss, and what else it is compiled with."""
    sizes = ["--dim=batch=4", "--dim=seq=12"]
    return {
        "gpt2": (fixtures / "gpt2_train/raw_static/model.onnx", "loss", []),
        "t5": (fixtures / "t5/model.onnx", "loss", ["--dim=batch=4"]),
        "llama": (models / "train/llama_loss/model.onnx", "loss", sizes),
        "bert": (models / "train/bert_mlm_loss/model.onnx", "loss", sizes),
        "decoder, 12 layers": (work / "model.onnx", "loss", []),
    }


def measure(acc_opt, model, flags):
    """The reports of all stages, or what acc-opt said."""
    path, loss, own = model
    done = subprocess.run([acc_opt, path, "--train", f"--loss={loss}", "--optimizer=adamw", "--target=cpu:x86-64-v3",
                           "--report=memory", "--json", *own, *flags], capture_output=True, text=True)
    if done.returncode != 0:
        return done.stderr.strip().splitlines()[-1]
    decoder, text, stages = json.JSONDecoder(), done.stdout.strip(), []
    while text:
        stage, end = decoder.raw_decode(text)
        stages.append(stage)
        text = text[end:].strip()
    return stages


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("acc_opt", "fixtures", "models", "benchmarks", "work"):
        parser.add_argument(name, type=pathlib.Path)
    parser.add_argument("--verbose", action="store_true")
    args = parser.parse_args()
    subprocess.run([sys.executable, args.benchmarks / "decoder_graph.py", args.work, "--layers=12", "--width=32",
                    "--inner=64"], check=True)
    models = find_models(args.fixtures, args.models, args.work)
    cases = [(name, layout) for name, model in models.items() if model[0].exists()
             for layout in sample(LAYOUTS, name)]
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        found = list(pool.map(lambda case: measure(args.acc_opt, models[case[0]], LAYOUTS[case[1]]), cases))
    worst = refused = 0
    for (name, layout), stages in zip(cases, found):
        if isinstance(stages, str):
            print(f"{name}, {layout}: {stages}")
            refused += 1
            continue
        percents = [stage["difference_percent"] for stage in stages]
        if args.verbose or max(map(abs, percents)) > MOST_PERCENT:
            print(f"{name}, {layout}: " + ", ".join(f"{each:+.2f} %" for each in percents))
        worst = max(worst, *map(abs, percents))
    print(f"{len(cases)} layouts, the largest difference {worst:.2f} %")
    return worst > MOST_PERCENT or refused > 0


sys.exit(main())
