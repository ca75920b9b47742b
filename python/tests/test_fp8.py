"""fp8 in float64 emulation of its formats, beside layers of PyTorch that quantize as the recipes do:
losses, and scales and histories of amax after each step, are those of a restatement of Transformer
Engine's delayed and current scaling (transformer_engine/common/recipe at d0067d0) and of torchao's
tensorwise (torchao/float8 at 36027d8), on one rank and in each layout; a run that goes on from a
checkpoint, in another layout too, ends with the same bits. Needs the tools, whose folder ACC_BIN
names."""
import json
import unittest

import numpy as np
import torch
from safetensors.torch import load_file

from common import acc_export
from training import WITHOUT_TOOLS, TrainCase

BATCH, LENGTH, STEPS, RATE, WORDS = 8, 6, 12, 0.01, 64
LAYOUTS = {"micro-batches 4": ("--micro-batches=4",),
           "dp 4": ("--mesh=dp=4",),
           "dp 2, micro-batches 2": ("--mesh=dp=2", "--micro-batches=2"),
           "zero 3": ("--mesh=dp_shard=4", "--set=zero_stage=3"),
           "pipeline": ("--mesh=pp=2", "--micro-batches=4"),
           "pipeline, dp, recomputed": ("--mesh=pp=2,dp=2", "--micro-batches=2",
                                        "--recompute=query,up,down"),
           "recomputed": ("--recompute=query,up,down",),
           "tensor": ("--mesh=tp=2",),
           "tensor, sequence": ("--mesh=tp=2", "--set=sequence_parallelism=true")}
F32 = np.float32
FLT_MAX = np.finfo(F32).max


def round_to(value, fraction, least, largest):
    """To the nearest number of a format of `fraction` bits, ties to even; saturating."""
    _, exponent = torch.frexp(value.abs())
    step = torch.ldexp(torch.ones_like(value), (exponent - 1).clamp(min=least) - fraction)
    return (torch.round(value / step) * step).clamp(-largest, largest)


def e4m3(value):
    return round_to(value, 3, -6, 448.0)


def e5m2(value):
    return round_to(value, 2, -14, 57344.0)


e4m3.largest, e5m2.largest = F32(448), F32(57344)


def amax_of(value):
    return F32(value.detach().abs().max().item())


class Delayed:
    """One tensor's quantizer. Its update is delayed_scaling.cu's, once a step."""
    margin, length, algorithm, interval = 0, 1024, "max", 1

    def __init__(self, cast):
        self.cast, self.scale = cast, F32(1)
        self.history, self.amax, self.steps = [F32(0)] * self.length, F32(0), 0

    def quantize(self, value):
        self.amax = max(self.amax, amax_of(value))
        inverse = F32(1) / self.scale
        return self.cast(value * float(self.scale)), inverse

    def update(self):
        last, self.amax, self.steps = self.amax, F32(0), self.steps + 1
        chosen = F32(0)
        if last != 0:
            chosen = max([last, *self.history[1:]])
            self.history = [F32(0), *self.history[2:], last][:self.length]
            if self.length == 1:
                self.history = [F32(0)]
        if self.algorithm == "most_recent":
            chosen = last
        if np.isfinite(chosen) and chosen > 0 and self.steps % self.interval == 0:
            with np.errstate(over="ignore"):
                scale = F32(self.cast.largest * F32(2.0 ** -self.margin)) / chosen
            self.scale = min(scale, FLT_MAX)


class Current:
    """Of each of `blocks` parts of the batch its own; of a weight one."""
    blocks = 1

    def __init__(self, cast):
        self.cast = cast

    def scale_of(self, amax):
        if amax == 0 or not np.isfinite(amax):
            return F32(1)
        with np.errstate(over="ignore"):
            return min(self.cast.largest / amax, FLT_MAX)

    def quantize(self, value):
        scale = self.scale_of(amax_of(value))
        return self.cast(value * float(scale)), F32(1) / scale

    def update(self):
        pass


class Tensorwise(Current):
    def scale_of(self, amax):
        return F32(float(self.cast.largest) / max(float(amax), 1e-12))


def below(scale):
    """The power of two that is not larger."""
    return F32(2.0 ** np.floor(np.log2(np.float64(scale))))


