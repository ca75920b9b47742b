"""Activations that are computed again (--recompute) beside those that are kept, of modules that
would tell: dropout, choices, a layer that is called several times. In float64, losses and weights
after four steps; what PyTorch trains where nothing is drawn. Needs the tools, whose folder ACC_BIN
names."""
import json
import unittest

import numpy as np
import torch
import torch.nn.functional as F
from safetensors.torch import load_file
from torch.utils.checkpoint import checkpoint

from common import acc_export
from training import WITHOUT_TOOLS, Refused, TrainCase

WIDTH, LAYERS = 8, 3
LAYOUTS = ("", "--micro-batches=2", "--mesh dp=2 --set zero_stage=3", "--mesh tp=2",
           "--mesh pp=3 --micro-batches=2 --schedule=1f1b",
           "--mesh pp=3 --micro-batches=2 --schedule=zb-h1")


class Layer(torch.nn.Module):
    """Each kind of op that recomputation has to be careful with."""

    def __init__(self, p):
        super().__init__()
        self.norm = torch.nn.LayerNorm(WIDTH)
        self.up, self.down = torch.nn.Linear(WIDTH, 16), torch.nn.Linear(16, WIDTH)
        self.gate = torch.nn.Linear(WIDTH, WIDTH)
        self.drop = torch.nn.Dropout(p)

    def forward(self, x):
        h = self.norm(x)
        values, places = self.gate(h).topk(2, -1)  # a choice, and what is chosen
        chosen = torch.zeros_like(h).scatter(-1, places, torch.softmax(values, -1))
        h = self.drop(self.down(torch.relu(self.up(h)))) * torch.where(h > 0, h, 0.5 * h)
        return x + h * (1 + chosen)


class Net(torch.nn.Module):
    def __init__(self, p=0.0, shares=False, run=None):
        super().__init__()
        torch.manual_seed(5)
        self.run = run or (lambda layer, x: layer(x))
        first = Layer(p)
        self.layers = torch.nn.ModuleList(
            [first] if shares else [first] + [Layer(p) for _ in range(LAYERS - 1)])
        self.inlet, self.head = torch.nn.Linear(WIDTH, WIDTH), torch.nn.Linear(WIDTH, 1)

    def forward(self, x):
        x = self.inlet(x)
        for at in range(LAYERS):
            x = self.run(self.layers[at % len(self.layers)], x)
        return self.head(x).square().mean()


@unittest.skipIf(WITHOUT_TOOLS, WITHOUT_TOOLS)
class Recompute(TrainCase):
    def use(self, net):
        self.x = torch.randn(4, 6, WIDTH, generator=torch.Generator().manual_seed(2))
        acc_export.export(net.train(), (self.x,), dir=str(self.folder))
        inputs = self.folder / "inputs"
        inputs.mkdir(exist_ok=True)
        np.save(inputs / "x.npy", self.x.double().numpy())

    def train(self, words):
        program, saved = self.folder / "m.accx", self.folder / "w.safetensors"
        flags = ["--train", "--loss", "loss", "--dtype=f64", "--optimizer", "sgd", "--set",
                 "optimizer.lr=0.125", "--entries", "step", *words.split()]
        self.tool("acc-opt", self.folder / "model.onnx", *flags, "-o", program)
        lines = self.tool("acc-run", program, "--steps", 4, "--inputs", self.folder / "inputs",
                          "--json", "--save-weights", saved).splitlines()
        report = json.loads(lines[-1])
        self.assertEqual(report["planned_peak_bytes"], report["measured_peak_bytes"])
        kept = [line for line in self.tool(
            "acc-opt", self.folder / "model.onnx", *flags, "--report=memory").splitlines()
            if "keeps activations" in line]
        most = max(int(line.rsplit("(", 1)[1].split(")")[0]) for line in kept)
        return ([json.loads(line)["loss"] for line in lines if '"loss"' in line],
                load_file(saved), most)

    def assert_same(self, policies, layouts=LAYOUTS):
        for layout in layouts:
            losses, weights, most = self.train(layout)
            for policy in policies:
                with self.subTest(layout=layout, policy=policy):
                    again, saved, kept = self.train(f"{layout} --recompute={policy}")
                    torch.testing.assert_close(again, losses, rtol=1e-12, atol=0)
                    for name, weight in weights.items():
                        torch.testing.assert_close(saved[name], weight, rtol=1e-12, atol=1e-14)
                    # The second part of a backward waits for what the first computes again.
                    if "zb" not in layout:
                        self.assertLess(kept, most)

    def test_a_choice_and_what_is_drawn_are_the_same_again(self):
        self.use(Net(p=0.25))
        self.assert_same(("full", "full:uniform:2", "layers.*", "selective:layernorm"))

    def test_layers_are_those_of_pytorch(self):
        self.use(Net())
        module = Net().double()
        optimizer = torch.optim.SGD(module.parameters(), lr=0.125)
        expected = []
        for _ in range(4):
            optimizer.zero_grad()
            loss = module(self.x.double())
            expected.append(loss.item())
            loss.backward()
            optimizer.step()
        losses, weights, _ = self.train("--recompute=full")
        torch.testing.assert_close(losses, expected, rtol=1e-9, atol=1e-12)
        for name, parameter in module.named_parameters():
            torch.testing.assert_close(weights[name], parameter.detach(), rtol=1e-6, atol=1e-9)

    def test_each_call_of_a_layer_is_computed_again_by_itself(self):
        self.use(Net(p=0.25, shares=True))
        self.assert_same(("full", "selective:layernorm,mlp"), ("", "--mesh tp=2"))
        _, _, apart = self.train("--recompute=full")
        _, _, none = self.train("")
        self.assertLess(2 * apart, none)

    def test_what_the_code_checkpoints_is_the_default(self):
        def nested(layer, x):
            return checkpoint(lambda y: checkpoint(layer, y, use_reentrant=False), x,
                              use_reentrant=False)

        def first(layer, x):
            return checkpoint(layer, x, use_reentrant=False) if layer.first else layer(x)

        self.use(Net(p=0.25))
        kept = {policy: self.train(f"--recompute={policy}")[2]
                for policy in ("none", "full", "full:block:1")}
        for run, policy in (
                (lambda layer, x: checkpoint(layer, x, use_reentrant=False), "full"),
                (lambda layer, x: checkpoint(layer, x, use_reentrant=True), "full"),
                (nested, "full"), (first, "full:block:1")):
            with self.subTest(policy=policy):
                net = Net(p=0.25, run=run)
                for at, layer in enumerate(net.layers):
                    layer.first = at == 0
                self.use(net)
                losses, weights, own = self.train("")
                self.assertEqual(own, kept[policy])
                without, saved, most = self.train("--recompute=none")
                self.assertEqual(most, kept["none"])
                torch.testing.assert_close(losses, without, rtol=1e-12, atol=0)
                for name, weight in weights.items():
                    torch.testing.assert_close(saved[name], weight, rtol=1e-12, atol=1e-14)

    def test_what_no_module_is_called_is_refused(self):
        self.use(Net())
        for policy, words in (("layer.*", "the nearest is 'layers"),
                              ("selective:moe", "expected moe in the forward"),
                              ("selective:core_attn", "expected core_attn in the forward"),
                              ("selective:mpl", "the nearest is 'mlp'"),
                              ("full:uniform:0", "N of at least 1"), ("full:first", "N of at least 1"),
                              ("a,", "patterns of modules' paths"), ("[", "a glob pattern")):
            with self.subTest(policy=policy), self.assertRaises(Refused) as refused:
                self.train(f"--recompute={policy}")
            self.assertIn(words, str(refused.exception))


