"""Six recipes as people train them: what each makes of a data set, the model that is exported,
and the same in PyTorch by the library's own loss. Data come through acc-data. Sizes are those
of a test; test/PyTorch/check_recipes.py takes larger ones."""
import csv
import json

import numpy as np
import torch
import torch.nn.functional as F
from torch.overrides import TorchFunctionMode

import words

BATCH = 8


class Wide(TorchFunctionMode):
    """A model in float64 keeps to it where its code casts to float32, as norms and softmaxes of
    transformers do: in the exported model, of float32, those casts are none."""

    def __torch_function__(self, function, types, args=(), kwargs=None):
        if function is torch.Tensor.float:
            function = torch.Tensor.double
        wide = {torch.float32: torch.float64}
        return function(*(wide.get(a, a) if isinstance(a, torch.dtype) else a for a in args),
                        **{k: wide.get(v, v) if isinstance(v, torch.dtype) else v
                           for k, v in (kwargs or {}).items()})


class Recipe:
    """`rows` are those of the source, and one in seven of them validates. Numbers in
    their code are such as a file of float32 has as they are: scores (and T5's logits) are scaled
    by 1/4, norms add a power of two."""
    kind = loss = None
    options = {}  # of acc-data

    def __init__(self, folder, rows=110, width=32, layers=2):
        self.folder, self.rows, self.width, self.layers = folder, rows, width, layers

    def lines(self, rows):
        file = self.folder / "rows.jsonl"
        with open(file, "w") as out:
            for row in rows:
                out.write(json.dumps(row) + "\n")
        return file

    def tokens(self, count, size=BATCH):
        return torch.arange(size * count).reshape(size, count) % 20 + 1

    def loss_of(self, module, batch):
        """The loss of a batch {input: tensor}, with the labels inside where the library's head
        takes them."""
        return module(**batch).loss


class _Bert(Recipe):
    def config(self, **more):
        import transformers
        return transformers.BertConfig(
            vocab_size=64, hidden_size=self.width, num_hidden_layers=self.layers,
            num_attention_heads=2, intermediate_size=2 * self.width, max_position_embeddings=32,
            hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0, **more)


class Classifier(_Bert):
    """BERT tells which subject a padded sentence is about."""
    kind = loss = "sequence-classification"

    def source(self):
        words.save_tokenizer(self.folder / "tok")
        return self.lines({"text": text, "label": words.SUBJECTS.index(parts[0])}
                          for text, parts in words.sentences(self.rows, 1))

    def model(self):
        import transformers
        ids = self.tokens(12)
        return transformers.BertForSequenceClassification(self.config(num_labels=6)), {
            "input_ids": ids, "attention_mask": torch.ones_like(ids),
            "labels": torch.arange(BATCH) % 6}


