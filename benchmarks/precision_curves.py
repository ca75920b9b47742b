#!/usr/bin/env python3
"""Losses of GPT-2 and Llama (10 million parameters, bytes of the Python documentation that pydoc
ships) over 300 steps, in each precision beside float32, from the same weights on the same
samples: what a recipe costs in what it learns. With --layouts one recipe in other layouts of
ranks too, over fewer steps. Writes the table to benchmarks/results/ after each model, from which
scripts/precision-curves draws the picture of docs/Precision.md. A precision that the file of
today has is not run again."""
import argparse
import datetime
import json
import os
import pathlib
import pydoc_data.topics
import shutil
import subprocess
import tempfile

import harness
import numpy as np
import train

BATCH, SEQUENCE = 8, 64
TRAINING = ["--train", "--loss", "loss", "--entries=step", "--set", "optimizer.lr=1e-3", "--set",
            "optimizer.weight_decay=0.01", "--set", "gradient_clipping=1", "--set", "scheduler.type=linear", "--set",
            "scheduler.warmup_steps=30"]
FP8 = ["--mixed-precision=fp8", "--set"]
PRECISIONS = {
    "fp32": [], "fp32 by tp=2": ["--mesh", "tp=2"], "bf16": ["--mixed-precision=bf16"], "fp16": ["--mixed-precision=fp16"],
    **{f"fp8 {recipe}": [*FP8, f"fp8.recipe={recipe}"]
       for recipe in ("delayed", "current", "block", "mxfp8", "nvfp4", "tensorwise", "rowwise",
                      "rowwise_with_gw_hp")},
    **{f"MS-AMP {level}": [*FP8, f"fp8.recipe=msamp_{level.lower()}"] for level in ("O1", "O2")},
}
OPTIMIZERS = {"8-bit AdamW": "adamw_8bit"}
LAYOUTS = ["--micro-batches=4", "--mesh dp=2", "--mesh dp=4", "--mesh dp=2 --set zero_stage=1",
           "--mesh dp=4 --set zero_stage=2", "--mesh dp=4 --set zero_stage=3",
           "--mesh tp=2", "--mesh tp=2 --set sequence_parallelism=true", "--mesh cp=2", "--mesh sp=2",
           "--mesh pp=2 --micro-batches=4", "--mesh dp=2,tp=2 --recompute=full"]


def write_tokens(path):
    text = "\n".join(pydoc_data.topics.topics[name] for name in sorted(pydoc_data.topics.topics))
    np.save(path, np.frombuffer(text.encode("ascii", "replace"), np.uint8).astype(np.int64))


def losses_of(tools, model, work, tokens, flags, steps, optimizer="adamw", ranks=1):
    program = work / "model.accx"
    words = [*TRAINING, f"--optimizer={optimizer}", "--set", f"scheduler.total_steps={max(steps, 31)}"]
    subprocess.run([tools / "acc-opt", model / "model.onnx", *words, *flags, "-o", program], check=True,
                   stderr=subprocess.DEVNULL)
    run = subprocess.run([tools / "acc-run", program, "-n", str(ranks), "--steps", str(steps), "--data", tokens,
                          "--json", "--threads", "1"], check=True, stdout=subprocess.PIPE,
                         stderr=subprocess.DEVNULL, text=True)
    return [each["loss"] for each in map(json.loads, run.stdout.splitlines()) if "loss" in each and "step" in each]


def ranks_of(flags):
    """How many the mesh among flags has."""
    words = flags.split()
    sizes = words[words.index("--mesh") + 1].split(",") if "--mesh" in words else []
    return int(np.prod([int(size.split("=")[1]) for size in sizes] or [1]))


def last(losses):
    """The mean of the last tenth: single samples are noise."""
    return float(np.mean(losses[-max(1, len(losses) // 10):]))


def table(result):
    lines = ["# Losses by precision", "",
             f"{harness.describe(result['date'], result['machine'])} {BATCH} x {SEQUENCE} bytes a step, AdamW, a rate that grows over 30 steps and "
             "falls linearly from there, the "
             "same samples for all; the final loss is the mean of the last tenth of the steps.", "",
             "| model | precision | steps | first loss | final loss | beside fp32 |", "|---|---|---|---|---|---|"]
    for model, curves in result["curves"].items():
        base = last(curves["fp32"])
        lines += [f"| {model} | {name} | {len(losses)} | {losses[0]:.4f} | {last(losses):.4f} | "
                  f"{100 * (last(losses) / base - 1):+.2f} % |" for name, losses in curves.items()]
    if result.get("layouts"):
        lines += ["", "| model | precision | layout | steps | largest difference from one rank |", "|---|---|---|---|---|"]
        lines += [f"| {row['model']} | {row['precision']} | `{row['layout']}` | {row['steps']} | {row['off']:.1e} |"
                  for row in result["layouts"]]
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--models", default="gpt2-10m,llama-10m")
    parser.add_argument("--precisions", default=",".join([*PRECISIONS, *OPTIMIZERS]))
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--layouts", default="", help="the precision that is run in twelve layouts")
    parser.add_argument("--layout-steps", type=int, default=20)
    parser.add_argument("--tools", type=pathlib.Path, default=train.HERE.parent / "build" / "bin")
    parser.add_argument("--results", type=pathlib.Path, default=train.HERE / "results")
    options = parser.parse_args()
    stem = options.results / f"{datetime.date.today().isoformat()}-precision-curves.json"
    result = json.loads(stem.read_text()) if stem.exists() else {"curves": {}}
    result |= {"date": datetime.datetime.now().isoformat(timespec="seconds"),
               "machine": harness.machine(sorted(os.sched_getaffinity(0)))}
    work = pathlib.Path(tempfile.mkdtemp(prefix="acc-bench-"))
    try:
        tokens = work / "tokens.npy"
        write_tokens(tokens)
        for name in options.models.split(","):
            model = train.training_folder(name, BATCH, SEQUENCE)
            curves = result["curves"].setdefault(name, {})
            for precision in options.precisions.split(","):
                if len(curves.get(precision, [])) != options.steps:
                    flags = PRECISIONS.get(precision, [])
                    curves[precision] = losses_of(options.tools, model, work, tokens, flags, options.steps,
                                                  OPTIMIZERS.get(precision, "adamw"), ranks_of(" ".join(flags)))
                    harness.write(options.results, "precision-curves", result, table(result))
            if options.layouts:
                flags = PRECISIONS[options.layouts]
                one = losses_of(options.tools, model, work, tokens, flags, options.layout_steps)
                for layout in LAYOUTS:
                    many = losses_of(options.tools, model, work, tokens, [*flags, *layout.split()], options.layout_steps,
                                     ranks=ranks_of(layout))
                    off = max(abs(a / b - 1) for a, b in zip(many, one, strict=True))
                    result.setdefault("layouts", []).append(
                        {"model": name, "precision": options.layouts, "layout": layout,
                         "steps": options.layout_steps, "off": off})
                    harness.write(options.results, "precision-curves", result, table(result))
    finally:
        shutil.rmtree(work, ignore_errors=True)


if __name__ == "__main__":
    main()
