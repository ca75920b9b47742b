"""Every schedule beside its original over 300 steps: transformers' get_scheduler, PyTorch's
schedulers, DeepSpeed's classes, and Megatron-LM's OptimizerParamScheduler in a restatement. What
is compared is what `acc-opt --report=scheduler --json` evaluates, which is built by what builds a
step; a few are trained, by optimizers that are driven. Needs the tools, whose folder ACC_BIN
names; DeepSpeed's are skipped without deepspeed."""
import json
import logging
import math
import os
import pathlib
import re
import subprocess
import sys
import unittest

import numpy as np
import torch
import transformers
from torch.optim import lr_scheduler

from training import TOOLS, WITHOUT_TOOLS, Refused

sys.path.append(str(pathlib.Path(sys.prefix) / "libraries"))
try:
    os.environ.setdefault("DS_ACCELERATOR", "cpu")
    logging.disable(logging.WARNING)
    from deepspeed.runtime import lr_schedules as deepspeed
except ImportError:
    deepspeed = None

STEPS = 300
LR = 0.03


def call(*flags):
    done = subprocess.run([TOOLS / "acc-opt", "--report=scheduler", "--json", *flags], capture_output=True,
                          text=True)
    if done.returncode:
        raise Refused(done.stderr)
    return json.loads(done.stdout)["values"]


def report(settings, optimizer="sgd", steps=STEPS, lr=LR):
    """What each hyperparameter is in each step."""
    flags = [f"--set={key}={value}" for key, value in settings.items()]
    if lr:
        flags.append(f"--set=optimizer.lr={lr}")
    return call(f"--steps={steps}", f"--optimizer={optimizer}", *flags)


def settings_of(kind, **keys):
    def spell(value):
        if isinstance(value, (list, tuple)):
            return ",".join(map(str, value))
        return str(value).lower() if isinstance(value, bool) else str(value)

    return {"scheduler.type": kind, **{f"scheduler.{key}": spell(value) for key, value in keys.items()}}


def original(make, optimizer="sgd", steps=STEPS, lrs=(LR,)):
    """The same of PyTorch's optimizer under a scheduler that `make` makes of it: lists, of groups."""
    groups = [{"params": [torch.nn.Parameter(torch.zeros(1))], "lr": lr} for lr in lrs]
    kind = {"sgd": torch.optim.SGD, "adamw": torch.optim.AdamW}[optimizer]
    made = kind(groups, lr=lrs[0])
    schedule = make(made)
    found = []
    for step in range(steps):
        found.append([(group["lr"], group.get("momentum"), group.get("betas", (None,))[0])
                      for group in made.param_groups])
        made.step()
        if step < steps - 1:
            schedule.step()
    return np.array(found, dtype=object)


def hugging(name, warmup, total, **kwargs):
    return lambda optimizer: transformers.get_scheduler(name, optimizer, warmup, total, kwargs or None)


def torch_of(name, **kwargs):
    return lambda optimizer: getattr(lr_scheduler, name)(optimizer, **kwargs)


