"""Training on datasets of Megatron-LM and on blends of them, which NumPy writes, in float64
beside a loop in PyTorch: each sample is `length` tokens of the stream of all documents, its
labels the next ones; which corpus gives the next sample, Megatron-LM's rule says. Needs the
tools, whose folder ACC_BIN names."""
import json
import struct
import unittest

import numpy as np
import torch
import torch.nn.functional as F
from safetensors.torch import save_file

from common import acc_export
from test_data import mix, permuted
from training import WITHOUT_TOOLS, Refused, TrainCase

BATCH, LENGTH, WORDS, WIDTH, STEPS, RATE, SEED = 4, 6, 20, 8, 12, 0.25, 11
CODES = {np.uint8: 1, np.int16: 3, np.int32: 4, np.uint16: 8}


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(7)
        self.words = torch.nn.Embedding(WORDS, WIDTH)
        self.head = torch.nn.Linear(WIDTH, WORDS)

    def forward(self, tokens, labels):
        return F.cross_entropy(self.head(torch.tanh(self.words(tokens))).flatten(0, 1),
                               labels.flatten())


def write_dataset(prefix, kind, seed, documents):
    """Documents of one or more sequences, some of them empty; returns all tokens."""
    draw = np.random.default_rng(seed)
    sequences, bounds = [], [0]
    for _ in range(documents):
        for _ in range(draw.integers(1, 3)):
            sequences.append(draw.integers(0, WORDS, draw.integers(0, 15)).astype(kind))
        bounds.append(len(sequences))
    lengths = np.array([len(each) for each in sequences], np.int32)
    tokens = np.concatenate(sequences)
    starts = (np.cumsum(lengths, dtype=np.int64) - lengths) * tokens.itemsize
    tokens.tofile(f"{prefix}.bin")
    with open(f"{prefix}.idx", "wb") as file:
        file.write(b"MMIDIDX\0\0" + struct.pack("<QBQQ", 1, CODES[kind], len(lengths), len(bounds)))
        for numbers in (lengths, starts, np.array(bounds, np.int64)):
            file.write(numbers.tobytes())
    return [each.astype(np.int64) for each in sequences]


def cut(sequences):
    """All samples, each with the token behind it."""
    tokens = np.concatenate(sequences)
    return [tokens[at:at + LENGTH + 1] for at in range(0, len(tokens) - LENGTH, LENGTH)]


def nth(samples, seed, number):
    """Number `number` of what is read of these samples, epoch after epoch."""
    epoch, index = divmod(number, len(samples))
    key = mix(seed) + mix(2 ** 64 - 1 - epoch) & 2 ** 64 - 1
    return samples[permuted(len(samples), key, index)]


def blend(weights, count):
    """(corpus, samples that it gave before) of each sample, after Megatron-LM's
    build_blending_indices."""
    weights = np.array(weights) / np.sum(weights)
    given = np.zeros(len(weights), np.int64)
    for i in range(count):
        corpus = int(np.argmax(weights * max(i, 1) - given))
        yield corpus, int(given[corpus])
        given[corpus] += 1


def train(rows):
    module = Net().double()
    optimizer = torch.optim.SGD(module.parameters(), lr=RATE)
    losses = []
    for at in range(0, len(rows), BATCH):
        batch = torch.from_numpy(np.stack(rows[at:at + BATCH]))
        optimizer.zero_grad()
        loss = module(batch[:, :-1], batch[:, 1:])
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