class Power2(Current):
    def scale_of(self, amax):
        return below(super().scale_of(amax))


class Power2Tensorwise(Tensorwise):
    def scale_of(self, amax):
        return below(super().scale_of(amax))


class Product(torch.autograd.Function):
    """x Wᵀ, part of the batch by part."""

    @staticmethod
    def forward(ctx, x, weight, layer):
        codes, inverse = layer.weight_quantizer.quantize(weight)
        parts = [layer.input_quantizer.quantize(part) for part in x.chunk(layer.blocks)]
        ctx.layer, ctx.weight, ctx.parts = layer, (codes, inverse), parts
        return torch.cat([part @ codes.T * float(own * inverse) for part, own in parts])

    @staticmethod
    def backward(ctx, gradient):
        codes, inverse = ctx.weight
        to_input, to_weight = [], 0
        for part, (x, of_x) in zip(gradient.chunk(ctx.layer.blocks), ctx.parts, strict=True):
            g, of_g = ctx.layer.gradient_quantizer.quantize(part)
            to_input.append(g @ codes * float(of_g * inverse))
            to_weight = to_weight + g.flatten(0, -2).T @ x.flatten(0, -2) * float(of_x * of_g)
        return torch.cat(to_input), to_weight, None


def floor_power2(value):
    _, exponent = torch.frexp(value)
    return torch.ldexp(torch.ones_like(value), exponent - 1)


def torchao_scale(amax, power2=True):
    scale = (448 / amax.double().clamp(min=1e-12)).float()
    return floor_power2(scale) if power2 else scale


def transformer_engine_scale(amax, power2=True):
    scale = torch.full_like(amax, 448.0) / amax
    scale = torch.where((amax > 0) & amax.isfinite(), scale.clamp(max=float(FLT_MAX)), 1.0)
    return floor_power2(scale) if power2 else scale


def shared_exponent(amax):
    """What an f8E8M0FNU says, by the bits of amax / 448 (float_to_e8m0 of Transformer Engine)."""
    bits = (amax * torch.tensor(F32(1) / F32(448))).view(torch.int32)
    exponent, fraction = bits >> 23, bits & 0x7FFFFF
    up = (fraction != 0) & (exponent != 254) & ~((exponent == 0) & (fraction <= 0x400000))
    code = exponent + up.int()
    return torch.ldexp(torch.ones_like(amax), 127 - code)


