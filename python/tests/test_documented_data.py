"""The commands in docs/Data.md, run as they stand on data sets of a few rows, and what the page
says of them."""
import contextlib
import csv
import io
import json
import pathlib
import re
import shlex
import unittest

import numpy as np

import common  # noqa: F401 (finds the packages)

import words
from acc_data import cli as data_cli
from acc_export import cli as export_cli
from training import WITHOUT_TOOLS, TrainCase

PAGE = (pathlib.Path(__file__).resolve().parents[2] / "docs" / "Data.md").read_text()
BLOCKS = {part.splitlines()[0]: re.findall(r"^```(\w*)\n(.*?)^```", part, re.M | re.S)
          for part in PAGE.split("\n## ")[1:]}
MODELS = {
    "model": {"model_type": "llama", "hidden_size": 16, "intermediate_size": 16,
              "num_hidden_layers": 1, "num_attention_heads": 2, "vocab_size": 64,
              "max_position_embeddings": 64},
    "bert": {"model_type": "bert", "hidden_size": 16, "num_hidden_layers": 1,
             "num_attention_heads": 2, "intermediate_size": 16, "vocab_size": 64,
             "max_position_embeddings": 32, "num_labels": 3},
    "t5": {"model_type": "t5", "d_model": 16, "d_kv": 8, "d_ff": 16, "num_layers": 1,
           "num_heads": 2, "vocab_size": 64, "decoder_start_token_id": 0}}

try:
    import torch
    import transformers
    transformers.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    MISSING = WITHOUT_TOOLS
except ImportError:
    MISSING = "transformers is not installed here"


