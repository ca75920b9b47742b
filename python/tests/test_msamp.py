"""MS-AMP's levels O1 and O2 in float64 emulation of their formats, beside layers and an optimizer of
PyTorch that restate the published algorithm (msamp/nn, msamp/optim and msamp/common/tensor at
9746ea8): losses, weights, moments, scales, windows and counters after each step, on one rank and in
each layout; a run that goes on from a checkpoint, in another layout too, ends with the same bits.
Needs the tools, whose folder ACC_BIN names."""
import json
import math
import unittest

import numpy as np
import torch
from safetensors.torch import load_file

from common import acc_export
from test_fp8 import (CONVERTED, F32, FLT_MAX, IDS, RATE, SHARED, STEPS, Net, amax_of, e4m3, e5m2,
                      round_to)
from training import WITHOUT_TOOLS, TrainCase

WINDOW = 16
# With 0.9 and 0.1 averages of codes are often halfway between two codes, where the last bit decides.
BETAS, EPS, DECAY = (0.90137, 0.99871), 1e-8, 0.01
# By the parts of the batch with scales of their own, and those whose gradients are rounded.
LAYOUTS = {
    (1, 1): {"one rank": (), "tensor": ("--mesh=tp=2",), "recomputed": ("--recompute=query,up,down",),
             "tensor, sequence": ("--mesh=tp=2", "--set=sequence_parallelism=true")},
    (4, 1): {"one rank": ("--set=fp8.blocks=4",), "micro-batches 4": ("--micro-batches=4",),
             "pipeline": ("--mesh=pp=2", "--micro-batches=4")},
    (4, 4): {"one rank": ("--set=fp8.blocks=4", "--set=fp8.gradient_parts=4"),
             "dp 4": ("--mesh=dp=4",),
             "zero 1": ("--mesh=dp_shard=4", "--set=zero_stage=1"),
             "zero 2": ("--mesh=dp_shard=4", "--set=zero_stage=2"),
             "zero 3": ("--mesh=dp_shard=4", "--set=zero_stage=3"),
             "hybrid": ("--mesh=dp_replicate=2,dp_shard=2", "--set=zero_stage=3")},
    (4, 2): {"one rank": ("--set=fp8.blocks=4", "--set=fp8.gradient_parts=2"),
             "dp 2, micro-batches 2": ("--mesh=dp=2", "--micro-batches=2"),
             "zero 2, micro-batches 2": ("--mesh=dp_shard=2", "--set=zero_stage=2",
                                         "--micro-batches=2"),
             "pipeline, dp, recomputed": ("--mesh=pp=2,dp=2", "--micro-batches=2",
                                          "--recompute=query,up,down")}}


def f16(value):
    return round_to(value, 10, -14, 65504.0)


f16.largest = F32(65504)


def power2(amax, largest, old):
    """compute_scaling_factor, of one number."""
    if np.isnan(amax):
        return old
    if np.isinf(amax):
        return F32(1) / old
    if amax <= 0:
        return old
    with np.errstate(over="ignore"):
        ratio = min(largest / amax, FLT_MAX)
    return F32(2.0 ** (math.frexp(float(ratio))[1] - 1))


def code(value, cast, old=F32(1)):
    """Codes with a scale of the tensor itself, and the scale."""
    scale = power2(amax_of(value), cast.largest, old)
    return cast(value * float(scale)), scale


def rounded(value, cast):
    codes, scale = code(value, cast)
    return codes / float(scale)


class Window:
    """A ScalingMeta with a window of 16 steps, whose largest magnitudes are those of the batch."""

    def __init__(self, cast):
        self.cast, self.scale, self.count = cast, F32(1), 0
        self.amaxes, self.amax = [F32(0)] * WINDOW, F32(0)

    def quantize(self, value):
        own = amax_of(value)
        self.amax = max(self.amax, own)
        scale = power2(own, self.cast.largest, self.scale) if self.count < WINDOW else self.scale
        return self.cast(value * float(scale)), F32(1) / scale

    def update(self):
        self.amaxes[0], self.amax = self.amax, F32(0)
        is_finite = np.isfinite(self.amaxes[0])
        if not is_finite:
            self.amaxes[0] = F32(0)
        self.scale = power2(max(self.amaxes), self.cast.largest, self.scale)
        self.amaxes = [F32(0), *self.amaxes[:-1]]
        self.count = self.count + 1 if is_finite else 0


