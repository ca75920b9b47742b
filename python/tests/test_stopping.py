"""The best checkpoint and early stopping, held against the Trainer's own code of Transformers
(EarlyStoppingCallback, Trainer._determine_best_metric) fed with the losses that acc-run
tells; also where the run is resumed in between. Needs the tools, whose folder ACC_BIN
names."""
import json
import os
import subprocess
import types
import unittest

import numpy as np
import torch
import torch.nn.functional as F
from transformers import EarlyStoppingCallback, Trainer, TrainerControl, TrainerState
from transformers.trainer_utils import SaveStrategy

from common import acc_export
from training import TOOLS, WITHOUT_TOOLS, TrainCase

ROWS, WIDTH, BATCH, STEPS, EVERY = 32, 5, 4, 60, 2


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(2)
        self.linear = torch.nn.Linear(WIDTH, 1)

    def forward(self, x, y):
        return F.mse_loss(self.linear(x)[:, 0], y)


def replay(losses, patience=None, threshold=0.0):
    """(steps that are a new best, the step after which training stops) of {step: loss}."""
    args = types.SimpleNamespace(greater_is_better=False, metric_for_best_model="eval_loss",
                                 save_strategy=SaveStrategy.STEPS)
    state, control, best = TrainerState(), TrainerControl(), []
    trainer = types.SimpleNamespace(args=args, state=state)
    callback = EarlyStoppingCallback(patience or 10**9, threshold)
    for step, loss in losses.items():
        state.global_step = step
        callback.on_evaluate(args, state, control, {"eval_loss": loss})
        if Trainer._determine_best_metric(trainer, {"eval_loss": loss}, None):
            best.append(step)
        if control.should_training_stop:
            return best, step
    return best, None


