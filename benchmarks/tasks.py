"""Trainings of a minute to their end, on real data, by acc on one rank and on several and by PyTorch, of the
same weights and batches in the same order, at a rate that falls to 0: what comes out on data that was not
trained on, and whether layouts agree. A convolutional network (batch norms trained) and a ViT on
scikit-learn's handwritten digits, a model of characters and a tagger of capitals (LSTM) on this project's
documentation, and low-rank adapters of a small Llama, whose other weights keep their bits.

    .venv-bench/bin/python benchmarks/tasks.py --task convnet
"""
import argparse
import json
import math
import os
import pathlib
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "python"))
import numpy as np  # noqa: E402
import torch  # noqa: E402
from torch import nn  # noqa: E402

os.environ.setdefault("ACC_BIN", str(ROOT / "build" / "bin"))
import acc  # noqa: E402
import acc_export  # noqa: E402

F = nn.functional
LENGTH = 64  # of texts


# -- Models --------------------------------------------------------------------------------

class ConvNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.parts = nn.Sequential(
            nn.Conv2d(1, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(),
            nn.Conv2d(32, 64, 3, padding=1), nn.BatchNorm2d(64), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(64, 64, 3, padding=1), nn.BatchNorm2d(64), nn.ReLU(), nn.AvgPool2d(4),
            nn.Flatten(), nn.Linear(64, 10))

    def forward(self, x):
        return self.parts(x)


class Layer(nn.Module):
    def __init__(self, width, heads, causal):
        super().__init__()
        self.heads, self.causal = heads, causal
        self.before, self.between = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        rows, length, width = x.shape
        q, k, v = self.qkv(self.before(x)).view(
            rows, length, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4)
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=self.causal)
        x = x + self.out(mixed.transpose(1, 2).reshape(rows, length, width))
        return x + self.down(F.gelu(self.up(self.between(x))))


class ViT(nn.Module):
    def __init__(self, width=64, depth=3, heads=4):
        super().__init__()
        self.patches = nn.Conv2d(1, width, 2, 2)
        self.places = nn.Parameter(0.02 * torch.randn(1, 16, width))
        self.layers = nn.Sequential(*[Layer(width, heads, False) for _ in range(depth)])
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, 10)

    def forward(self, x):
        x = self.patches(x).flatten(2).transpose(1, 2) + self.places
        return self.head(self.norm(self.layers(x)).mean(1))


class Characters(nn.Module):
    def __init__(self, symbols, width=128, depth=4, heads=4):
        super().__init__()
        self.symbols = nn.Embedding(symbols, width)
        self.places = nn.Parameter(0.02 * torch.randn(1, LENGTH, width))
        self.layers = nn.Sequential(*[Layer(width, heads, True) for _ in range(depth)])
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, symbols)

    def forward(self, x):
        return self.head(self.norm(self.layers(self.symbols(x) + self.places)))


class Tagger(nn.Module):
    def __init__(self, symbols, width=64):
        super().__init__()
        self.symbols = nn.Embedding(symbols, width)
        self.inner = nn.LSTM(width, width, batch_first=True, bidirectional=True)
        self.head = nn.Linear(2 * width, 2)

    def forward(self, x):
        return self.head(self.inner(self.symbols(x))[0])


class Adapted(nn.Module):
    """A linear layer that is not trained, and a product of two small ones that is (Hu et al.,
    arXiv:2106.09685)."""

    def __init__(self, base, rank=8, scale=2.0):
        super().__init__()
        self.base_layer, self.scale = base, scale
        self.lora_A = nn.Linear(base.in_features, rank, bias=False)
        self.lora_B = nn.Linear(rank, base.out_features, bias=False)
        nn.init.zeros_(self.lora_B.weight)

    def forward(self, x):
        return self.base_layer(x) + self.scale * self.lora_B(self.lora_A(x))


