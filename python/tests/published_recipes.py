"""The recipes of docs/Recipes.md: the texts and models that they begin with, and what is each
original's own in PyTorch. The texts are Python's: its manual (pydoc_data.topics) and the docstrings
of its library. test_documented_recipes.py takes tiny ones, test/PyTorch/check_published_recipes.py
those of the page's picture."""
import ast
import contextlib
import csv
import math
import pathlib
import pydoc_data.topics
import re
import runpy
import sysconfig

import numpy as np
import torch

from published import Published, run, value_of

import acc_export


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
    rows, vocabulary, pretraining = 3360, 4000, 600

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
        for name, part in (("train", rows[:self.rows]), ("dev", rows[self.rows:])):
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
