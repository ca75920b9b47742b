#!/usr/bin/env python3
"""Exports small modules that compute on elements of which only the run knows how many
there are (choices/NAME/model.onnx, inputs beside it), and records how PyTorch trains each
in float64, as make_losses.py does. Exporters write NonZero of a mask: the TorchScript one
for boolean indices as well, today's only where the program does. Run it with the versions
of requirements.txt."""
import json
import pathlib
import shutil

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

from exported import export
from make_losses import BATCH, LENGTH, RATE, WIDTH, Language, ids, train, wide

FOLDER = pathlib.Path(__file__).resolve().parent / "choices"


class MaskedLanguage(Language):
    """Logits of masked positions alone, as heads of masked language models have them; no
    other label is one of a word."""

    def forward(self, ids, labels):
        states = torch.tanh(self.hidden(self.embed(ids)))
        return F.cross_entropy(self.head(states[labels >= 0]), labels[labels >= 0])


class Rows(nn.Module):
    """Rows that are found, computed and put back, in place of others and beside them."""

    def __init__(self):
        super().__init__()
        self.linear, self.other = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, WIDTH)

    def forward(self, x, mask):
        x, places = x.reshape(-1, WIDTH), torch.nonzero(mask.reshape(-1) > 0.4).squeeze(1)
        y = self.linear(x)
        put = y.index_copy(0, places, torch.tanh(self.other(x[places])))
        added = y.index_add(0, places, self.other(put[places]).sigmoid())
        return (put * added).sum()


class Poles(nn.Module):
    """What is chosen is what has a logarithm, an inverse and a root; all else is zero or
    below, where these have no slope."""

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(WIDTH, WIDTH)

    def forward(self, x):
        y = F.relu(self.linear(x))
        return (torch.log(y[y > 0]) + 1 / (y[y > 0] + 1) + torch.sqrt(y[y > 0])).sum()


class Statistics(nn.Module):
    """Of elements that a mask selects the mean, the largest and the least."""

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(WIDTH, WIDTH)

    def forward(self, x, mask):
        y = torch.tanh(self.linear(x))
        selected = torch.masked_select(y, mask > 0.4)
        rows = y[mask[..., 0] > 0.4]
        return selected.pow(2).mean() + rows.mean(0).max() - selected.min() + rows.max(0).values.sum()


class Missing(nn.Module):
    """Targets that are not all there: what is missing is not a number, nor is what the
    model makes of inputs that it leaves out."""

    def __init__(self):
        super().__init__()
        self.linear, self.other = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, WIDTH)

    def forward(self, x, targets):
        there = ~torch.isnan(targets)
        loss = F.mse_loss(self.linear(x)[there], targets[there], reduction="sum")
        positive = torch.nonzero((x > 0).all(-1).reshape(-1)).squeeze(1)
        return loss + self.other(torch.log(x.reshape(-1, WIDTH)[positive])).sum()


class Counted(nn.Module):
    """How many are chosen is the size of something else, and a number."""

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(WIDTH, WIDTH)

    def forward(self, x, mask):
        chosen = self.linear(x.reshape(-1, WIDTH))[torch.nonzero(mask.reshape(-1) > 0.4).squeeze(1)]
        first = torch.zeros(chosen.shape[0], dtype=torch.int64)
        half = torch.full_like(chosen, 0.5)
        return (F.cross_entropy(chosen, first, reduction="sum") + (chosen.sigmoid() - half).pow(2).sum()
                + half.sum() + chosen.pow(2).sum() / chosen.shape[0])


class Written(nn.Module):
    """What a mask says is written over: rows by a number, by a row and by what is made of
    themselves, and elements by a number."""

    def __init__(self, by_rows):
        super().__init__()
        self.by_rows = by_rows
        self.linear, self.other = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, WIDTH)

    def forward(self, x, mask):
        y, few, many = self.linear(x), mask > 0.7, mask > 0.3
        put = torch.zeros_like(y)
        put[many] = torch.tanh(self.other(y[many]))
        kept = y * 2
        kept[put > 0.2] = 0.25
        if self.by_rows:  # the TorchScript exporter writes these wrongly
            kept[few] = 0.5
            y = y.sin()
            y[few] = self.other.bias
        return (put * kept + y * y).sum()