class Llama(nn.Module):
    def __init__(self, symbols):
        super().__init__()
        from transformers import LlamaConfig, LlamaForCausalLM
        self.model = LlamaForCausalLM(LlamaConfig(
            vocab_size=symbols, hidden_size=128, intermediate_size=256, num_hidden_layers=4,
            num_attention_heads=4, num_key_value_heads=2, max_position_embeddings=LENGTH))

    def adapt(self):
        self.requires_grad_(False)
        for layer in self.model.model.layers:
            for name in ("q_proj", "v_proj"):
                setattr(layer.self_attn, name, Adapted(getattr(layer.self_attn, name)))
        return self

    def forward(self, x):
        return self.model(x, use_cache=False).logits


# -- Data ----------------------------------------------------------------------------------

def digits():
    from sklearn.datasets import load_digits
    data = load_digits()
    order = np.random.default_rng(0).permutation(len(data.target))
    x = (data.images[order, None] / 8 - 1).astype(np.float32)
    y = data.target[order].astype(np.int64)
    return (x[:1400], y[:1400]), (x[1400:], y[1400:])


def text():
    """Characters of the documentation, and how many there are of them."""
    whole = "".join(path.read_text() for path in sorted((ROOT / "docs").glob("*.md")))
    symbols = sorted({*whole, *whole.lower()})
    place = {symbol: index for index, symbol in enumerate(symbols)}
    return whole, place


def rows_of(values):
    count = len(values) // LENGTH
    return np.array(values[:count * LENGTH], dtype=np.int64).reshape(count, LENGTH)


def split(x, y, held=256):
    order = np.random.default_rng(0).permutation(len(x))
    x, y = x[order], y[order]
    return (x[held:], y[held:]), (x[:held], y[:held])


def characters():
    whole, place = text()
    codes = [place[c] for c in whole]
    return split(rows_of(codes[:-1]), rows_of(codes[1:]))


def capitals():
    """From small letters to whether each was a capital."""
    whole, place = text()
    small = [c.lower() if len(c.lower()) == 1 else c for c in whole]
    return split(rows_of([place[c] for c in small]), rows_of([int(c.isupper()) for c in whole]))


def of_characters(logits, labels):
    return F.cross_entropy(logits.flatten(0, 1), labels.flatten())


TASKS = {  # model, data, loss, steps, batch, rate
    "convnet": (ConvNet, digits, F.cross_entropy, 600, 64, 2e-3),
    "vit": (ViT, digits, F.cross_entropy, 3000, 64, 2e-3),
    "characters": (lambda: Characters(len(text()[1])), characters, of_characters, 600, 32, 1e-3),
    "tagger": (lambda: Tagger(len(text()[1])), capitals, of_characters, 300, 32, 3e-3),
    "lora": (lambda: Llama(len(text()[1])), characters, of_characters, 300, 32, 3e-3),
}


def batches(data, steps, batch):
    """Rows in another order each time round; pictures moved by up to one element."""
    x, y = data
    random, order = np.random.default_rng(1), np.zeros(0, np.int64)
    for _ in range(steps):
        while len(order) < batch:
            order = np.concatenate([order, random.permutation(len(x))])
        rows, order = order[:batch], order[batch:]
        inputs = x[rows]
        if inputs.ndim == 4:
            wide = np.pad(inputs, ((0, 0), (0, 0), (1, 1), (1, 1)), constant_values=-1)
            places = random.integers(0, 3, (batch, 2))
            inputs = np.stack([one[:, i:i + 8, j:j + 8] for one, (i, j) in zip(wide, places)])
        yield inputs, y[rows]


# -- Trainings -----------------------------------------------------------------------------

def by_torch(model, data, loss, steps, batch, rate):
    optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=rate,
                                  weight_decay=0.01)
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda step: 0.5 * (1 + math.cos(math.pi * step / steps)))
    losses = []
    for x, y in batches(data, steps, batch):
        optimizer.zero_grad()
        value = loss(model(torch.from_numpy(x)), torch.from_numpy(y))
        value.backward()
        optimizer.step()
        schedule.step()
        losses.append(value.item())
    return losses


