"""`--set autocast.lists=cpu` beside torch.autocast on CPUs: the type of each call of the traced
program, and losses; and the table of both lists beside what PyTorch itself registers. Needs the
tools, whose folder ACC_BIN names."""
import json
import pathlib
import re
import unittest

import torch
from torch.nn import functional as F

from common import Calls, acc_export, program
from training import WITHOUT_TOOLS, TrainCase

STEPS, RATE, WORDS, WIDTH, HEADS = 5, 0.05, 24, 16, 2
LISTS = "--set=autocast.lists=cpu"
CPU = ("--mixed-precision=bf16", LISTS)
IDS = torch.randint(0, WORDS, (4, 6), generator=torch.Generator().manual_seed(4))
X = torch.randn(6, 5, generator=torch.Generator().manual_seed(1))


class Rms(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(WIDTH))

    def forward(self, x):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * self.weight


class Decoder(torch.nn.Module):
    """Attention and a gated layer written by hand, norms of both kinds."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.table, self.first, self.second = torch.nn.Embedding(WORDS, WIDTH), Rms(), Rms()
        self.third = torch.nn.LayerNorm(WIDTH)
        self.qkv = torch.nn.Linear(WIDTH, 3 * WIDTH)
        self.out = torch.nn.Linear(WIDTH, WIDTH, bias=False)
        self.gate, self.up = torch.nn.Linear(WIDTH, 32), torch.nn.Linear(WIDTH, 32)
        self.down, self.head = torch.nn.Linear(32, WIDTH), torch.nn.Linear(WIDTH, WORDS)

    def forward(self, ids, labels):
        hidden = self.table(ids)
        rows, length, _ = hidden.shape
        query, key, value = (part.view(rows, length, HEADS, -1).transpose(1, 2)
                             for part in self.qkv(self.first(hidden)).chunk(3, -1))
        scores = query @ key.transpose(-1, -2) * (WIDTH // HEADS) ** -0.5
        weights = (scores + torch.full((length, length), -1e9).triu(1)).softmax(-1)
        mixed = (weights @ value).transpose(1, 2).reshape(rows, length, WIDTH)
        hidden = hidden + self.out(mixed)
        normal = self.second(hidden)
        hidden = hidden + self.down(F.silu(self.gate(normal)) * self.up(normal))
        logits = self.head(self.third(self.out(hidden)))
        return F.cross_entropy(logits.view(-1, WORDS), labels.view(-1))


def of_one_input(function, **parts):
    return Calls(function, **parts), (X,)


MODULES = {
    "mlp": lambda: of_one_input(lambda s, x: s.b(F.gelu(s.a(x))).square().mean()),
    "layer norm": lambda: of_one_input(
        lambda s, x: (s.norm(s.a(x)) * s.norm(x @ s.a.weight.T)).pow(2).mean(),
        norm=torch.nn.LayerNorm(6)),
    "softmax": lambda: of_one_input(
        lambda s, x: -(s.b(s.a(x).softmax(-1) * 0.3) + x).log_softmax(-1)[:, 0].mean()),
    "widest": lambda: of_one_input(
        lambda s, x: torch.cat([s.b(s.a(x)), x], -1).tanh().exp().mean(-1).var()),
    "numbers": lambda: of_one_input(
        lambda s, x: ((s.a(x) * 0.1 + s.a.bias.sum()).abs().clamp(max=3) + 0.3).sqrt().mean()),
    "mse": lambda: of_one_input(lambda s, x: F.mse_loss(s.b(F.silu(s.a(x))), x)),
    "added bias": lambda: of_one_input(
        lambda s, x: (x @ s.a.weight.T + s.a.bias).sigmoid().norm()),
    "decoder": lambda: (Decoder(), (IDS, IDS)),
}


class Types(torch.fx.Interpreter):
    """The type of what each call returns."""

    def __init__(self, module):
        super().__init__(module)
        self.types = {}

    def run_node(self, n):
        result = super().run_node(n)
        if n.op == "call_function" and isinstance(result, torch.Tensor):
            if result.is_floating_point():
                self.types[n.name] = str(result.dtype)
        return result


def types_of_torch(module, args, dtype=torch.bfloat16):
    exported = program.trace_module(module, args, {}, None, None, None)
    run = Types(exported.module())
    with torch.autocast("cpu", dtype=dtype), torch.no_grad():
        run.run(*args)
    return run.types


def losses_of_torch(module, args, dtype=torch.bfloat16):
    optimizer = torch.optim.SGD(module.parameters(), lr=RATE)
    losses = []
    for _ in range(STEPS):
        optimizer.zero_grad()
        with torch.autocast("cpu", dtype=dtype):
            loss = module(*args)
        losses.append(loss.item())
        loss.backward()
        optimizer.step()
    return losses


NAMES = {"bf16": "torch.bfloat16", "f16": "torch.float16", "f32": "torch.float32"}


def types_of_text(text):
    """The type of the last value that is of a node alone, by the node's call."""
    locations = dict(re.findall(r"^(#loc\d*) = loc\((.*)\)$", text, re.M))

    def nodes(location):
        found = set(re.findall(r'"((?:node_|gradient)[^"]*)"', location))
        for inner in re.findall(r"#loc\d*", location):
            found |= nodes(locations.get(inner, ""))
        return found

    types = {}
    for line in text.splitlines():
        match = re.match(r" +%\S+(?:, %\S+)? = .*tensor<(?:\d+x)*(\w+)>(?:, [^()]*)?\)? "
                         r"loc\((.*)\)$", line)
        if match and match[1] in NAMES:
            of = nodes(match[2])
            if len(of) == 1:
                types[of.pop().removeprefix("node_")] = NAMES[match[1]]
    return types