class Merged(nn.Module):
    """Features that take the places of words, as models of pictures and text have them: one
    after another, where a mask says so."""

    def __init__(self):
        super().__init__()
        self.linear, self.other = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, WIDTH)

    def forward(self, x, mask, features):
        y = self.linear(x)
        places = (mask > 0.4).unsqueeze(-1).expand_as(y)
        merged = y.masked_scatter(places, self.other(features))
        return (torch.tanh(self.linear(merged)) * x).sum()


class Placed(nn.Module):
    """Rows of another input, one for each place that a mask chooses: assigned, added to what
    is there, put, copied and added at the places, and labels of those that are chosen."""

    def __init__(self, by_rows):
        super().__init__()
        self.by_rows = by_rows
        self.linear, self.other = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, WIDTH)

    def forward(self, x, mask, features, labels):
        y, rows, here = self.linear(x), self.other(features), mask > 0.4
        flat, places = y.reshape(-1, WIDTH), torch.nonzero(here.reshape(-1)).squeeze(1)
        assigned, added = y.clone(), y.clone()
        if self.by_rows:
            assigned[here] = rows
            elements = y.clone()
            elements[here.unsqueeze(-1).expand_as(y)] = rows.sin().flatten()
            assigned = assigned * elements
        added = added.index_put(torch.nonzero(here, as_tuple=True), rows.cos(), accumulate=True)
        added[here] = added[here] * 0.5 + rows
        copied = flat.index_copy(0, places, rows.sin())
        # The TorchScript exporter knows of no number of rows but the sample's.
        summed = flat.index_add(0, places, rows) if self.by_rows else flat.cos()
        return ((assigned.sin() * torch.tanh(added) * x).mean() + F.cross_entropy(flat[places], labels)
                + (copied.sigmoid() * summed.sin()).mean())


class First(nn.Module):
    """The first of what is chosen, as of experts whose places are few, what is behind them,
    and elements of rows that are chosen."""

    def __init__(self):
        super().__init__()
        self.linear, self.other = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, WIDTH)

    def forward(self, x, mask):
        x = x.reshape(-1, WIDTH)
        chosen = torch.nonzero(mask.reshape(-1) > 0.3).squeeze(1)
        first, rest = chosen[:3], chosen[3:]
        y = torch.zeros_like(x).index_add(0, first, torch.tanh(self.linear(x[first])))
        positive = torch.log(self.other(x).abs() + 0.125)[mask.reshape(-1) > 0.3]
        return ((y.index_add(0, rest, self.other(x[rest])) * x).sum() + self.linear(x)[first].pow(2).mean()
                + positive[1:5].pow(3).sum() + positive.flatten()[3:].pow(2).mean())


class Numbers(nn.Module):
    """Numbers of several choices added up; slopes that there are only where something is
    chosen, along what is not of the choice; and of what is written to one place the last
    that a transposed mask names."""

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(WIDTH, WIDTH)
        self.exponent, self.scale = nn.Parameter(torch.tensor([0.5])), nn.Parameter(torch.tensor([0.25]))

    def forward(self, x, mask):
        y, line = self.linear(x).reshape(-1, WIDTH), mask.reshape(-1)
        few, some, many = (y[torch.nonzero(line > bound).squeeze(1)] for bound in (0.8, 0.5, 0.2))
        mean = (few.sum() + some.pow(2).sum() + many.sum()) / (few.shape[0] + 2 * many.shape[0] + 1)
        positive = y[torch.nonzero(y[:, 0] > 0).squeeze(1), 0]
        has_next = torch.arange(BATCH * LENGTH) < BATCH * LENGTH - 1
        behind = torch.nonzero((line > 0.3) & has_next).squeeze(1) + 1
        next_rows = torch.gather(y, 0, behind[:, None].expand(-1, WIDTH))
        position, sample = torch.where((mask > 0.4).t())
        last = torch.zeros(2, dtype=mask.dtype)
        last[position * 0] = mask[sample, position]
        chosen = torch.nonzero(line > 0.4).squeeze(1)
        sums = torch.zeros(3, dtype=y.dtype).index_put(((chosen % 3),), y[chosen, 1], accumulate=True)
        based = (self.linear.bias[:3] * 2).index_put(((chosen % 3),), y[chosen, 2], accumulate=True)
        return (sums.pow(2).sum() + based.pow(2).sum() + mean
                + (positive ** self.exponent).sum() + (self.scale / positive).sum()
                + next_rows.sigmoid().sum() + (y * (last + self.scale)[0]).sum())


