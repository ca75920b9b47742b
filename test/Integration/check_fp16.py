"""Trains a fixture in float32 and in float16 and prints how far losses are apart."""
import json
import pathlib
import subprocess
import sys

fixture, folder = map(pathlib.Path, sys.argv[1:])
folder.mkdir(exist_ok=True)
LAYOUTS = ([], ["--mesh=dp=2", "--micro-batches=2"],
           ["--mesh=dp_shard=2", "--set=zero_stage=3", "--recompute=full"], ["--mesh=tp=2"],
           ["--mesh=pp=2", "--micro-batches=2"], ["--mesh=pp=2", "--schedule=zbv"])


def train(*words):
    program = folder / "m.accx"
    subprocess.run(["acc-opt", str(fixture / "raw_static" / "model.onnx"), "--train", "--loss=loss",
                    "--optimizer=adamw", "--set=optimizer.lr=0.01", *words, "-o", str(program)],
                   check=True, stderr=subprocess.DEVNULL)
    data = ",".join(f"{name}={fixture / 'inputs' / name}.npy" for name in ("input_ids", "labels"))
    run = subprocess.run(["acc-run", str(program), "--data", data, "--steps", "20", "--json"],
                         check=True, text=True, stdout=subprocess.PIPE)
    return [json.loads(line) for line in run.stdout.splitlines()[:-1]]


exact = [step["loss"] for step in train()]
for layout in LAYOUTS:
    steps = train(*layout, "--mixed-precision=fp16", "--set=scaler.growth_interval=19")
    assert steps[0]["loss_scale"] == 65536 and not any("skipped" in step for step in steps)
    apart = max(abs(step["loss"] - loss) / loss for step, loss in zip(steps, exact, strict=True))
    assert 0 < apart < 0.01, (layout, apart)
    print(f"{' '.join(layout) or 'one rank'}: largest difference of a loss {apart:.1e}, "
          f"last scale {steps[-1]['loss_scale']:.0f}")
