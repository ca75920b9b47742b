"""Convolutions and poolings beside PyTorch in float64: losses and what training leaves in weights
and in what the input is scaled by, which the gradient of the input reaches; over all attributes that
modules have, alone and split over the batch and over channels. Most files are written here, node by
node: exporting takes longer than training. Needs the tools, whose folder ACC_BIN names."""
import json
import random
import unittest

import numpy as np
import onnx
import torch
from onnx import helper, numpy_helper
from safetensors.torch import load_file

from training import WITHOUT_TOOLS, TrainCase

ROWS, ELEMENTS, RATE, STEPS = 6, 600, 0.5, 2
PER_MODEL, MODELS = 26, 3  # a model for each of the last three layouts; 52 and 8 passed, too
DATA = torch.randn(ROWS, ELEMENTS, generator=torch.Generator().manual_seed(3))
LAYOUTS = ("", "--mesh dp=2 --micro-batches 3", "--mesh tp=2", "--mesh dp_shard=2 --set zero_stage=3")
MODES = ("zeros", "zeros", "zeros", "reflect", "replicate", "circular")


def pick_convolution(pick, dims):
    """A module, and the sizes of its input."""
    groups = pick.choice((1, 1, 2, 4))
    channels = groups * pick.choice((1, 1, 2, 3))
    outs = groups * pick.choice((1, 2, 3))
    many = lambda *choices: tuple(pick.choice(choices) for _ in range(dims))
    kernel, stride, dilation = many(1, 2, 3, 3), many(1, 1, 2, 3), many(1, 1, 2)
    extents = [(size - 1) * step + 1 for size, step in zip(kernel, dilation)]
    sizes = [extent + pick.randint(0, 3 if dims > 1 else 7) for extent in extents]
    bias = pick.random() < 0.5
    if pick.random() < 0.3:
        extra = tuple(pick.randrange(max(step, apart)) for step, apart in zip(stride, dilation))
        sizes = [pick.randint(1, 4) for _ in range(dims)]
        padding = tuple(pick.randint(0, min(2, ((size - 1) * step + extent - 1) // 2))
                        for size, step, extent in zip(sizes, stride, extents))
        kind = (torch.nn.ConvTranspose1d, torch.nn.ConvTranspose2d, torch.nn.ConvTranspose3d)
        made = kind[dims - 1](channels, outs, kernel, stride, padding, extra, groups, bias, dilation)
        return made, [channels, *sizes]
    kind = (torch.nn.Conv1d, torch.nn.Conv2d, torch.nn.Conv3d)[dims - 1]
    mode, padding = pick.choice(MODES), many(0, 1, 2)
    if mode != "zeros":
        padding = tuple(min(pad, size - 1) for pad, size in zip(padding, sizes))
    elif pick.random() < 0.2:
        padding, stride = pick.choice((("same", 1), ("valid", stride)))
    return kind(channels, outs, kernel, stride, padding, dilation, groups, bias, mode), [channels, *sizes]


def pick_between(pick, dims):
    """A convolution without groups between two others: their tensors get their channels last."""
    kind = (torch.nn.Conv1d, torch.nn.Conv2d, torch.nn.Conv3d)[dims - 1]
    while True:
        made, (channels, *sizes) = pick_convolution(pick, dims)
        if made.groups == 1:
            before = kind(pick.choice((1, 2, 3)), channels, 1)
            return (torch.nn.Sequential(before, made, kind(made.out_channels, pick.choice((1, 3)), 1)),
                    [before.in_channels, *sizes])


def pick_pooling(pick, dims):
    """The same of a pooling."""
    many = lambda *choices: tuple(pick.choice(choices) for _ in range(dims))
    kernel, stride = many(1, 2, 3), many(1, 2, 3)
    padding = tuple(pick.randint(0, size // 2) for size in kernel)
    if pick.random() < 0.5:
        kind = (torch.nn.MaxPool1d, torch.nn.MaxPool2d, torch.nn.MaxPool3d)[dims - 1]
        dilation = many(1, 1, 2)
        made = kind(kernel, stride, padding, dilation, ceil_mode=pick.random() < 0.5)
    else:
        kind = (torch.nn.AvgPool1d, torch.nn.AvgPool2d, torch.nn.AvgPool3d)[dims - 1]
        dilation = (1,) * dims
        made = kind(kernel, stride, padding, pick.random() < 0.5, pick.random() < 0.5)
    extents = [(size - 1) * step + 1 for size, step in zip(kernel, dilation)]
    return made, [pick.randint(1, 3), *(extent + pick.randint(0, 4) for extent in extents)]


class Many(torch.nn.Module):
    """Each of the modules on numbers of the data, scaled element by element."""

    def __init__(self, seed, pick_one, count=PER_MODEL):
        super().__init__()
        pick = random.Random(seed)
        torch.manual_seed(seed)
        self.inner, self.scales = torch.nn.ModuleList(), torch.nn.ParameterList()
        while len(self.inner) < count:
            made, sizes = pick_one(pick, pick.randint(1, 3))
            if np.prod(sizes) > ELEMENTS:
                continue
            self.inner.append(made)
            self.scales.append(torch.nn.Parameter(torch.randn(sizes)))

    def forward(self, x):
        loss = 0
        for made, scale in zip(self.inner, self.scales):
            y = made(x[:, :scale.numel()].view(-1, *scale.shape) * scale)
            steps = torch.arange(y[0].numel(), dtype=x.dtype).view(y[0].shape)
            loss = loss + (torch.tanh(y) * torch.cos(steps)).mean()
        return loss


class Pyramid(torch.nn.Module):
    """A picture made small and large again, with what was there beside it (a U-Net)."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(5)
        self.first = torch.nn.Conv2d(2, 4, 3, padding=1)
        self.down = torch.nn.Conv2d(4, 8, 3, stride=2, padding=1)
        self.slopes = torch.nn.PReLU(8)
        self.up = torch.nn.Conv2d(8, 16, 1)
        self.last = torch.nn.Conv2d(16, 2, 3, padding=1)

    def forward(self, x):
        resize = torch.nn.functional.interpolate
        picture = x.view(-1, 2, 15, 20)
        high = torch.nn.functional.elu(self.first(picture))
        low = self.slopes(self.down(high))  # 8 x 10
        lines = resize(low, size=(15, 20), mode="bilinear")
        blocks = torch.nn.functional.pixel_shuffle(self.up(low), 2)[:, :, :15]
        near = resize(blocks, scale_factor=0.5)
        cubes = resize(near, size=(15, 20), mode="bicubic")
        joined = torch.cat([high, lines, blocks * torch.nn.functional.mish(cubes)], 1)
        return ((self.last(joined) - picture) ** 2).mean()


class Writer:
    """`Many` as a file in float64, whose parameters are called as in PyTorch."""

    def __init__(self):
        self.nodes, self.tensors = [], []

    def tensor(self, name, value):
        self.tensors.append(numpy_helper.from_array(np.asarray(value), name))
        return name

    def add(self, op, *inputs, **attributes):
        name = f"v{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, inputs, [name], f"{op}/{name}", **attributes))
        return name

    def write_module(self, made, name, x):
        if isinstance(made, torch.nn.Sequential):
            for index, each in enumerate(made):
                x = self.write_module(each, f"{name}.{index}", x)
            return x
        dims = {"1": 1, "2": 2, "3": 3}[type(made).__name__[-2]]
        many = lambda value: list(value) if isinstance(value, tuple) else [value] * dims
        if "Pool" in type(made).__name__:
            common = dict(kernel_shape=many(made.kernel_size), strides=many(made.stride),
                          pads=2 * many(made.padding), ceil_mode=int(made.ceil_mode))
            if "Max" in type(made).__name__:
                return self.add("MaxPool", x, dilations=many(made.dilation), **common)
            return self.add("AveragePool", x, count_include_pad=int(made.count_include_pad),
                            **common)
        extra, low, high = {}, made.padding, made.padding
        if isinstance(made.padding, str):
            total = [step * (size - 1) if made.padding == "same" else 0
                     for size, step in zip(made.kernel_size, made.dilation)]
            low, high = [each // 2 for each in total], [each - each // 2 for each in total]
        if made.transposed:
            extra["output_padding"] = list(made.output_padding)
        elif made.padding_mode != "zeros":
            pads = self.tensor(f"{name}.pads", np.array([0, 0, *low, 0, 0, *high]))
            mode = {"replicate": "edge", "circular": "wrap"}.get(made.padding_mode, "reflect")
            x, low, high = self.add("Pad", x, pads, mode=mode), [0] * dims, [0] * dims
        operands = [x, self.tensor(f"{name}.weight", made.weight.detach().double())]
        if made.bias is not None:
            operands.append(self.tensor(f"{name}.bias", made.bias.detach().double()))
        return self.add("ConvTranspose" if made.transposed else "Conv", *operands,
                        strides=list(made.stride), dilations=list(made.dilation),
                        pads=[*low, *high], group=made.groups, **extra)

    def write(self, module, file):
        total = None
        with torch.no_grad():
            for index, (made, scale) in enumerate(zip(module.inner, module.scales)):
                y = made(torch.zeros(1, *scale.shape))
                begin, end, axis = (self.tensor(f"{name}.{index}", np.array([value])) for name, value
                                    in (("begin", 0), ("end", scale.numel()), ("axis", 1)))
                x = self.add("Slice", "x", begin, end, axis)
                x = self.add("Reshape", x, self.tensor(f"shape.{index}", np.array([ROWS, *scale.shape])))
                x = self.add("Mul", x, self.tensor(f"scales.{index}", scale.detach().double()))
                x = self.add("Tanh", self.write_module(made, f"inner.{index}", x))
                steps = self.add("Constant", value=numpy_helper.from_array(
                    np.cos(np.arange(y[0].numel(), dtype=np.float64)).reshape(y[0].shape)))
                x = self.add("ReduceMean", self.add("Mul", x, steps), keepdims=0)
                total = self.add("Add", total, x) if total else x
        graph = helper.make_graph(
            self.nodes[:-1] + [helper.make_node("Add", self.nodes[-1].input, ["loss"], "loss")],
            "many", [helper.make_tensor_value_info("x", onnx.TensorProto.DOUBLE, [ROWS, ELEMENTS])],
            [helper.make_tensor_value_info("loss", onnx.TensorProto.DOUBLE, [])], self.tensors)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 19)], ir_version=9)
        onnx.save(model, file)


@unittest.skipIf(WITHOUT_TOOLS, WITHOUT_TOOLS)
class Convolutions(TrainCase):
    def by_torch(self, module):
        module = module.double()
        optimizer = torch.optim.SGD(module.parameters(), lr=RATE)
        losses = []
        for _ in range(STEPS):
            optimizer.zero_grad()
            loss = module(DATA.double())
            losses.append(loss.item())
            loss.backward()
            optimizer.step()
        return losses, {name: value.detach() for name, value in module.named_parameters()}

    def by_acc(self, *flags):
        program, saved = self.folder / "m.accx", self.folder / "w.safetensors"
        inputs = self.folder / "inputs"
        self.tool("acc-opt", self.folder / "model.onnx", "--train", "--loss", "loss", "--dtype=f64",
                  "--entries=step", "--optimizer", "sgd", "--set", f"optimizer.lr={RATE}", *flags,
                  "-o", program)
        lines = self.tool("acc-run", program, "--steps", STEPS, "--inputs", inputs, "--json",
                          "--save-weights", saved).splitlines()
        return ([float(json.loads(line)["loss"]) for line in lines if '"loss"' in line],
                load_file(saved))

    def check(self, module, layouts, *flags, tolerance=1e-10):
        (self.folder / "inputs").mkdir(exist_ok=True)
        np.save(self.folder / "inputs" / "x.npy", DATA.double().numpy())
        losses, weights = self.by_torch(module)
        for layout in layouts:
            with self.subTest(layout=layout):
                found, trained = self.by_acc(*flags, *layout.split())
                torch.testing.assert_close(found, losses, rtol=tolerance, atol=tolerance)
                self.assertEqual(trained.keys(), weights.keys())
                for name, value in weights.items():
                    torch.testing.assert_close(trained[name].double(), value, rtol=tolerance,
                                               atol=tolerance,
                                               msg=lambda text, name=name: f"{name}: {text}")

    def check_many(self, seed, pick_one, count):
        module = Many(seed, pick_one, count)
        Writer().write(module, self.folder / "model.onnx")
        self.check(module, (LAYOUTS[0], LAYOUTS[1 + seed % 3]), "--trainable=*.*")

    def test_convolutions(self):
        for seed in range(MODELS):
            with self.subTest(seed=seed):
                self.check_many(seed, pick_convolution, PER_MODEL)

    def test_channels_last(self):
        self.check_many(201, pick_between, PER_MODEL)
        self.assertIn("nn.transpose", self.tool("acc-opt", self.folder / "model.onnx",
                                                "--compile-to=nn"))

    def test_repeated_picture(self):
        """Positions that are one element: nothing of them lies apart."""
        class Repeated(torch.nn.Module):
            def __init__(self):
                super().__init__()
                torch.manual_seed(6)
                self.first, self.last = torch.nn.Conv2d(2, 4, 3), torch.nn.Conv2d(4, 3, 3, padding=1)

            def forward(self, x):
                pixel = x.view(-1, 2, 15, 20).mean((2, 3), keepdim=True)
                return self.last(self.first(pixel.expand(-1, -1, 6, 7))).square().mean()

        module = Repeated()
        self.export(module, (DATA,))
        self.check(module, LAYOUTS, tolerance=1e-6)

    def test_poolings(self):
        for seed in range(2):
            with self.subTest(seed=seed):
                self.check_many(100 + seed, pick_pooling, PER_MODEL)

    def test_ties(self):
        """Of equal elements the first one has the gradient, in row-major order: of pads, of windows
        that overlap, of NaN's neighbours, and where windows are too large for slices."""
        class Tied(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.shift = torch.nn.Parameter(torch.zeros(ROWS, 2, 9, 20))

            def forward(self, x):
                x = torch.round(x[:, :360].reshape(ROWS, 2, 9, 20)) + self.shift
                total = 0
                for size, stride, padding in ((3, 2, 1), (2, 2, 0), (3, 1, 0), ((2, 18), 1, 0)):
                    y = torch.nn.functional.max_pool2d(x, size, stride, padding)
                    total = total + (y * torch.arange(1., y[0].numel() + 1).view(y[0].shape)).sum()
                return total / 1024

        module = Tied()
        self.export(module, (DATA,))
        np.save(self.folder / "inputs" / "x.npy", DATA.double().numpy())
        losses, weights = self.train_steps(1, "--optimizer", "sgd", "--set", "optimizer.lr=1")
        module = module.double()
        loss = module(DATA.double())
        loss.backward()
        self.assertAlmostEqual(losses[0], loss.item(), places=9)
        torch.testing.assert_close(weights["shift"].double(), -module.shift.grad, rtol=1e-12, atol=1e-12)

    def test_pyramid(self):
        module = Pyramid()
        self.export(module, (DATA,))
        self.check(module, LAYOUTS, tolerance=1e-6)

    def test_exported(self):
        """Modules as the exporter writes them."""
        pick = lambda random, dims: (pick_pooling if random.random() < 0.3 else pick_convolution)(
            random, dims)
        module = Many(7, pick, 8)
        self.export(module, (DATA,))
        # Numbers in the code are of float32 in the file.
        self.check(module, LAYOUTS, tolerance=1e-6)


if __name__ == "__main__":
    unittest.main()