def cases(g):
    """name: module, inputs, whether the TorchScript exporter writes it."""
    words = (BATCH, LENGTH)
    labels = ids(g, *words)
    masked = torch.where(torch.rand(*words, generator=g) < 0.4, labels, -7)
    x = torch.randn(BATCH, LENGTH, WIDTH, generator=g)
    rows = torch.rand(*words, generator=g)
    elements = torch.rand(BATCH, LENGTH, WIDTH, generator=g)
    features = torch.randn(BATCH, LENGTH, WIDTH, generator=g)
    few = torch.rand(*words, generator=torch.Generator().manual_seed(2))
    count = 24  # which layouts divide
    few = torch.where((few > 0.4).reshape(-1).cumsum(0).reshape(few.shape) <= count, few, 0)
    placed = {"x": x, "mask": few, "features": x.reshape(-1, WIDTH)[:count].flip(0),
              "labels": torch.arange(count) % WIDTH}
    return {
        "masked_language": (MaskedLanguage, {"ids": labels, "labels": masked}, True),
        "rows": (Rows, {"x": x, "mask": rows}, False),
        "rows_traced": (Rows, {"x": x, "mask": rows}, True),
        "poles": (Poles, {"x": x}, False),
        "missing": (Missing, {"x": x.abs() * torch.where(rows > 0.2, 1, -1)[..., None],
                              "targets": torch.where(elements > 0.3, elements, torch.nan)}, True),
        "counted": (Counted, {"x": x, "mask": rows}, True),
        "statistics": (Statistics, {"x": x, "mask": elements}, True),
        "written": (lambda: Written(True), {"x": x, "mask": rows}, False),
        "written_traced": (lambda: Written(False), {"x": x, "mask": rows}, True),
        "merged": (Merged, {"x": x, "mask": rows, "features": features}, False),
        "merged_traced": (Merged, {"x": x, "mask": rows, "features": features}, True),
        "placed": (lambda: Placed(True), placed, False),
        "placed_traced": (lambda: Placed(False), placed, True),
        "first": (First, {"x": x, "mask": rows}, False),
        "first_traced": (First, {"x": x, "mask": rows}, True),
        "numbers": (Numbers, {"x": x, "mask": rows}, False),
        "numbers_traced": (Numbers, {"x": x, "mask": rows}, True),
    }


def trace(path, module, inputs):
    path.parent.mkdir(parents=True)
    torch.onnx.export(module, tuple(inputs.values()), str(path), dynamo=False, opset_version=17,
                      training=torch.onnx.TrainingMode.TRAINING, do_constant_folding=False,
                      input_names=list(inputs), output_names=["loss"])


if __name__ == "__main__":
    shutil.rmtree(FOLDER, ignore_errors=True)
    expected = {}
    for name, (kind, inputs, is_traced) in cases(torch.Generator().manual_seed(9)).items():
        torch.manual_seed(4)
        module = kind()
        if is_traced:
            trace(FOLDER / name / "model.onnx", module, inputs)
        else:
            export(FOLDER / name / "model.onnx", module, inputs, ["loss"], optimize=False)
        (FOLDER / name / "inputs").mkdir()
        for key, tensor in inputs.items():
            np.save(FOLDER / name / "inputs" / f"{key}.npy", wide(tensor).numpy())
        steps, parameters = train(module, inputs)
        flags = ["--trainable=exponent", "--trainable=scale"] if name == "numbers_traced" else []
        expected[name] = {"flags": ["--optimizer", "sgd", "--set", f"optimizer.lr={RATE}", *flags],
                          "steps": steps, "parameters": parameters}
    (FOLDER / "expected.json").write_text(json.dumps(expected, separators=(",", ":")) + "\n")
