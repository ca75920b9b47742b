"""Adam with moments of 8 bits against the published algorithm (Dettmers et al., arXiv:2110.02861,
with the map, the blocks and the update of bitsandbytes), in float64, code for code: alone, sharded,
split and in a pipeline; checkpoints that another layout goes on from; and what moments take.
Needs the tools, whose folder ACC_BIN names."""
import json
import unittest
import zlib

import numpy as np
import torch
import torch.nn.functional as F
from safetensors.torch import load_file

from training import WITHOUT_TOOLS, Pair, TrainCase

try:
    import bitsandbytes.functional as published
except ImportError:
    published = None

BLOCK, STEPS = 256, 50
LAYOUTS = {"one": "", "dp": "--mesh dp=4", "zero1": "--mesh dp=4 --set zero_stage=1",
           "zero2": "--mesh dp=2 --set zero_stage=2 --micro-batches=2",
           "zero3": "--mesh dp=4 --set zero_stage=3", "tp": "--mesh tp=2",
           "tp zero3": "--mesh dp_shard=2,tp=2 --set zero_stage=3",
           "pp": "--mesh pp=2 --micro-batches=2"}


def dynamic_map(signed):
    """Of each of seven decades the middles of 1, 2, 4, … parts (unsigned: 2, 4, 8, …) of [0.1, 1],
    in float32; 0 and 1."""
    one, tenth, numbers = np.float32(1), np.float32(0.1), [0.0, 1.0]
    for decade in range(7):
        parts = 2 ** (decade + (not signed))
        step, i = float((one - tenth) / np.float32(parts)), np.arange(parts + 1)
        # Counted from the nearer end, with fused multiplication and addition.
        ends = np.where(i < (parts + 1) // 2, float(tenth) + step * i,
                        1 - step * (parts - i)).astype(np.float32)
        middles = np.float32(10.0 ** (decade - 6)) * ((ends[:-1] + ends[1:]) / np.float32(2))
        numbers += [*middles, *(-middles if signed else ())]
    return np.sort(np.array(numbers, np.float32))


