"""The command line: what it writes, what it says, and that nothing is imported too early."""
import contextlib
import io
import json
import os
import pathlib
import shutil
import subprocess
import sys
import unittest

import numpy as np
import onnx
import torch

from training import WITHOUT_TOOLS, TrainCase

import acc_export
from acc_export import cli

os.environ["HF_HUB_OFFLINE"] = "1"

PACKAGE = pathlib.Path(__file__).resolve().parent.parent
MODEL = """
import torch
def model():
    torch.manual_seed(0)
    return torch.nn.Linear(3, 4), (torch.randn(5, 3),), {"labels": torch.randn(5, 4)}
def by_name():
    return torch.nn.Linear(3, 4), (), {"input": torch.randn(5, 3), "labels": torch.randn(5, 4)}
class Net(torch.nn.Linear):
    example_inputs = (torch.ones(2, 3),)
    def forward(self, x): return super().forward(x).sum()
net = Net(3, 4)
bare = torch.nn.Linear(2, 2)
class Branch(Net):
    def forward(self, x): return super().forward(x) if x.sum() > 0 else x.sum()
branch = Branch(3, 4)
def mse(outputs, labels): return (outputs - labels).pow(2).mean()
class Star(Net):
    def forward(self, *x): return super().forward(x[0])
star = Star(3, 4)
class Rows(torch.nn.Linear):
    def forward(self, x, y, z):
        return (x.unsqueeze(-1) * y).sum() + super().forward(z).sum()
def rows():
    return Rows(4, 1), (torch.ones(2, 3), torch.ones(2, 3, 2), torch.ones(2, 4))
def flat(): return torch.nn.Linear(3, 1), (torch.ones(3),)
def number(): return 3
def broken(): return undefined
"""
CONFIG = {"model_type": "gpt2", "architectures": ["GPT2LMHeadModel"], "n_embd": 16, "n_layer": 1,
          "n_head": 2, "vocab_size": 40, "n_positions": 32, "bos_token_id": 0, "eos_token_id": 0}
BERT = {"model_type": "bert", "hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2,
        "intermediate_size": 16, "vocab_size": 40, "max_position_embeddings": 32}

try:
    import transformers  # noqa: F401
    HAS_TRANSFORMERS = True
except ImportError:
    HAS_TRANSFORMERS = False


def call(*arguments, env=None):
    """As the shell does it."""
    result = subprocess.run([sys.executable, "-W", "ignore", "-m", "acc_export", *arguments],
                            text=True, capture_output=True,
                            env={**os.environ, "PYTHONPATH": str(PACKAGE), **(env or {})})
    assert result.returncode == 0, (result.returncode, result.stdout, result.stderr)
    return result


class Result:
    pass


class CommandCase(TrainCase):
    def run_cli(self, *arguments, code=0):
        """The same in this process, where PyTorch is imported already."""
        out, err = io.StringIO(), io.StringIO()
        with contextlib.chdir(self.folder), contextlib.redirect_stderr(err):
            status = cli.execute(cli.make_parser().parse_args(arguments), out)
        result = Result()
        result.stdout = out.getvalue()
        # Steps that take long are told of, and a test machine may be slow.
        result.stderr = "".join(line for line in err.getvalue().splitlines(True)
                                if not line.endswith("...\n"))
        self.assertEqual(status, code, result.stderr)
        return result