@unittest.skipIf(WITHOUT_TOOLS, WITHOUT_TOOLS)
class Sources(TrainCase):
    def setUp(self):
        super().setUp()
        rows = torch.zeros(BATCH, LENGTH, dtype=torch.int64)
        acc_export.export(Net(), (rows, rows), dir=str(self.folder))

    def compile(self, layout=""):
        program = self.folder / "m.accx"
        self.tool("acc-opt", self.folder / "model.onnx", "--train", "--loss", "loss", "--dtype=f64",
                  "--optimizer", "sgd", "--set", f"optimizer.lr={RATE}", "--entries", "step",
                  *layout.split(), "-o", program)
        return program

    def assert_losses(self, program, expected, *words):
        lines = self.tool("acc-run", program, "--json", "--steps", STEPS, *words).splitlines()
        losses = [json.loads(line)["loss"] for line in lines if '"loss"' in line]
        torch.testing.assert_close(losses, expected, rtol=1e-9, atol=1e-12)

    def test_datasets_train_as_pytorch_does(self):
        one, two = (self.folder / name for name in ("one", "two"))
        first = write_dataset(one, np.uint16, 1, 30)
        second = write_dataset(two, np.int32, 2, 9)
        ends = [round(share * len(first)) for share in (0, 0.6, 1)]  # to the even, as NumPy does
        parts = {"all": first, "train": first[:ends[1]]}
        for layout in ("", "--mesh dp=2 --micro-batches=2"):
            program = self.compile(layout)
            numbers = range(STEPS * BATCH)
            for name, words in (("all", ()), ("train", ("--data-split", "6,4"))):
                samples = cut(parts[name])
                with self.subTest(layout=layout, part=name):
                    self.assert_losses(program, train([nth(samples, SEED, n) for n in numbers]),
                                       "--data", one, "--data-labels=next", "--seed", SEED, *words)
            corpora = [cut(first), cut(second)]
            seeds = [mix(mix(SEED) + number & 2 ** 64 - 1) for number in range(2)]
            rows = [nth(corpora[c], seeds[c], n) for c, n in blend([3, 7], len(numbers))]
            with self.subTest(layout=layout, part="blend"):
                self.assert_losses(program, train(rows), "--data", f"3 {one} 7 {two}",
                                   "--data-labels=next", "--seed", SEED)

    def test_a_safetensors_file_feeds_inputs(self):
        samples = cut(write_dataset(self.folder / "one", np.uint8, 1, 30))
        rows = torch.from_numpy(np.stack(samples))
        file = self.folder / "rows.safetensors"
        save_file({"tokens": rows[:, :-1].to(torch.int16).contiguous(),
                   "labels": rows[:, 1:].contiguous(),
                   "next": rows[:, 1:].to(torch.int32).contiguous()}, file)
        expected = train([nth(samples, SEED, n) for n in range(STEPS * BATCH)])
        program = self.compile()
        for data in (file, f"tokens={file},labels={file}:next"):
            self.assert_losses(program, expected, "--data", data, "--seed", SEED)

    def test_tokens_have_a_smaller_last_batch(self):
        """PyTorch's drop_last=False, on 15 samples of a raw stream."""
        class Logits(Net):
            def forward(self, tokens):
                return self.head(torch.tanh(self.words(tokens)))

        acc_export.export(Logits(), (torch.zeros(BATCH, LENGTH, dtype=torch.int64),),
                          dir=str(self.folder), output_names=["logits"])
        tokens = np.random.default_rng(3).integers(0, WORDS, 15 * LENGTH)
        tokens.astype(np.uint16).tofile(self.folder / "raw.bin")
        rows = torch.from_numpy(tokens.reshape(-1, LENGTH))
        labels = torch.from_numpy(np.append(tokens[1:], -100)).view_as(rows)
        module = Net().double()
        optimizer = torch.optim.SGD(module.parameters(), lr=RATE)
        losses = []
        for epoch in range(3):
            key = mix(SEED) + mix(2 ** 64 - 1 - epoch) & 2 ** 64 - 1
            order = [permuted(15, key, row) for row in range(15)]
            for batch in torch.utils.data.BatchSampler(order, BATCH, drop_last=False):
                optimizer.zero_grad()
                loss = module(rows[batch], labels[batch])
                loss.backward()
                optimizer.step()
                losses.append(loss.item())
        for layout in ("", "--mesh dp=2 --micro-batches=2"):
            self.tool("acc-opt", self.folder / "model.onnx", "--train", "--loss",
                      "cross_entropy:logits,labels", "--dtype=f64", "--optimizer", "sgd", "--set",
                      f"optimizer.lr={RATE}", "--entries", "step,eval", *layout.split(), "-o",
                      self.folder / "k.accx")
            self.assert_losses(self.folder / "k.accx", losses, "--data", self.folder / "raw.bin",
                               "--data-labels=next", "--last-batch=keep", "--seed", SEED)

    def test_a_token_beyond_the_table_is_named_where_it_is(self):
        rows = np.random.default_rng(0).integers(0, WORDS, (9, LENGTH))
        rows[7, 2] = WORDS
        np.save(self.folder / "tokens.npy", rows)
        np.save(self.folder / "labels.npy", rows % WORDS)
        data = ",".join(f"{name}={self.folder / name}.npy" for name in ("tokens", "labels"))
        for layout in ("", "--mesh dp=2"):
            with self.assertRaisesRegex(
                    Refused, "expected indices from 0 to 19 for a table of size 20, found 20 at "
                             "position .* of input 'tokens', which is sample 7, element 2, of "
                             "'.*tokens.npy'"):
                self.tool("acc-run", self.compile(layout), "--data", data, "--data-order=file",
                          "--steps", 3)


if __name__ == "__main__":
    unittest.main()