class Moment:
    """Codes and the largest magnitude of each block."""

    def __init__(self, like, signed):
        numbers = torch.from_numpy(dynamic_map(signed))
        self.map = numbers.to(like.dtype)
        self.bounds = ((numbers[:-1] + numbers[1:]) / 2).to(like.dtype)
        self.shape = like.shape
        self.codes = torch.zeros(like.shape, dtype=torch.uint8)
        self.absmax = torch.zeros(-(-like.numel() // BLOCK), dtype=like.dtype)

    def spread(self, ofblocks):
        return ofblocks.repeat_interleave(BLOCK)[:self.codes.numel()].view(self.shape)

    def read(self):
        return self.map[self.codes.long()] * self.spread(self.absmax)

    def write(self, value):
        flat = F.pad(value.flatten(), (0, -value.numel() % BLOCK))
        self.absmax = flat.view(-1, BLOCK).abs().max(1).values
        inverse = self.spread(1 / self.absmax.clamp(min=1e-38))
        self.codes = torch.bucketize(value * inverse, self.bounds).to(torch.uint8)


class Plain:
    def __init__(self, like, signed):
        self.value = torch.zeros_like(like)

    def read(self):
        return self.value

    def write(self, value):
        self.value = value


class Adam8bit(torch.optim.Optimizer):
    def __init__(self, params, lr, weight_decay, betas=(0.9, 0.999), eps=1e-8, min_8bit_size=4096):
        super().__init__(params, {"lr": lr, "weight_decay": weight_decay, "betas": betas,
                                  "eps": eps, "least": min_8bit_size})

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            (b1, b2), lr = group["betas"], group["lr"]
            for p in group["params"]:
                state = self.state[p]
                if not state:
                    kind = Moment if p.numel() >= group["least"] else Plain
                    state.update(step=0, m=kind(p, True), v=kind(p, False))
                state["step"] += 1
                m = b1 * state["m"].read() + (1 - b1) * p.grad
                v = b2 * state["v"].read() + (1 - b2) * p.grad * p.grad
                below = (v.sqrt() / (1 - b2 ** state["step"]) ** 0.5).add(group["eps"])
                p.mul_(1 - lr * group["weight_decay"])
                p.sub_(lr / (1 - b1 ** state["step"]) * (m / below))
                state["m"].write(m)
                state["v"].write(v)


class Net(torch.nn.Module):
    """Rows of whole blocks (down), blocks of several rows (up, mid), a last block that is not
    full (odd), one element less than has codes (short), and blocks whose gradients are 0."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(3)
        self.table = torch.nn.Embedding(41, 128)
        self.up, self.mid = torch.nn.Linear(128, 160), torch.nn.Linear(160, 256)
        self.down, self.odd = torch.nn.Linear(256, 41), torch.nn.Linear(41, 133)
        self.long = torch.nn.Parameter(torch.randn(4096) / 8)
        self.short = torch.nn.Parameter(torch.randn(4095) / 8)
        self.head = torch.nn.Linear(133, 7)

    def forward(self, ids, labels):
        x = self.mid(torch.tanh(self.up(self.table(ids).mean(1))))
        x = torch.tanh(x + self.long[300:556] + self.short[:256])
        return F.cross_entropy(self.head(torch.tanh(self.odd(self.down(x)))), labels)


class Map(unittest.TestCase):
    def test_is_the_published_one(self):
        # Of create_dynamic_map of bitsandbytes 0.50.2.
        for signed, checksum in ((True, 454261483), (False, 3899729807)):
            self.assertEqual(zlib.crc32(dynamic_map(signed).tobytes()), checksum)

    @unittest.skipUnless(published, "no bitsandbytes")
    def test_is_that_of_the_package(self):
        for signed in (True, False):
            numbers = published.create_dynamic_map(signed)
            np.testing.assert_array_equal(numbers.numpy(), dynamic_map(signed))


@unittest.skipIf(WITHOUT_TOOLS, WITHOUT_TOOLS)
class Trained(TrainCase):
    values = {"lr": 0.003, "weight_decay": 0.1}

    def setUp(self):
        super().setUp()
        generator = torch.Generator().manual_seed(4)
        self.batch = (torch.randint(0, 41, (4, 3), generator=generator),
                      torch.randint(0, 7, (4,), generator=generator))
        self.export(Net(), self.batch)

    def compile(self, layout, *more, dtype="f64", optimizer="adamw_8bit"):
        program = self.folder / "m.accx"
        said = [f"--set=optimizer.{key}={value}" for key, value in self.values.items()]
        self.tool("acc-opt", self.folder / "model.onnx", "--train", "--loss=loss",
                  *([f"--dtype={dtype}"] if dtype else []), "--entries=step", f"--optimizer={optimizer}", *said, *more,
                  *layout.split(), "-o", program)
        return program

    def steps(self, program, count, *more):
        lines = self.tool("acc-run", program, "--inputs", self.folder / "inputs", "--json",
                          "--steps", count, *more).splitlines()
        return [json.loads(line)["loss"] for line in lines if '"loss"' in line]

    def by_torch(self, steps, make=None, dtype=torch.float64):
        module, losses = Net().to(dtype), []
        optimizer = make(module) if make else Adam8bit(module.parameters(), **self.values)
        for _ in range(steps):
            optimizer.zero_grad()
            loss = module(*self.batch)
            losses.append(loss.item())
            loss.backward()
            optimizer.step()
        return losses, module, optimizer

    def read(self, folder, step):
        at = folder / f"step-{step:08}"
        return load_file(at / "model.safetensors"), load_file(at / "optimizer.safetensors")

    def assert_states(self, folder, step, module, optimizer):
        weights, states = self.read(folder, step)
        for name, p in module.named_parameters():
            torch.testing.assert_close(weights[name], p.detach(), rtol=1e-10, atol=1e-10)
            for number, moment in enumerate((optimizer.state[p]["m"], optimizer.state[p]["v"]), 1):
                found = states[f"state{number}/{name}"]
                if isinstance(moment, Plain):
                    torch.testing.assert_close(found, moment.value, rtol=1e-9, atol=1e-18)
                    self.assertNotIn(f"absmax{number}/{name}", states)
                    continue
                self.assertEqual(found.dtype, torch.uint8)
                self.assertTrue(torch.equal(found, moment.codes), f"codes {number} of {name}")
                torch.testing.assert_close(states[f"absmax{number}/{name}"].flatten(),
                                           moment.absmax, rtol=1e-9, atol=1e-18)

    def test_codes_in_each_layout(self):
        losses, module, optimizer = self.by_torch(STEPS)
        self.assertLess(losses[-1], losses[0])
        coded = [n for n, p in module.named_parameters()
                 if isinstance(optimizer.state[p]["m"], Moment)]
        self.assertEqual(coded, ["long", "table.weight", "up.weight", "mid.weight", "down.weight",
                                 "odd.weight"])
        for name, layout in LAYOUTS.items():
            with self.subTest(layout=name):
                runs = self.folder / name
                found = self.steps(self.compile(layout), STEPS, "--checkpoint", runs)
                torch.testing.assert_close(found, losses, rtol=1e-10, atol=0)
                self.assert_states(runs, STEPS, module, optimizer)

    def test_another_layout_goes_on(self):
        _, module, optimizer = self.by_torch(5 * len(LAYOUTS))
        runs, steps = self.folder / "runs", 0
        for layout in LAYOUTS.values():
            go_on = ["--resume", runs] if steps else []
            steps += 5
            self.steps(self.compile(layout), steps, "--checkpoint", runs, *go_on)
        self.assert_states(runs, steps, module, optimizer)

    def test_in_float32(self):
        """A code may be a neighbour where rounding decides."""
        losses, module, optimizer = self.by_torch(STEPS)
        for name in ("one", "dp", "zero1", "zero3"):
            with self.subTest(layout=name):
                runs = self.folder / name
                found = self.steps(self.compile(LAYOUTS[name], dtype=""), STEPS,
                                   "--checkpoint", runs)
                torch.testing.assert_close(found, losses, rtol=1e-3, atol=1e-4)
                _, states = self.read(runs, STEPS)
                moved = count = 0
                for parameter, p in module.named_parameters():
                    if not isinstance(optimizer.state[p]["m"], Moment):
                        continue
                    codes = states[f"state1/{parameter}"].int()
                    moved += (codes - optimizer.state[p]["m"].codes.int()).abs().sum().item()
                    count += codes.numel()
                self.assertLess(moved / count, 0.02)

    def test_groups_and_least_sizes(self):
        """Embeddings in float32, as bitsandbytes advises; all that has 4095 elements with codes."""
        flags = ["--set=groups[table.*].type=adamw", "--set=optimizer.min_8bit_size=4095"]

        def split(module):
            table, rest = module.table.weight, [p for n, p in module.named_parameters()
                                                if not n.startswith("table")]
            return Pair(Adam8bit(rest, min_8bit_size=4095, **self.values),
                        torch.optim.AdamW([table], **self.values))
        losses, _, _ = self.by_torch(10, split)
        runs = self.folder / "runs"
        found = self.steps(self.compile("", *flags), 10, "--checkpoint", runs)
        torch.testing.assert_close(found, losses, rtol=1e-10, atol=0)
        _, states = self.read(runs, 10)
        self.assertEqual(states["exp_avg/table.weight"].dtype, torch.float64)
        self.assertEqual(states["state1/short"].dtype, torch.uint8)

    def test_names(self):
        """The classes', and Transformers'; Adam8bit decays as AdamW8bit does, by 0 if not told."""
        bytes_of = set()
        for name in ("adamw_8bit", "AdamW8bit", "adamw_bnb_8bit", "ADAM8BIT"):
            program = self.compile("", optimizer=name)
            bytes_of.add(tuple(self.steps(program, 3)))
        self.assertEqual(len(bytes_of), 1)

    def test_what_moments_take(self):
        """A byte for each moment of an element and eight for a block, where Adam has eight for an
        element."""
        def moments(optimizer, layout=""):
            report = json.loads(self.tool(
                "acc-opt", self.folder / "model.onnx", "--train", "--loss=loss", "--entries=step",
                f"--optimizer={optimizer}", *layout.split(), "--report=memory", "--json"))
            return report["states"]["moments"]["bytes"]
        sizes = [p.numel() for p in Net().parameters()]
        coded = [n for n in sizes if n >= 4096]
        expected = sum(2 * n + 8 * -(-n // BLOCK) for n in coded)
        expected += sum(8 * n for n in sizes if n < 4096)
        self.assertEqual(moments("adamw_8bit"), expected)
        self.assertEqual(moments("adamw"), 8 * sum(sizes))
        # In pieces, but for the scales of rows and blocks that ranks do not divide.
        self.assertLess(moments("adamw_8bit", "--mesh dp=4 --set zero_stage=1"), expected / 3)


if __name__ == "__main__":
    unittest.main()
