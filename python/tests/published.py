"""The recipes of docs/Recipes.md: the page's files and commands, the texts and models that these
begin with, and the same training in PyTorch as the originals do it. The texts are Python's own:
its manual (pydoc_data.topics) and the docstrings of its library. test_documented_recipes.py
takes tiny ones, test/PyTorch/check_published_recipes.py those of the page's picture."""
import ast
import contextlib
import csv
import io
import json
import math
import os
import pathlib
import pydoc_data.topics
import re
import runpy
import shlex
import subprocess
import sys
import sysconfig
import time

import numpy as np
import onnx
import torch

import common  # noqa: F401 (finds the packages)

import acc_export
from acc_data import cli as data_cli
from acc_export import cli as export_cli
from test_data import mix, permuted
from training import TOOLS

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "Recipes.md").read_text()
PARTS = {part.splitlines()[0]: part for part in PAGE.split("\n## ")[1:]}


def run(line, folder):
    """Runs a command of the page in `folder`; what it said on stdout."""
    tool, *words = shlex.split(line)
    cli = {"acc-data": data_cli, "acc-export": export_cli}.get(tool)
    if cli:
        said, errors = io.StringIO(), io.StringIO()
        with contextlib.chdir(folder), contextlib.redirect_stderr(errors):
            status = cli.execute(cli.make_parser().parse_args(words), said)
        if status:
            raise RuntimeError(f"{line}\n{errors.getvalue()}")
        return said.getvalue()
    program = sys.executable if tool == "python" else TOOLS / tool
    search = os.pathsep.join([str(ROOT / "python"), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run([program, *words], cwd=folder, text=True, capture_output=True,
                          env={**os.environ, "PYTHONPATH": search, "ACC_BIN": str(TOOLS)})
    if done.returncode:
        raise RuntimeError(f"{line}\n{done.stderr}")
    return done.stdout


def manual():
    """Python's manual, a text for each subject."""
    return list(pydoc_data.topics.topics.values())


def docstrings():
    """(top level of its module, docstring) of Python's library, in the order of its files."""
    library = pathlib.Path(sysconfig.get_path("stdlib"))
    for file in sorted(library.rglob("*.py")):
        parts = file.relative_to(library).parts
        if any(word in part for part in parts for word in ("test", "site-packages", "lib2to3")):
            continue
        with contextlib.suppress(SyntaxError, UnicodeDecodeError):
            for node in ast.walk(ast.parse(file.read_text())):
                if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef,
                                     ast.AsyncFunctionDef)) and ast.get_docstring(node):
                    yield parts[0], ast.get_docstring(node)


def initial_weights(model):
    """What a module begins with: the parameters in the file that acc trains, by their names."""
    return {tensor.name: torch.from_numpy(onnx.numpy_helper.to_array(tensor).copy())
            for tensor in onnx.load(model).graph.initializer}


def rows_of_steps(steps, batch, count, seed=0):
    """The rows of each step of acc-run, by docs/Executable.md."""
    numbers = []
    for number in range(steps * batch):
        epoch, index = divmod(number, count)
        key = mix(seed) + mix(2 ** 64 - 1 - epoch) & 2 ** 64 - 1
        numbers.append(permuted(count, key, index))
    return np.array(numbers).reshape(steps, batch)


def value_of(line, key):
    """Of `--set KEY=…` or of an option in a command of the page."""
    return float(re.search(rf"{re.escape(key)}[= ](\S+)", line)[1])


def log_of(file):
    """What a run of acc says of its steps."""
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    return {"losses": [line["loss"] for line in lines],
            "evaluations": {line["step"]: line["eval_loss"] for line in lines
                            if "eval_loss" in line},
            "seconds": sum(line["time_s"] for line in lines)}


