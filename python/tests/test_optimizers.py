"""Every optimizer against its original in float64, over 200 steps: torch.optim's own classes,
and for Lion, LAMB and LARS the algorithm of their papers; alone, sharded, split and in a
pipeline, with groups of parameters, stacks of matrices and clipping; and checkpoints that
another layout goes on from. Needs the tools, whose folder ACC_BIN names."""
import copy
import json
import pathlib
import re
import subprocess
import unittest
from unittest import mock

import torch
import torch.nn.functional as F
from safetensors.torch import load_file

from test_decay import Net as Mixture
from training import TOOLS, WITHOUT_TOOLS, Pair, Refused, TrainCase, sample

STEPS = 200
LAYOUTS = {"one": "", "zero1": "--mesh dp=4 --set zero_stage=1",
           "zero2": "--mesh dp=4 --set zero_stage=2", "zero3": "--mesh dp=4 --set zero_stage=3",
           "tp": "--mesh tp=2", "pp": "--mesh pp=2 --micro-batches=2"}


class Net(torch.nn.Module):
    """Sizes that four ranks do not divide; parameters of none to three dimensions."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(3)
        self.table = torch.nn.Embedding(13, 6)
        self.norm = torch.nn.LayerNorm(6, eps=2.0 ** -10)  # the same in float32
        self.up, self.down = torch.nn.Linear(6, 10), torch.nn.Linear(10, 6)
        self.scale = torch.nn.Parameter(torch.tensor(0.75))
        self.mix = torch.nn.Parameter(torch.randn(2, 3, 6) / 4)
        self.narrow = torch.nn.Linear(6, 5)
        self.head = torch.nn.Linear(5, 7)

    def forward(self, ids, labels):
        x = self.norm(self.table(ids))
        x = x + self.scale * self.down(torch.tanh(self.up(x)))
        x = x * (1 + self.mix.sum(0).sum(0))
        return F.cross_entropy(self.head(torch.tanh(self.narrow(x)).mean(1)), labels)


class Paper(torch.optim.Optimizer):
    def __init__(self, groups, **defaults):
        super().__init__(groups, {"weight_decay": 0, **defaults})

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            for p in group["params"]:
                state = self.state[p]
                state["step"] = state.get("step", 0) + 1
                self.move(p, p.grad, state, group)


def trust(above, below, size):
    return above / below if above > 0 and size > 0 else 1.0


class Lion(Paper):
    """arXiv:2302.06675, program 1."""

    def move(self, p, g, state, group):
        (b1, b2), lr = group["betas"], group["lr"]
        m = state.setdefault("m", torch.zeros_like(p))
        p -= lr * (torch.sign(m * b1 + g * (1 - b1)) + group["weight_decay"] * p)
        m.mul_(b2).add_((1 - b2) * g)


class Lamb(Paper):
    """arXiv:1904.00962, algorithm 2."""

    def move(self, p, g, state, group):
        (b1, b2), t = group["betas"], state["step"]
        m = state.setdefault("m", torch.zeros_like(p))
        v = state.setdefault("v", torch.zeros_like(p))
        m.mul_(b1).add_((1 - b1) * g)
        v.mul_(b2).add_((1 - b2) * g * g)
        r = m / (1 - b1 ** t) / ((v / (1 - b2 ** t)).sqrt() + group["eps"])
        u = r + group["weight_decay"] * p
        p -= group["lr"] * trust(p.norm(), u.norm(), u.norm()) * u


class Lars(Paper):
    """arXiv:1708.03888, algorithm 1."""

    def move(self, p, g, state, group):
        decay = group["weight_decay"]
        local = trust(group["trust_coefficient"] * p.norm(), g.norm() + decay * p.norm(), g.norm())
        m = state.setdefault("m", torch.zeros_like(p))
        m.mul_(group["momentum"]).add_(group["lr"] * local * (g + decay * p))
        p -= m


class ScheduleFreeAdamW(Paper):
    """arXiv:2405.15682, algorithm 1, with the weights of the averages and the corrections of
    its package `schedulefree`. Parameters are y, where gradients are taken."""

    def move(self, y, g, state, group):
        (b1, b2), t = group["betas"], state["step"]
        z = state.setdefault("z", y.clone())
        x = state.setdefault("x", y.clone())
        v = state.setdefault("v", torch.zeros_like(y))
        lr = group["lr"] * min(1.0, t / group["warmup_steps"] if group["warmup_steps"] else 1.0)
        state["largest"] = max(lr, state.get("largest", -1.0))
        weight = t ** group["r"] * state["largest"] ** group["weight_lr_power"]
        state["sum"] = state.get("sum", 0.0) + weight
        c = weight / state["sum"]
        v.mul_(b2).add_((1 - b2) * g * g)
        step = g / ((v / (1 - b2 ** t)).sqrt() + group["eps"]) + group["weight_decay"] * y
        z -= lr * step
        x.mul_(1 - c).add_(c * z)
        y.copy_((1 - b1) * z + b1 * x)


class ScaledMuon(Paper):
    """https://kellerjordan.github.io/posts/muon, with the scale modes of Megatron-LM
    (emerging_optimizers: spectral, arXiv:2502.16982; unit_rms_norm, arXiv:2502.07529)."""

    SCALES = {"original": lambda out, into: max(1, out / into) ** 0.5,
              "match_rms_adamw": lambda out, into: 0.2 * max(out, into) ** 0.5,
              "spectral": lambda out, into: max(out, into) ** 0.5,
              "unit_rms_norm": lambda out, into: (out / into) ** 0.5}

    def move(self, p, g, state, group):
        beta, lr = group["momentum"], group["lr"]
        m = state.setdefault("m", torch.zeros_like(p))
        m.mul_(beta).add_((1 - beta) * g)
        x = beta * m + (1 - beta) * g if group["nesterov"] else m
        x = x / x.norm().clamp(min=1e-7)
        for _ in range(group["ns_steps"]):
            gram = x @ x.T
            x = 3.4445 * x + (-4.7750 * gram + 2.0315 * gram @ gram) @ x
        p -= lr * (self.SCALES[group["adjust_lr_fn"]](*p.shape) * x + group["weight_decay"] * p)


class MuonAndAdamW:
    """torch.optim.Muon for hidden matrices, AdamW for all else, as both papers on it say."""

    def __init__(self, groups, lr, weight_decay, outer=("table.weight", "head.weight"), **other):
        named = [pair for group in groups for pair in group["named"]]
        hidden = [p for n, p in named if p.dim() == 2 and n not in outer]
        self.inner = [torch.optim.Muon(hidden, lr=lr, weight_decay=weight_decay, **other),
                      torch.optim.AdamW([p for n, p in named if all(p is not h for h in hidden)],
                                        lr=lr, weight_decay=weight_decay)]

    def zero_grad(self):
        for one in self.inner:
            one.zero_grad()

    def step(self):
        # PyTorch rounds to bfloat16 before it makes matrices orthogonal; we do not.
        with mock.patch.object(torch.Tensor, "bfloat16", torch.Tensor.clone):
            for one in self.inner:
                one.step()


def settings(**values):
    def spell(value):
        if isinstance(value, tuple):
            return ",".join(map(str, value))
        return str(value).lower() if isinstance(value, bool) else value
    return [f"--set=optimizer.{key}={spell(value)}" for key, value in values.items()]


#: Those with moments in 8 bits, whose rules test_adam_8bit.py and test_msamp.py hold.
CODED = {"adamw_8bit", "adam_8bit", "adamw_fp8", "adam_fp8"}

# The name, the original, and what both are given.
O = torch.optim
CASES = {
    "sgd": (O.SGD, {"lr": 0.1}),
    "sgd momentum": (O.SGD, {"lr": 0.05, "momentum": 0.9, "dampening": 0.3, "weight_decay": 0.01}),
    "sgd nesterov": (O.SGD, {"lr": 0.05, "momentum": 0.9, "nesterov": True}),
    "adam": (O.Adam, {"lr": 0.01, "weight_decay": 0.1}),
    "adam amsgrad": (O.Adam, {"lr": 0.01, "amsgrad": True, "betas": (0.8, 0.9)}),
    "adamw": (O.AdamW, {"lr": 0.01, "weight_decay": 0.1, "amsgrad": True}),
    "adamax": (O.Adamax, {"lr": 0.01, "weight_decay": 0.01}),
    "nadam": (O.NAdam, {"lr": 0.003, "weight_decay": 0.01}),
    "nadam decoupled": (O.NAdam, {"lr": 0.01, "weight_decay": 0.1, "momentum_decay": 0.01,
                                  "decoupled_weight_decay": True}),
    "radam": (O.RAdam, {"lr": 0.01, "weight_decay": 0.01}),
    "radam decoupled": (O.RAdam, {"lr": 0.01, "weight_decay": 0.1,
                                  "decoupled_weight_decay": True}),
    "adagrad": (O.Adagrad, {"lr": 0.05, "lr_decay": 0.01, "weight_decay": 0.01,
                            "initial_accumulator_value": 0.1}),
    "adadelta": (O.Adadelta, {"lr": 0.3, "rho": 0.8, "weight_decay": 0.01}),
    "rmsprop": (O.RMSprop, {"lr": 0.002, "weight_decay": 0.01}),
    "rmsprop centered": (O.RMSprop, {"lr": 0.002, "centered": True, "momentum": 0.5}),
    "lion": (Lion, {"lr": 0.001, "betas": (0.9, 0.98), "weight_decay": 0.1}),
    "lamb": (Lamb, {"lr": 0.01, "betas": (0.9, 0.99), "eps": 1e-6, "weight_decay": 0.1}),
    "lars": (Lars, {"lr": 0.5, "momentum": 0.9, "trust_coefficient": 0.01, "weight_decay": 0.01}),
    "schedule_free_adamw": (ScheduleFreeAdamW, {
        "lr": 0.01, "betas": (0.9, 0.99), "eps": 1e-8, "weight_decay": 0.1, "warmup_steps": 0,
        "r": 0.0, "weight_lr_power": 2.0}),
    "schedule_free_adamw warm": (ScheduleFreeAdamW, {
        "lr": 0.02, "betas": (0.95, 0.999), "eps": 1e-7, "weight_decay": 0.0,
        "warmup_steps": 50, "r": 0.5, "weight_lr_power": 1.0}),
    "adafactor": (O.Adafactor, {"lr": 0.001, "weight_decay": 0.01, "d": 1.25}),
    "muon": (MuonAndAdamW, {"lr": 0.01, "weight_decay": 0.1}),
    "muon matched": (MuonAndAdamW, {"lr": 0.01, "weight_decay": 0.0, "nesterov": False,
                                    "adjust_lr_fn": "match_rms_adamw", "ns_steps": 4}),
}


@unittest.skipIf(WITHOUT_TOOLS, WITHOUT_TOOLS)
class Optimizers(TrainCase):
    def batch(self, rows, length, classes, words=13):
        generator = torch.Generator().manual_seed(4)
        shape = (rows, length) if classes == words else (rows,)
        return (torch.randint(0, words, (rows, length), generator=generator),
                torch.randint(0, classes, shape, generator=generator))

    def by_torch(self, module, batch, make, steps=STEPS, clip=None):
        # In float64 with all that optimizers keep, NAdam's product of momenta too.
        torch.set_default_dtype(torch.float64)
        self.addCleanup(torch.set_default_dtype, torch.float32)
        module = copy.deepcopy(module).double()
        optimizer, losses = make(module), []
        for _ in range(steps):
            optimizer.zero_grad()
            loss = module(*batch)
            losses.append(loss.item())
            loss.backward()
            if clip:
                torch.nn.utils.clip_grad_norm_(module.parameters(), clip)
            optimizer.step()
        return losses, module

    def compile(self, flags):
        program = self.folder / "m.accx"
        self.tool("acc-opt", self.folder / "model.onnx", "--train", "--loss", "loss",
                  "--dtype=f64", "--entries=step", *flags, "-o", program)
        return program

    def run_steps(self, program, *more):
        lines = self.tool("acc-run", program, "--inputs", self.folder / "inputs", "--json",
                          *more).splitlines()
        return [json.loads(line)["loss"] for line in lines if '"loss"' in line]

    def assert_equal(self, found, weights, losses, module, tolerance):
        torch.testing.assert_close(found, losses, rtol=tolerance, atol=0)
        for name, parameter in module.named_parameters():
            torch.testing.assert_close(weights[name], parameter.detach(), rtol=tolerance,
                                       atol=tolerance,
                                       msg=lambda text, name=name: f"{name}: {text}")

    def assert_trained(self, module, batch, flags, make, steps=STEPS, tolerance=1e-10, clip=None):
        saved = self.folder / "w.safetensors"
        found = self.run_steps(self.compile(flags), "--steps", steps, "--save-weights", saved)
        losses, trained = self.by_torch(module, batch, make, steps, clip)
        self.assertLess(losses[-1], losses[0])
        self.assert_equal(found, load_file(saved), losses, trained, tolerance)

    def test_each_in_each_layout(self):
        module, batch = Net(), self.batch(4, 3, 7)
        self.export(module, batch)
        for name, (make, values) in CASES.items():
            flags = ["--optimizer", name.split()[0], *settings(**values)]
            for layout, mesh in sample(LAYOUTS.items(), name, 2):
                with self.subTest(optimizer=name, layout=layout):
                    self.assert_trained(
                        module, batch, [*flags, *mesh.split()],
                        lambda m: make([{"params": [p for _, p in m.named_parameters()],
                                         "named": list(m.named_parameters())}]
                                       if make is MuonAndAdamW else m.parameters(), **values))

    def test_scale_modes_of_muon_and_the_rate_of_others(self):
        module, batch = Net(), self.batch(4, 3, 7)
        self.export(module, batch)
        outer = ("table.weight", "head.weight")
        for mode in ScaledMuon.SCALES:
            values = {"lr": 0.004, "weight_decay": 0.1, "momentum": 0.9, "nesterov": mode[0] != "s",
                      "ns_steps": 4, "adjust_lr_fn": mode}

            def make(m, values=values):
                hidden = {n: p for n, p in m.named_parameters() if p.dim() == 2 and n not in outer}
                others = [p for n, p in m.named_parameters() if n not in hidden]
                return Pair(ScaledMuon(hidden.values(), **values),
                            O.AdamW(others, lr=0.01, weight_decay=0.1, betas=(0.9, 0.95)))

            flags = ["--optimizer=muon", *settings(**values), "--set=optimizer.adam_lr=0.01",
                     "--set=optimizer.betas=0.9,0.95"]
            for mesh in ("", "--mesh dp=2 --set zero_stage=3") if mode[0] == "s" else ("",):
                with self.subTest(mode=mode, mesh=mesh):
                    self.assert_trained(module, batch, [*flags, *mesh.split()], make, steps=50)

    def test_muon_rounds_as_its_original(self):
        """In float32, to bfloat16: acc's step is about as far from the exact one as PyTorch's."""
        module, batch = Net(), self.batch(4, 3, 7)
        self.export(module, batch)
        program, saved = self.folder / "m.accx", self.folder / "w.safetensors"
        self.tool("acc-opt", self.folder / "model.onnx", "--train", "--loss", "loss",
                  "--entries=step", "--optimizer=muon", "--set=optimizer.lr=1",
                  "--set=optimizer.weight_decay=0", "-o", program)
        self.run_steps(program, "--steps", 1, "--save-weights", saved)
        ours = load_file(saved)["up.weight"] - module.up.weight.detach()

        def move(cast):
            parameter = copy.deepcopy(module.up.weight)
            parameter.grad = torch.autograd.grad(module(*batch), module.up.weight)[0]
            with mock.patch.object(torch.Tensor, "bfloat16", cast):
                O.Muon([parameter], lr=1, weight_decay=0).step()
            return parameter.detach() - module.up.weight.detach()

        exact = move(torch.Tensor.clone)

        def apart(other):
            return ((other - exact).norm() / exact.norm()).item()
        rounding = apart(move(torch.Tensor.bfloat16))
        self.assertGreater(rounding, 1e-4)
        self.assertTrue(rounding / 10 < apart(ours) < 3 * rounding)

    def test_each_rank_iterates_on_its_own_matrices(self):
        """Of Newton and Schulz's steps a rank does its share: what a step more costs all ranks
        together is what it costs one that is alone. Of five matrices for four ranks one is left
        over, which all of them do; of six for four, two are stacked with zeros."""
        class Deep(torch.nn.Module):
            def __init__(self, layers):
                super().__init__()
                torch.manual_seed(5)
                self.table = torch.nn.Embedding(13, 8)
                self.layers = torch.nn.ModuleList(torch.nn.Linear(8, 8) for _ in range(layers))
                self.head = torch.nn.Linear(8, 7)

            def forward(self, ids, labels):
                x = self.table(ids)
                for layer in self.layers:
                    x = x + torch.tanh(layer(x))
                return F.cross_entropy(self.head(x.mean(1)), labels)

        def count(mesh, steps):
            report = json.loads(self.tool(
                "acc-opt", self.folder / "model.onnx", "--train", "--loss", "loss", "--dtype=f64",
                "--entries=step", "--optimizer=muon", f"--set=optimizer.ns_steps={steps}",
                *mesh.split(), "--report=commands", "--json"))
            return report["programs"][0]["entries"]["step"]["flops"]
        make, values = CASES["muon"]
        batch = self.batch(4, 3, 7)
        for layers, shares in ((4, 1), (5, 2), (6, 2), (8, 2)):
            module = Deep(layers)
            self.export(module, batch)
            step = count("", 6) - count("", 5)
            for mesh in ("--mesh dp=4 --set zero_stage=1", "--mesh dp=4 --set zero_stage=3",
                         "--mesh dp_shard=2,tp=2 --set zero_stage=2", "--mesh tp=4"):
                with self.subTest(layers=layers, mesh=mesh):
                    self.assertEqual(count(mesh, 6) - count(mesh, 5), step * shares // layers)
            if layers == 6:
                for mesh in ("--mesh dp=4 --set zero_stage=3",
                             "--mesh dp_shard=2,tp=2 --set zero_stage=2"):
                    with self.subTest(mesh=mesh):
                        self.assert_trained(
                            module, batch, ["--optimizer=muon", *settings(**values), *mesh.split()],
                            lambda m: make([{"named": list(m.named_parameters())}], **values),
                            steps=50)

    def test_what_is_free_of_schedules_is_evaluated_on_averages(self):
        """So is what another layout goes on from, and what is saved if asked for."""
        module, batch = Net(), self.batch(4, 3, 7)
        self.export(module, batch)
        make, values = CASES["schedule_free_adamw warm"]
        flags = ["--optimizer=schedule_free_adamw", *settings(**values)]
        made = []

        def keep(m):
            made.append(make(m.parameters(), **values))
            return made[-1]
        _, trained = self.by_torch(module, batch, keep, steps=20)
        with torch.no_grad():
            for p in trained.parameters():
                p.copy_(made[-1].state[p]["x"])
            expected = trained(*batch).item()
        folder, saved = self.folder / "runs", self.folder / "w.safetensors"
        steps = 0
        for layout in ("", "--mesh dp=4 --set zero_stage=3", "--mesh tp=2",
                       "--mesh pp=2 --micro-batches=2"):
            with self.subTest(layout=layout):
                program = self.compile([*flags, "--entries=eval", *layout.split()])
                steps += 5
                lines = self.tool("acc-run", program, "--inputs", self.folder / "inputs", "--json",
                                  "--steps", steps, "--checkpoint", folder, "--save-weights", saved,
                                  "--averages", "--eval-every", 5, "--eval-inputs",
                                  self.folder / "inputs",
                                  *(["--resume", folder] if steps > 5 else [])).splitlines()
        found = [json.loads(line)["eval_loss"] for line in lines if '"eval_loss"' in line]
        torch.testing.assert_close(found[-1], expected, rtol=1e-10, atol=0)
        weights = load_file(saved)
        for name, parameter in trained.named_parameters():
            torch.testing.assert_close(weights[name], parameter.detach(), rtol=1e-10, atol=1e-10)
        other = subprocess.run([TOOLS / "acc-run", program, "--inputs", self.folder / "inputs",
                                "--save-weights", saved], capture_output=True, text=True)
        self.assertIn("the weights that the next step would train, unless --averages", other.stderr)
        with self.assertRaisesRegex(Refused, "keeps one of its own"):
            self.compile([*flags, "--set=ema.decay=0.9"])

    def test_groups(self):
        """Of several patterns that match, the last says it; a group may have another optimizer.
        The schedule scales all rates, and the clip is of all gradients together."""
        module, batch = Net(), self.batch(4, 3, 7)
        self.export(module, batch)
        flags = ["--optimizer=adamw", "--set=optimizer.lr=0.01", "--set=optimizer.no_decay=vectors",
                 "--set=groups[*up*].lr=0.02", "--set=groups[up.bias].lr=0.005",
                 "--set=groups[up.bias].weight_decay=0.2", "--set=groups[head.*].type=sgd",
                 "--set=groups[head.*].momentum=0.9", "--set=groups[head.*].lr=0.05",
                 "--set=groups[mix].betas=0.8,0.9", "--set=gradient_clipping=0.5",
                 "--set=scheduler.type=linear", "--set=scheduler.total_steps=25"]

        def make(m):
            p = dict(m.named_parameters())
            rest = set(p) - {"mix", "up.weight", "up.bias", "head.weight", "head.bias"}
            groups = [{"params": [p[n] for n in rest if p[n].dim() != 1 and "bias" not in n]},
                      {"params": [p[n] for n in rest if p[n].dim() == 1], "weight_decay": 0.0},
                      {"params": [p["mix"]], "betas": (0.8, 0.9)},
                      {"params": [p["up.weight"]], "lr": 0.02},
                      {"params": [p["up.bias"]], "lr": 0.005, "weight_decay": 0.2}]
            inner = [O.AdamW(groups, lr=0.01),
                     O.SGD([{"params": [p["head.weight"]], "weight_decay": 0.01},
                            {"params": [p["head.bias"]]}], lr=0.05, momentum=0.9)]
            courses = [O.lr_scheduler.LambdaLR(one, lambda step: 1 - step / 25) for one in inner]

            class Both:
                def zero_grad(self):
                    for one in inner:
                        one.zero_grad()

                def step(self):
                    for one in [*inner, *courses]:
                        one.step()
            return Both()
        for layout in ("", "--mesh dp=4 --set zero_stage=3", "--mesh tp=2",
                       "--mesh pp=2 --micro-batches=2"):
            with self.subTest(layout=layout):
                self.assert_trained(module, batch, [*flags, *layout.split()], make, steps=20,
                                    clip=0.5)

    def test_driven_by_a_schedule(self):
        """Rate, momentum (or the first beta) and weight decay change in every step, those of a
        group with rates of its own too."""
        module, batch, steps = Net(), self.batch(4, 3, 7), 24
        self.export(module, batch)
        flags = ["--set=scheduler.type=OneCycleLR", f"--set=scheduler.total_steps={steps}",
                 "--set=scheduler.weight_decay_incr_style=linear",
                 "--set=scheduler.start_weight_decay=0.01", "--set=scheduler.end_weight_decay=0.1",
                 "--set=groups[*up*].lr={0}", "--set=groups[*up*].weight_decay=0.05"]

        class Driven:
            def __init__(self, inner, cycles, lr):
                self.inner, self.groups, self.finished = inner, [], 0
                for one in inner.inner if isinstance(inner, MuonAndAdamW) else [inner]:
                    self.groups += [(g, 0.5 if g["lr"] < lr else 1) for g in one.param_groups]
                self.courses = [O.lr_scheduler.OneCycleLR(
                    one, [lr * (0.5 if g["lr"] < lr else 1) for g in one.param_groups], steps,
                    cycle_momentum=cycles)
                    for one in (inner.inner if isinstance(inner, MuonAndAdamW) else [inner])]

            def zero_grad(self):
                self.inner.zero_grad()

            def step(self):
                decay = 0.01 + 0.09 * min(self.finished / steps, 1)
                for group, share in self.groups:
                    group["weight_decay"] = decay * share
                self.inner.step()
                self.finished += 1
                for course in self.courses:
                    if self.finished < steps:
                        course.step()

        for name in ("sgd nesterov", "adam amsgrad", "adamw", "adamax", "nadam", "nadam decoupled",
                     "radam", "adagrad", "adadelta", "rmsprop centered", "lion", "lamb", "lars",
                     "adafactor", "muon"):
            make, values = CASES[name]
            lr = values["lr"]
            other = {key: value for key, value in values.items() if key != "weight_decay"}
            cycles = name not in ("adagrad", "adadelta", "adafactor")
            own = [flag.format(lr / 2) for flag in flags]
            if not cycles:
                own.append("--set=scheduler.cycle_momentum=false")

            def of(m, make=make, other=other, lr=lr, cycles=cycles):
                named = list(m.named_parameters())
                if make is MuonAndAdamW:
                    muon = make([{"named": named}], weight_decay=0, **other)
                    for one in muon.inner:
                        ups = [p for n, p in named if "up" in n]
                        group = one.param_groups[0]
                        mine = [p for p in group["params"] if any(p is up for up in ups)]
                        group["params"] = [p for p in group["params"]
                                           if all(p is not up for up in mine)]
                        one.add_param_group({"params": mine, "lr": lr / 2})
                    return Driven(muon, cycles, lr)
                return Driven(make([{"params": [p for n, p in named if "up" not in n]},
                                    {"params": [p for n, p in named if "up" in n], "lr": lr / 2}],
                                   **other), cycles, lr)
            layouts = ["one"] + {"adamw": ["zero3"], "sgd nesterov": ["pp"]}.get(name, [])
            for layout in layouts:
                with self.subTest(optimizer=name, layout=layout):
                    self.assert_trained(
                        module, batch, ["--optimizer", name.split()[0], *settings(**other), *own,
                                        *LAYOUTS[layout].split()], of, steps=steps)

    def test_stacks_are_members(self):
        """Norms and factors of experts that the compiler stacks are of each by itself."""
        module = Mixture()
        generator = torch.Generator().manual_seed(4)
        batch = tuple(torch.randint(0, 13, (4, 5), generator=generator) for _ in range(2))
        self.export(module, batch)
        for name in ("lamb", "lars", "adafactor", "muon", "nadam"):
            make, values = CASES[name]
            flags = ["--optimizer", name, *settings(**values)]

            def of(m, make=make, values=values):
                if make is not MuonAndAdamW:
                    return make(m.parameters(), **values)
                return make([{"named": list(m.named_parameters())}], **values,
                            outer=("table.weight",))
            for layout in ("", "--mesh dp=2 --set zero_stage=3", "--mesh tp=2"):
                with self.subTest(optimizer=name, layout=layout):
                    # Its norms have an epsilon of float32.
                    self.assert_trained(module, batch, [*flags, *layout.split()], of, steps=4,
                                        tolerance=1e-6)

    def test_checkpoints_of_another_layout(self):
        module, batch = Net(), self.batch(4, 3, 7)
        self.export(module, batch)
        for name in ("nadam", "adafactor", "muon", "adam amsgrad"):
            make, values = CASES[name]
            flags = ["--optimizer", name.split()[0], *settings(**values)]
            folder = self.folder / name
            with self.subTest(optimizer=name):
                whole = self.run_steps(self.compile(flags), "--steps", 9)
                part = self.run_steps(
                    self.compile([*flags, *LAYOUTS["zero3"].split()]), "--steps", 5,
                    "--checkpoint", folder, "--save-every", 5)
                part += self.run_steps(
                    self.compile([*flags, *LAYOUTS["pp"].split()]), "--steps", 9,
                    "--resume", folder)
                torch.testing.assert_close(part, whole, rtol=1e-10, atol=0)

    def test_documented(self):
        """The rows of docs/Optimizers.md: these optimizers, these keys, these values."""
        self.export(Net(), self.batch(4, 3, 7))
        page = pathlib.Path(__file__).parents[2].joinpath("docs", "Optimizers.md").read_text()
        rows = re.findall(r"^\| `(\w+)` \| ([^|]*) \|", page, re.MULTILINE)
        self.assertEqual({name for name, _ in rows}, {name.split()[0] for name in CASES} | CODED)
        for name, keys in rows:
            steps = []
            for said in ([], [f"--set=optimizer.{key}" for key in re.split(r", (?=\w+=)", keys)]):
                file = self.folder / "step.mlir"
                self.tool("acc-opt", self.folder / "model.onnx", "--train", "--loss", "loss",
                          "--entries=step", "--optimizer", name, *said, "--compile-to=train",
                          "-o", file)
                steps.append(file.read_text())
            self.assertEqual(*steps, name)

    def test_refusals(self):
        self.export(Net(), self.batch(4, 3, 7))
        for flags, words in (
                (["--optimizer=adan"], "expected --optimizer=adamw, adam, sgd, muon"),
                (["--optimizer=lion", "--set=optimizer.eps=1"], "does not read 'optimizer.eps'"),
                (["--set=groups[*up*].momentum=0.9"], "expected optimizer 'adamw' of 'up.weight' "
                 "to read 'momentum', which groups[*up*] sets"),
                (["--set=groups[*up*].min_lr=0.5", "--set=scheduler.type=cosine", "--set=scheduler.total_steps=9"],
                 "expected at most the rate 0.001 of 'up.weight' as its groups[PATTERN].min_lr, found 0.5"),
                (["--set=groups[*upp*].lr=1"], "to match a parameter, found none"),
                (["--set=groups[*up*].rate=1"], "unknown key 'rate' of groups[*up*]"),
                (["--set=groups[*up*].lr=fast"], "expected a number of at least 0"),
                (["--optimizer=muon", "--set=optimizer.adam_lr=0"],
                 "expected a number above 0, or lr as 'optimizer.adam_lr', found '0'"),
                (["--optimizer=muon", "--set=optimizer.adjust_lr_fn=rms"], "expected original or "
                 "match_rms_adamw or spectral or unit_rms_norm as"),
                (["--set=groups[up.bias].type=muon"], "expected a matrix, or a stack of matrices"),
                (["--optimizer=sgd", "--set=optimizer.nesterov=true"], "expected 'momentum' above 0"),
                (["--set=groups[head.*].type=sgd", "--set=groups[head.*].nesterov=true"],
                 "expected 'momentum' above 0"),
                (["--set=groups[].lr=1"], "expected groups[PATTERN].KEY"),
                (["--set=optimizer.lr=0", "--set=groups[up.bias].lr=1"], "expected 'optimizer.lr' "
                 "above 0")):
            with self.subTest(flags=flags), self.assertRaises(Refused) as refused:
                self.compile(flags)
            self.assertIn(words, str(refused.exception))


if __name__ == "__main__":
    unittest.main()