class CommandLine(CommandCase):
    def setUp(self):
        super().setUp()
        (self.folder / "m.py").write_text(MODEL)

    def test_help_and_version_import_nothing(self):
        # Stand-ins that would fail.
        for name in ("torch", "onnx", "numpy"):
            (self.folder / f"{name}.py").write_text("raise SystemExit('imported')")
        path = {"PYTHONPATH": f"{self.folder}:{PACKAGE}"}
        text = call("--help", env=path).stdout
        for word in ("FILE.py[:function]", "causal-lm", "--text", "--json", "inputs/<name>.npy"):
            self.assertIn(word, text)
        self.assertIn("acc-export 0.", call("--version", env=path).stdout)

    def test_what_libraries_print_is_not_the_answer(self):
        (self.folder / "m.py").write_text("print('noise')\n" + MODEL)
        result = call(f"{self.folder}/m.py:net", "-o", f"{self.folder}/out", "--json")
        self.assertEqual(json.loads(result.stdout)["outputs"], ["loss"])
        self.assertIn("noise", result.stderr)

    def test_a_file(self):
        result = self.run_cli("m.py", "--loss", "m.py:mse", "-o", "out")
        self.assertIn("2 parameters (16 numbers), 2 of them trained", result.stdout)
        self.assertIn("outputs: loss, output", result.stdout)
        model = onnx.load(self.folder / "out" / "model.onnx")
        self.assertEqual([o.name for o in model.graph.output], ["loss", "output"])
        self.assertEqual(np.load(self.folder / "out" / "inputs" / "labels.npy").shape, (5, 4))

    def test_json(self):
        result = self.run_cli("m.py:net", "-o", "out", "--json")
        summary = json.loads(result.stdout)
        self.assertEqual((summary["path"], summary["outputs"], summary["parameters"]),
                         ("out/model.onnx", ["loss"], 2))
        self.assertEqual(summary["inputs"], {"x": {"shape": [2, 3], "dtype": "float"}})
        result = self.run_cli("m.py:bare", "-o", "out", "--json", code=1)
        self.assertIn("give the module example_inputs", json.loads(result.stdout)["error"])

    def test_symbolic_batch(self):
        for model in ("m.py:by_name", "m.py"):  # given by name, and by place
            with self.subTest(model):
                result = self.run_cli(model, "--loss", "m.py:mse", "-o", "out", "--dynamic",
                                      "--json")
                inputs = json.loads(result.stdout)["inputs"]
                self.assertEqual(inputs["input"]["shape"], ["batch", 3])
                self.assertEqual(inputs["labels"]["shape"], ["batch", 4])

    def test_symbolic_sequence(self):
        result = self.run_cli("m.py:rows", "-o", "out", "--dynamic-sequence", "--json")
        shapes = {name: one["shape"] for name, one in json.loads(result.stdout)["inputs"].items()}
        self.assertEqual(shapes, {"x": ["batch", "sequence"], "y": ["batch", "sequence", 2],
                                  "z": ["batch", 4]})

    def test_of_two_values_none_wins(self):
        for arguments, words in ((["-o", "out", "--opset", "18", "--opset=20"],
                                  "error: expected --opset once, found 18 and 20"),
                                 (["-o", "out", "-o", "other"],
                                  "error: expected -o once, found out and other")):
            err = io.StringIO()
            with contextlib.redirect_stderr(err), self.assertRaises(SystemExit) as ended:
                cli.make_parser().parse_args(["m.py:net", *arguments])
            self.assertEqual(ended.exception.code, 2)
            self.assertIn(words, err.getvalue())
        again = cli.make_parser().parse_args(["m.py:net", "-o", "out", "-o", "out"])
        self.assertEqual(again.dir, "out")

    def test_errors_are_one_sentence(self):
        for arguments, words in (
                (["absent.py"], "cannot open 'absent.py'"),
                (["m.py:none"], "'m.py' has no 'none'"),
                (["m.py:number"], "gives int: return (module, args)"),
                (["m.py:broken"], "name 'undefined' is not defined"),
                (["m.py", "--loss", "m.py:none"], "'m.py' has no 'none'"),
                (["m.py:branch"], "a branch on values must become torch.where"),
                (["m.py:net", "--text", "m.py"], "--text is for models of Hugging Face"),
                (["m.py:net", "--batch", "3"], "--batch is for models of Hugging Face"),
                (["m.py"], "labels are for a loss"),
                (["m.py:star", "--dynamic"], "arguments by name"),
                (["m.py:flat", "--dynamic-sequence"], "an argument with two dimensions"),
                (["nowhere"], "whose head is chosen by the loss")):
            with self.subTest(arguments):
                result = self.run_cli(*arguments, "-o", "out", code=1)
                self.assertIn(words, result.stderr)
                self.assertNotIn("Traceback", result.stderr)
                self.assertEqual(len(result.stderr.strip().splitlines()), 1, result.stderr)
                self.assertEqual(result.stdout, "")