class Published:
    """A recipe, in a folder of its own. `programs`: the names of its executables and logs, by
    layout."""
    edits = {}  # what the page's text is replaced by

    def __init__(self, folder):
        self.folder = folder
        self.part = PARTS[self.heading]
        for old, new in self.edits.items():
            if old not in self.part:
                raise ValueError(f"expected {old!r} in docs/Recipes.md, found none")
            self.part = self.part.replace(old, new)
        self.compiling, self.running = (
            next(line for line in self.commands() if line.startswith(tool))
            for tool in ("acc-opt", "acc-run"))

    def commands(self):
        """Those of the page, with what its variables hold."""
        variables, lines = {}, []
        for kind, text in re.findall(r"^```(\w*)\n(.*?)^```", self.part, re.M | re.S):
            found = re.findall(r'^(\w+)="([^"]*)"$|^(.+)$', text, re.M)
            for name, value, line in found if not kind else ():
                if name:
                    variables[name] = " ".join(value.split())
                else:
                    lines.append(re.sub(r"\$(\w+)", lambda found: variables[found[1]], line))
        return lines

    def write_files(self):
        """Those that the page shows."""
        for name, text in re.findall(r"`(\S+)`:\n```python\n(.*?)^```", self.part, re.M | re.S):
            (self.folder / name).write_text(text)

    def by_acc(self, tell=lambda line, seconds: None):
        """Runs the commands; what acc says of each layout."""
        self.write_files()
        accuracies = []
        for line in self.commands():
            began = time.monotonic()
            said = run(line, self.folder)
            tell(line, time.monotonic() - began)
            if "accuracy.py" in line:
                accuracies = [float(each.split()[-1]) for each in said.splitlines()]
        curves = {layout: log_of(self.folder / f"{name}.jsonl")
                  for layout, name in self.programs.items()}
        first = next(iter(curves.values()))
        first["accuracies"] = dict(zip(first["evaluations"], accuracies))
        return curves

    def setting(self, key):
        return value_of(self.compiling, key)

    def cut(self, name, length, following):
        """The rows of a file of tokens, as acc-run cuts them; `following`: and what follows each
        token."""
        stream = torch.from_numpy(np.fromfile(self.folder / name, np.uint16).astype(np.int64))
        count = len(stream) // length
        rows = stream[:count * length].view(count, length)
        if not following:
            return (rows,)
        behind = torch.full((count * length,), -100)
        followers = stream[1:count * length + 1]
        behind[:len(followers)] = followers
        return rows, behind.view(count, length)

    def module(self):
        """What PyTorch trains: the module, with the weights that acc begins with."""
        module = self.make()
        module.load_state_dict(initial_weights(self.folder / self.exported / "model.onnx"),
                               strict=False)
        return module

    def undecayed(self, name, parameter):
        """As nanoGPT and Megatron-LM have it: of one dimension."""
        return parameter.dim() < 2

    def groups(self, module):
        """Two groups, as the originals make them: what is decayed, and the rest."""
        decay = self.setting("optimizer.weight_decay")
        named = list(module.named_parameters())
        return [{"params": [p for n, p in named if self.undecayed(n, p) == isFree],
                 "weight_decay": 0.0 if isFree else decay} for isFree in (False, True)]

    def by_torch(self):
        """The loop of all three originals: AdamW on groups, gradients accumulated over
        micro-batches and clipped, the schedule stepped after each step."""
        module, steps = self.module(), self.steps()
        data, held = self.data()
        optimizer = torch.optim.AdamW(self.groups(module), lr=self.setting("optimizer.lr"),
                                      betas=self.betas)
        schedule = self.schedule(optimizer)
        every = value_of(self.running, "--eval-every")
        losses, evaluations, accuracies = [], {}, {}
        rows_of = rows_of_steps(steps, self.batch, len(data[0]))
        for number, rows in enumerate(rows_of, 1):
            total = 0.0
            for part in np.split(rows, self.micro_batches):
                loss = self.loss(module, [column[part] for column in data]) / self.micro_batches
                loss.backward()
                total += loss.item()
            torch.nn.utils.clip_grad_norm_(module.parameters(),
                                           self.setting("gradient_clipping"))
            optimizer.step()
            schedule.step()
            optimizer.zero_grad()
            losses.append(total)
            if number % every == 0:
                with torch.no_grad():
                    evaluations[number] = self.evaluate(module, held)
                    if hasattr(self, "accuracy"):
                        accuracies[number] = self.accuracy(module, held)
        return {"losses": losses, "evaluations": evaluations, "accuracies": accuracies}

    def evaluate(self, module, held):
        """The mean over all rows, which count the same."""
        parts = list(zip(*(column.split(self.batch) for column in held)))
        return sum(self.loss(module, part).item() * len(part[0]) for part in parts) / len(held[0])