def by_acc(model, data, loss, steps, batch, rate, ranks, folder):
    """Losses, weights, and the bytes of a rank, planned and measured."""
    x, y = data
    acc_export.export(model, (torch.from_numpy(x[:batch]),), {"labels": torch.from_numpy(y[:batch])},
                      loss=loss, dir=folder)
    words = ["--mesh", f"dp={ranks}"] if ranks > 1 else []
    subprocess.run([ROOT / "build/bin/acc-opt", folder / "model.onnx", "--train", "--loss=loss",
                    "--entries=step", "--optimizer=adamw", "--set", f"optimizer.lr={rate}", "--set",
                    "optimizer.weight_decay=0.01", "--set", "scheduler.type=cosine", "--set",
                    f"scheduler.total_steps={steps}", *words, "-o", folder / "m.accx"], check=True)
    losses = []
    with acc.load(folder / "m.accx") as run:
        name = next(key for key in run.inputs if key != "labels")
        for inputs, labels in batches(data, steps, batch):
            losses.append(run.step({name: inputs, "labels": labels}).loss)
        weights = {key: np.array(value) for key, value in run.weights().items()}
    memory = json.loads(subprocess.run(
        [ROOT / "build/bin/acc-run", folder / "m.accx", "--inputs", folder / "inputs", "--json"], check=True,
        capture_output=True, text=True).stdout.splitlines()[-1])
    return losses, weights, memory


def judge(model, held, loss):
    """Loss and share of right answers on data that was not trained on."""
    with torch.no_grad():
        model.eval()
        x, y = (torch.from_numpy(part) for part in held)
        logits = model(x)
        return loss(logits, y).item(), (logits.argmax(-1) == y).float().mean().item()


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--task", choices=TASKS, required=True)
    parser.add_argument("--ranks", type=int, nargs="+", default=[1, 4])
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    make, read, loss, steps, batch, rate = TASKS[arguments.task]
    data, held = read()
    torch.manual_seed(0)
    start = make()
    if arguments.task == "lora":  # what it learned first are other sentences' beginnings
        by_torch(start.train(), (data[0][:400], data[1][:400]), loss, 300, batch, 1e-3)
        start.adapt()
    state = {name: value.clone() for name, value in start.state_dict().items()}

    def fresh():
        model = make().adapt() if arguments.task == "lora" else make()
        model.load_state_dict(state)
        return model.train()

    rows = {}
    reference, began = fresh(), time.perf_counter()
    losses = by_torch(reference, data, loss, steps, batch, rate)
    rows["PyTorch"] = {"losses": losses, "seconds": time.perf_counter() - began}
    models = {"PyTorch": reference}
    for ranks in arguments.ranks:
        with tempfile.TemporaryDirectory() as folder:
            model, began = fresh(), time.perf_counter()
            losses, weights, memory = by_acc(model, data, loss, steps, batch, rate, ranks,
                                             pathlib.Path(folder))
            with torch.no_grad():
                for name, value in model.state_dict().items():
                    if name in weights:
                        value.copy_(torch.from_numpy(weights[name]))
            kept = {name for name, p in model.named_parameters() if not p.requires_grad}
            rows[f"acc, {ranks} ranks"] = {
                "losses": losses, "seconds": time.perf_counter() - began,
                "unchanged": sum(torch.equal(model.state_dict()[name], state[name]) for name in kept),
                "frozen": len(kept), "planned": memory["planned_peak_bytes"],
                "measured": memory["measured_peak_bytes"]}
            models[f"acc, {ranks} ranks"] = model
    first = rows[f"acc, {arguments.ranks[0]} ranks"]["losses"]
    for name, row in rows.items():
        held_loss, right = judge(models[name], held, loss)
        apart = max(abs(a - b) / max(abs(b), 1e-3) for a, b in zip(row["losses"], first))
        last = math.fsum(row.pop("losses")[-20:]) / 20
        print(json.dumps({"task": arguments.task, "by": name, "steps": steps,
                          "loss of the last 20 steps": round(last, 5), "held-out loss": round(held_loss, 5),
                          "held-out right": round(right, 4),
                          "losses apart from one rank": float(f"{apart:.2g}"),
                          **{k: round(v, 1) if isinstance(v, float) else v for k, v in row.items()}}),
              flush=True)


if __name__ == "__main__":
    main()