class MaskedLanguage(_Bert):
    kind = loss = "mlm"
    options = {"copies": 2}

    def source(self):
        words.save_tokenizer(self.folder / "tok")
        file = self.folder / "rows.txt"
        file.write_text("".join(text + "\n" for text, _ in words.sentences(self.rows // 2 + 9, 2)))
        return file

    def model(self):
        import transformers
        ids = self.tokens(12)
        return transformers.BertForMaskedLM(self.config()), {
            "input_ids": ids, "attention_mask": torch.ones_like(ids), "labels": ids.clone()}


class Pairs(Recipe):
    """T5 puts what somebody does into other words."""
    kind = "seq2seq"

    def __init__(self, folder, width=16, **sizes):
        super().__init__(folder, width=width, **sizes)

    def source(self):
        words.save_tokenizer(self.folder / "tok")
        return self.lines({"source": "say in short " + text, "target": " ".join(parts[1:3])}
                          for text, parts in words.sentences(self.rows, 3))

    def model(self):
        import transformers
        config = transformers.T5Config(
            vocab_size=64, d_model=self.width, d_kv=self.width // 2, d_ff=2 * self.width,
            num_layers=self.layers, num_heads=2, dropout_rate=0.0, use_cache=False,
            decoder_start_token_id=0)

        class WithLoss(transformers.T5ForConditionalGeneration):
            def forward(self, input_ids, attention_mask, labels):
                return super().forward(input_ids, attention_mask, labels=labels).loss

        ids = self.tokens(16)
        return WithLoss(config), {"input_ids": ids, "attention_mask": torch.ones_like(ids),
                                  "labels": self.tokens(8)}

    def loss_of(self, module, batch):
        return module(**batch)


class Chat(Recipe):
    """Llama answers: the loss is on what the assistant says, and rows hold several chats."""
    kind, loss = "causal-lm", "causal-lm"
    options = {"pack": True}

    def source(self):
        words.save_tokenizer(self.folder / "tok", wraps=False)
        return self.lines({"messages": [
            {"role": "user", "content": f"{text} ? who ?"},
            {"role": "assistant", "content": parts[0]},
            {"role": "user", "content": "what ?"},
            {"role": "assistant", "content": " ".join(parts[1:3])}][:4 if len(text) % 3 else 2]}
            for text, parts in words.sentences(2 * self.rows, 4))

    def model(self):
        import transformers
        config = transformers.LlamaConfig(
            vocab_size=64, hidden_size=self.width, intermediate_size=2 * self.width,
            num_hidden_layers=self.layers, num_attention_heads=2, num_key_value_heads=1,
            max_position_embeddings=64, rms_norm_eps=2.0 ** -20, use_cache=False)
        ids = self.tokens(48)
        return transformers.LlamaForCausalLM(config), {
            "input_ids": ids, "position_ids": torch.arange(48).expand(BATCH, 48).clone(),
            "labels": ids.clone()}

    def loss_of(self, module, batch):
        """Each chat in a row of its own, so that none can see another."""
        parts = []
        for ids, labels, positions in zip(*(batch[name] for name in (
                "input_ids", "labels", "position_ids"))):
            starts = torch.nonzero(positions == 0).ravel().tolist() + [len(ids)]
            parts += [(ids[a:b], labels[a:b]) for a, b in zip(starts, starts[1:])]

        def pad(column, fill):
            return torch.nn.utils.rnn.pad_sequence([part[column] for part in parts],
                                                   batch_first=True, padding_value=fill)
        mask = torch.nn.utils.rnn.pad_sequence([torch.ones_like(ids) for ids, _ in parts],
                                               batch_first=True)
        return module(input_ids=pad(0, 0), attention_mask=mask, labels=pad(1, -100)).loss


class Table(Recipe):
    """A regression of a price on standardised columns."""
    kind = "table"
    options = {"input": ["x=area,rooms,age", "price=price"], "standardise": ["x", "price"]}

    class Net(torch.nn.Module):
        def __init__(self, width):
            super().__init__()
            self.layers = torch.nn.Sequential(torch.nn.Linear(3, width), torch.nn.Tanh(),
                                              torch.nn.Linear(width, 1))

        def forward(self, x, price):
            return F.mse_loss(self.layers(x)[:, 0], price)

    def source(self):
        draw = np.random.default_rng(5)
        area, rooms, age = draw.uniform(20, 200, self.rows), draw.integers(1, 8, self.rows), (
            draw.uniform(0, 90, self.rows))
        price = 3000 * area + 9000 * rooms - 500 * age + draw.normal(0, 9000, self.rows)
        with open(self.folder / "rows.csv", "w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(["area", "rooms", "age", "price"])
            writer.writerows(zip(area.round(1), rooms, age.round(), price.round(2)))
        return self.folder / "rows.csv"

    def model(self):
        return self.Net(self.width), {"x": torch.randn(BATCH, 3), "price": torch.randn(BATCH)}

    def loss_of(self, module, batch):
        return module(**batch)


class Images(Recipe):
    """Patches of an image by a reshape, a class token, and layers of attention."""
    kind = "images"
    loss = "sequence-classification"

    class Net(torch.nn.Module):
        SIDE, PATCH = 16, 4

        def __init__(self, width, layers):
            super().__init__()
            count = (self.SIDE // self.PATCH) ** 2
            self.patches = torch.nn.Linear(3 * self.PATCH ** 2, width)
            self.first = torch.nn.Parameter(0.02 * torch.randn(1, 1, width))
            self.places = torch.nn.Parameter(0.02 * torch.randn(1, count + 1, width))
            self.layers = torch.nn.ModuleList(torch.nn.ModuleDict({
                "before": torch.nn.LayerNorm(width, 2.0 ** -17),
                "qkv": torch.nn.Linear(width, 3 * width), "out": torch.nn.Linear(width, width),
                "between": torch.nn.LayerNorm(width, 2.0 ** -17),
                "up": torch.nn.Linear(width, 2 * width),
                "down": torch.nn.Linear(2 * width, width)}) for _ in range(layers))
            self.norm = torch.nn.LayerNorm(width, 2.0 ** -17)
            self.head = torch.nn.Linear(width, 3)

        def forward(self, pixel_values):
            n, side = self.PATCH, self.SIDE // self.PATCH
            x = pixel_values.reshape(-1, 3, side, n, side, n).permute(0, 2, 4, 1, 3, 5)
            x = self.patches(x.reshape(-1, side * side, 3 * n * n))
            x = torch.cat([self.first.expand(x.shape[0], -1, -1), x], 1) + self.places
            for layer in self.layers:
                q, k, v = (part.unflatten(-1, (2, -1)).transpose(1, 2)
                           for part in layer["qkv"](layer["before"](x)).chunk(3, -1))
                y = F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2)
                x = x + layer["out"](y)
                x = x + layer["down"](F.gelu(layer["up"](layer["between"](x))))
            return self.head(self.norm(x)[:, 0])

    def source(self):
        draw = np.random.default_rng(6)
        for number, name in enumerate(("flat", "lying", "upright")):
            folder = self.folder / "pictures" / name
            folder.mkdir(parents=True)
            for i in range(self.rows // 3):
                pixels = draw.integers(0, 80, (16, 16, 3))
                if number:
                    at = draw.integers(0, 16)
                    pixels[(slice(None), at) if number == 2 else at] += 160
                np.save(folder / f"{i:04}.npy", pixels.astype(np.uint8))
        return self.folder / "pictures"

    def model(self):
        return self.Net(self.width, self.layers), {
            "pixel_values": torch.randn(BATCH, 3, 16, 16), "labels": torch.arange(BATCH) % 3}

    def loss_of(self, module, batch):
        return F.cross_entropy(module(batch["pixel_values"]), batch["labels"])


ALL = [Classifier, Pairs, MaskedLanguage, Chat, Table, Images]