class NanoGPT(Published):
    heading, exported, programs = "nanoGPT", "gpt", {"one rank": "gpt", "dp=2": "gpt-dp"}
    betas, batch, micro_batches = (0.9, 0.95), 120, 10

    def write(self, texts=None):
        (self.folder / "text.txt").write_text("\n".join(texts or manual()))

    def make(self):
        with contextlib.chdir(self.folder):
            return runpy.run_path("nanogpt.py")["model"]

    def data(self):
        length = self.make().example_inputs[0].shape[1]
        return (self.cut(name, length, True) for name in ("train.bin", "val.bin"))

    def steps(self):
        return int(value_of(self.running, "--steps"))

    def schedule(self, optimizer):
        """train.py's get_lr."""
        peak, least = self.setting("optimizer.lr"), self.setting("scheduler.min_lr")
        warmup, end = self.setting("scheduler.warmup_steps"), self.setting("scheduler.total_steps")

        def rate(done):
            if done < warmup:
                return (done + 1) / (warmup + 1)
            share = (1 + math.cos(math.pi * min((done - warmup) / (end - warmup), 1))) / 2
            return (least + share * (peak - least)) / peak
        return torch.optim.lr_scheduler.LambdaLR(optimizer, rate)

    def loss(self, module, batch):
        return module(*batch)


class Bert(Published):
    heading, exported = "BERT", "classifier"
    programs = {"one rank": "bert", "dp=2, 2 micro-batches": "bert-dp"}
    betas, batch, micro_batches = (0.9, 0.999), 8, 1
    classes = ("asyncio", "email", "idlelib", "tkinter")
    sizes = {"hidden_size": 128, "num_hidden_layers": 2, "num_attention_heads": 2,
             "intermediate_size": 512}
    vocabulary, pretraining = 4000, 600

    def sentences(self):
        """(sentence, class) of docstrings, each once."""
        found = {}
        for module, text in docstrings():
            if module in self.classes:
                for sentence in re.findall(r"[A-Z][^.]{20,240}\.(?=\s|$)", text):
                    found.setdefault(" ".join(sentence.split()), module)
        rows = list(found.items())
        order = np.random.default_rng(0).permutation(len(rows))
        return [rows[at] for at in order]

    def write(self, rows=None):
        """train.csv of whole batches, dev.csv, and a folder `bert` that has been pre-trained on
        the manual."""
        rows = rows or self.sentences()
        count = len(rows) * 9 // 10 // self.batch * self.batch
        for name, part in (("train", rows[:count]), ("dev", rows[count:])):
            with open(self.folder / f"{name}.csv", "w", newline="") as file:
                csv.writer(file).writerows([("sentence", "label"), *part])
        self.make_folder()

    def make_folder(self):
        """Tokenizer and model, pre-trained."""
        import tokenizers
        import transformers
        texts = [line for text in manual() + [text for _, text in docstrings()]
                 for line in text.split("\n\n") if len(line) > 60]
        folder, made = self.folder / "bert", tokenizers.BertWordPieceTokenizer()
        made.train_from_iterator(texts, vocab_size=self.vocabulary)
        folder.mkdir()
        made.save(str(folder / "tokenizer.json"))
        tokenizer = transformers.BertTokenizerFast(tokenizer_file=str(folder / "tokenizer.json"))
        config = transformers.BertConfig(vocab_size=len(tokenizer), max_position_embeddings=128,
                                         num_labels=len(self.classes), **self.sizes)
        torch.manual_seed(0)
        module = transformers.BertForMaskedLM(config)
        tokenizer.save_pretrained(folder)
        module.save_pretrained(folder)
        (self.folder / "lines.txt").write_text("".join(" ".join(text.split()) + "\n"
                                                       for text in texts))
        for line in ("acc-export bert --loss mlm --padded --sequence 64 --batch 64 --eval -o mlm",
                     "acc-data mlm lines.txt --tokenizer bert --for mlm -o hidden",
                     "acc-opt mlm/model.onnx --train --loss loss --optimizer adamw "
                     "--set optimizer.lr=1e-3 --set optimizer.weight_decay=0.01 "
                     "--set scheduler.type=linear --set scheduler.warmup_steps=60 "
                     f"--set scheduler.total_steps={self.pretraining} -o mlm.accx",
                     f"acc-run mlm.accx --steps {self.pretraining} --save-weights mlm.safetensors "
                     "--log mlm.jsonl --data " + ",".join(
                         f"{name}=hidden/{name}.npy"
                         for name in ("input_ids", "attention_mask", "labels"))):
            run(line, self.folder)
        acc_export.load(module, str(self.folder / "mlm.safetensors"))
        module.save_pretrained(folder)

    def make(self):
        import transformers
        return transformers.BertForSequenceClassification.from_pretrained(
            self.folder / "bert").eval()

    def data(self):
        return ([torch.from_numpy(np.load(self.folder / part / f"{name}.npy"))
                 for name in ("input_ids", "attention_mask", "labels")] for part in ("train", "dev"))

    def steps(self):
        rows = len(np.load(self.folder / "train" / "labels.npy"))
        return int(value_of(self.running, "--epochs")) * rows // self.batch

    def undecayed(self, name, parameter):
        """As the Trainer names them."""
        return "LayerNorm" in name or name.endswith("bias")

    def schedule(self, optimizer):
        import transformers
        return transformers.get_linear_schedule_with_warmup(
            optimizer, int(self.setting("scheduler.warmup_steps")),
            int(self.setting("scheduler.total_steps")))

    def answer(self, module, batch):
        ids, mask, labels = batch
        return module(input_ids=ids, attention_mask=mask, labels=labels)

    def loss(self, module, batch):
        return self.answer(module, batch).loss

    def accuracy(self, module, held):
        found = self.answer(module, held).logits.argmax(-1)
        return (found == held[2]).double().mean().item()