@unittest.skipIf(WITHOUT_TOOLS, WITHOUT_TOOLS)
class Autocast(TrainCase):
    def acc(self, *words):
        return self.tool("acc-opt", self.folder / "model.onnx", "--train", "--loss=loss",
                         f"--set=optimizer.lr={RATE}", "--optimizer=sgd", *words)

    def losses(self, *words):
        file = self.folder / "m.accx"
        self.acc("-o", file, *words)
        lines = self.tool("acc-run", file, "--steps", STEPS, "--inputs", self.folder / "inputs",
                          "--json").splitlines()
        return [float(json.loads(line)["loss"]) for line in lines if '"loss"' in line]

    def test_types_and_losses_are_pytorchs(self):
        for name, make in MODULES.items():
            with self.subTest(module=name):
                module, args = make()
                wanted = types_of_torch(module, args)
                acc_export.export(module, args, dir=str(self.folder))
                debug = ("--compile-to=train", "--mlir-print-debuginfo")
                found = types_of_text(self.acc(*CPU, *debug))
                both = {call: (found[call], wanted[call]) for call in found if call in wanted}
                self.assertGreaterEqual(len(both), 3, found)
                self.assertEqual({call: pair for call, pair in both.items()
                                  if pair[0] != pair[1]}, {})
                # With products alone in 16 bits, other types are there.
                plain = types_of_text(self.acc(CPU[0], *debug))
                self.assertTrue(any(plain[call] != wanted[call] for call in plain
                                    if call in wanted), plain)
                losses = self.losses(*CPU)
                torch.testing.assert_close(losses, losses_of_torch(module, args), rtol=6e-3,
                                           atol=6e-3)
                self.assertLess(losses[-1], losses[0])

    def test_fp16(self):
        """With a loss that is scaled by so little that no step is skipped."""
        words = ("--mixed-precision=fp16", LISTS, "--set=scaler.type=static",
                 "--set=scaler.init_scale=8")
        for name in ("mlp", "decoder"):
            with self.subTest(module=name):
                module, args = MODULES[name]()
                wanted = types_of_torch(module, args, torch.float16)
                acc_export.export(module, args, dir=str(self.folder))
                found = types_of_text(self.acc(*words, "--compile-to=train",
                                               "--mlir-print-debuginfo"))
                both = {call: (found[call], wanted[call]) for call in found if call in wanted}
                self.assertIn("torch.float16", found.values())
                self.assertEqual({call: pair for call, pair in both.items()
                                  if pair[0] != pair[1]}, {})
                torch.testing.assert_close(self.losses(*words),
                                           losses_of_torch(module, args, torch.float16),
                                           rtol=1e-3, atol=1e-3)

    def test_layouts(self):
        module, args = MODULES["decoder"]()
        acc_export.export(module, args, dir=str(self.folder))
        one = self.losses(*CPU)
        for words in (("--mesh=dp=2", "--micro-batches=2"), ("--mesh=tp=2",),
                      ("--mesh=dp_shard=2", "--set=zero_stage=3", "--recompute=second")):
            with self.subTest(layout=words):
                torch.testing.assert_close(self.losses(*CPU, *words), one, rtol=6e-3, atol=0)

    def test_cuda_computes_softmax_and_norms_in_float32(self):
        module, args = MODULES["decoder"]()
        acc_export.export(module, args, dir=str(self.folder))
        found = types_of_text(self.acc(CPU[0], "--set=autocast.lists=cuda", "--compile-to=train",
                                       "--mlir-print-debuginfo"))
        self.assertEqual(found["layer_norm"], "torch.float32")
        self.assertEqual(found["linear"], "torch.bfloat16")
        self.assertEqual(found["silu"], "torch.bfloat16")