@unittest.skipIf(WITHOUT_TOOLS, WITHOUT_TOOLS)
class Stopping(TrainCase):
    def setUp(self):
        super().setUp()
        torch.manual_seed(4)
        x = torch.randn(ROWS, WIDTH, dtype=torch.float64)
        y = x @ torch.randn(WIDTH, dtype=torch.float64) + torch.randn(ROWS)
        acc_export.export(Net(), (x[:BATCH].float(), y[:BATCH].float()), dir=str(self.folder))
        for name, values in (("x", x), ("y", y), ("ex", x[:12]), ("ey", y[:12])):
            np.save(self.folder / f"{name}.npy", values.numpy())
        self.compile()

    def compile(self, layout=""):
        self.tool("acc-opt", self.folder / "model.onnx", "--train", "--loss", "loss",
                  "--dtype=f64", "--optimizer", "sgd", "--set", "optimizer.lr=0.3",
                  *layout.split(), "-o", self.folder / "m.accx")

    def run_it(self, *words, steps=STEPS):
        """({step: its evaluation}, the last line, stderr)"""
        f = self.folder
        done = subprocess.run(
            [TOOLS / "acc-run", f / "m.accx", "--json", "--steps", str(steps), "--data",
             f"x={f}/x.npy,y={f}/y.npy", "--eval-data", f"x={f}/ex.npy,y={f}/ey.npy",
             "--eval-every", str(EVERY), *map(str, words)], text=True, capture_output=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        lines = list(map(json.loads, done.stdout.splitlines()))
        self.last = lines[-2].get("step", 0) if len(lines) > 1 else 0
        return ({line["step"]: line["eval_loss"] for line in lines[:-1] if "eval_loss" in line},
                lines[-1], done.stderr)

    def manifest(self, path):
        return json.loads((path / "checkpoint.json").read_text())

    def test_training_stops_where_transformers_does(self):
        losses, _, _ = self.run_it()
        for layout, patience, threshold in (("", 1, 0.0), ("--mesh dp=2", 2, 0.0),
                                            ("", 3, 0.05), ("", 5, 0.3)):
            self.compile(layout)
            _, stop = replay(losses, patience, threshold)
            self.assertTrue(stop and EVERY < stop < STEPS, "the case tells nothing")
            saved = self.folder / f"c{patience}"
            words = ("--early-stopping-patience", patience, "--early-stopping-threshold",
                     threshold, "--checkpoint", saved, "--save-every", 3)
            found, end, said = self.run_it(*words, "--save-weights", self.folder / "w.safetensors")
            self.assertEqual(max(found), stop)
            self.assertEqual(self.last, stop)
            self.assertTrue(end["stopped_early"])
            self.assertEqual(len(end["times_s"]), stop)
            self.assertIn(f"training ended after step {stop} of {STEPS}: eval_loss got no "
                          "better", said)
            self.assertTrue((saved / f"step-{stop:08}").exists())
            self.assertTrue((self.folder / "w.safetensors").exists())
            # Nothing is left to do after that, for whoever starts it again.
            found, end, said = self.run_it(*words, "--resume", saved)
            self.assertEqual(found, {})
            self.assertIn("training has ended at the checkpoint", said)
            # What was counted before a checkpoint counts after it.
            middle = max(step for step in range(3, stop, 3))
            again = self.folder / f"again{patience}"
            found, _, _ = self.run_it(*words[:4], "--resume", saved / f"step-{middle:08}",
                                      "--checkpoint", again)
            self.assertEqual(max(found), stop)

    def test_the_best_checkpoint_stays(self):
        saved = self.folder / "c"
        words = ("--keep-best", "eval_loss", "--keep", 1, "--save-every", 7, "--checkpoint",
                 saved)
        losses, end, _ = self.run_it(*words, steps=33)
        best, _ = replay(losses)
        self.assertLess(best[-1], 28, "the case tells nothing")
        self.assertEqual(end["best_step"], best[-1])
        self.assertAlmostEqual(end["best_eval_loss"], losses[best[-1]], delta=1e-15)
        names = sorted(name for name in os.listdir(saved) if name != ".lock")
        self.assertEqual(names, ["best", f"step-{best[-1]:08}", "step-00000033"])
        self.assertEqual(os.readlink(saved / "best"), f"step-{best[-1]:08}")
        for name in names:
            told = self.manifest(saved / name)["evaluations"]
            self.assertEqual((told["metric"], told["best_step"]), ("eval_loss", best[-1]))
            self.assertEqual(told["best"], losses[best[-1]])
        # It is what it says: its weights have that loss.
        f = self.folder
        lines = self.tool("acc-run", f / "m.accx", "--entry", "eval", "--json", "--weights",
                          saved / "best", "--data", f"x={f}/ex.npy,y={f}/ey.npy")
        self.assertAlmostEqual(json.loads(lines)["eval_loss"], losses[best[-1]], delta=1e-12)
        said = self.tool("acc-run", f / "m.accx", "--steps", 2, "--data",
                         f"x={f}/x.npy,y={f}/y.npy", "--eval-every", 1, "--eval-data",
                         f"x={f}/ex.npy,y={f}/ey.npy", "--checkpoint", f / "text",
                         "--keep-best", "eval_loss")
        self.assertRegex(said, r"(?m)^best evaluation: eval_loss [0-9.]+, after step [12]$")
        # Also after a resume, on another layout, whatever comes then.
        self.compile("--mesh dp=2")
        later, end, _ = self.run_it(*words, "--resume", saved, steps=STEPS)
        best, _ = replay({**losses, **later})
        self.assertEqual(end["best_step"], best[-1])
        names = sorted(name for name in os.listdir(saved) if name != ".lock")
        self.assertEqual(names, sorted({"best", f"step-{best[-1]:08}", f"step-{STEPS:08}"}))

    def test_what_it_cannot_go_by_is_refused(self):
        saved = self.folder / "c"
        for words, error in (
                (("--keep-best", "accuracy", "--checkpoint", saved, *self.evaluation()),
                 "expected a metric of this run (eval_loss) for --keep-best, found 'accuracy'"),
                (("--keep-best", "eval_loss", "--checkpoint", saved),
                 "option '--keep-best' expects --eval-every, whose eval_loss it goes by"),
                (("--keep-best", "eval_loss", *self.evaluation()),
                 "option '--keep-best' expects --checkpoint"),
                (("--early-stopping-patience", 2),
                 "option '--early-stopping-patience' expects --eval-every"),
                (("--early-stopping-threshold", 2),
                 "option '--early-stopping-threshold' expects --early-stopping-patience"),
                (("--early-stopping-threshold", -1),
                 "option '--early-stopping-threshold' expects a number that is not negative, "
                 "found '-1'"),
                (("--early-stopping-patience", 2, "--outputs", self.folder / "out",
                  *self.evaluation()),
                 "cannot use option '--outputs' with --early-stopping-patience")):
            with self.assertRaisesRegex(Exception, error.replace("(", r"\(").replace(")", r"\)")):
                self.tool("acc-run", self.folder / "m.accx", "--inputs", self.folder / "inputs",
                          *words)

    def evaluation(self):
        return "--eval-every", 1, "--eval-inputs", self.folder / "inputs"


if __name__ == "__main__":
    unittest.main()
