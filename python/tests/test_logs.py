"""What acc-run --tensorboard writes, as TensorBoard's own reader has it (test/Runtime/logs.test
reads it by the format alone), also where a run goes on from a checkpoint. Needs the tools,
whose folder ACC_BIN names."""
import importlib.util
import json
import unittest

import torch

from common import acc_export
from training import WITHOUT_TOOLS, X, TrainCase


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.linear = torch.nn.Linear(5, 3)

    def forward(self, x):
        return self.linear(x).square().mean()


@unittest.skipIf(WITHOUT_TOOLS, WITHOUT_TOOLS)
@unittest.skipUnless(importlib.util.find_spec("tensorboard"), "no tensorboard")
class Logs(TrainCase):
    def test_tensorboard_reads_what_json_says(self):
        from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
        acc_export.export(Net(), (X,), dir=str(self.folder))
        program = self.folder / "m.accx"
        self.tool("acc-opt", self.folder / "model.onnx", "--train", "--loss", "loss",
                  "--optimizer", "sgd", "--set", "optimizer.lr=0.1", "-o", program)
        told = {}
        for steps in (6, 9):  # the second goes on before the last two of the first
            lines = self.tool("acc-run", program, "--inputs", self.folder / "inputs", "--steps",
                              steps, "--json", "--tensorboard", self.folder / "events",
                              "--checkpoint", self.folder / str(steps), "--save-every", 4,
                              *(("--resume", self.folder / "6" / "step-00000004")
                                if steps == 9 else ())).splitlines()
            told.update((line["step"], line) for line in map(json.loads, lines) if "step" in line)
        events = EventAccumulator(str(self.folder / "events")).Reload()
        for tag, key in (("train/loss", "loss"), ("train/grad_norm", "grad_norm"),
                         ("train/learning_rate", "lr"),
                         ("train/samples_per_second", "samples_per_s")):
            found = [(event.step, event.value) for event in events.Scalars(tag)]
            self.assertEqual([step for step, _ in found], list(range(1, 10)))
            for step, value in found:
                self.assertAlmostEqual(value / told[step][key], 1, delta=1e-5)


if __name__ == "__main__":
    unittest.main()