TRANSFORMERS = [
    (settings_of("constant"), hugging("constant", None, None)),
    (settings_of("constant_with_warmup", warmup_steps=40), hugging("constant_with_warmup", 40, None)),
    (settings_of("linear", warmup_steps=40, total_steps=250), hugging("linear", 40, 250)),
    (settings_of("linear", total_steps=250), hugging("linear", 0, 250)),
    (settings_of("cosine", warmup_steps=30, total_steps=300), hugging("cosine", 30, 300)),
    (settings_of("cosine", warmup_steps=30, total_steps=300, num_cycles=1.75),
     hugging("cosine", 30, 300, num_cycles=1.75)),
    (settings_of("cosine_with_restarts", warmup_steps=17, total_steps=260, num_cycles=3),
     hugging("cosine_with_restarts", 17, 260, num_cycles=3)),
    (settings_of("cosine_with_restarts", total_steps=260), hugging("cosine_with_restarts", 0, 260)),
    (settings_of("polynomial", warmup_steps=25, total_steps=240, lr_end=1e-4, power=2.5),
     hugging("polynomial", 25, 240, lr_end=1e-4, power=2.5)),
    (settings_of("polynomial", total_steps=240), hugging("polynomial", 0, 240)),
    (settings_of("inverse_sqrt", warmup_steps=50), hugging("inverse_sqrt", 50, None)),
    (settings_of("inverse_sqrt"), hugging("inverse_sqrt", 0, None)),
    (settings_of("inverse_sqrt", warmup_steps=20, timescale=70), hugging("inverse_sqrt", 20, None, timescale=70)),
    (settings_of("cosine_with_min_lr", warmup_steps=30, total_steps=300, min_lr=0.004),
     hugging("cosine_with_min_lr", 30, 300, min_lr=0.004)),
    (settings_of("cosine_with_min_lr", total_steps=300, min_lr_rate=0.2, num_cycles=1.5),
     hugging("cosine_with_min_lr", 0, 300, min_lr_rate=0.2, num_cycles=1.5)),
    (settings_of("cosine_warmup_with_min_lr", warmup_steps=30, total_steps=300, min_lr_rate=0.1),
     hugging("cosine_warmup_with_min_lr", 30, 300, min_lr_rate=0.1)),
    (settings_of("cosine_warmup_with_min_lr", warmup_steps=30, total_steps=300, min_lr=0.001, warmup_lr_rate=0.2),
     hugging("cosine_warmup_with_min_lr", 30, 300, min_lr=0.001, warmup_lr_rate=0.2)),
    *((settings_of("warmup_stable_decay", warmup_steps=30, decay_steps=80, total_steps=250, warmup_type=up,
                   decay_type=down, min_lr_ratio=0.1),
       hugging("warmup_stable_decay", 30, 250, num_decay_steps=80, warmup_type=up, decay_type=down,
               min_lr_ratio=0.1))
      for up, down in (("linear", "cosine"), ("cosine", "1-sqrt"), ("1-sqrt", "linear"))),
    (settings_of("warmup_stable_decay", decay_steps=80, stable_steps=90, num_cycles=0.25),
     hugging("warmup_stable_decay", 0, None, num_decay_steps=80, num_stable_steps=90, num_cycles=0.25)),
]

TORCH = [(settings_of(name, **kwargs), torch_of(name, **kwargs)) for name, kwargs in (
    ("StepLR", dict(step_size=40)), ("StepLR", dict(step_size=7, gamma=0.9)),
    ("MultiStepLR", dict(milestones=[30, 80, 200], gamma=0.3)),
    ("ConstantLR", dict(factor=0.25, total_iters=60)), ("ConstantLR", {}),
    ("LinearLR", dict(start_factor=0.1, end_factor=0.7, total_iters=130)), ("LinearLR", {}),
    ("ExponentialLR", dict(gamma=0.98)), ("PolynomialLR", dict(total_iters=220, power=1.7)), ("PolynomialLR", {}),
    ("CosineAnnealingLR", dict(T_max=90, eta_min=0.002)), ("CosineAnnealingLR", dict(T_max=300)),
    ("CosineAnnealingWarmRestarts", dict(T_0=20, T_mult=2, eta_min=0.001)),
    ("CosineAnnealingWarmRestarts", dict(T_0=35)), ("CosineAnnealingWarmRestarts", dict(T_0=3, T_mult=3)))]