@unittest.skipUnless(HAS_TRANSFORMERS, "transformers is not installed here")
class HuggingFace(CommandCase):
    def config(self, name, content):
        (self.folder / name).mkdir()
        (self.folder / name / "config.json").write_text(json.dumps(content))
        return f"{name}/config.json"

    def test_causal_lm(self):
        config = self.config("gpt2", CONFIG)
        out = json.loads(self.run_cli(config, "--loss", "causal-lm", "-o", "out", "--batch", "3",
                                      "--json").stdout)
        self.assertEqual(out["inputs"], {name: {"shape": [3, 32], "dtype": "int64"}
                                         for name in ("input_ids", "labels")})
        self.assertEqual(out["outputs"], ["loss", "logits"])
        self.assertGreater(out["dropouts"], 0)
        ids = np.load(self.folder / "out" / "inputs" / "input_ids.npy")
        np.testing.assert_array_equal(ids, np.load(self.folder / "out" / "inputs" / "labels.npy"))
        model = onnx.load(self.folder / "out" / "model.onnx")
        [text] = [p.value for p in model.graph.metadata_props if p.key == "accel.parameters"]
        self.assertEqual(json.loads(text)[0]["aliases"], ["lm_head.weight"])

    @unittest.skipIf(WITHOUT_TOOLS, WITHOUT_TOOLS)
    def test_rows_of_another_length(self):
        """Than the sample's: each length is compiled from one file, and is PyTorch's model."""
        config = self.config("gpt2", CONFIG)
        self.run_cli(config, "--loss", "causal-lm", "-o", "out", "--sequence", "8", "--eval",
                     "--dynamic-sequence")
        inputs, saved = self.folder / "in", self.folder / "w.safetensors"
        inputs.mkdir()
        for length in (12, 31):
            ids = torch.randint(0, 40, (3, length),
                                generator=torch.Generator().manual_seed(length))
            for name in ("input_ids", "labels"):
                np.save(inputs / f"{name}.npy", ids.numpy())
            self.tool("acc-opt", self.folder / "out" / "model.onnx", "--train", "--loss", "loss",
                      "--set", "optimizer.lr=0", "--dim", "batch=3", "--dim",
                      f"sequence={length}", "-o", self.folder / "m.accx")
            line = self.tool("acc-run", self.folder / "m.accx", "--steps", "1", "--inputs", inputs,
                             "--json", "--save-weights", saved).splitlines()[0]
            model = transformers.GPT2LMHeadModel(transformers.GPT2Config(**CONFIG)).eval()
            acc_export.load(model, saved)
            with torch.no_grad():
                expected = model(ids, labels=ids).loss.item()
            self.assertAlmostEqual(json.loads(line)["loss"], expected, places=5)

    def test_masked_lm_and_evaluation_mode(self):
        config = self.config("bert", BERT)
        out = json.loads(self.run_cli(config, "--loss", "mlm", "-o", "out", "--eval",
                                      "--sequence", "16", "--json").stdout)
        self.assertEqual(out["dropouts"], 0)
        labels = np.load(self.folder / "out" / "inputs" / "labels.npy")
        self.assertTrue((labels == -100).any() and (labels != -100).any())

    def test_sequence_classification(self):
        config = self.config("bert", {**BERT, "num_labels": 3})
        out = json.loads(self.run_cli(config, "--loss", "sequence-classification", "-o", "out",
                                      "--batch", "4", "--json").stdout)
        self.assertEqual(out["inputs"]["labels"]["shape"], [4])

    def test_padded_and_packed_rows(self):
        config = self.config("gpt2", CONFIG)
        for flag, name in (("--padded", "attention_mask"), ("--packed", "position_ids")):
            out = json.loads(self.run_cli(config, "--loss", "causal-lm", "-o", "out", "--sequence",
                                          "8", flag, "--json").stdout)
            self.assertEqual(set(out["inputs"]), {"input_ids", "labels", name})
        self.assertIn("found both", self.run_cli(config, "--loss", "causal-lm", "-o", "out",
                                                 "--packed", "--padded", code=1).stderr)
        bert = self.config("bert", BERT)
        self.assertIn("--packed is for --loss causal-lm", self.run_cli(
            bert, "--loss", "mlm", "-o", "out", "--packed", code=1).stderr)

    def test_a_model_that_mixes_packed_sequences_up_is_refused(self):
        # Its state goes from each token to the next, whatever their positions are.
        config = self.config("mamba", {"model_type": "mamba", "hidden_size": 16, "vocab_size": 40,
                                       "num_hidden_layers": 1, "state_size": 4})
        self.assertIn("does not keep the sequences of a row apart", self.run_cli(
            config, "--loss", "causal-lm", "-o", "out", "--sequence", "8", "--packed",
            code=1).stderr)

    def tokenizer(self, folder):
        import tokenizers
        made = tokenizers.Tokenizer(tokenizers.models.WordLevel(
            {word: i for i, word in enumerate(["[PAD]", "[UNK]", "a", "b", "c"])}, "[UNK]"))
        made.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
        transformers.PreTrainedTokenizerFast(
            tokenizer_object=made, pad_token="[PAD]", unk_token="[UNK]").save_pretrained(folder)

    def test_text(self):
        config = self.config("gpt2", CONFIG)
        (self.folder / "text").write_text("a b c " * 10)
        words = ("--loss", "causal-lm", "-o", "out", "--text", "text", "--batch", "2",
                 "--sequence", "4")
        self.assertIn("--text needs the model's tokenizer",
                      self.run_cli(config, *words, code=1).stderr)
        self.tokenizer(self.folder / "gpt2")
        self.run_cli(config, *words)
        ids = np.load(self.folder / "out" / "inputs" / "input_ids.npy")
        np.testing.assert_array_equal(ids, [[2, 3, 4, 2], [3, 4, 2, 3]])
        (self.folder / "text").write_text("a b c")
        self.assertIn("the text has 3 tokens", self.run_cli(config, *words, code=1).stderr)

    def test_lines_with_labels(self):
        config = self.config("bert", {**BERT, "num_labels": 3})
        self.tokenizer(self.folder / "bert")
        (self.folder / "text").write_text("1\ta b\n2\tc\n")
        words = (config, "--loss", "sequence-classification", "-o", "out", "--text", "text",
                 "--batch", "2", "--sequence", "3")
        self.run_cli(*words)
        inputs = {f.stem: np.load(f) for f in (self.folder / "out" / "inputs").iterdir()}
        np.testing.assert_array_equal(inputs["input_ids"], [[2, 3, 0], [4, 0, 0]])
        np.testing.assert_array_equal(inputs["attention_mask"], [[1, 1, 0], [1, 0, 0]])
        np.testing.assert_array_equal(inputs["labels"], [1, 2])
        (self.folder / "text").write_text("a b\nc\n")
        self.assertIn("LABEL<tab>TEXT", self.run_cli(*words, code=1).stderr)

    def test_what_is_not_there(self):
        config = self.config("gpt2", CONFIG)
        self.assertIn("cannot load a model for causal-lm from the folder 'gpt2'",
                      self.run_cli("gpt2", "--loss", "causal-lm", "-o", "out", code=1).stderr)
        self.assertIn("no folder here and not in the cache (hf download some/model)",
                      self.run_cli("some/model", "--loss", "causal-lm", "-o", "out", code=1).stderr)
        self.assertIn("positions for 32 tokens", self.run_cli(
            config, "--loss", "causal-lm", "-o", "out", "--sequence", "33", code=1).stderr)


class Install(TrainCase):
    def test_pip_installs_a_command(self):
        source = shutil.copytree(PACKAGE, self.folder / "python",
                                 ignore=shutil.ignore_patterns("tests", "__pycache__"))
        subprocess.run([sys.executable, "-m", "pip", "install", "--quiet", "--no-deps",
                        "--no-build-isolation", "--disable-pip-version-check", "--target",
                        self.folder / "site", source], check=True)
        result = subprocess.run([self.folder / "site" / "bin" / "acc-export", "--version"],
                                text=True, capture_output=True,
                                env={**os.environ, "PYTHONPATH": str(self.folder / "site")})
        self.assertEqual(result.stdout, "acc-export 0.1.0\n", result.stderr)


if __name__ == "__main__":
    unittest.main()
