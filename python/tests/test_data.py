"""Training on samples from files, one for each input, in float64 beside a loop in PyTorch:
the losses of every step, the loss of all rows of an evaluation, and the weights, whichever
ranks and micro-batches there are, in the order of the files and shuffled; and a run that is
killed between two epochs and goes on in another layout. Needs the tools, whose folder
ACC_BIN names."""
import json
import re
import unittest

import numpy as np
import torch
import torch.nn.functional as F
from safetensors.torch import load_file

from common import acc_export
from draws import mix
from training import WITHOUT_TOOLS, Refused, TrainCase

BATCH, ROWS, LENGTH, WORDS, WIDTH, FEATURES, CLASSES = 4, 11, 6, 20, 8, 3, 5
STEPS, RATE = 9, 0.25  # more than three epochs
LAYOUTS = ("", "--mesh dp=2 --micro-batches=2", "--mesh dp=4 --set zero_stage=3", "--mesh tp=2",
           "--mesh pp=2 --micro-batches=2")


class Net(torch.nn.Module):
    """A classifier of padded sentences with some features beside them, which come with the
    samples along their second dimension."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(7)
        self.words = torch.nn.Embedding(WORDS, WIDTH)
        self.hidden = torch.nn.Linear(WIDTH, WIDTH)
        self.head = torch.nn.Linear(WIDTH + FEATURES, CLASSES)

    def forward(self, ids, mask, features, labels):
        x = torch.tanh(self.hidden(self.words(ids)))
        weights = mask.to(x.dtype)[:, :, None]
        mean = (x * weights).sum(1) / weights.sum(1)
        return F.cross_entropy(self.head(torch.cat([mean, features.T], 1)), labels)


def samples(rows, seed):
    draw = torch.Generator().manual_seed(seed)
    lengths = torch.randint(1, LENGTH + 1, (rows,), generator=draw)
    return {"ids": torch.randint(0, WORDS, (rows, LENGTH), generator=draw),
            "mask": (torch.arange(LENGTH) < lengths[:, None]).long(),
            "features": torch.randn(FEATURES, rows, generator=draw).double(),
            "labels": torch.randint(0, CLASSES, (rows,), generator=draw)}


def take(data, rows):
    return [value[:, rows] if name == "features" else value[rows] for name, value in data.items()]


def permuted(count, key, index):
    """Written anew from docs/Executable.md: a Feistel network of 8 rounds over the next
    power of four, walked until it leads below `count`."""
    half = 1
    while 4 ** half < count:
        half += 1
    while True:
        left, right = index >> half, index & 2 ** half - 1
        for step in range(8):
            left, right = right, left ^ mix(right ^ mix(key + step)) & 2 ** half - 1
        index = left << half | right
        if index < count:
            return index


def order_of(steps, seed=None):
    """The rows of each step."""
    rows = []
    for number in range(steps * BATCH):
        epoch, index = divmod(number, ROWS)
        if seed is not None:
            key = mix(seed) + mix(2 ** 64 - 1 - epoch) & 2 ** 64 - 1
            index = permuted(ROWS, key, index)
        rows.append(index)
    return [rows[at:at + BATCH] for at in range(0, len(rows), BATCH)]


def train(data, order, held, *others):
    """(losses, the loss of `held`, parameters) of steps on the rows of data; `others`: more
    data and their order, behind them."""
    module = Net().double()
    optimizer = torch.optim.SGD(module.parameters(), lr=RATE)
    losses = []
    for source, rows in [(data, rows) for rows in order] + [
            (each, rows) for each, orders in others for rows in orders]:
        optimizer.zero_grad()
        loss = module(*take(source, rows))
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    with torch.no_grad():
        evaluated = module(*take(held, list(range(ROWS)))).item()
    return losses, evaluated, dict(module.named_parameters())


def epochs_of(count, seed, drop_last):
    """Rows of each step of `count` epochs, as PyTorch's BatchSampler parts them; without a
    seed in the order of the file."""
    order = []
    for epoch in range(count):
        rows = list(range(ROWS))
        if seed is not None:
            key = mix(seed) + mix(2 ** 64 - 1 - epoch) & 2 ** 64 - 1
            rows = [permuted(ROWS, key, row) for row in rows]
        order += torch.utils.data.BatchSampler(rows, BATCH, drop_last=drop_last)
    return order


@unittest.skipIf(WITHOUT_TOOLS, WITHOUT_TOOLS)
class Data(TrainCase):
    def setUp(self):
        super().setUp()
        self.held = samples(ROWS, 5)
        self.loss, self.entries = "loss", "step,eval"
        self.data = samples(ROWS, 3)
        self.text = self.write(self.data, "train")
        self.held_text = self.write(self.held, "held")
        acc_export.export(Net(), tuple(
            value.float() if value.is_floating_point() else value
            for value in take(self.data, list(range(BATCH)))), dir=str(self.folder))

    def write(self, data, prefix):
        """Files of other types than the program's, where that keeps every number."""
        kinds = {"ids": np.uint16, "mask": np.bool_, "labels": np.int32}
        parts = []
        for name, value in data.items():
            file = self.folder / f"{prefix}-{name}.npy"
            np.save(file, value.numpy().astype(kinds.get(name, np.float64)))
            parts.append(f"{name}={file}")
        return ",".join(parts)

    def compile(self, layout, name="m"):
        program = self.folder / f"{name}.accx"
        self.tool("acc-opt", self.folder / "model.onnx", "--train", "--loss", self.loss, "--dtype=f64",
                  "--optimizer", "sgd", "--set", f"optimizer.lr={RATE}", "--batch-dim", "features=1",
                  "--entries", self.entries, *layout.split(), "-o", program)
        return program

    def run_steps(self, program, *words, steps=STEPS):
        lines = self.tool("acc-run", program, "--json", "--data", self.text,
                          *(["--steps", steps] if steps else []),
                          "--save-weights", self.folder / "w.safetensors", *words).splitlines()
        return [json.loads(line) for line in lines if '"loss"' in line]

    def assert_trained(self, lines, expected, first=0):
        losses, evaluated, parameters = expected
        torch.testing.assert_close([line["loss"] for line in lines], losses[first:], rtol=1e-9,
                                   atol=1e-12)
        if "eval_loss" in lines[-1]:
            torch.testing.assert_close(lines[-1]["eval_loss"], evaluated, rtol=1e-9, atol=1e-12)
        weights = load_file(self.folder / "w.safetensors")
        for name, parameter in parameters.items():
            torch.testing.assert_close(weights[name], parameter.detach(), rtol=1e-9, atol=1e-12)

    def test_every_layout_trains_as_pytorch_does(self):
        in_file, shuffled = (train(self.data, order_of(STEPS, seed), self.held)
                             for seed in (None, 11))
        for layout in LAYOUTS:
            program = self.compile(layout)
            evaluated = ("--eval-every", STEPS, "--eval-data", self.held_text)
            with self.subTest(layout=layout):
                self.assert_trained(self.run_steps(program, "--data-order=file", *evaluated), in_file)
                self.assert_trained(self.run_steps(program, "--seed=11", *evaluated), shuffled)

    def test_a_run_goes_on_in_the_middle_of_an_epoch_in_another_layout(self):
        one, four = self.compile(""), self.compile("--mesh dp=4 --set zero_stage=3", "four")
        saved = self.folder / "saved"
        for words, seed in ((("--data-order=file",), None), (("--seed=11",), 11)):
            with self.subTest(words):
                expected = train(self.data, order_of(STEPS, seed), self.held)
                checkpoint = saved / words[0]
                saved.mkdir(exist_ok=True)
                self.run_steps(one, *words, "--checkpoint", checkpoint, steps=4)
                self.assert_trained(self.run_steps(four, "--resume", checkpoint), expected, first=4)

    def test_epochs_without_their_last_batch(self):
        """PyTorch's drop_last=True, over three epochs of two steps each."""
        for seed, words in ((None, ("--data-order=file",)), (11, ("--seed=11",))):
            expected = train(self.data, epochs_of(3, seed, drop_last=True), self.held)
            for layout in LAYOUTS[:2]:
                with self.subTest(layout=layout, seed=seed):
                    lines = self.run_steps(self.compile(layout), "--last-batch=drop",
                                           "--epochs=3", *words, steps=None)
                    self.assert_trained(lines, expected)
                    self.assertEqual([line["epoch"] for line in lines], [.5, 1, 1.5, 2, 2.5, 3])

    def test_a_smaller_last_batch(self):
        """PyTorch's drop_last=False: the last of three steps of an epoch has three rows."""
        class Logits(Net):
            def forward(self, ids, mask, features):
                x = torch.tanh(self.hidden(self.words(ids)))
                weights = mask.to(x.dtype)[:, :, None]
                mean = (x * weights).sum(1) / weights.sum(1)
                return self.head(torch.cat([mean, features.T], 1))

        inputs = [value.float() if value.is_floating_point() else value
                  for value in take(self.data, list(range(BATCH)))[:3]]
        acc_export.export(Logits(), tuple(inputs), dir=str(self.folder), output_names=["logits"])
        self.loss = "cross_entropy:logits,labels"
        self.data["labels"][4] = -100  # and a row that never counts
        self.text = self.write(self.data, "train")
        for seed, words in ((None, ("--data-order=file",)), (11, ("--seed=11",))):
            expected = train(self.data, epochs_of(3, seed, drop_last=False), self.held)
            for layout in LAYOUTS:
                with self.subTest(layout=layout, seed=seed):
                    lines = self.run_steps(self.compile(layout), "--last-batch=keep",
                                           "--epochs=3", *words, steps=None)
                    self.assert_trained(lines, expected)
                    self.assertEqual(lines[-1]["epoch"], 3)
                    self.assertEqual(len(lines), 9)

        program, kept = self.compile(""), "--last-batch=keep"
        rest = self.feed_alone("ids", "mask", "features")
        np.save(rest / "labels.npy", self.data["labels"][:BATCH].numpy())
        with self.assertRaisesRegex(Refused, "keep: input 'labels' has the labels, and the data do "
                                             "not feed it"):
            self.run_steps(program, kept, "--inputs", rest)
        self.text = self.write(self.data, "train")
        self.entries = "step"
        with self.assertRaisesRegex(Refused, "keep: the entry eval says .* say --entries step,eval"):
            self.run_steps(self.compile(""), kept)

    def test_rows_that_depend_on_each_other_have_no_smaller_batch(self):
        class Centred(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.head = torch.nn.Linear(FEATURES, CLASSES)

            def forward(self, features):
                logits = self.head(features.T)
                return logits - logits.mean(0)

        acc_export.export(Centred(), (self.data["features"][:, :BATCH].float(),),
                          dir=str(self.folder), output_names=["logits"])
        self.loss = "cross_entropy:logits,labels"
        self.text = ",".join(part for part in self.text.split(",") if part[0] in "fl")
        with self.assertRaisesRegex(Refused, "keep: the loss is not known to be one over rows that "
                                             "do not depend on each other; give next or drop"):
            self.run_steps(self.compile(""), "--last-batch=keep")

    def test_a_sample_that_is_not_finite_is_named(self):
        self.data["features"][2, 5] = float("nan")
        self.text = self.write(self.data, "train")
        for layout in LAYOUTS[:2]:
            with self.assertRaisesRegex(
                    Refused, r"step 2: the loss is not finite \(nan\); the state is that of step 1; "
                             "input 'features' has nan or inf in sample 5, element 2, of "
                             "'.*features.npy'"):
                self.run_steps(self.compile(layout), "--data-order=file")

    def test_a_loss_of_the_model_has_no_smaller_batch(self):
        with self.assertRaisesRegex(Refused, "cannot use --last-batch=keep: .* compiled with --row-mask, "
                                             "or by their labels, with --loss cross_entropy:LOGITS,"
                                             "LABELS; give next or drop"):
            self.run_steps(self.compile(""), "--last-batch=keep")

    def test_other_data_begin_at_their_first_sample(self):
        program, saved = self.compile("--mesh dp=2"), self.folder / "saved"
        self.run_steps(program, "--data-order=file", "--checkpoint", saved, steps=2)
        first, self.text = self.text, self.held_text
        with self.assertRaisesRegex(Refused, "the data would not go on where they were; to begin "
                                             "these at their first sample, say --new-data"):
            self.run_steps(program, "--resume", saved)
        expected = train(self.data, order_of(2), self.held, (self.held, order_of(STEPS - 2)))
        lines = self.run_steps(program, "--resume", saved, "--new-data", "--data-order=file",
                               "--checkpoint", self.folder / "next", steps=6)
        torch.testing.assert_close([line["loss"] for line in lines], expected[0][2:6], rtol=1e-9,
                                   atol=1e-12)
        # The checkpoint knows where these began.
        lines = self.run_steps(program, "--resume", self.folder / "next")
        self.assert_trained(lines, expected, first=6)
        self.text = first

    def feed_alone(self, *names):
        """`names` come from files of data; the folder that is returned has the rows 0, 1, 2, …
        of the rest, for every step."""
        self.text = ",".join(part for part in self.text.split(",") if part.split("=")[0] in names)
        rest = self.folder / "rest"
        rest.mkdir(exist_ok=True)
        for name, value in zip(self.data, take(self.data, list(range(BATCH)))):
            if name not in names:
                np.save(rest / f"{name}.npy", value.numpy())
        return rest

    def test_an_input_that_the_data_feed_too_is_refused(self):
        whole, text = self.feed_alone(), self.write(self.data, "train")
        twice = "expected each input from one place, found (.*) in '.*' and in '.*': to use the data"

        def assert_twice(program, names, *words):
            with self.assertRaisesRegex(Refused, twice) as caught:
                self.run_steps(program, *words)
            found = re.search(twice, str(caught.exception))[1]
            self.assertEqual(set(re.findall("'([a-z]+)'", found)), set(names))

        for layout in LAYOUTS[:3]:
            program = self.compile(layout)
            for names in (["ids"], ["features"], ["ids", "labels"], list(self.data)):
                self.text = ",".join(p for p in text.split(",") if p.split("=")[0] in names)
                with self.subTest(layout=layout, names=names):
                    assert_twice(program, names, "--inputs", whole)
            self.text = text
            with self.subTest(layout=layout, names="of an evaluation"):
                assert_twice(program, self.data, "--eval-every", STEPS, "--eval-data",
                             self.held_text, "--eval-inputs", whole)

    def test_the_rest_comes_from_the_folder(self):
        """Rows in the order of the files: those of the data change, those of the folder stay."""
        rest = self.feed_alone("ids", "mask")
        module = Net().double()
        optimizer = torch.optim.SGD(module.parameters(), lr=RATE)
        losses = []
        for rows in order_of(STEPS):
            optimizer.zero_grad()
            still = take(self.data, list(range(BATCH)))
            loss = module(self.data["ids"][rows], self.data["mask"][rows], *still[2:])
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        for layout in LAYOUTS:
            with self.subTest(layout=layout):
                lines = self.run_steps(self.compile(layout), "--inputs", rest,
                                       "--data-order=file")
                torch.testing.assert_close([line["loss"] for line in lines], losses, rtol=1e-9,
                                           atol=1e-12)

    def test_what_cannot_be_read_is_refused_by_name(self):
        program = self.compile("")
        files = dict(part.split("=", 1) for part in self.text.split(","))
        bad = self.folder / "bad.npy"

        def refused(name, value, words):
            np.save(bad, value)
            self.text = ",".join(f"{key}={bad if key == name else file}"
                                 for key, file in files.items())
            with self.subTest(words), self.assertRaisesRegex(Refused, words):
                self.run_steps(program)

        refused("ids", np.zeros((ROWS, LENGTH + 1), np.int64),
                r"as data of input 'ids': expected i64 \[samples, 6\], found i64 \[11, 7\]")
        refused("features", np.zeros((ROWS, FEATURES)),
                r"expected f64 \[3, samples\], found f64 \[11, 3\]")
        refused("ids", np.zeros((ROWS, LENGTH)), r"expected i64 \[samples, 6\], found f64 \[11, 6\]")
        refused("labels", np.zeros(ROWS - 1, np.int64),
                "expected as many samples in '.*bad.npy' of input 'labels' as of 'ids' "
                r"\(11\), found 10")
        refused("labels", np.zeros(0, np.int64), "expected at least one sample, found none")
        self.text = ",".join(f"{key}={file}" for key, file in files.items() if key != "mask")
        with self.assertRaisesRegex(Refused, "expected input 'mask' .* have no file for it: add "
                                             "'mask=FILE'"):
            self.run_steps(program)