CYCLES = [(settings_of(name, **kwargs), torch_of(name, **kwargs)) for name, kwargs in (
    ("CyclicLR", dict(base_lr=0.001, max_lr=0.03, step_size_up=25)),
    ("CyclicLR", dict(base_lr=0.001, max_lr=0.03, step_size_up=25, step_size_down=40, mode="triangular2")),
    ("CyclicLR", dict(base_lr=0.001, max_lr=0.03, step_size_up=20, mode="exp_range", gamma=0.99,
                      base_momentum=0.7, max_momentum=0.95)),
    ("CyclicLR", dict(base_lr=0.001, max_lr=0.03, step_size_up=25, cycle_momentum=False)),
    ("OneCycleLR", dict(max_lr=0.03, total_steps=300)),
    ("OneCycleLR", dict(max_lr=0.03, total_steps=300, anneal_strategy="linear", pct_start=0.25, div_factor=10.0,
                        final_div_factor=100.0, base_momentum=0.8, max_momentum=0.9)),
    ("OneCycleLR", dict(max_lr=0.03, total_steps=300, three_phase=True)),
    ("OneCycleLR", dict(max_lr=0.03, total_steps=300, three_phase=True, pct_start=0.7)),
    ("OneCycleLR", dict(max_lr=0.03, total_steps=300, pct_start=0.0)),
    ("OneCycleLR", dict(max_lr=0.03, total_steps=300, pct_start=1.0)),
    ("OneCycleLR", dict(max_lr=0.03, total_steps=300, three_phase=True, anneal_strategy="linear", pct_start=0.4,
                        cycle_momentum=False)))]

DEEPSPEED = {
    "LRRangeTest": [{}, dict(lr_range_test_min_lr=0.002, lr_range_test_step_size=30, lr_range_test_step_rate=0.5,
                             lr_range_test_staircase=True),
                    dict(lr_range_test_step_size=50, lr_range_test_step_rate=3.0)],
    "OneCycle": [dict(cycle_min_lr=0.001, cycle_max_lr=0.02, cycle_first_step_size=40),
                 dict(cycle_min_lr=0.001, cycle_max_lr=0.02, cycle_first_step_size=40, cycle_second_step_size=65,
                      decay_step_size=10, decay_lr_rate=0.4, decay_mom_rate=0.001, cycle_min_mom=0.75,
                      cycle_max_mom=0.93),
                 dict(cycle_min_lr=0.001, cycle_max_lr=0.02, cycle_first_step_size=60, cycle_second_step_size=45,
                      cycle_first_stair_count=7, cycle_second_stair_count=4, cycle_momentum=False),
                 dict(cycle_min_lr=0.001, cycle_max_lr=0.02, cycle_first_step_size=60, cycle_first_stair_count=7)],
    "WarmupLR": [dict(warmup_num_steps=50), dict(warmup_min_lr=0.001, warmup_num_steps=50, warmup_type="linear")],
    "WarmupDecayLR": [dict(total_num_steps=250, warmup_num_steps=50, warmup_min_lr=0.002)],
    "WarmupCosineLR": [dict(total_num_steps=250, warmup_num_steps=50, warmup_min_ratio=0.1, cos_min_ratio=0.05)],
}
DEEPSPEED_NAMES = {"warmup_num_steps": "warmup_steps", "total_num_steps": "total_steps", "warmup_type": "warmup"}


def megatron(style, warmup, decay, first=0.0, least=0.0, wsd=None, wsd_style="exponential", peak=LR):
    """OptimizerParamScheduler's get_lr, of finished steps."""
    def rate(n):
        if warmup and n <= warmup:
            return first + (peak - first) * n / warmup
        if style == "constant":
            return peak
        if n > decay:
            return least
        if style == "inverse-square-root":
            return max(least, peak * max(warmup, 1) ** 0.5 / max(n, 1) ** 0.5)
        ratio = (n - warmup) / (decay - warmup)
        if style == "linear":
            share = 1 - ratio
        elif style == "cosine":
            share = (math.cos(math.pi * ratio) + 1) / 2
        else:
            part = (n - (decay - wsd)) / wsd
            share = 1.0 if part <= 0 else {"linear": lambda: 1 - part,
                                           "cosine": lambda: (math.cos(math.pi * part) + 1) / 2,
                                           "exponential": lambda: 2 * 0.5 ** part - 1,
                                           "minus_sqrt": lambda: 1 - math.sqrt(part)}[wsd_style]()
        return least + share * (peak - least)

    return np.array([rate(n) for n in range(STEPS)])


