"""The smaller last batch of an epoch where the model makes its loss (--row-mask,
--last-batch=keep), in float64 beside a loop in PyTorch that gives the model the smaller batch.
Needs the tools, whose folder ACC_BIN names."""
import json
import unittest

import numpy as np
import torch
import torch.nn.functional as F
from safetensors.torch import load_file

from common import acc_export
import acc  # noqa: E402, from the folder that common adds
from training import WITHOUT_TOOLS, Refused, TrainCase

BATCH, ROWS, FEATURES, LENGTH, CLASSES, EPOCHS, RATE = 4, 11, 5, 3, 8, 3, 2.0 ** -6
LAYOUTS = ("", "--mesh dp=2 --micro-batches=2", "--mesh dp=4 --set zero_stage=3", "--mesh tp=2",
           "--mesh pp=2 --micro-batches=4")


def mean_of_squares(y, t, labels):
    return F.mse_loss(y, t)


def scaled_means(y, t, labels):
    """Of two means, one of them over rows after places, each with a factor."""
    return 0.5 * (y - t).pow(2).mean() + 0.25 * y.abs().mean((1, 2)).mean()


def smoothed(y, t, labels):
    return F.cross_entropy(y.flatten(0, 1), labels.flatten(), label_smoothing=0.25)


def counted(y, t, labels):
    """As language models do it: labels of -100 do not count."""
    return F.cross_entropy(y.flatten(0, 1), labels.flatten(), ignore_index=-100)


def shifted(y, t, labels):
    return F.cross_entropy(y[:, :-1].flatten(0, 1), labels[:, 1:].flatten(), ignore_index=-100)


def weighed(y, t, labels):
    weights = t.exp()
    return ((y - t).square() * weights).sum() / weights.sum().clamp(min=1e-6)


def total(y, t, labels):
    return F.mse_loss(y, t, reduction="sum")


def root_of_mean(y, t, labels):
    return F.mse_loss(y, t).sqrt()


LOSSES = (mean_of_squares, scaled_means, smoothed, counted, shifted, weighed, total)


def sum_over_size(y, t, labels):
    return (y - t).square().sum() / len(y)


def rows_over_size(y, t, labels):
    return ((y - t).square().sum((1, 2)) / len(y)).sum()


def mean_times_size(y, t, labels):
    return F.mse_loss(y, t) * len(y)


def centred(y, t, labels):
    return (y - y.mean(0)).square().mean()


class Net(torch.nn.Module):
    def __init__(self, loss):
        super().__init__()
        torch.manual_seed(7)
        self.hidden, self.head = torch.nn.Linear(FEATURES, 8), torch.nn.Linear(8, CLASSES)
        self.loss = loss

    def forward(self, x, t, labels):
        return self.loss(self.head(torch.tanh(self.hidden(x))), t, labels)


def samples():
    draw = torch.Generator().manual_seed(3)
    labels = torch.randint(0, CLASSES, (ROWS, LENGTH), generator=draw)
    labels[::3, 1] = -100
    labels[5] = -100  # a row that never counts
    return {"x": torch.randn(ROWS, LENGTH, FEATURES, generator=draw).double(),
            "t": torch.randn(ROWS, LENGTH, CLASSES, generator=draw).double(), "labels": labels}