# What import has no operators for.
ABSENT = re.compile(r"conv_tbc|_conv|conv[a-z_]*backward|_cell$|_rnn_|upsample|pool|fft|"
                    r"^linalg_(?!vec|norm|matrix_norm|multi)|"
                    r"^_lu|^(cholesky|qr|svd|lu_|orgqr|ormqr|geqrf|triangular|p?inverse$)|sampler|"
                    r"^(ctc_loss|stft|fake_quantize)|_native_multi_head|margin_loss_forward")


@unittest.skipIf(WITHOUT_TOOLS, WITHOUT_TOOLS)
class Lists(TrainCase):
    def policies(self, names, lists):
        """For each name, in which type a call of it runs on float32 and on bfloat16."""
        calls = ", ".join(f'n{i} = "%v{i} = {name}"' for i, name in enumerate(names))
        text = [f"module attributes {{nn.calls = {{{calls}}}}} {{"]
        for i in range(len(names)):
            for kind in ("f32", "bf16"):
                text.append(f"func.func @{kind}_{i}(%x: tensor<2x{kind}>) -> tensor<2x{kind}> {{\n"
                            f'%y = nn.sqrt %x : tensor<2x{kind}> loc("n{i}")\n'
                            f"return %y : tensor<2x{kind}>\n}}")
        file = self.folder / "calls.mlir"
        file.write_text("\n".join(text) + "\n}\n")
        out = self.tool("acc-opt", file, f"--nn-autocast=lists={lists}")
        found = re.findall(r"nn\.sqrt .* : tensor<2x(\w+)>", out)
        words = {("bf16", "bf16"): "low", ("f32", "f32"): "wide", ("f32", "bf16"): "follows"}
        return {name: words[found[2 * i], found[2 * i + 1]] for i, name in enumerate(names)}

    def test_cuda(self):
        header = pathlib.Path(torch.__file__).parent / "include/ATen/autocast_mode.h"
        text = header.read_text().replace("\\\n", " ")
        wanted = {}
        for macro, policy in (("LOWER_PRECISION_FP", "low"), ("FP32", "wide"),
                              ("FP32_SET_OPT_DTYPE", "wide"), ("PROMOTE", "follows")):
            body = re.search(rf"#define AT_FORALL_{macro}\(_\)(.*)", text)[1]
            for name in re.findall(r"_\((\w+)", body):
                if not ABSENT.search(name):
                    wanted[name] = policy
        self.assertGreater(len(wanted), 60)
        self.assertEqual(self.policies(list(wanted), "cuda"), wanted)
        others = ["gelu", "silu", "mean", "add", "mul", "cat", "embedding", "where", "tanh"]
        self.assertEqual(set(self.policies(others, "cuda").values()), {"follows"})

    def test_cpu(self):
        """What runs in 16 bits or in float32 is registered with AutocastCPU, and the other way
        round."""
        names = sorted({name.split("::")[1].split(".")[0]
                        for name in torch._C._dispatch_get_all_op_names()
                        if name.startswith("aten::")})
        names = [name for name in names if not ABSENT.search(name)]
        every = {}
        for full in torch._C._dispatch_get_all_op_names():
            if full.startswith("aten::"):
                every.setdefault(full.split("::")[1].split(".")[0], []).append(full)
        registered = {name for name in names if any(
            torch._C._dispatch_has_kernel_for_dispatch_key(full, "AutocastCPU")
            for full in every[name])}
        found = self.policies(names, "cpu")
        cast = {name for name, policy in found.items() if policy != "follows"}
        # They call others that are registered, or are what those call.
        composed = {"chain_matmul", "einsum", "linalg_multi_dot", "nll_loss_forward",
                    "nll_loss2d_forward", "nll_loss_nd"}
        self.assertLessEqual(cast - composed, registered)
        self.assertEqual(sorted(found[name] for name in ("linear", "mse_loss", "softmax")),
                         ["follows", "low", "wide"])
        # Of the widest type.
        self.assertEqual(registered - cast, {"stack", "cat", "index_copy"})

if __name__ == "__main__":
    unittest.main()