class Product(torch.autograd.Function):
    """x Wᵀ, part of the batch by part."""

    @staticmethod
    def forward(ctx, x, weight, layer):
        codes, scale = code(weight, e4m3)
        inverse = F32(1) / scale
        parts = [layer.input.quantize(part) for part in x.chunk(layer.blocks)]
        ctx.layer, ctx.weight, ctx.parts = layer, (codes, inverse), parts
        return torch.cat([part @ codes.T * float(own * inverse) for part, own in parts])

    @staticmethod
    def backward(ctx, gradient):
        codes, inverse = ctx.weight
        to_input, to_weight = [], []
        for part, (x, of_x) in zip(gradient.chunk(ctx.layer.blocks), ctx.parts, strict=True):
            g, of_g = ctx.layer.gradient.quantize(part)
            to_input.append(g @ codes * float(of_g * inverse))
            to_weight.append(g.flatten(0, -2).T @ x.flatten(0, -2) * float(of_x * of_g))
        # Of a micro-batch the ranks have parts next to each other.
        sums = torch.stack(to_weight).unflatten(0, (-1, ctx.layer.ranks)).sum(0)
        own, scale = code(sums, e4m3)
        return torch.cat(to_input), own.sum(0) / float(scale), None


class Linear(torch.nn.Module):
    def __init__(self, linear, blocks, ranks):
        super().__init__()
        self.weight, self.bias, self.blocks, self.ranks = linear.weight, linear.bias, blocks, ranks
        self.input, self.gradient = Window(e4m3), Window(e5m2)

    def forward(self, x):
        y = Product.apply(x, self.weight, self)
        return y if self.bias is None else y + self.bias


class Adam:
    """LBAdamW and LBAdam, with moments as they are (O1) or coded (O2)."""

    def __init__(self, model, is_coded, is_decoupled):
        self.parameters = dict(model.named_parameters())
        self.linear = {f"{name}.weight" for name in CONVERTED}
        self.is_coded, self.is_decoupled, self.steps = is_coded, is_decoupled, 0
        self.moments = {name: [(torch.zeros_like(each), F32(1))] * 2
                        for name, each in self.parameters.items()}

    @torch.no_grad()
    def step(self):
        self.steps += 1
        for name, parameter in self.parameters.items():
            gradient = parameter.grad
            (mean, of_mean), (square, of_square) = self.moments[name]
            if self.is_decoupled:
                parameter.mul_(1 - RATE * DECAY)
            else:
                gradient = gradient + DECAY * parameter
            mean = mean / float(of_mean) * BETAS[0] + gradient * (1 - BETAS[0])
            square = square / float(of_square) * BETAS[1] + gradient ** 2 * (1 - BETAS[1])
            size = RATE / (1 - BETAS[0] ** self.steps)
            correction = math.sqrt(1 - BETAS[1] ** self.steps)
            parameter.sub_(size * mean / (square.sqrt() / correction + EPS))
            if name in self.linear:
                parameter.copy_(rounded(parameter, f16))
            self.moments[name] = [code(mean, e4m3), code(square, f16)] if self.is_coded else [
                (mean, F32(1)), (square, F32(1))]


def by_torch(blocks, ranks, is_coded=True, is_decoupled=True, steps=STEPS):
    """Losses, states after each step, and the model."""
    model = Net().double()
    for name in CONVERTED:
        setattr(model, name, Linear(getattr(model, name), blocks, ranks))
    optimizer = Adam(model, is_coded, is_decoupled)
    losses, states = [], []
    for _ in range(steps):
        model.zero_grad()
        loss = model(IDS, IDS)
        losses.append(loss.item())
        loss.backward()
        optimizer.step()
        found = {}
        for name in CONVERTED:
            for role in ("input", "gradient"):
                window = getattr(getattr(model, name), role)
                window.update()
                if f"{name}/{role}" not in SHARED:
                    own = f"fp8/{name}.weight/{role}"
                    found |= {f"{own}/scale": window.scale, f"{own}/amax_history": list(window.amaxes),
                              f"{own}/amax_counter": window.count}
        for name, moments in optimizer.moments.items():
            for kind, (codes, scale) in zip(("exp_avg", "exp_avg_sq"), moments, strict=True):
                found[f"{kind}/{name}"] = codes.clone()
                if is_coded:
                    found[f"{kind}_scale/{name}"] = scale
        states.append(found)
    return losses, states, {name: each.detach() for name, each in model.named_parameters()}