class Llama(Published):
    heading, exported = "Llama", "pretrain"
    programs = {"one rank": "llama", "ZeRO-3 on 2": "llama-zero"}
    betas, batch, micro_batches, length = (0.9, 0.95), 16, 1, 64
    outer = ("embed_tokens.weight", "lm_head.weight")
    sizes = {"hidden_size": 128, "intermediate_size": 448, "num_hidden_layers": 4,
             "num_attention_heads": 8, "num_key_value_heads": 2}
    vocabulary = 2000

    def write(self, texts=None):
        import tokenizers
        import transformers
        texts = texts or manual() + [text for _, text in docstrings()]
        (self.folder / "text.txt").write_text("\n\n\n".join(texts))
        made = tokenizers.ByteLevelBPETokenizer()
        made.train_from_iterator(texts, vocab_size=self.vocabulary,
                                 special_tokens=["<|end_of_text|>"])
        tokenizer = transformers.PreTrainedTokenizerFast(
            tokenizer_object=made._tokenizer, eos_token="<|end_of_text|>")
        tokenizer.save_pretrained(self.folder / "llama")
        transformers.LlamaConfig(
            vocab_size=len(tokenizer), max_position_embeddings=self.length,
            initializer_range=0.0134, rope_theta=1e6, rms_norm_eps=1e-5, use_cache=False,
            **self.sizes).save_pretrained(self.folder / "llama")

    def make(self):
        import transformers
        return transformers.LlamaForCausalLM(transformers.LlamaConfig.from_pretrained(
            self.folder / "llama"))

    def data(self):
        return (self.cut(name, self.length, False) for name in ("train.bin", "val.bin"))

    def steps(self):
        return int(value_of(self.running, "--steps"))

    def groups(self, module):
        """Those of decoupled rates come last."""
        decayed, free = super().groups(module)
        outer = [p for n, p in module.named_parameters() if n.endswith(self.outer)]
        ids = {id(p) for p in outer}
        decayed["params"] = [p for p in decayed["params"] if id(p) not in ids]
        return [decayed, free, {"params": outer, "weight_decay": decayed["weight_decay"],
                                "lr": self.setting("groups[lm_head.weight].lr")}]

    def schedule(self, optimizer):
        """OptimizerParamScheduler's get_lr, of each group."""
        warmup, end = self.setting("scheduler.warmup_steps"), self.setting("scheduler.total_steps")

        def make(peak, least):
            def rate(done):
                if done <= warmup:
                    return done / warmup
                share = (1 + math.cos(math.pi * min((done - warmup) / (end - warmup), 1))) / 2
                return (least + share * (peak - least)) / peak
            return rate
        least, outer = (self.setting(key) for key in ("scheduler.min_lr",
                                                      "groups[lm_head.weight].min_lr"))
        return torch.optim.lr_scheduler.LambdaLR(
            optimizer, [make(group["initial_lr"] if "initial_lr" in group else group["lr"], least)
                        for group, least in zip(optimizer.param_groups, (least, least, outer))])

    def loss(self, module, batch):
        return module(input_ids=batch[0], labels=batch[0]).loss


ALL = [NanoGPT, Bert, Llama]
