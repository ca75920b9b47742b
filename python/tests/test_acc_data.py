"""What acc-data makes of each kind of data set: held against the tokenizer's own padding, the
chat template's own marks, NumPy and Pillow; what it counts, refuses and leaves behind when it
is killed or the disk is full."""
import csv
import json
import os
import pathlib
import random
import signal
import subprocess
import sys
import time
import unittest

import numpy as np

from common import ExportCase, Refused

import acc_data
import words

try:
    import transformers  # noqa: F401
    HAS_TOKENIZERS = True
except ImportError:
    HAS_TOKENIZERS = False
try:
    import pyarrow
    import pyarrow.parquet
except ImportError:
    pyarrow = None
try:
    from PIL import Image
except ImportError:
    Image = None

PACKAGE = pathlib.Path(__file__).resolve().parent.parent


class DataCase(ExportCase):
    def lines(self, name, rows):
        file = self.folder / name
        file.write_text("".join(json.dumps(row) + "\n" for row in rows))
        return file

    def make(self, kind, *sources, split="all", **options):
        """({input: array}, the summary)."""
        out = self.folder / "out"
        summary = acc_data.convert(kind, sources, out, overwrite=True, **options)
        self.assertEqual(json.loads((out / "data.json").read_text())["counts"], summary["counts"])
        self.assertEqual([f.name for f in self.folder.iterdir() if "part" in f.name], [])
        return {name: np.load(out / array["file"])
                for name, array in summary["arrays"][split].items()}, summary

    def exported(self, **arrays):
        """A folder as acc-export leaves it, with a sample of two rows."""
        folder = self.folder / "exported"
        (folder / "inputs").mkdir(parents=True, exist_ok=True)
        for file in (folder / "inputs").iterdir():
            file.unlink()
        for name, value in arrays.items():
            np.save(folder / "inputs" / f"{name}.npy", value)
        return str(folder)

    def assert_said(self, text, kind, *sources, **options):
        with self.assertRaises(Refused) as caught:
            self.make(kind, *sources, **options)
        self.assertIn(text, str(caught.exception))
        self.assertNotIn("\n", str(caught.exception))