@unittest.skipIf(WITHOUT_TOOLS, WITHOUT_TOOLS)
class MsAmp(TrainCase):
    def setUp(self):
        super().setUp()
        acc_export.export(Net(), (IDS, IDS), dir=str(self.folder))

    def compile(self, *words, level="o2", optimizer="adamw", dtype="f64"):
        program = self.folder / "m.accx"
        self.tool("acc-opt", self.folder / "model.onnx", "--train", "--loss=loss",
                  f"--dtype={dtype}", "--mixed-precision=fp8", f"--set=fp8.recipe=msamp_{level}",
                  f"--optimizer={optimizer}", f"--set=optimizer.lr={RATE}",
                  f"--set=optimizer.weight_decay={DECAY}",
                  f"--set=optimizer.betas={BETAS[0]},{BETAS[1]}", *words, "-o", program)
        return program

    def run_steps(self, program, *words, steps=STEPS):
        saved = self.folder / "w.safetensors"
        lines = self.tool("acc-run", program, "--steps", steps, "--inputs", self.folder / "inputs",
                          "--json", "--save-weights", saved, *words).splitlines()
        return [float(json.loads(line)["loss"]) for line in lines[:-1]], load_file(saved)

    def check(self, expected, program, name, steps=STEPS):
        losses, states, weights = expected
        kept = self.folder / name.replace(" ", "-")
        found, saved = self.run_steps(program, "--checkpoint", kept, "--save-every", 1, "--keep",
                                      steps, steps=steps)
        np.testing.assert_allclose(found, losses, rtol=1e-12, atol=1e-14)
        for name, weight in weights.items():
            if name.removesuffix(".weight") in CONVERTED:  # the same codes and scale
                torch.testing.assert_close(saved[name], weight, rtol=0, atol=0)
            else:
                torch.testing.assert_close(saved[name], weight, rtol=1e-8, atol=1e-9)
        for step, own in enumerate(states, 1):
            found = load_file(kept / f"step-{step:08}" / "optimizer.safetensors")
            self.assertEqual({each for each in found if "/" in each and each[:7] != "counter"},
                             set(own), step)
            for name, value in own.items():
                is_moment = name.startswith("exp_avg") and "scale/" not in name
                if is_moment and found[name].dtype != torch.float64:
                    self.assertTrue(torch.equal(found[name].double(), value), (step, name))
                elif is_moment:
                    torch.testing.assert_close(found[name], value, rtol=1e-8, atol=1e-12)
                else:
                    self.assertEqual(found[name].tolist(), np.asarray(value).tolist(),
                                     (step, name))

    def test_levels_are_the_published_ones(self):
        for level, optimizer in (("o1", "adamw"), ("o2", "adamw"), ("o2", "adam")):
            with self.subTest(level=level, optimizer=optimizer):
                self.check(by_torch(1, 1, level == "o2", optimizer == "adamw"),
                           self.compile(level=level, optimizer=optimizer), level + optimizer)

    def test_scales_come_from_the_window_when_it_is_full(self):
        expected = by_torch(4, 4, steps=WINDOW + 6)
        self.check(expected, self.compile("--mesh=dp=4"), "long", steps=WINDOW + 6)

    def test_no_layout_changes_a_number(self):
        for parts, layouts in LAYOUTS.items():
            expected = by_torch(*parts)
            for layout, words in layouts.items():
                with self.subTest(parts=parts, layout=layout):
                    self.check(expected, self.compile(*words), f"{parts} {layout}")

    def test_moments_take_three_bytes_where_adams_take_eight(self):
        count = sum(each.numel() for each in Net().parameters())
        scales = 2 * 4 * len(list(Net().parameters()))  # of each moment a float32
        for level, expected in (("o1", 8 * count), ("o2", 3 * count + scales)):
            text = self.tool("acc-opt", self.folder / "model.onnx", "--train", "--loss=loss",
                             "--mixed-precision=fp8", f"--set=fp8.recipe=msamp_{level}",
                             "--optimizer=adamw", "--report=memory", "--json")
            device = next(each for each in json.loads(text)["arenas"]
                          if each["space"] == "device")
            self.assertEqual(device["roles"]["moments"], expected, level)
            self.assertEqual(device["roles"]["parameters"], 4 * count, level)

    def test_gradients_go_as_codes(self):
        elements = sum(getattr(Net(), name).weight.numel() for name in CONVERTED)
        for words, kind in (((), "all_gather"),
                            (("--set=zero_stage=2",), "all_to_all")):
            text = self.tool("acc-opt", self.folder / "model.onnx", "--train", "--loss=loss",
                             "--mixed-precision=fp8", "--set=fp8.recipe=msamp_o1",
                             "--mesh=dp_shard=4", *words, "--explain=collectives")
            rows = [line.split() for line in text.splitlines() if " backward " in line]
            codes = [row for row in rows if "f8E4M3FN" in row]
            self.assertEqual({row[row.index("backward") + 1] for row in codes}, {kind}, text)
            self.assertEqual(sum(int(row[row.index("B") - 1]) for row in codes), elements, text)

    def test_a_run_goes_on_with_the_same_bits(self):
        words = ("--mesh=dp_shard=4", "--set=zero_stage=3")
        program, kept = self.compile(*words), self.folder / "kept"
        losses, saved = self.run_steps(program, "--checkpoint", kept, "--save-every", 1, "--keep",
                                       STEPS)
        for first in range(1, STEPS):
            with self.subTest(first=first):
                again, found = self.run_steps(program, "--resume", kept / f"step-{first:08}")
                self.assertEqual(again, losses[first:])
                for name, weight in saved.items():
                    self.assertTrue(torch.equal(found[name], weight), name)
        other = self.compile("--set=fp8.blocks=4", "--set=fp8.gradient_parts=4")
        again, _ = self.run_steps(other, "--resume", kept / "step-00000005")
        np.testing.assert_allclose(again, losses[5:], rtol=1e-12)


if __name__ == "__main__":
    unittest.main()