def megatron_decay(style, first, last, steps):
    """Its get_wd."""
    def decay(n):
        ratio = min(n / steps, 1)
        share = ratio if style == "linear" else (math.cos(math.pi * (1 - ratio)) + 1) / 2
        return first + share * (last - first)

    return np.array([decay(n) for n in range(STEPS)])


def is_close(found, expected):
    np.testing.assert_allclose(np.array(found, float), np.array(expected, float), rtol=0, atol=1e-12 * LR)


@unittest.skipIf(WITHOUT_TOOLS, WITHOUT_TOOLS)
class Originals(unittest.TestCase):
    def test_of_transformers_and_pytorch(self):
        for settings, make in TRANSFORMERS + TORCH:
            with self.subTest(settings):
                values = report(settings)
                self.assertEqual(list(values), ["lr"])
                is_close(values["lr"], original(make)[:, 0, 0])

    def test_cycles_of_momentum(self):
        for settings, make in CYCLES:
            lr = None if "scheduler.max_lr" in settings else LR
            for optimizer, name, place in (("sgd", "momentum", 1), ("adamw", "beta1", 2)):
                with self.subTest(settings, optimizer=optimizer):
                    values, expected = report(settings, optimizer, lr=lr), original(make, optimizer)
                    is_close(values["lr"], expected[:, 0, 0])
                    if settings.get("scheduler.cycle_momentum") == "false":
                        self.assertEqual(list(values), ["lr"])
                    else:
                        is_close(values[name], expected[:, 0, place])

    def test_the_optimizers_rate_is_the_greatest_where_none_is_said(self):
        settings = settings_of("OneCycleLR", total_steps=300)
        is_close(report(settings)["lr"], original(torch_of("OneCycleLR", max_lr=LR, total_steps=300))[:, 0, 0])

    def test_of_groups(self):
        cases = [
            (settings_of("CosineAnnealingLR", T_max=90, eta_min=0.002),
             torch_of("CosineAnnealingLR", T_max=90, eta_min=0.002)),
            (settings_of("cosine", warmup_steps=10, total_steps=300), hugging("cosine", 10, 300)),
            (settings_of("polynomial", total_steps=240, lr_end=1e-4), hugging("polynomial", 0, 240, lr_end=1e-4))]
        for settings, make in cases:
            with self.subTest(settings):
                values = report({**settings, "groups[*.bias].lr": 0.3 * LR})
                expected = original(make, lrs=(LR, 0.3 * LR))
                is_close(values["lr"], expected[:, 0, 0])
                is_close(values["lr of groups[*.bias]"], expected[:, 1, 0])

    def test_one_after_another(self):
        settings = {**settings_of("SequentialLR", milestones=[40, 160]),
                    "schedulers[0].type": "LinearLR", "schedulers[0].total_iters": 40,
                    "schedulers[1].type": "CosineAnnealingLR", "schedulers[1].T_max": 120,
                    "schedulers[1].eta_min": 0.003,
                    "schedulers[2].type": "ExponentialLR", "schedulers[2].gamma": 0.97}
        is_close(report(settings)["lr"], original(lambda optimizer: lr_scheduler.SequentialLR(optimizer, [
            lr_scheduler.LinearLR(optimizer, total_iters=40),
            lr_scheduler.CosineAnnealingLR(optimizer, T_max=120, eta_min=0.003),
            lr_scheduler.ExponentialLR(optimizer, gamma=0.97)], milestones=[40, 160]))[:, 0, 0])

    def test_all_at_once(self):
        settings = {"scheduler.type": "ChainedScheduler",
                    "schedulers[0].type": "ConstantLR", "schedulers[0].total_iters": 20,
                    "schedulers[0].factor": 0.1, "schedulers[1].type": "ExponentialLR",
                    "schedulers[1].gamma": 0.99, "schedulers[2].type": "MultiStepLR",
                    "schedulers[2].milestones": "50,90"}
        is_close(report(settings)["lr"], original(lambda optimizer: lr_scheduler.ChainedScheduler([
            lr_scheduler.ConstantLR(optimizer, factor=0.1, total_iters=20),
            lr_scheduler.ExponentialLR(optimizer, gamma=0.99),
            lr_scheduler.MultiStepLR(optimizer, milestones=[50, 90])]))[:, 0, 0])

    @unittest.skipUnless(deepspeed, "no deepspeed")
    def test_of_deepspeed(self):
        for name, cases in DEEPSPEED.items():
            for kwargs in cases:
                for optimizer in ("sgd", "adamw"):
                    with self.subTest(name=name, kwargs=kwargs, optimizer=optimizer):
                        settings = settings_of(name, **{DEEPSPEED_NAMES.get(key, key): value
                                                        for key, value in kwargs.items()})
                        sets = name in ("LRRangeTest", "OneCycle")
                        # Its peak is optimizer.lr here, as in its files' "warmup_max_lr".
                        more = {} if sets or name == "WarmupCosineLR" else {"warmup_max_lr": LR}
                        values = report(settings, optimizer, lr=None if sets else LR)
                        expected = original(
                            lambda made: getattr(deepspeed, name)(made, **{**kwargs, **more}), optimizer)
                        is_close(values["lr"], expected[:, 0, 0])
                        if name == "OneCycle" and optimizer == "adamw" and kwargs.get("cycle_momentum", True):
                            is_close(values["beta1"], expected[:, 0, 2])
                        else:
                            self.assertEqual(list(values), ["lr"])

    @unittest.skipUnless(deepspeed, "no deepspeed")
    def test_of_a_deepspeed_file(self):
        for name in ("LRRangeTest", "OneCycle"):
            for kwargs in DEEPSPEED[name]:
                with self.subTest(name=name, kwargs=kwargs):
                    file = {"optimizer": {"type": "AdamW", "params": {"lr": 0.5}},
                            "scheduler": {"type": name, "params": kwargs}}
                    values = call(f"--steps={STEPS}", "--config", json.dumps(file))
                    expected = original(lambda made: getattr(deepspeed, name)(made, **kwargs), "adamw")
                    is_close(values["lr"], expected[:, 0, 0])
                    if "beta1" in values:
                        is_close(values["beta1"], expected[:, 0, 2])

    def test_of_arguments_of_megatron(self):
        values = call(f"--steps={STEPS}", "--set=num_processes=1", "--config",
                      f"--lr {LR} --min-lr 0.002 --train-iters 280 --lr-decay-iters 260 --lr-decay-style WSD "
                      "--lr-wsd-decay-iters 90 --lr-wsd-decay-style minus_sqrt --lr-warmup-iters 30 "
                      "--weight-decay-incr-style cosine --start-weight-decay 0.01 --end-weight-decay 0.1")
        is_close(values["lr"], megatron("WSD", 30, 260, least=0.002, wsd=90, wsd_style="minus_sqrt"))
        is_close(values["weight_decay"], megatron_decay("cosine", 0.01, 0.1, 280))

    def test_documented(self):
        """The rows of docs/LearningRates.md: these schedules, and each reads these keys."""
        page = pathlib.Path(__file__).parents[2].joinpath("docs", "LearningRates.md").read_text()
        rows = dict(re.findall(r"^\| `([\w-]+)` \| ([^|]*) \|", page, re.MULTILINE))
        with self.assertRaises(Refused) as refused:
            report(settings_of("none of them"))
        names = re.search("expected (.*) as 'scheduler.type'", str(refused.exception))[1]
        self.assertEqual(list(rows), re.split(", | or ", names))
        for name, text in rows.items():
            keys = {re.match(r"\w+", part)[0] for part in re.sub(r" \([^)]*\)", "", text).split(", ")
                    if not part.startswith("`")}
            # One that it reads is refused by its value, another one by its name.
            with self.subTest(name), self.assertRaises(Refused) as refused:
                report(settings_of(name, **dict.fromkeys([*keys, "warmup_steps"], "!")))
            found = set(re.findall(r"as 'scheduler\.(\w+)'", str(refused.exception)))
            self.assertEqual(found | {"warmup_steps"}, keys | {"warmup_steps"})

    def test_of_megatron(self):
        for style, keys in (("constant", dict(warmup=30)), ("linear", dict(warmup=30, first=0.001, least=0.002)),
                            ("cosine", dict(warmup=30, first=0.001, least=0.002)),
                            ("inverse-square-root", dict(warmup=30, first=0.001, least=0.012)),
                            ("inverse-square-root", dict(warmup=0)),
                            *(("WSD", dict(warmup=30, least=0.002, wsd=90, wsd_style=style))
                              for style in ("exponential", "linear", "cosine", "minus_sqrt"))):
            with self.subTest(style=style, keys=keys):
                names = {"warmup": "warmup_steps", "first": "warmup_min_lr", "least": "min_lr",
                         "wsd": "wsd_decay_steps", "wsd_style": "lr_wsd_decay_style"}
                settings = settings_of(style, **{names[key]: value for key, value in keys.items()})
                if style != "constant":
                    settings["scheduler.total_steps"] = 260
                is_close(report(settings)["lr"], megatron(style, decay=260, **keys))

    def test_least_rates_of_groups(self):
        """As Megatron-LM's groups have a min_lr beside their lr (--decoupled-lr)."""
        for style in ("cosine", "linear", "WSD"):
            keys = dict(warmup_steps=20, total_steps=260, min_lr=0.002, warmup_min_lr=0.001,
                        **({"wsd_decay_steps": 80} if style == "WSD" else {}))
            values = report({**settings_of(style, **keys), "groups[*.table].lr": 0.05,
                             "groups[*.table].min_lr": 0.02, "groups[*.head].min_lr": 0})
            same = dict(first=0.001, wsd=keys.get("wsd_decay_steps"))
            is_close(values["lr"], megatron(style, 20, 260, least=0.002, **same))
            is_close(values["lr of groups[*.table]"], megatron(style, 20, 260, least=0.02, peak=0.05, **same))
            is_close(values["lr of groups[*.head]"], megatron(style, 20, 260, **same))
        values = report({**settings_of("cosine_with_min_lr", warmup_steps=20, total_steps=300, min_lr_rate=0.5),
                         "groups[*.bias].min_lr": 0.004})
        is_close(values["lr of groups[*.bias]"],
                 original(hugging("cosine_with_min_lr", 20, 300, min_lr=0.004))[:, 0, 0])
        for keys, words in (
                ({"scheduler.type": "StepLR", "scheduler.step_size": 3, "groups[*.bias].min_lr": 0.1},
                 r"expected 'scheduler.type' linear, cosine, .* with groups\[\*.bias\].min_lr, found StepLR"),
                ({"groups[*.bias].min_lr": -1}, "expected a number of at least 0 as 'groups")):
            with self.assertRaisesRegex(Refused, words):
                report(keys)

    def test_weight_decay_of_megatron(self):
        for style in ("linear", "cosine"):
            settings = {"scheduler.weight_decay_incr_style": style, "scheduler.start_weight_decay": 0.01,
                        "scheduler.end_weight_decay": 0.1, "scheduler.weight_decay_incr_steps": 200,
                        "groups[*.head].weight_decay": 0.05, "groups[*.bias].weight_decay": 0}
            for optimizer in ("sgd", "adamw"):
                values = report(settings, optimizer)
                is_close(values["weight_decay"], megatron_decay(style, 0.01, 0.1, 200))
                is_close(values["weight_decay of groups[*.head]"], megatron_decay(style, 0.005, 0.05, 200))
                self.assertNotIn("weight_decay of groups[*.bias]", values)


if __name__ == "__main__":
    unittest.main()