@unittest.skipUnless(HAS_TOKENIZERS, "transformers is not installed here")
class Texts(DataCase):
    def setUp(self):
        super().setUp()
        self.tokenizer = words.save_tokenizer(self.folder / "tok")
        self.given = {"tokenizer": str(self.folder / "tok")}
        self.texts = [text for text, _ in words.sentences(40, 1)]

    def test_padding_and_truncation_are_the_tokenizers(self):
        rows = [{"text": a, "pair": b, "label": random.Random(a).choice(["yes", "no"])}
                for a, b in zip(self.texts, reversed(self.texts))]
        arrays, summary = self.make("sequence-classification", self.lines("a.jsonl", rows),
                                    sequence=16, **self.given)
        expected = self.tokenizer(self.texts, self.texts[::-1], padding="max_length", max_length=16,
                                  truncation=True)
        for name in ("input_ids", "attention_mask"):
            np.testing.assert_array_equal(arrays[name], expected[name])
        self.assertEqual(summary["classes"], {"label": ["no", "yes"]})
        np.testing.assert_array_equal(arrays["labels"], [row["label"] == "yes" for row in rows])
        lengths = [len(ids) for ids in self.tokenizer(self.texts, self.texts[::-1])["input_ids"]]
        self.assertEqual(summary["counts"]["cut: rows that are too long"],
                         sum(n > 16 for n in lengths))
        self.assertEqual(summary["counts"]["cut: tokens at the end of rows"],
                         sum(max(0, n - 16) for n in lengths))
        dropped, summary = self.make("sequence-classification", self.lines("a.jsonl", rows),
                                     sequence=16, long="drop", **self.given)
        self.assertEqual(len(dropped["labels"]), sum(n <= 16 for n in lengths))

    def test_a_split_holds_each_row_once(self):
        file = self.lines("a.jsonl", [{"text": text} for text in self.texts])
        both = {}
        for split in ("train", "validation"):
            arrays, _ = self.make("causal-lm", file, sequence=20, validation=0.3, split=split,
                                  seed=5, **self.given)
            both[split] = arrays["input_ids"]
        whole, _ = self.make("causal-lm", file, sequence=20, **self.given)
        self.assertGreater(min(map(len, both.values())), 5)
        self.assertEqual(sorted(map(tuple, np.concatenate(list(both.values())))),
                         sorted(map(tuple, whole["input_ids"])))

    def chats(self):
        return [{"messages": [{"role": "user", "content": f"say {a}"},
                              {"role": "assistant", "content": b},
                              {"role": "user", "content": "what ?"},
                              {"role": "assistant", "content": a}]}
                for a, b in zip(self.texts, self.texts[1:])]

    def test_a_chat_is_masked_as_its_template_says(self):
        file = self.lines("a.jsonl", self.chats())
        # A mark that ends in a blank, which is of no token.
        blank, _ = self.make("causal-lm", file, sequence=64, **self.given)
        self.tokenizer = words.save_tokenizer(self.folder / "tok", words.CHAT.replace(
            "' </s> ' }}{% endgeneration %}", "' </s>' }}{% endgeneration %}{{ ' ' }}"))
        marked, _ = self.make("causal-lm", file, sequence=64, **self.given)
        np.testing.assert_array_equal(blank["labels"], marked["labels"])
        for row, chat in zip(range(100), self.chats()):
            made = self.tokenizer.apply_chat_template(
                chat["messages"], return_dict=True, return_assistant_tokens_mask=True)
            expected = np.where(made["assistant_masks"], made["input_ids"], -100)
            size = len(expected)
            np.testing.assert_array_equal(marked["input_ids"][row, :size], made["input_ids"])
            np.testing.assert_array_equal(marked["labels"][row, :size], expected)
            self.assertTrue((marked["labels"][row, size:] == -100).all())
        # Without the marks it is told by what each message adds.
        words.save_tokenizer(self.folder / "tok", words.CHAT.replace(
            "{% generation %}", "").replace("{% endgeneration %}", ""))
        told, _ = self.make("causal-lm", file, sequence=64, **self.given)
        np.testing.assert_array_equal(told["labels"], marked["labels"])
        last, _ = self.make("causal-lm", file, sequence=64, loss_on="completion", **self.given)
        every, _ = self.make("causal-lm", file, sequence=64, loss_on="all", **self.given)
        for row, chat in enumerate(self.chats()):
            size = len(chat["messages"][3]["content"].split()) + 1
            self.assertEqual((last["labels"][row] != -100).sum(), size)
        np.testing.assert_array_equal(every["labels"][:, 1:],
                                      np.where(every["attention_mask"], every["input_ids"],
                                               -100)[:, 1:])
        # A template that writes what came before in another way.
        words.save_tokenizer(self.folder / "tok", "{{ messages | length }} " + words.CHAT.replace(
            "{% generation %}", "").replace("{% endgeneration %}", ""))
        self.assert_said("mark it in the template with {% generation %}", "causal-lm", file,
                         sequence=64, **self.given)

    def test_a_prompt_is_masked(self):
        words.save_tokenizer(self.folder / "tok", wraps=False)
        rows = [{"prompt": a + " ? ", "completion": b} for a, b in zip(self.texts, self.texts[1:])]
        arrays, summary = self.make("causal-lm", self.lines("a.jsonl", rows), sequence=40,
                                    **self.given)
        for row, ids, labels in zip(rows, arrays["input_ids"], arrays["labels"]):
            prompt = self.tokenizer(row["prompt"], add_special_tokens=False)["input_ids"]
            rest = self.tokenizer(row["completion"], add_special_tokens=False)["input_ids"] + [5]
            end = len(prompt) + len(rest)
            self.assertEqual(ids.tolist(), prompt + rest + [0] * (40 - end))
            self.assertEqual(labels.tolist(),
                             [-100] * len(prompt) + rest + [-100] * (40 - end))
        self.assertNotIn("prompts whose last token goes on into the completion, and is masked",
                         summary["counts"])
        _, within = self.make("causal-lm", self.lines("b.jsonl", [
            {"prompt": "the c", "completion": "at sees a dog"}]), sequence=40, **self.given)
        self.assertEqual(within["counts"]["prompts whose last token goes on into the completion, "
                                          "and is masked"], 1)
        self.assert_said("b.jsonl:1: expected a list of messages", "causal-lm",
                         self.lines("b.jsonl", [{"messages": "hello"}]), sequence=40, **self.given)
        following, _ = self.make("causal-lm", self.folder / "a.jsonl", sequence=40, labels="next",
                                 **self.given)
        np.testing.assert_array_equal(following["labels"][:, :-1], arrays["labels"][:, 1:])
        self.assertTrue((following["labels"][:, -1] == -100).all())

    def test_packed_rows_hold_each_text_once_and_apart(self):
        file = self.lines("a.jsonl", [{"text": text} for text in self.texts])
        arrays, summary = self.make("causal-lm", file, sequence=32, pack=True, **self.given)
        expected = [ids + [5] for ids in self.tokenizer(self.texts)["input_ids"]]
        found = []
        for ids, labels, positions, segments in zip(*(arrays[name] for name in (
                "input_ids", "labels", "position_ids", "segment_ids"))):
            for number in range(1, segments.max() + 1):
                at = np.flatnonzero(segments == number)
                self.assertEqual(at.tolist(), list(range(at[0], at[-1] + 1)))
                self.assertEqual(positions[at].tolist(), list(range(len(at))))
                self.assertEqual(labels[at].tolist(), [-100, *ids[at][1:]])
                found.append(ids[at].tolist())
            self.assertTrue((labels[segments == 0] == -100).all())
        self.assertEqual(sorted(found), sorted(expected))
        least = -(-summary["counts"]["tokens"] // 32)
        self.assertLessEqual(len(arrays["labels"]), 1.2 * least)
        # The mask that a model may take instead.
        model = self.exported(input_ids=np.zeros((2, 32), np.int64),
                              labels=np.zeros((2, 32), np.int64),
                              attention_mask=np.zeros((2, 1, 32, 32), bool))
        masked, _ = self.make("causal-lm", file, pack=True, model=model, **self.given)
        segments = arrays["segment_ids"]
        for row, mask in zip(segments, masked["attention_mask"][:, 0]):
            for i in range(32):
                for j in range(32):
                    self.assertEqual(mask[i, j], j <= i and row[i] == row[j])
        # One that keeps nothing apart is refused.
        model = self.exported(input_ids=np.zeros((2, 32), np.int64),
                              labels=np.zeros((2, 32), np.int64),
                              attention_mask=np.zeros((2, 32), np.int64))
        self.assert_said("takes nothing that tells them apart", "causal-lm", file, pack=True,
                         model=model, **self.given)

    def test_long_texts_are_split(self):
        file = self.lines("a.jsonl", [{"input_ids": list(range(1, 11))}, {"input_ids": [7]},
                                      {"input_ids": [1, 2, 3], "labels": [-100, -100, 3]}])
        arrays, summary = self.make("causal-lm", file, sequence=4, long="split")
        np.testing.assert_array_equal(arrays["input_ids"],
                                      [[1, 2, 3, 4], [5, 6, 7, 8], [9, 10, 0, 0], [1, 2, 3, 0]])
        np.testing.assert_array_equal(arrays["labels"][2:], [[-100, 10, -100, -100],
                                                             [-100, -100, 3, -100]])
        self.assertEqual(summary["counts"]["dropped: sequences in which no token is predicted"], 1)

    def test_tokens_are_hidden_as_often_as_said(self):
        file = self.lines("a.jsonl", [{"text": text} for text, _ in words.sentences(600, 3)])
        arrays, _ = self.make("mlm", file, sequence=16, copies=2, **self.given)
        ids, labels = arrays["input_ids"], arrays["labels"]
        asked = labels != -100
        whole = np.where(asked, labels, ids)
        fair = (whole > 5) & (arrays["attention_mask"] == 1)
        self.assertFalse((asked & ~fair).any())  # no special token, no padding
        self.assertTrue(asked.any(1).all())
        self.assertAlmostEqual(asked.sum() / fair.sum(), 0.17, delta=0.02)  # at least one a row
        hidden = asked & (ids == 4)
        self.assertAlmostEqual(hidden.sum() / asked.sum(), 0.8, delta=0.04)
        self.assertAlmostEqual((asked & (ids == labels)).sum() / asked.sum(), 0.1, delta=0.03)
        np.testing.assert_array_equal(whole[:600], whole[600:])
        self.assertTrue((ids[:600] != ids[600:]).any())
        again, _ = self.make("mlm", file, sequence=16, copies=2, **self.given)
        np.testing.assert_array_equal(again["labels"], labels)

    def test_pairs(self):
        rows = [{"translation": {"en": a, "de": b}} for a, b in zip(self.texts, self.texts[1:])]
        (self.folder / "tok" / "config.json").write_text(
            '{"model_type": "t5", "decoder_start_token_id": 0}')
        model = self.exported(input_ids=np.zeros((2, 20), np.int64),
                              attention_mask=np.zeros((2, 20), np.int64),
                              labels=np.zeros((2, 9), np.int64),
                              decoder_input_ids=np.zeros((2, 9), np.int64))
        arrays, _ = self.make("seq2seq", self.lines("a.jsonl", rows), model=model, prefix="say ",
                              columns={"source": "translation.en", "target": "translation.de"},
                              **self.given)
        expected = self.tokenizer(["say " + text for text in self.texts[:-1]], max_length=20,
                                  padding="max_length")
        np.testing.assert_array_equal(arrays["input_ids"], expected["input_ids"])
        target = np.array(self.tokenizer(self.texts[1:], max_length=9, padding="max_length",
                                         truncation=True)["input_ids"])
        np.testing.assert_array_equal(arrays["labels"], np.where(target == 0, -100, target))
        np.testing.assert_array_equal(arrays["decoder_input_ids"][:, 1:], target[:, :-1] *
                                      (target[:, :-1] != 0))
        self.assertTrue((arrays["decoder_input_ids"][:, 0] == 0).all())

    def test_what_is_wrong_is_refused_by_place(self):
        file = self.lines("a.jsonl", [{"text": "the cat", "label": "a"}, {"text": None}])
        self.assert_said("a.jsonl:2: expected values in text, found none: mend the row, or leave "
                         "out all such rows with --missing drop", "causal-lm", file, sequence=8,
                         **self.given)
        _, summary = self.make("causal-lm", file, sequence=8, missing="drop", **self.given)
        self.assertEqual(summary["counts"]["dropped: a value is missing"], 1)
        self.assert_said("expected one of the classes b, c in 'label', found 'a'",
                         "sequence-classification", file, sequence=8, classes="b,c",
                         missing="drop", **self.given)
        self.assert_said("rows of text need a tokenizer", "causal-lm", file, sequence=8)
        self.assert_said("expected --sequence N", "causal-lm", file, **self.given)
        self.assert_said("found text, label: name yours, as --column text=body", "causal-lm", file,
                         sequence=8, columns={"text": "body"}, **self.given)
        self.assert_said("--pack is for causal-lm, not for mlm", "mlm", file, sequence=8, pack=True,
                         **self.given)
        self.assert_said("which these data need, but input_ids, labels: export it with that input",
                         "sequence-classification", file, missing="drop", **self.given,
                         model=self.exported(input_ids=np.zeros((2, 8), np.int64),
                                             labels=np.zeros(2, np.int64)))
        self.assert_said("an input 'extra', which is not made of these data", "causal-lm", file,
                         missing="drop", **self.given,
                         model=self.exported(input_ids=np.zeros((2, 8), np.int64),
                                             labels=np.zeros((2, 8), np.int64), extra=np.ones(2)))
        (self.folder / "bad.jsonl").write_text('{"text": "a"}\n{"text": \n')
        self.assert_said("bad.jsonl:2: expected one JSON object a line", "causal-lm",
                         self.folder / "bad.jsonl", sequence=8, **self.given)
        (self.folder / "list.json").write_text('[{"text": "a"}]\n')
        self.assert_said("found an array", "causal-lm", self.folder / "list.json", sequence=8,
                         **self.given)


class Tables(DataCase):
    def setUp(self):
        super().setUp()
        draw = np.random.default_rng(0)
        self.x, self.y = draw.normal(3, 2, (3000, 2)), draw.normal(size=3000)
        self.kind = draw.choice(["oak", "elm", "ash"], 3000)
        self.file = self.folder / "a.csv"
        with open(self.file, "w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(["width", "height", "kind", "price"])
            writer.writerows([*x, kind, y] for x, kind, y in zip(self.x.tolist(), self.kind,
                                                                 self.y.tolist()))

    def test_columns_stand_side_by_side_and_are_scaled_by_what_is_trained_on(self):
        inputs = ["kind=kind", "y:float64=price", "x=*"]
        parts = {}
        for split in ("train", "validation"):
            parts[split], summary = self.make("table", self.file, input=inputs, split=split,
                                              standardise=["x"], validation=0.2)
        sizes = [len(parts[split]["y"]) for split in ("train", "validation")]
        self.assertEqual(sum(sizes), 3000)
        self.assertAlmostEqual(sizes[1] / 3000, 0.2, delta=0.03)
        held = np.isin(self.y, parts["validation"]["y"])
        scaled = (self.x - self.x[~held].mean(0)) / self.x[~held].std(0)
        np.testing.assert_allclose(parts["train"]["x"], scaled[~held], rtol=1e-6, atol=1e-6)
        np.testing.assert_allclose(parts["validation"]["x"], scaled[held], rtol=1e-6, atol=1e-6)
        self.assertEqual(parts["train"]["x"].dtype, np.float32)
        np.testing.assert_array_equal(parts["train"]["y"], self.y[~held])
        np.testing.assert_array_equal(parts["train"]["kind"], [
            ["ash", "elm", "oak"].index(kind) for kind in self.kind[~held]])
        # The same scales and classes for data that come later.
        os.rename(self.folder / "out", self.folder / "before")
        later = self.folder / "later.csv"
        later.write_text("width,height,kind,price\n1,2,oak,3\n")
        arrays, _ = self.make("table", later, input=inputs, like=str(self.folder / "before"))
        np.testing.assert_allclose(arrays["x"], (np.array([[1, 2]]) - self.x[~held].mean(0)) /
                                   self.x[~held].std(0), rtol=1e-6)
        self.assertEqual(arrays["kind"].tolist(), [2])

    def test_the_model_says_shape_and_type(self):
        model = self.exported(x=np.zeros((2, 2)), price=np.zeros((2, 1), np.float32))
        arrays, _ = self.make("table", self.file, input=["x=width,height", "price=price"],
                              model=model)
        self.assertEqual((arrays["x"].dtype, arrays["price"].shape), (np.float64, (3000, 1)))
        np.testing.assert_array_equal(arrays["x"], self.x)

    def test_what_is_wrong_is_refused_by_place(self):
        file = self.folder / "b.csv"
        for text, said, options in (
                ("a,b\n1,2\n3\n", "b.csv:3: expected 2 cells, as the first line has, found 1", {}),
                ("a,a\n1,2\n", "found one twice in a, a", {}),
                ("a,b\n1,\n", "b.csv:2: expected a value in every column that is used, found none",
                 {}),
                ("a,b\n1,2\n", "expected a column 'c' in", {"input": ["x=a,c"]}),
                ("a,b\n1.5,2\n", "expected values of type int64 for 'x', found others, as 1.5",
                 {"input": ["x:int64=a"]}),
                ("a,b\n1e99,2\n", "expected values of type float32 for 'a', found one that is "
                 "beyond it", {}),
                ("a,b\n1,2\n", "expected names of inputs for --standardise, found z",
                 {"standardise": ["z"]}),
                ("a,b\nx,y\n", "--classes is for one column of words, found a, b",
                 {"classes": "x,y"}),
                ("a,b\n", "expected rows, none are left of the 0 that were read",
                 {"input": ["a=a"]})):
            file.write_text(text)
            with self.subTest(said):
                self.assert_said(said, "table", file, **options)

    def test_a_column_keeps_its_type(self):
        file = self.lines("a.jsonl", [{"n": i} for i in range(1500)] + [{"n": 0.5}])
        self.assert_said("expected numbers of type int64 in 'n', as in the rows before, found 0.5: "
                         "say --input n:float32=COLUMN", "table", file)
        arrays, _ = self.make("table", file, input=["n:float32=n"])
        self.assertEqual(arrays["n"][-1], 0.5)

    def test_a_column_that_ends_is_missing(self):
        file = self.lines("a.jsonl", [{"a": i, "b": 1} for i in range(1024)] + [{"a": 3}])
        self.assert_said("a.jsonl:1025: expected a value in every column", "table", file)
        _, summary = self.make("table", file, missing="drop")
        self.assertEqual(summary["counts"]["dropped: a value is missing"], 1)

    def test_a_damaged_file_is_refused_by_name(self):
        for name, content in (("a.safetensors", b"\2" + bytes(7) + b"x}"), ("a.npy", b"nothing"),
                              ("a.jsonl.gz", b"nothing"), ("a.csv", b"a\n\xff\n"),
                              ("b.safetensors", b"\xff" * 9),
                              *([("a.parquet", b"PAR1"), ("a.arrow", b"nothing")]
                                if pyarrow else [])):
            (self.folder / name).write_bytes(content)
            with self.subTest(name), self.assertRaises(Refused) as caught:
                self.make("table", self.folder / name)
            self.assertIn(name, str(caught.exception))

    def test_tensors_pass_in_any_size(self):
        from safetensors.numpy import save_file
        draw = np.random.default_rng(1)
        tensors = {"x": draw.normal(size=(2500, 3, 2)), "n": np.arange(2500),
                   "h": draw.normal(size=(2500, 1)).astype(np.float16)}
        save_file(tensors, self.folder / "a.safetensors")
        arrays, _ = self.make("table", self.folder / "a.safetensors",
                              input=["x:float64=x", "n=n", "h=h"])
        for name, value in tensors.items():
            np.testing.assert_array_equal(arrays[name], value)
        np.save(self.folder / "z.npy", tensors["x"])
        arrays, _ = self.make("table", self.folder / "z.npy", input=["z:float64=z"])
        np.testing.assert_array_equal(arrays["z"], tensors["x"])
        import torch
        from safetensors.torch import save_file as save_torch
        half = torch.randn(5, 3).bfloat16()
        save_torch({"b": half}, self.folder / "b.safetensors")
        arrays, _ = self.make("table", self.folder / "b.safetensors")
        np.testing.assert_array_equal(arrays["b"], half.float().numpy())

    @unittest.skipUnless(pyarrow, "pyarrow is not installed here")
    def test_arrow_and_parquet(self):
        table = pyarrow.table({"v": self.x.tolist(), "n": np.arange(3000), "y": self.y})
        pyarrow.parquet.write_table(table, self.folder / "a.parquet", row_group_size=700)
        with pyarrow.OSFile(str(self.folder / "a.arrow"), "wb") as sink:
            with pyarrow.ipc.new_file(sink, table.schema) as writer:
                writer.write_table(table, 900)
        # As datasets.save_to_disk writes a folder: streams, and features in the schema.
        saved = self.folder / "saved"
        saved.mkdir()
        features = {"info": {"features": {"n": {"_type": "ClassLabel",
                                                "names": [f"c{i}" for i in range(3000)]}}}}
        schema = table.schema.with_metadata({"huggingface": json.dumps(features)})
        for part in range(2):
            with pyarrow.OSFile(str(saved / f"data-{part}.arrow"), "wb") as sink:
                with pyarrow.ipc.new_stream(sink, schema) as writer:
                    writer.write_table(table.slice(part * 1500, 1500), 400)
        (saved / "state.json").write_text(json.dumps(
            {"_data_files": [{"filename": f"data-{part}.arrow"} for part in range(2)]}))
        for source in ("a.parquet", "a.arrow", "saved"):
            with self.subTest(source):
                arrays, _ = self.make("table", self.folder / source,
                                      input=["v:float64=v", "n=n", "y:float64=y"])
                np.testing.assert_array_equal(arrays["v"], self.x)
                np.testing.assert_array_equal(arrays["n"], np.arange(3000))
                np.testing.assert_array_equal(arrays["y"], self.y)
        (self.folder / "dataset_dict.json").write_text('{"splits": ["train", "test"]}')
        self.assert_said("holds several data sets: name one", "table", self.folder)


@unittest.skipUnless(Image, "Pillow is not installed here")
class Images(DataCase):
    def test_folders_are_classes(self):
        draw = np.random.default_rng(2)
        wanted = []
        for name in ("zebra", "ant"):
            (self.folder / "pictures" / name).mkdir(parents=True)
            for i in range(4):
                pixels = draw.integers(0, 256, (12, 10, 3), dtype=np.uint8)
                Image.fromarray(pixels).save(self.folder / "pictures" / name / f"{i}.png")
                wanted.append((name == "zebra", pixels))
        wanted = wanted[4:] + wanted[:4]
        arrays, summary = self.make("images", self.folder / "pictures", size="12x10",
                                    mean="0.5,0.4,0.3", std="0.2")
        self.assertEqual(summary["classes"], {"folder": ["ant", "zebra"]})
        np.testing.assert_array_equal(arrays["labels"], [label for label, _ in wanted])
        expected = np.stack([((pixels / 255 - [0.5, 0.4, 0.3]) / 0.2).transpose(2, 0, 1)
                             for _, pixels in wanted])
        np.testing.assert_allclose(arrays["pixel_values"], expected, rtol=1e-6, atol=1e-6)
        # What transformers' image processor of a ViT does: stretched, mean and deviation 0.5.
        arrays, _ = self.make("images", self.folder / "pictures", size="8")
        small = [np.asarray(Image.fromarray(pixels).resize((8, 8), Image.Resampling.BILINEAR))
                 for _, pixels in wanted]
        np.testing.assert_allclose(arrays["pixel_values"], np.stack(small).transpose(0, 3, 1, 2) /
                                   127.5 - 1, atol=1e-6)
        (self.folder / "pictures" / "ant" / "5.png").write_text("no image")
        self.assert_said("5.png: expected an image", "images", self.folder / "pictures", size="8")


class Command(DataCase):
    def call(self, *arguments, code=0, **options):
        done = subprocess.run([sys.executable, "-m", "acc_data", *map(str, arguments)], text=True,
                              capture_output=True, cwd=self.folder,
                              env={**os.environ, "PYTHONPATH": str(PACKAGE)}, **options)
        self.assertEqual(done.returncode, code, done.stderr)
        return done

    def test_what_it_says(self):
        (self.folder / "a.csv").write_text("a,b\n1,2\n3,4\n")
        text = self.call("table", "a.csv", "-o", "out").stdout
        self.assertIn("out/: 2 rows", text)
        self.assertEqual(text.splitlines()[-1], "--data a=out/a.npy,b=out/b.npy")
        done = self.call("table", "a.csv", "-o", "out", code=1)
        self.assertIn("has data already: say --overwrite", done.stderr)
        done = self.call("table", "a.csv", "-o", "out", "--overwrite", "--json")
        self.assertEqual(json.loads(done.stdout)["data"], {"all": "a=out/a.npy,b=out/b.npy"})
        done = self.call("table", "none.csv", "-o", "more", "--json", code=1)
        self.assertIn("cannot open 'none.csv'", json.loads(done.stdout)["error"])
        (self.folder / "mine").mkdir()
        (self.folder / "mine" / "letter").write_text("dear")
        done = self.call("table", "a.csv", "-o", "mine", "--overwrite", code=1)
        self.assertIn("is not empty, and not of acc-data", done.stderr)
        self.assertEqual((self.folder / "mine" / "letter").read_text(), "dear")

    def test_help_imports_nothing(self):
        for name in ("torch", "numpy", "transformers", "pyarrow"):
            (self.folder / f"{name}.py").write_text("raise SystemExit('imported')")
        self.assertIn("images", self.call("--help").stdout)

    def test_a_full_disk_leaves_what_was_there(self):
        (self.folder / "a.csv").write_text("a\n" + "1\n" * 9000)
        self.call("table", "a.csv", "-o", "out")
        before = (self.folder / "out" / "a.npy").read_bytes()
        import resource
        done = self.call("table", "a.csv", "a.csv", "-o", "out", "--overwrite", code=1,
                         preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE,
                                                               (40000, 40000)))
        self.assertIn("File too large", done.stderr)
        self.assertEqual((self.folder / "out" / "a.npy").read_bytes(), before)
        self.assertEqual(sorted(f.name for f in self.folder.iterdir()), ["a.csv", "out"])

    def test_memory_does_not_grow_with_the_data(self):
        code = ("import sys; from acc_data import cli; "
                "cli.execute(cli.make_parser().parse_args(sys.argv[1:]), sys.stderr); "
                "print([line for line in open('/proc/self/status') if 'VmHWM' in line][0])")
        most = []
        for name, rows in (("small", 10), ("large", 100000)):
            array = np.lib.format.open_memmap(self.folder / f"{name}.npy", "w+", np.float32,
                                              (rows, 300))
            array.flush()  # 120 MB of holes
            done = subprocess.run([sys.executable, "-c", code, "table", f"{name}.npy", "-o",
                                   f"{name}-out"], text=True, capture_output=True, cwd=self.folder,
                                  env={**os.environ, "PYTHONPATH": str(PACKAGE)})
            self.assertTrue((self.folder / f"{name}-out" / f"{name}.npy").exists(), done.stderr)
            most.append(int(done.stdout.split()[1]) / 1024)
        self.assertLess(most[1] - most[0], 48)

    def test_a_run_that_is_killed_leaves_nothing_that_looks_whole(self):
        (self.folder / "a.csv").write_text("a,b,c\n" + "1,2,3\n" * 400000)
        for sent, is_clean in ((signal.SIGTERM, True), (signal.SIGKILL, False)):
            child = subprocess.Popen([sys.executable, "-m", "acc_data", "table", "a.csv", "-o",
                                      "out"], cwd=self.folder, stderr=subprocess.DEVNULL,
                                     env={**os.environ, "PYTHONPATH": str(PACKAGE)})
            while child.poll() is None and not list(self.folder.glob(".out.part-*/*.npy")):
                time.sleep(0.01)
            child.send_signal(sent)
            child.wait()
            self.assertNotEqual(child.returncode, 0)
            self.assertFalse((self.folder / "out").exists())
            self.assertEqual(not list(self.folder.glob(".out.part-*")), is_clean)
        (self.folder / "a.csv").write_text("a\n1\n")
        self.call("table", "a.csv", "-o", "out")  # the next one tidies up
        self.assertEqual(list(self.folder.glob(".out.part-*")), [])


if __name__ == "__main__":
    unittest.main()