@unittest.skipIf(WITHOUT_TOOLS, WITHOUT_TOOLS)
class LastBatch(TrainCase):
    def compile(self, layout="", *words):
        program = self.folder / f"m.accx"
        self.tool("acc-opt", self.folder / "model.onnx", "--train", "--loss", "loss", "--dtype=f64",
                  "--optimizer", "sgd", "--set", f"optimizer.lr={RATE}", "--entries", "step",
                  "--row-mask", *layout.split(), *words, "-o", program)
        return program

    def run_steps(self, program, *words):
        lines = self.tool("acc-run", program, "--json", "--data", self.text, "--data-order=file",
                          "--save-weights", self.folder / "w.safetensors", *words).splitlines()
        return [json.loads(line) for line in lines if '"loss"' in line]

    def train(self, loss, rows=ROWS):
        module = Net(loss).double()
        optimizer = torch.optim.SGD(module.parameters(), lr=RATE)
        losses = []
        for batch in [range(at, min(at + BATCH, rows)) for at in range(0, rows, BATCH)] * EPOCHS:
            optimizer.zero_grad()
            value = module(*(each[list(batch)] for each in self.data.values()))
            value.backward()
            optimizer.step()
            losses.append(value.item())
        return losses, dict(module.named_parameters())

    def assert_trained(self, lines, expected, first=0):
        losses, parameters = expected
        torch.testing.assert_close([line["loss"] for line in lines], losses[first:], rtol=1e-9,
                                   atol=1e-12)
        weights = load_file(self.folder / "w.safetensors")
        for name, parameter in parameters.items():
            torch.testing.assert_close(weights[name], parameter.detach(), rtol=1e-9, atol=1e-12)

    def use(self, loss):
        """Exports the model with that loss, and writes the data that it reads."""
        self.data = samples()
        counts = loss in (counted, shifted)
        if not counts:
            self.data["labels"].clamp_(min=0)
        batch = [value[:BATCH].float() if value.is_floating_point() else value[:BATCH]
                 for value in self.data.values()]
        acc_export.export(Net(loss), tuple(batch), dir=str(self.folder))
        self.write(("x", "labels" if counts or loss is smoothed else "t"))

    def write(self, names):
        parts = []
        for name in names:
            np.save(self.folder / f"{name}.npy", self.data[name].numpy())
            parts.append(f"{name}={self.folder / name}.npy")
        self.text = ",".join(parts)

    def test_every_loss_is_that_of_the_smaller_batch(self):
        for loss in LOSSES:
            self.use(loss)
            expected = self.train(loss)
            for layout in LAYOUTS if loss in (mean_of_squares, counted) else LAYOUTS[1:2]:
                with self.subTest(loss=loss.__name__, layout=layout):
                    lines = self.run_steps(self.compile(layout), "--last-batch=keep",
                                           f"--epochs={EPOCHS}")
                    self.assert_trained(lines, expected)
                    self.assertEqual(lines[-1]["epoch"], EPOCHS)

    def test_one_batch_makes_a_root(self):
        """What is not a sum over micro-batches is right where there is one."""
        self.use(root_of_mean)
        expected = self.train(root_of_mean)
        lines = self.run_steps(self.compile("--mesh dp=2"), "--last-batch=keep", f"--epochs={EPOCHS}")
        self.assert_trained(lines, expected)

    def test_all_rows_count_elsewhere(self):
        self.use(mean_of_squares)
        self.data = {name: value[:8] for name, value in self.data.items()}
        self.write(("x", "t"))
        expected = self.train(mean_of_squares, rows=8)
        program = self.compile("--mesh dp=2 --micro-batches=2")
        for words in ((), ("--last-batch=keep",), ("--last-batch=drop",)):
            self.assert_trained(self.run_steps(program, f"--epochs={EPOCHS}", *words), expected)
        # And where there are no data.
        inputs = self.folder / "rows"
        inputs.mkdir()
        for name in ("x", "t"):
            np.save(inputs / f"{name}.npy", self.data[name][:BATCH].numpy())
        lines = self.tool("acc-run", program, "--json", "--inputs", inputs, "--steps=1").splitlines()
        loss = next(json.loads(line)["loss"] for line in lines if '"loss"' in line)
        torch.testing.assert_close(loss, expected[0][0], rtol=1e-12, atol=1e-12)

    def test_a_run_goes_on_in_another_layout(self):
        self.use(mean_of_squares)
        expected, saved = self.train(mean_of_squares), self.folder / "saved"
        saved.mkdir()
        self.run_steps(self.compile(LAYOUTS[2]), "--last-batch=keep", "--steps=2", "--checkpoint", saved)
        lines = self.run_steps(self.compile(LAYOUTS[1]), f"--epochs={EPOCHS}", "--resume", saved)
        self.assert_trained(lines, expected, first=2)

    def test_a_program_gives_smaller_batches(self):
        """As a DataLoader has them; and a mask of its own."""
        for loss in (mean_of_squares, counted):
            self.use(loss)
            expected = self.train(loss)
            names = [part.split("=")[0] for part in self.text.split(",")]
            losses = []
            with acc.load(self.compile(LAYOUTS[1])) as run:
                for at in list(range(0, ROWS, BATCH)) * EPOCHS:
                    losses.append(run.step({name: self.data[name][at:at + BATCH]
                                            for name in names}).loss)
                weights = run.weights()
                mask = np.array([True, False, True, False])
                batch = {name: self.data[name][:BATCH] for name in names}
                own = run.step({**batch, "row_mask": mask}).loss
                halves = {name: value[::2] for name, value in batch.items()}
                with self.assertRaisesRegex(acc.BatchError, "expected inputs of as many rows, found '1', '2'"):
                    run.step({names[0]: halves[names[0]], names[1]: halves[names[1]][:1]})
                with self.assertRaisesRegex(acc.BatchError, "expected .* for input"):
                    run.step({name: value[:0] for name, value in batch.items()})
            torch.testing.assert_close(losses, expected[0], rtol=1e-9, atol=1e-12)
            for name, parameter in expected[1].items():
                torch.testing.assert_close(torch.from_numpy(weights[name]), parameter.detach(), rtol=1e-9,
                                           atol=1e-12)
            module = Net(loss).double()
            module.load_state_dict({name: torch.from_numpy(value) for name, value in weights.items()})
            wanted = module(*(each[[0, 2]] for each in self.data.values())).item()
            torch.testing.assert_close(own, wanted, rtol=1e-9, atol=1e-12)

    def test_what_may_hold_the_size_of_the_batch_is_refused(self):
        for loss, words in ((sum_over_size, "scales a sum over rows by the size of the batch"),
                            (rows_over_size, "scales a sum over rows by the size of the batch"),
                            (mean_times_size, "scales a sum over rows by the size of the batch"),
                            (centred, "found that this op mixes them")):
            self.use(loss)
            with self.subTest(loss=loss.__name__), self.assertRaisesRegex(Refused, words):
                self.compile()

    def test_masks_of_others_are_refused(self):
        self.use(mean_of_squares)
        np.save(self.folder / "row_mask.npy", np.ones(ROWS, np.bool_))
        self.text += f",row_mask={self.folder / 'row_mask.npy'}"
        program = self.compile()
        with self.assertRaisesRegex(Refused, "cannot use --last-batch=keep with data for input 'row_mask'"):
            self.run_steps(program, "--last-batch=keep", "--steps=1")
        with self.assertRaisesRegex(Refused, "cannot use --row-mask with --loss=cross_entropy:y,t"):
            self.tool("acc-opt", self.folder / "model.onnx", "--train", "--row-mask", "--loss",
                      "cross_entropy:y,t")


if __name__ == "__main__":
    unittest.main()
