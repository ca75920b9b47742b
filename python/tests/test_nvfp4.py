"""NVFP4 in float64 emulation of its formats, beside layers of PyTorch that quantize as Transformer
Engine's published reference does (custom_recipes/reference_nvfp4.py, restated): losses and weights are
the same, on one rank and in each layout, with and without blocks of 16 x 16, Hadamard transforms and
stochastic rounding, whose numbers are Philox's at the coordinates of the whole batch. Rounding to E2M1
is ml_dtypes' for all 16-bit numbers; by chance it is unbiased. Needs the tools, whose folder ACC_BIN
names."""
import json
import unittest

import ml_dtypes
import numpy as np
import torch

from draws import mix, philox
from test_fp8 import CONVERTED, F32, FLT_MAX, IDS, LAYOUTS, RATE, STEPS, Fp8Case, Net, e4m3
from training import WITHOUT_TOOLS, TrainCase

SIGNS = torch.tensor([1 if sign == "+" else -1 for sign in "+++-+------+-+--"]).double()
WORD = 2 ** 64 - 1


def draw(name, call, shape, seed=0):
    """What acc draws for the product `name` in a call."""
    site = 0xcbf29ce484222325
    for byte in name.encode():
        site = ((site ^ byte) * 0x100000001b3) & WORD
    key = (mix(mix(seed) ^ site) >> 1) + call
    return torch.from_numpy(philox(np.arange(np.prod(shape)), key)).reshape(shape)


E2M1 = torch.tensor([0, 0.5, 1, 1.5, 2, 3, 4, 6]).double()


def round_to_e2m1(value, uniform=None):
    """By the table of numbers: to the nearest, of two the one whose code is even; or to the one above
    where the drawn number is below the share of the way that has been gone."""
    size = value.abs().clamp(max=6.0)
    below = (torch.searchsorted(E2M1, size.contiguous(), right=True) - 1).clamp(max=6)
    low, high = E2M1[below], E2M1[below + 1]
    if uniform is None:
        up = (size - low > high - size) | ((size - low == high - size) & (below % 2 == 1))
    else:
        # Of negative numbers the one above is the one with the smaller magnitude.
        share = (size - low) / (high - low)
        up = torch.where(value < 0, ~(uniform < 1 - share), uniform < share)
        up = torch.where(share == 0, False, up)
    return torch.where(up, high, low) * torch.sign(value)


def largest(value):
    return F32(value.abs().max().item())


def hadamard():
    matrix = torch.ones(1, 1).double()
    while len(matrix) < 16:
        matrix = torch.kron(torch.tensor([[1, 1], [1, -1]]).double(), matrix)
    return torch.diag(SIGNS) @ matrix / 4