class Transformer(torch.nn.Module):
    """A layer as Korthikanti et al. count it."""
    hidden, heads = 32, 4

    def __init__(self):
        super().__init__()
        h = self.hidden
        self.first, self.second = torch.nn.LayerNorm(h), torch.nn.LayerNorm(h)
        self.q, self.k, self.v, self.out = (torch.nn.Linear(h, h) for _ in range(4))
        self.up, self.down = torch.nn.Linear(h, 4 * h), torch.nn.Linear(4 * h, h)
        self.drop, self.drop_again = torch.nn.Dropout(0.1), torch.nn.Dropout(0.1)

    def forward(self, x):
        y = self.first(x)
        q, k, v = (part(y).unflatten(-1, (self.heads, -1)).transpose(1, 2)
                   for part in (self.q, self.k, self.v))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2)
        x = x + self.drop(self.out(y))
        return x + self.drop_again(self.down(F.gelu(self.up(self.second(x)))))


class Language(torch.nn.Module):
    def __init__(self, layers):
        super().__init__()
        self.embedding = torch.nn.Embedding(64, Transformer.hidden)
        self.layers = torch.nn.ModuleList([Transformer() for _ in range(layers)])
        self.head = torch.nn.Linear(Transformer.hidden, 64)

    def forward(self, tokens, labels):
        x = self.embedding(tokens)
        for layer in self.layers:
            x = layer(x)
        return F.cross_entropy(self.head(x).flatten(0, 1), labels.flatten())


@unittest.skipIf(WITHOUT_TOOLS, WITHOUT_TOOLS)
class KeptBytes(TrainCase):
    """What a layer keeps, to the byte, beside the closed forms of Reducing Activation Recomputation
    in Large Transformer Models (arXiv:2205.05198), in float32: 4 bytes where they have 2. Of their
    5as/h, attention keeps the logarithms of its sums alone, 4a/h, with or without recomputation of
    it. With sequence parallelism the two results of normalisations are kept gathered, unless they are
    computed again: 4 bytes more than theirs."""
    batch, sequence = 4, 16

    def kept(self, layers, words):
        text = self.tool("acc-opt", self.folder / str(layers) / "model.onnx", "--train", "--loss",
                         "loss", "--entries", "step", "--report=memory", *words.split())
        return max(int(line.rsplit("(", 1)[1].split(")")[0]) for line in text.splitlines()
                   if "keeps activations" in line)

    def test_a_layer_keeps_what_the_closed_forms_say(self):
        tokens = torch.zeros(self.batch, self.sequence, dtype=torch.int64)
        for layers in (3, 4):
            acc_export.export(Language(layers).train(), (tokens, tokens),
                              dir=str(self.folder / str(layers)))
        unit = self.batch * self.sequence * Transformer.hidden
        sums = 4 * Transformer.heads / Transformer.hidden
        tensor, both = "--mesh tp=2", "--mesh tp=2 --set sequence_parallelism=true"
        for words, expected in (
                ("", 4 * 16 + 2 + sums), (tensor, 4 * (4 + 12 / 2) + 2 + sums / 2),
                (both, (4 * 16 + 2 + sums) / 2 + 4),
                ("--recompute=selective:layernorm", 4 * 14 + 2 + sums),
                ("--recompute=selective:mlp_act", 4 * 12 + 2 + sums),
                (f"{both} --recompute=selective:layernorm", (4 * 14 + 2 + sums) / 2),
                ("--recompute=full", 4), (f"{tensor} --recompute=full", 4),
                (f"{both} --recompute=full", 4 / 2)):
            with self.subTest(words=words):
                self.assertEqual((self.kept(4, words) - self.kept(3, words)) / unit, expected)


if __name__ == "__main__":
    unittest.main()