@unittest.skipIf(MISSING, MISSING)
class Documented(TrainCase):
    def setUp(self):
        super().setUp()
        texts = [text for text, _ in words.sentences(60, 1)]

        def lines(name, rows):
            (self.folder / name).write_text("".join(json.dumps(row) + "\n" for row in rows))

        def table(name, rows):
            with open(self.folder / name, "w", newline="") as file:
                csv.writer(file).writerows(rows)
        lines("chat.jsonl", ({"messages": [{"role": "user", "content": a + " ?"},
                                           {"role": "assistant", "content": b}]}
                             for a, b in zip(texts, texts[::-1])))
        lines("instructions.jsonl", ({"prompt": a + " ? ", "completion": b}
                                     for a, b in zip(texts, texts[::-1])))
        lines("tokens.jsonl", ({"input_ids": list(range(2, 9)),
                                "completion_mask": [0, 0, 0, 1, 1, 1, 1]} for _ in range(9)))
        lines("pairs.jsonl", ({"source": a, "target": b} for a, b in zip(texts, texts[::-1])))
        (self.folder / "lines.txt").write_text("\n\n".join(texts))
        stars = ["one", "two", "three"]
        table("reviews.csv", [("review", "stars"), *((t, stars[len(t) % 3]) for t in texts)])
        table("later.csv", [("review", "stars"), (texts[0], "two")])
        table("houses.csv", [("area", "rooms", "age", "price"),
                             *((20 + i, i % 5, i % 7, 3 * i) for i in range(50))])
        from safetensors.numpy import save_file
        save_file({"hidden": np.ones((7, 3, 2), np.float32), "target": np.arange(7)},
                  self.folder / "features.safetensors")
        for name in ("ant", "bee"):
            (self.folder / "pictures" / name).mkdir(parents=True)
            for i in range(8):
                np.save(self.folder / "pictures" / name / f"{i}.npy",
                        np.full((32, 32, 3), i, np.uint8))
        for name, config in MODELS.items():
            words.save_tokenizer(self.folder / name, wraps=name != "model")
            (self.folder / name / "config.json").write_text(json.dumps(config))
        # With weights, as a folder of Hugging Face has them.
        for name, head in (("model", "AutoModelForCausalLM"),
                           ("bert", "AutoModelForSequenceClassification")):
            torch.manual_seed(0)
            made = getattr(transformers, head).from_config(
                transformers.AutoConfig.from_pretrained(self.folder / name))
            made.save_pretrained(self.folder / name)

    def run_page(self, heading):
        """The commands of a part of the page; what each said, by its first two words."""
        for kind, text in BLOCKS[heading]:
            if kind == "python":
                [name] = re.findall(r"with this `(\S+)`", PAGE)
                (self.folder / name).write_text(text)
        said = {}
        for kind, text in BLOCKS[heading]:
            for line in text.splitlines() if not kind else ():
                tool, *arguments = shlex.split(line)
                with self.subTest(line), contextlib.chdir(self.folder):
                    said[" ".join(line.split()[:2])] = self.run_line(tool, arguments)
        return said

    def run_line(self, tool, arguments):
        cli = {"acc-data": data_cli, "acc-export": export_cli}.get(tool)
        if cli is None:
            self.assertIn(tool, ("acc-opt", "acc-run"))
            return self.tool(tool, *arguments)
        answer, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stderr(err):
            status = cli.execute(cli.make_parser().parse_args(arguments), answer)
        self.assertEqual(status, 0, err.getvalue())
        return answer.getvalue()

    def array(self, name):
        return np.load(self.folder / f"{name}.npy")

    def test_every_part_is_tested(self):
        tested = {heading for heading in BLOCKS if BLOCKS[heading]}
        self.assertEqual(tested, {"Chats", "Prompts and completions, plain text, tokens",
                                  "Classes of texts", "Masked language models, pairs", "Tables",
                                  "Images", "Tensors"})

    def test_chats(self):
        said = self.run_page("Chats")
        # The page's text for --data is the one that acc-data prints.
        [run] = [line for _, text in BLOCKS["Chats"] for line in text.splitlines()
                 if line.startswith("acc-run")]

        def parts(flag, text):
            return set(re.search(rf"{flag} (\S+)", text)[1].split(","))
        for flag in ("--data", "--eval-data"):
            self.assertEqual(parts(f" {flag}", run), parts(flag, said["acc-data causal-lm"]))
        self.assertIn("loss", said["acc-run model.accx"])

    def test_prompts(self):
        self.run_page("Prompts and completions, plain text, tokens")
        self.assertEqual(self.array("tokens/labels")[0, :8].tolist(),
                         [-100, -100, -100, 5, 6, 7, 8, -100])
        self.assertEqual(len(self.array("instructions/labels")), 60)

    def test_classes(self):
        self.run_page("Classes of texts")
        self.assertEqual(self.array("later/labels").tolist(), [2])
        self.assertEqual(self.array("reviews/train/attention_mask").shape[1], 16)

    def test_masked_and_pairs(self):
        self.run_page("Masked language models, pairs")
        self.assertEqual(len(self.array("hidden/labels")), 120)
        self.assertEqual(self.array("pairs/labels").shape, (60, 12))

    def test_tables(self):
        said = self.run_page("Tables")
        x = self.array("houses/train/x")
        np.testing.assert_allclose([x.mean(0), x.std(0)], [[0] * 3, [1] * 3], atol=1e-5)
        self.assertIn("loss", said["acc-run house.accx"])

    def test_images_and_tensors(self):
        self.run_page("Images")
        self.assertEqual(self.array("images/train/pixel_values").shape[1:], (3, 32, 32))
        self.run_page("Tensors")
        self.assertEqual(self.array("features/y").tolist(), list(range(7)))

    def test_a_decoder_is_exported_and_fed(self):
        with contextlib.chdir(self.folder):
            self.run_line("acc-export", "t5/config.json --loss seq2seq --padded --sequence 16 -o "
                          "out --eval".split())
            self.run_line("acc-data", "seq2seq pairs.jsonl --tokenizer t5 --for out -o p".split())
            self.tool("acc-opt", "out/model.onnx", "--train", "--loss", "loss", "-o", "m.accx")
            files = ",".join(f"{name}=p/{name}.npy" for name in (
                "input_ids", "attention_mask", "decoder_input_ids", "labels"))
            self.tool("acc-run", "m.accx", "--steps", "2", "--data", files)


if __name__ == "__main__":
    unittest.main()