def round_parts(value, sizes, scale_of):
    """What codes stand for whose scales parts of these sizes share, by dimensions from the last."""
    shape = value.shape
    padded = torch.nn.functional.pad(value, [end for dim, size in enumerate(sizes)
                                             for end in (0, -shape[-1 - dim] % size)])
    split, shared = list(padded.shape[:-len(sizes)]), []
    for dim in range(len(sizes) - 1, -1, -1):
        split += [padded.shape[-1 - dim] // sizes[dim], sizes[dim]]
        shared.append(len(split) - 1)
    parts = padded.reshape(split)
    scale = scale_of(parts.abs().amax(shared, keepdim=True).float())
    rounded = e4m3(parts * scale.double()) * (1 / scale).double()
    return rounded.reshape(padded.shape)[tuple(slice(0, size) for size in shape)]


class Rowwise:
    keeps_wgrad = False

    @staticmethod
    def round(value, role, kind):
        """`value` is summed over in its last dimension."""
        return round_parts(value, (value.shape[-1],), torchao_scale)


class RowwiseWithGwHp(Rowwise):
    keeps_wgrad = True

    @staticmethod
    def round(value, role, kind):
        sizes = value.shape[::-1] if (role, kind) == ("weight", "dgrad") else value.shape[-1:]
        return round_parts(value, sizes, torchao_scale)


class Block(Rowwise):
    @staticmethod
    def round(value, role, kind):
        return round_parts(value, (128, 128) if role == "weight" else (128,),
                           transformer_engine_scale)


class ExactBlock(Rowwise):
    @staticmethod
    def round(value, role, kind):
        return round_parts(value, (128, 128) if role == "weight" else (128,),
                           lambda amax: transformer_engine_scale(amax, power2=False))


class ExactRowwise(Rowwise):
    @staticmethod
    def round(value, role, kind):
        return round_parts(value, (value.shape[-1],), lambda amax: torchao_scale(amax, False))


class Mxfp8(Rowwise):
    @staticmethod
    def round(value, role, kind):
        return round_parts(value, (32,), shared_exponent)


class RoundedProduct(torch.autograd.Function):
    """x Wᵀ of operands that are rounded for each product by itself, a weight's gradient part of
    the batch by part."""

    @staticmethod
    def forward(ctx, x, weight, recipe, blocks):
        ctx.save_for_backward(x, weight)
        ctx.recipe, ctx.blocks = recipe, blocks
        return recipe.round(x, "input", "fprop") @ recipe.round(weight, "weight", "fprop").T

    @staticmethod
    def backward(ctx, gradient):
        x, weight = ctx.saved_tensors
        recipe = ctx.recipe
        to_input = (recipe.round(gradient, "gradient", "dgrad")
                    @ recipe.round(weight.T, "weight", "dgrad").T)
        to_weight = 0
        for own, inputs in zip(gradient.chunk(ctx.blocks), x.chunk(ctx.blocks), strict=True):
            own, inputs = own.flatten(0, -2).T, inputs.flatten(0, -2).T
            if not recipe.keeps_wgrad:
                own = recipe.round(own, "gradient", "wgrad")
                inputs = recipe.round(inputs, "input", "wgrad")
            to_weight = to_weight + own @ inputs.T
        return to_input, to_weight, None, None


class RoundedLinear(torch.nn.Module):
    """A linear layer of a recipe without states."""

    def __init__(self, linear, recipe, blocks):
        super().__init__()
        self.weight, self.bias, self.recipe, self.blocks = linear.weight, linear.bias, recipe, blocks

    def quantizers(self):
        return {}

    def forward(self, x):
        y = RoundedProduct.apply(x, self.weight, self.recipe, self.blocks)
        return y if self.bias is None else y + self.bias


class Linear(torch.nn.Module):
    """A linear layer in fp8."""

    def __init__(self, linear, make, gradient=e5m2):
        super().__init__()
        self.weight, self.bias, self.blocks = linear.weight, linear.bias, make.blocks if hasattr(
            make, "blocks") else 1
        self.input_quantizer, self.weight_quantizer = make(e4m3), make(e4m3)
        self.gradient_quantizer = make(gradient)

    def quantizers(self):
        return {"input": self.input_quantizer, "weight": self.weight_quantizer,
                "gradient": self.gradient_quantizer}

    def forward(self, x):
        y = Product.apply(x, self.weight, self)
        return y if self.bias is None else y + self.bias


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.table, self.norm = torch.nn.Embedding(WORDS, 32), torch.nn.LayerNorm(32)
        self.query, self.key = torch.nn.Linear(32, 32), torch.nn.Linear(32, 32)
        self.up, self.down = torch.nn.Linear(32, 48), torch.nn.Linear(48, 32, bias=False)
        self.odd, self.head = torch.nn.Linear(32, 40), torch.nn.Linear(40, WORDS)

    def forward(self, ids, labels):
        x = self.norm(self.table(ids))
        x = x + self.query(x) * torch.tanh(self.key(x))
        x = x + self.down(torch.nn.functional.gelu(self.up(x)))
        logits = self.head(self.odd(x))
        return torch.nn.functional.cross_entropy(logits.view(-1, WORDS), labels.view(-1))


IDS = torch.randint(0, WORDS, (BATCH, LENGTH), generator=torch.Generator().manual_seed(4))
CONVERTED = ("query", "key", "up", "down")
# Those that read one tensor share its quantizer, which is named for the first.
SHARED = {"key/input": "query/input"}


def by_torch(make, convert=None):
    """Losses, and the quantizers' states after each step."""
    model = Net().double()
    for name in CONVERTED:
        setattr(model, name, (convert or Linear)(getattr(model, name), make))
    optimizer = torch.optim.AdamW(model.parameters(), lr=RATE)
    losses, states = [], []
    for _ in range(STEPS):
        optimizer.zero_grad()
        loss = model(IDS, IDS)
        losses.append(loss.item())
        loss.backward()
        optimizer.step()
        quantizers = {f"{name}/{role}": quantizer for name in CONVERTED
                      for role, quantizer in getattr(model, name).quantizers().items()}
        for quantizer in quantizers.values():
            quantizer.update()
        states.append({name: (quantizer.scale, quantizer.history)
                       for name, quantizer in quantizers.items() if hasattr(make, "length")})
    return losses, states, dict(model.named_parameters())


class Fp8Case(TrainCase):
    """Compiles and runs the model."""

    def setUp(self):
        super().setUp()
        acc_export.export(Net(), (IDS, IDS), dir=str(self.folder))

    def compile(self, *words):
        program = self.folder / "m.accx"
        self.tool("acc-opt", self.folder / "model.onnx", "--train", "--loss=loss", "--dtype=f64",
                  "--mixed-precision=fp8", "--optimizer=adamw", f"--set=optimizer.lr={RATE}",
                  *words, "-o", program)
        return program

    def run_steps(self, program, *words):
        saved = self.folder / "w.safetensors"
        lines = self.tool("acc-run", program, "--steps", STEPS, "--inputs", self.folder / "inputs",
                          "--json", "--save-weights", saved, *words).splitlines()
        return [float(json.loads(line)["loss"]) for line in lines[:-1]], load_file(saved)

    def check_weights(self, saved, weights):
        for name, weight in weights.items():
            torch.testing.assert_close(saved[name], weight.detach(), rtol=1e-8, atol=1e-9)


@unittest.skipIf(WITHOUT_TOOLS, WITHOUT_TOOLS)
class Fp8(Fp8Case):
    def check_states(self, folder, states):
        for step, expected in enumerate(states, 1):
            found = load_file(folder / f"step-{step:08}" / "optimizer.safetensors")
            names = {name for name in found if name.startswith("fp8/")}
            self.assertEqual(names, {f"fp8/{name.replace('/', '.weight/')}/{what}"
                                     for name in expected if name not in SHARED
                                     for what in ("scale", "amax_history")})
            for name, (scale, history) in expected.items():
                own = "fp8/" + SHARED.get(name, name).replace("/", ".weight/")
                self.assertEqual(found[own + "/scale"].item(), scale, (step, name))
                self.assertEqual(found[own + "/amax_history"].tolist(),
                                 [float(each) for each in history], (step, name))

    def test_delayed_scaling_is_transformer_engines(self):
        for name, words in {"hybrid": ("--set=fp8.amax_history_len=4",),
                            "most recent": ("--set=fp8.amax_history_len=3",
                                            "--set=fp8.amax_compute_algo=most_recent"),
                            "one step": ("--set=fp8.amax_history_len=1", "--set=fp8.margin=1"),
                            "interval": ("--set=fp8.interval=3", "--set=fp8.amax_history_len=3"),
                            "e4m3": ("--set=fp8.amax_history_len=2", "--set=fp8.format=e4m3")
                            }.items():
            class Own(Delayed):
                length = int(words[name == "interval"].rpartition("=")[2])
                interval = 3 if name == "interval" else 1
                algorithm = "most_recent" if name == "most recent" else "max"
                margin = 1 if name == "one step" else 0
            with self.subTest(name=name):
                losses, states, weights = by_torch(
                    Own, lambda linear, make: Linear(linear, make,
                                                     e4m3 if words[-1].endswith("e4m3") else e5m2))
                kept = self.folder / name.replace(" ", "-")
                found, saved = self.run_steps(self.compile(*words), "--checkpoint", kept,
                                              "--save-every", 1, "--keep", STEPS)
                np.testing.assert_allclose(found, losses, rtol=1e-12)
                self.check_weights(saved, weights)
                self.check_states(kept, states)

    def test_no_layout_changes_delayed_scaling(self):
        class Own(Delayed):
            length = 4
        losses, states, weights = by_torch(Own)
        for layout, words in LAYOUTS.items():
            with self.subTest(layout=layout):
                kept = self.folder / layout.replace(" ", "-")
                found, saved = self.run_steps(
                    self.compile("--set=fp8.amax_history_len=4", *words), "--checkpoint", kept,
                    "--save-every", 1, "--keep", STEPS)
                np.testing.assert_allclose(found, losses, rtol=1e-12)
                self.check_weights(saved, weights)
                self.check_states(kept, states)

    def test_current_scales_are_those_of_parts_of_the_batch(self):
        for recipe, kind in {"current": Current, "tensorwise": Tensorwise}.items():
            words = (f"--set=fp8.recipe={recipe}", "--set=fp8.skip_first_last=false")
            for blocks in (1, 4):
                class Own(kind):
                    pass
                Own.blocks = blocks
                losses, _, weights = by_torch(Own)
                layouts = {"one rank": (f"--set=fp8.blocks={blocks}",)}
                if blocks == 4:
                    layouts |= {name: own for name, own in LAYOUTS.items()
                                if name not in ("recomputed", "tensor", "tensor, sequence")}
                else:
                    layouts |= {name: LAYOUTS[name]
                                for name in ("recomputed", "tensor", "tensor, sequence")}
                for layout, own in layouts.items():
                    with self.subTest(recipe=recipe, blocks=blocks, layout=layout):
                        found, saved = self.run_steps(self.compile(*words, *own))
                        np.testing.assert_allclose(found, losses, rtol=1e-12)
                        self.check_weights(saved, weights)

    def test_rows_and_blocks_have_scales(self):
        recipes = {"rowwise": Rowwise, "rowwise_with_gw_hp": RowwiseWithGwHp, "block": Block,
                   "mxfp8": Mxfp8}
        for name, recipe in recipes.items():
            words = (f"--set=fp8.recipe={name}", "--set=fp8.skip_first_last=false")
            for blocks in (1, 4):
                losses, _, weights = by_torch(
                    recipe, lambda linear, own: RoundedLinear(linear, own, blocks))
                # It has no parts to speak of, and refuses a number.
                layouts = {"one rank": () if name == "rowwise_with_gw_hp" else (
                    f"--set=fp8.blocks={blocks}",)}
                names = ("recomputed", "tensor, sequence") if blocks == 1 else (
                    "dp 2, micro-batches 2", "pipeline, dp, recomputed")
                layouts |= {layout: LAYOUTS[layout] for layout in names}
                for layout, own in layouts.items():
                    with self.subTest(recipe=name, blocks=blocks, layout=layout):
                        found, saved = self.run_steps(self.compile(*words, *own))
                        np.testing.assert_allclose(found, losses, rtol=1e-12)
                        self.check_weights(saved, weights)

    def test_scales_are_powers_of_two_where_it_is_said(self):
        for recipe, value, make, convert in (
                ("current", "true", Power2, None), ("tensorwise", "true", Power2Tensorwise, None),
                ("block", "false", ExactBlock, True), ("rowwise", "false", ExactRowwise, True)):
            with self.subTest(recipe=recipe):
                losses, _, weights = by_torch(make, convert and (
                    lambda linear, own: RoundedLinear(linear, own, 1)))
                found, saved = self.run_steps(self.compile(
                    f"--set=fp8.recipe={recipe}", f"--set=fp8.power_2_scale={value}",
                    "--set=fp8.skip_first_last=false"))
                np.testing.assert_allclose(found, losses, rtol=1e-12)
                self.check_weights(saved, weights)

    def test_a_run_goes_on_with_the_same_bits(self):
        program, kept = self.compile("--set=fp8.amax_history_len=3"), self.folder / "kept"
        losses, saved = self.run_steps(program, "--checkpoint", kept, "--save-every", 1, "--keep",
                                       STEPS)
        for first in range(1, STEPS):
            with self.subTest(first=first):
                again, found = self.run_steps(program, "--resume", kept / f"step-{first:08}")
                self.assertEqual(again, losses[first:])
                for name, weight in saved.items():
                    self.assertTrue(torch.equal(found[name], weight), name)
        other = self.compile("--set=fp8.amax_history_len=3", *LAYOUTS["pipeline, dp, recomputed"])
        again, _ = self.run_steps(other, "--resume", kept / "step-00000005")
        np.testing.assert_allclose(again, losses[5:], rtol=1e-12)


if __name__ == "__main__":
    unittest.main()