def quantize(value, rows=1, uniform=None, rotated=False):
    """Rows of [R, K], in blocks of `rows` x 16: numbers of E2M1 times their blocks' scales, and the
    largest magnitude."""
    short = -value.shape[1] % 16
    value = torch.nn.functional.pad(value, (0, short))
    if uniform is not None:
        uniform = torch.nn.functional.pad(uniform, (0, short))
    if rotated:
        value = (value.reshape(-1, 16) @ hadamard()).reshape(value.shape)
    amax = largest(value)
    with np.errstate(over="ignore", divide="ignore"):
        scale = min(F32(2688) / amax, FLT_MAX) if amax > 0 else F32(1)
        blocks = value.reshape(len(value) // rows, rows, -1, 16)
        of_blocks = blocks.abs().amax((1, 3), keepdim=True).float().numpy()
        decode = np.minimum(of_blocks * (scale * (F32(1) / F32(6))), FLT_MAX)
        decode = e4m3(torch.from_numpy(decode).double()).numpy().astype(F32)
        encode = np.minimum(F32(1) / (decode * (F32(1) / scale)), FLT_MAX)
    scaled = (blocks * torch.from_numpy(encode).double()).reshape(value.shape)
    codes = round_to_e2m1(scaled, uniform).reshape(blocks.shape)
    return (codes * torch.from_numpy(decode).double()).reshape(value.shape), amax


def multiply(lhs, rhs):
    """[M, K] and [N, K] in NVFP4."""
    alpha = F32(lhs[1] * rhs[1]) / F32(2688 * 2688)
    return lhs[0] @ rhs[0].T * float(alpha)


class Product(torch.autograd.Function):
    """x Wᵀ, of parts of the batch."""

    @staticmethod
    def forward(ctx, x, weight, layer):
        ctx.save_for_backward(x, weight)
        ctx.layer = layer
        w = quantize(weight, layer.rows)
        return torch.cat([multiply(quantize(part.flatten(0, -2)), w).reshape(*part.shape[:-1], -1)
                          for part in x.chunk(layer.blocks)])

    @staticmethod
    def backward(ctx, gradient):
        x, weight = ctx.saved_tensors
        layer, call = ctx.layer, ctx.layer.calls
        layer.calls += 1
        uniforms = {kind: draw(f"nvfp4/{layer.name}.weight/{kind}", call, gradient.shape)
                    if layer.is_stochastic else torch.zeros(gradient.shape)
                    for kind in ("dgrad", "wgrad")}
        w = quantize(weight.T, layer.rows)
        to_input, to_weight = [], 0
        for own, inputs, first, second in zip(*(each.chunk(layer.blocks) for each in (
                gradient, x, uniforms["dgrad"], uniforms["wgrad"])), strict=True):
            flat = own.flatten(0, -2)
            first, second = ((each.flatten(0, -2) if layer.is_stochastic else None)
                             for each in (first, second))
            to_input.append(multiply(quantize(flat, 1, first), w).reshape(inputs.shape))
            to_weight = to_weight + multiply(
                quantize(flat.T, 1, None if second is None else second.T, layer.is_rotated),
                quantize(inputs.flatten(0, -2).T, 1, None, layer.is_rotated))
        return torch.cat(to_input), to_weight, None


class Linear(torch.nn.Module):
    def __init__(self, name, linear, blocks, rows=16, is_rotated=True, is_stochastic=True):
        super().__init__()
        self.weight, self.bias, self.name, self.blocks = linear.weight, linear.bias, name, blocks
        self.rows, self.is_rotated, self.is_stochastic = rows, is_rotated, is_stochastic
        self.calls = 0

    def forward(self, x):
        y = Product.apply(x, self.weight, self)
        return y if self.bias is None else y + self.bias


def by_torch(blocks, **more):
    model = Net().double()
    for name in CONVERTED:
        setattr(model, name, Linear(name, getattr(model, name), blocks, **more))
    optimizer = torch.optim.AdamW(model.parameters(), lr=RATE)
    losses = []
    for _ in range(STEPS):
        optimizer.zero_grad()
        loss = model(IDS, IDS)
        losses.append(loss.item())
        loss.backward()
        optimizer.step()
    return losses, dict(model.named_parameters())


PARTS = {name: words for name, words in LAYOUTS.items()
         if name not in ("recomputed", "tensor", "tensor, sequence")}


@unittest.skipIf(WITHOUT_TOOLS, WITHOUT_TOOLS)
class Nvfp4(Fp8Case):
    def check(self, expected, *words):
        losses, weights = expected
        found, saved = self.run_steps(self.compile("--set=fp8.recipe=nvfp4", *words))
        np.testing.assert_allclose(found, losses, rtol=1e-12)
        self.check_weights(saved, weights)

    def test_it_is_transformer_engines_with_and_without_each_part(self):
        for name, (words, more) in {
                "all": ((), {}),
                "weights in rows": (("--set=fp8.fp4_2d_quantization=false",), {"rows": 1}),
                "no transform": (("--set=fp8.random_hadamard_transform=false",),
                                 {"is_rotated": False}),
                "to the nearest": (("--set=fp8.stochastic_rounding=false",),
                                   {"is_stochastic": False}),
                "none": (("--set=fp8.fp4_2d_quantization=false",
                          "--set=fp8.random_hadamard_transform=false",
                          "--set=fp8.stochastic_rounding=false"),
                         {"rows": 1, "is_rotated": False, "is_stochastic": False})}.items():
            with self.subTest(name=name):
                self.check(by_torch(1, **more), *words)

    def test_no_layout_changes_it(self):
        expected = by_torch(1)
        for layout in ("recomputed", "tensor", "tensor, sequence"):
            with self.subTest(layout=layout):
                self.check(expected, *LAYOUTS[layout])
        expected = by_torch(4)
        for layout, words in {"one rank": ("--set=fp8.blocks=4",), **PARTS}.items():
            with self.subTest(layout=layout):
                self.check(expected, *words)

    def test_a_run_goes_on_with_the_same_draws(self):
        words = ("--set=fp8.recipe=nvfp4", "--set=fp8.blocks=4")
        program, kept = self.compile(*words), self.folder / "kept"
        losses, saved = self.run_steps(program, "--checkpoint", kept, "--save-every", 1, "--keep",
                                       STEPS)
        again, found = self.run_steps(program, "--resume", kept / "step-00000005")
        self.assertEqual(again, losses[5:])
        for name, weight in saved.items():
            self.assertTrue(torch.equal(found[name], weight), name)
        other = self.compile(*words, *LAYOUTS["pipeline, dp, recomputed"])
        again, _ = self.run_steps(other, "--resume", kept / "step-00000005")
        np.testing.assert_allclose(again, losses[5:], rtol=1e-12)

    def test_metrics_are_of_the_scales_of_blocks(self):
        program = self.compile("--set=fp8.recipe=nvfp4", "--metrics=precision")
        lines = self.folder / "metrics.jsonl"
        self.run_steps(program, "--metrics", lines)
        tensors = json.loads(lines.read_text().splitlines()[0])["tensors"]
        self.assertLessEqual({f"{name}.weight/{kind}/left" for name in CONVERTED
                              for kind in ("dgrad", "wgrad")}, set(tensors))
        weight = largest(Net().down.weight.detach())
        self.assertEqual(F32(tensors["down.weight/fprop/right"]["amax"]), weight)
        np.testing.assert_allclose(tensors["down.weight/fprop/right"]["scale"],
                                   F32(2688) / weight * F32(1 / 6), rtol=1e-6)


# Rows whose first number makes their blocks' scale 1 where the tensor's largest magnitude is 2688;
# a product with a matrix of ones on the diagonal gives the rounded numbers back.
STEP = """module attributes {{accel.phase = "nn", accel.reports = ["loss", "verdict"], accel.seed = {seed}}} {{
  nn.state @w : tensor<16x16xf32> = dense<0.0>
  nn.state counter @"counter/step" : tensor<i64> = dense<0>
  nn.state counter @"counter/call" : tensor<i64> = dense<{call}>
  func.func @step(%x: tensor<{rows}x16x{type}> {{nn.input = "x"}}, %w: tensor<16x16xf32> {{nn.state = @w}},
      %n: tensor<i64> {{nn.state = @"counter/step"}}, %c: tensor<i64> {{nn.state = @"counter/call"}})
      -> (tensor<f32> {{nn.output = "loss"}}, tensor<i32> {{nn.output = "verdict"}},
          tensor<{rows}x16x{type}> {{nn.output = "y"}}, tensor<16x16xf32> {{nn.state = @w}},
          tensor<i64> {{nn.state = @"counter/step"}}, tensor<i64> {{nn.state = @"counter/call"}})
      attributes {{nn.entry = #nn<entry step>}} {{
    %l = nn.constant dense<0.0> : tensor<f32>
    %v = nn.constant dense<0> : tensor<i32>
    %row = nn.iota {{dim = 0 : i64}} : tensor<16x16xi64>
    %column = nn.iota {{dim = 1 : i64}} : tensor<16x16xi64>
    %same = nn.compare eq %row, %column : tensor<16x16xi64>
    %ones = nn.cast %same : (tensor<16x16xi1>) -> tensor<16x16x{type}>
    %y = nn.matmul %x, %ones {{nn.product = #nn.product<"w", {kind}>}} : (tensor<{rows}x16x{type}>, tensor<16x16x{type}>) -> tensor<{rows}x16x{type}>
    return %l, %v, %y, %w, %n, %c : tensor<f32>, tensor<i32>, tensor<{rows}x16x{type}>, tensor<16x16xf32>, tensor<i64>, tensor<i64>
  }}
}}
"""


@unittest.skipIf(WITHOUT_TOOLS, WITHOUT_TOOLS)
class Rounding(TrainCase):
    def round(self, values, kind="fprop", element="f32", call=0, seed=0):
        """What is between -6 and 6, rounded, and what was drawn for it."""
        values = np.concatenate([values, np.zeros(-len(values) % 15)])
        rows = np.concatenate([np.full((len(values) // 15, 1), 6.0), values.reshape(-1, 15)], 1)
        rows = np.concatenate([rows, np.full((1, 16), 2688.0)])
        program, quantized = self.folder / "m.mlir", self.folder / "q.mlir"
        program.write_text(STEP.format(rows=len(rows), type=element, kind=kind, call=call, seed=seed))
        self.tool("acc-opt", program, "--train-quantize-products=recipe=nvfp4", "-o", quantized)
        inputs, outputs = self.folder / "in", self.folder / "out"
        inputs.mkdir(exist_ok=True)
        np.save(inputs / "x.npy", rows.astype(np.float64 if element == "f64" else np.float32))
        self.tool("acc-eval", "--own-types", quantized, "--inputs", inputs, "--outputs", outputs)
        # Of f64 the product with a factor of f32 is not exact.
        found = np.round(np.load(outputs / "y.npy").astype(np.float64), 5)
        np.testing.assert_array_equal(found[:-1, 0], 6)
        drawn = draw(f"nvfp4/w/{kind}", call, rows.shape, seed).numpy()
        return found[:-1, 1:].reshape(-1), drawn[:-1, 1:].reshape(-1)

    def test_all_numbers_of_16_bits(self):
        for element, dtype in {"bf16": ml_dtypes.bfloat16, "f16": np.float16}.items():
            with self.subTest(element=element):
                numbers = np.arange(2 ** 16, dtype=np.uint16).view(dtype).astype(np.float32)
                numbers = numbers[np.abs(numbers) <= 6]
                found, _ = self.round(numbers, element=element)
                expected = numbers.astype(ml_dtypes.float4_e2m1fn).astype(np.float32)
                np.testing.assert_array_equal(found[:len(numbers)], expected)

    def test_ties_go_to_even(self):
        ties = {0.25: 0, 0.75: 1, 1.25: 1, 1.75: 2, 2.5: 2, 3.5: 4, 5: 4}
        numbers = np.array([*ties, *(-tie for tie in ties)], np.float64)
        expected = np.array([*ties.values(), *(-value for value in ties.values())])
        for element in ("f32", "f64"):
            found, _ = self.round(numbers, element=element)
            np.testing.assert_array_equal(found[:len(numbers)], expected)

    def test_by_chance_it_is_unbiased(self):
        # Each number often, with ties, powers of two and what is next to them among them.
        numbers = np.array([0.1, 0.25, 0.4999, 0.5, 0.6, 0.75, 0.9, 0.9999, 1, 1.0001, 1.3, 1.5, 1.9,
                            1.9999, 2, 2.1, 2.5, 3.3, 3.9999, 4, 4.0001, 4.7, 5, 5.9, 6])
        numbers = np.concatenate([numbers, -numbers]).astype(np.float32).astype(np.float64)
        often = 30_000
        found, drawn = self.round(np.tile(numbers, often), "dgrad", seed=5)
        found = found[:len(numbers) * often].reshape(often, -1)
        table = np.concatenate([-E2M1.numpy()[:0:-1], E2M1.numpy()])
        for index, number in enumerate(numbers):
            at = np.searchsorted(table, number, side="right") - 1
            low, high = table[at], table[min(at + 1, len(table) - 1)]
            column = found[:, index]
            with self.subTest(number=number):
                self.assertTrue(np.isin(column, [low, high] if number != low else [low]).all())
                sigma = np.sqrt((number - low) * (high - number) / often)
                self.assertLessEqual(abs(column.mean() - number), 4 * sigma)
        # And it is those numbers that say so.
        expected = round_to_e2m1(torch.from_numpy(np.tile(numbers, often)),
                                 torch.from_numpy(drawn[:len(numbers) * often])).numpy()
        np.testing.assert_array_equal(found.reshape(-1), expected)

    def test_calls_layers_and_seeds_draw_other_numbers(self):
        numbers = np.full(3000, 0.3)
        found = {self.round(numbers, kind, call=call, seed=seed)[0].tobytes()
                 for kind, call, seed in (("dgrad", 0, 0), ("dgrad", 1, 0), ("dgrad", 0, 1))}
        self.assertEqual(len(found), 3)


if __name__ == "__main__":
    unittest.main()
