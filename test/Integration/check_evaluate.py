#!/usr/bin/env python3
"""check_evaluate.py WORK: one file trains, evaluates and infers.

GPT-2 with its loss: eval_loss between steps must be the loss that PyTorch has in float64
when the next step begins, the bits of the entry eval on saved weights and on a checkpoint, and
that of a forward compiled alone, whose kernels may add up in another order. GPT-2 with logits: a checkpoint of three ranks, whose
states are padded and shared, must give in the entry forward of other layouts, and in a
forward compiled alone, the logits of the weights that were saved beside it. Planned and
allocated bytes agree in every run."""
import json
import pathlib
import random
import struct
import sys

from acc import ROOT, Failed, report_of, run, tensorfiles

FIXTURES = ROOT / "test" / "Fixtures"
TRAIN = ["--train", "--optimizer=adamw", "--set", "optimizer.lr=1e-2", "--set",
         "optimizer.weight_decay=0.01"]
LAYOUTS = {"one rank": (1, []),
           "ZeRO-3": (4, ["--mesh", "dp=4", "--set", "zero_stage=3"]),
           "micro-batches": (2, ["--mesh", "dp=2", "--micro-batches=2"])}
STEPS, FROM_PYTORCH, BETWEEN_LAYOUTS = 4, 1e-5, 1e-6


def bits(loss):
    return struct.pack("<f", loss)


def compile_model(work, name, model, *flags):
    executable = work / f"{name}.accx"
    run("acc-opt", model, *flags, "--threads-per-rank=1", "-o", executable)
    return executable


def call(executable, ranks, *options):
    """The lines of a run, the last one its report."""
    stdout, _ = run("acc-run", executable, "-n", ranks, "--threads", 1, "--json", *options)
    steps, report = report_of(stdout, ranks)
    if report["planned_peak_bytes"] != report["measured_peak_bytes"]:
        raise Failed(f"{executable}: planned and allocated bytes differ: {report}")
    return steps, report


def check_loss(work, layout):
    """Evaluation between the steps of a model that returns its loss."""
    ranks, flags = LAYOUTS[layout]
    folder = FIXTURES / "gpt2_train"
    model, inputs = folder / "raw_static" / "model.onnx", folder / "inputs"
    expected = json.loads((folder / "expected.json").read_text())["curves"]["adamw"]["loss"]
    executable = compile_model(work, "loss", model, *TRAIN, "--loss=loss", *flags)
    weights, checkpoint = work / "w.safetensors", work / f"checkpoint-{ranks}"
    steps, _ = call(executable, ranks, "--inputs", inputs, "--steps", STEPS, "--eval-every", 2,
                    "--eval-inputs", inputs, "--save-weights", weights,
                    "--checkpoint", checkpoint)
    # Whoever looks on changes nothing.
    undisturbed = work / "undisturbed.safetensors"
    call(executable, ranks, "--inputs", inputs, "--steps", STEPS, "--save-weights",
         undisturbed)
    if undisturbed.read_bytes() != weights.read_bytes():
        raise Failed(f"{layout}: evaluations have changed what is trained")
    found = {step["step"]: step["eval_loss"] for step in steps if "eval_loss" in step}
    if list(found) != [2, 4]:
        raise Failed(f"{layout}: expected evaluations after steps 2 and 4, found {found}")
    for step, loss in found.items():
        if not abs(loss - expected[step]) <= FROM_PYTORCH * expected[step]:
            raise Failed(f"{layout}: eval_loss {loss} after step {step}, PyTorch's is "
                         f"{expected[step]}")
    # A forward alone has no micro-batches.
    alone = None
    if "--micro-batches=2" not in flags:
        alone = compile_model(work, "alone", model, *flags[:2])
    for source in (weights, checkpoint):
        _, report = call(executable, ranks, "--entry=eval", "--inputs", inputs,
                         "--weights", source)
        again = [report["eval_loss"]]
        if alone:
            call(alone, ranks, "--entry=forward", "--inputs", inputs, "--weights", source,
                 "--outputs", work / "loss")
            again += tensorfiles.read_npy(work / "loss" / "loss.npy")[2]
        if bits(again[0]) != bits(found[STEPS]):
            raise Failed(f"{layout}: expected the bits of eval_loss {found[STEPS]} on "
                         f"{source.name}, found {again[0]}")
        if abs(again[-1] - again[0]) > BETWEEN_LAYOUTS * again[0]:
            raise Failed(f"{layout}: expected eval_loss {again[0]} of a forward alone on "
                         f"{source.name}, found {again[-1]}")
    print(f"{layout}: eval_loss {found}, the bits of eval on saved weights"
          + (", and near a forward alone" if alone else ""))


def write_rows(folder, rows):
    numbers = random.Random(5)
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("input_ids", "labels"):
        tensorfiles.write_npy(folder / f"{name}.npy", (
            [rows, 12], "int64", [numbers.randint(0, 95) for _ in range(rows * 12)]))
    return folder


def check_logits(work):
    """Inference on what was trained, in the same and in other layouts."""
    model = FIXTURES / "gpt2" / "raw_dynamic" / "model.onnx"
    dims = ["--dim", "batch=12", "--dim", "sequence=12"]
    loss = ["--loss=cross_entropy:logits,labels", *TRAIN]
    inputs, checkpoint = write_rows(work / "rows", 12), work / "shared"
    shared = compile_model(work, "shared", model, *dims, *loss, "--mesh", "dp=3",
                           "--set", "zero_stage=3")
    call(shared, 3, "--inputs", inputs, "--steps", 3, "--checkpoint", checkpoint,
         "--save-weights", work / "shared.safetensors")

    def logits(name, executable, ranks, weights):
        folder = work / f"logits-{name}"
        call(executable, ranks, "--entry=forward", "--inputs", inputs, *weights,
             "--outputs", folder)
        return tensorfiles.read_npy(folder / "logits.npy")[2]

    def difference(found, expected):
        return max(abs(x - y) / (1 + abs(y)) for x, y in zip(found, expected, strict=True))

    expected = logits("shared", shared, 3, ["--weights", work / "shared.safetensors"])
    if difference(logits("untrained", shared, 3, []), expected) < 1e-2:
        raise Failed("the logits of untrained weights are those of trained ones")
    others = {"one rank": (1, [*loss]),
              "micro-batches": (2, [*loss, "--mesh", "dp=2", "--micro-batches=2"]),
              "alone": (2, ["--mesh", "dp=2"])}
    for name, (ranks, flags) in others.items():
        executable = compile_model(work, name.replace(" ", "-"), model, *dims, *flags)
        worst = difference(logits(name, executable, ranks, ["--weights", checkpoint]), expected)
        if not worst <= BETWEEN_LAYOUTS:
            raise Failed(f"{name}: logits of the checkpoint differ by {worst:.2g}")
        print(f"{name}: logits of a checkpoint of three ranks within {worst:.2g}")


def main():
    work = pathlib.Path(sys.argv[1])
    try:
        for layout in LAYOUTS:
            check_loss(work, layout)
        check_logits(work)
    except Failed as error:
        sys.exit(f"error: {error}")


if __name__ == "__main__":
    main()
