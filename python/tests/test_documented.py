"""Each row of docs/Exporting.md's tables. Of "What becomes of what" the modules that a row
speaks of are exported as it says, and trained as in PyTorch or refused in words that ROWS
holds; of what acc believes of a file, modules of test/Fixtures/border stand for a row, which
test/Import/border.test trains or sees refused. A row that is new or changes its first cell is
asked for here."""
import copy
import functools
import json
import pathlib
import random
import re
import unittest
import warnings

import numpy as np
import onnx
import torch
import torch.nn.functional as F
from safetensors.torch import save_file
from torch import nn
from torch.utils import checkpoint

from attack import Small
from common import Refused, operators
from acc_export import trace
from training import WITHOUT_TOOLS, TrainCase, X, train_by_torch

ROOT = pathlib.Path(__file__).resolve().parents[2]
TEXT = (ROOT / "docs" / "Exporting.md").read_text()
MASK = torch.tensor([[True, False, False, True, True, False]]).T.expand(6, 6)
LABELS = torch.tensor([0, 4, -100, 2, 2, -100])


def first_cells(heading):
    """The first cells of the table below a heading."""
    part = re.split(r"^## ", TEXT.split(f"## {heading}\n")[1], flags=re.M)[0]
    return [line.split(" | ")[0].removeprefix("| ") for line in part.splitlines()
            if line.startswith("| ")][1:]


class Documented(TrainCase):
    """The tests are made of ROWS, below."""

    def trained(self, *functions, holds=(), without=(), flags=(), train=True, **parts):
        """A module that sums up functions of (module, h), a layer's result, is trained as in
        PyTorch; its file holds these operators, and is without those."""
        def make():
            module = Small(lambda s, x: sum((f(s, s.a(x)) for f in functions)) / len(functions))
            for name, part in parts.items():
                setattr(module, name, part())
            return module.train(train)
        self.flags = flags
        self.assert_trained(make)
        return self.check_file(holds, without)

    def check_file(self, holds=(), without=()):
        model = onnx.load(self.folder / "model.onnx")
        for operator in holds:
            self.assertIn(operator, operators(model))
        for operator in without:
            self.assertNotIn(operator, operators(model))
        return model

    def tool(self, name, *arguments):
        return super().tool(name, *arguments, *(self.flags if name == "acc-opt" else ()))

    flags = ()

    def refused(self, words, *functions, **parts):
        """Each of several functions is refused in these words."""
        for function in functions:
            with self.subTest(words):
                self.assert_trained(lambda function=function: self.made(function, parts), words)

    @staticmethod
    def made(function, parts):
        module = Small(lambda s, x: function(s, s.a(x)))
        for name, part in parts.items():
            setattr(module, name, part())
        return module

    def by_torchscript(self, function):
        """(acc's error or None, the operators): a file of PyTorch's older exporter."""
        file = self.folder / "traced.onnx"
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            torch.manual_seed(0)
            torch.onnx.export(Small(lambda s, x: function(s, s.a(x))), (X,), str(file),
                              dynamo=False, opset_version=17, do_constant_folding=False,
                              training=torch.onnx.TrainingMode.TRAINING, input_names=["x"],
                              output_names=["loss"])
        (self.folder / "inputs").mkdir(exist_ok=True)
        np.save(self.folder / "inputs" / "x.npy", X.numpy())
        program = self.folder / "traced.accx"
        try:
            self.tool("acc-opt", file, "--train", "--loss", "loss", "--optimizer", "sgd", "-o",
                      program)
            self.tool("acc-run", program, "--inputs", self.folder / "inputs")
        except Refused as refused:
            return str(refused), operators(onnx.load(file))
        return None, operators(onnx.load(file))


def declared(model):
    (text,) = (p.value for p in model.graph.metadata_props if p.key == "accel.parameters")
    return {entry["name"]: entry for entry in json.loads(text)}


# -- The rows, in their order ------------------------------------------------------------

def parameters(case):
    def make():
        module = Small(lambda s, x: (s.tied(s.a(x)) * s.still).tanh().pow(2).sum())
        module.tied = nn.Linear(6, 5)
        module.tied.weight = module.b.weight
        module.still = nn.Parameter(torch.linspace(0, 1, 5), requires_grad=False)
        return module
    case.assert_trained(make)
    model = case.check_file()
    inputs, held = ({v.name for v in values} for values in (
        model.graph.input, model.graph.initializer))
    names = {"a.weight", "a.bias", "b.weight", "b.bias", "tied.bias", "still", "w"}
    case.assertEqual(names & inputs & held, names)
    entries = declared(model)
    case.assertEqual(entries["b.weight"]["aliases"], ["tied.weight"])
    case.assertFalse(entries["still"]["requires_grad"])
    case.assertEqual((entries["w"]["shape"], entries["w"]["dtype"]), ([6], "float32"))


def buffers(case):
    def make():
        module = Small(lambda s, x: (s.a(x) * s.scale + torch.tensor([1., 2, 3, 4, 5, 6])).sum())
        module.register_buffer("scale", torch.linspace(1, 2, 6))
        return module
    case.assert_trained(make)
    graph = case.check_file().graph
    case.assertIn("scale", {i.name for i in graph.initializer})
    case.assertNotIn("scale", {i.name for i in graph.input})


def parametrised(case):
    model = case.trained(lambda s, h: s.normed(h).sin().sum(),
                         normed=lambda: nn.utils.parametrizations.weight_norm(nn.Linear(6, 5)))
    case.assertIn("normed.parametrizations.weight.original0", declared(model))


def stops(case):
    def no_grad(s, h):
        with torch.no_grad():
            return (s.b(h) * 2).sum() * h.sum()

    def inference(s, h):
        with torch.inference_mode():
            scale = s.w.abs().sum()
        return (h * scale.clone()).sum()
    model = case.trained(lambda s, h: (h.detach() * h).sum(), lambda s, h: (h.data * s.w).sum(),
                         lambda s, h: (h * s.w.sum().item()).sum(), no_grad, inference)
    marks = [p.value for node in model.graph.node for p in node.metadata_props
             if p.key == "accel.stop_gradient"]
    case.assertGreaterEqual(len(marks), 5)
    case.assertEqual(set(marks), {"1"})


def dropout(case):
    torch.manual_seed(0)
    def draws(s, x):
        h = s.a(x)
        heads = h.reshape(1, 1, 6, 6)
        return (F.dropout(h, 0.5) + F.dropout(h, 0.5) + F.scaled_dot_product_attention(
            heads, heads, heads, dropout_p=0.5)[0, 0]).sum()
    summary, model = case.export(Small(draws), (X,))
    case.assertEqual(operators(model).count("Dropout"), 3)
    case.tool("acc-opt", case.folder / "model.onnx", "--train", "--loss", "loss", "-o",
              case.folder / "m.accx")


def stochastic_depth(case):
    def drop(s, h):
        random = torch.floor(0.5 + torch.rand((6, 1)))
        return (h.div(0.5) * random + h * h.new_empty((6, 1)).bernoulli_(0.5).div_(0.5)).sum()
    case.export(Small(lambda s, x: drop(s, s.a(x))), (X,))
    case.tool("acc-opt", case.folder / "model.onnx", "--train", "--loss", "loss", "-o",
              case.folder / "m.accx")


def noise(case):
    summary, model = case.export(Small(lambda s, x: (s.a(x) + torch.randn(6, 6) * torch.rand(6, 1)).sum()), (X,))
    case.assertIn("RandomNormalLike", operators(model))
    case.tool("acc-opt", case.folder / "model.onnx", "--train", "--loss", "loss", "-o",
              case.folder / "m.accx")


def plain_cross_entropy(case):
    case.trained(lambda s, h: F.cross_entropy(h, LABELS), holds=["SoftmaxCrossEntropyLoss"])


def losses(case):
    soft = F.softmax(torch.linspace(-1, 1, 36).reshape(6, 6).sin(), -1)
    weight = torch.arange(1., 7.)
    case.trained(
        lambda s, h: F.cross_entropy(h, LABELS, label_smoothing=0.1),
        lambda s, h: F.cross_entropy(h, LABELS, weight=weight.to(h)),
        lambda s, h: F.cross_entropy(h, soft.to(h)),
        lambda s, h: F.nll_loss(F.log_softmax(3 * h, 1), LABELS, weight=weight.to(h)),
        lambda s, h: F.kl_div(F.log_softmax(h, 1), soft.to(h), reduction="batchmean"),
        lambda s, h: F.binary_cross_entropy(h.sigmoid(), soft.to(h)),
        without=["NegativeLogLikelihoodLoss"], flags=["--micro-batches", "2"])


def trained_norms(case):
    model = case.trained(lambda s, h: s.norm(h).pow(3).sum(), norm=lambda: nn.BatchNorm1d(6),
                         holds=["BatchNormalization"])
    (norm,) = (node for node in model.graph.node if node.op_type == "BatchNormalization")
    case.assertIn(("training_mode", 1), [(a.name, a.i) for a in norm.attribute])
    case.trained(lambda s, h: F.batch_norm(h, None, None, training=True).pow(3).sum(),
                 without=["BatchNormalization"])


def formulas(case):
    def norm():
        made = nn.BatchNorm1d(6)
        made.running_mean.uniform_(-1, 1)
        return made
    h3 = functools.partial(torch.reshape, shape=(3, 4, 3))
    case.trained(
        lambda s, h: s.norm(h).pow(3).sum(), lambda s, h: F.group_norm(h3(h), 2).pow(3).sum(),
        lambda s, h: sum(f(h).sum() for f in (F.elu, F.selu, F.celu, F.mish, torch.sinc)),
        lambda s, h: F.prelu(h, s.w[:1]).sum() + torch.tan(h / 9).sum(),
        lambda s, h: (torch.round(3 * h) * h).sum() + torch.xlogy(h, h.abs() + 1).sum(),
        lambda s, h: h.diagonal().sum() + h.trace() + torch.cdist(h, 2 * h + 1).sum(),
        lambda s, h: F.scaled_dot_product_attention(h, h, h).sum(),
        lambda s, h: (h * torch.fmod(torch.arange(-3, 3), 2) + h * (torch.arange(6) >> 1) +
                      h * (torch.arange(6) << 1)).sum(),
        norm=norm, train=False, without=["BatchNormalization", "InstanceNormalization", "Elu"])


def complex_numbers(case):
    turns = torch.polar(torch.ones(6, 3), torch.arange(18.).reshape(6, 3))

    def rotated(s, h):
        z = torch.view_as_complex(h.reshape(6, 3, 2)) * turns * torch.exp(1j * s.w[:3])
        return (torch.view_as_real(z).flatten(1) * s.w).sum() + z.abs().mean()
    model = case.trained(rotated)
    case.assertFalse({i.data_type for i in model.graph.initializer} & {14, 15})
    case.refused("which ONNX has no type for", lambda s, h: torch.fft.fft(h).abs().sum(),
                 lambda s, h: torch.view_as_complex(h.reshape(6, 3, 2)).angle().sum())


def padding(case):
    case.trained(lambda s, h: (s.table(torch.tensor([0, 2, 1, 0, 2, 2])) * h).sum(),
                 table=lambda: nn.Embedding(3, 6, padding_idx=0))


def checkpointed(case):
    for reentrant in (False, True):
        case.trained(lambda s, h: checkpoint.checkpoint(lambda x: s.b(x.tanh()).sin(), h,
                                                        use_reentrant=reentrant).sum())


class Cube(torch.autograd.Function):
    @staticmethod
    def forward(context, x):
        context.save_for_backward(x)
        return x ** 3

    @staticmethod
    def backward(context, gradient):
        return 3 * context.saved_tensors[0] ** 2 * gradient


class Reversed(Cube):
    @staticmethod
    def backward(context, gradient):
        return -gradient


def autograd_functions(case):
    cubed = Cube.apply
    case.trained(lambda s, h: cubed(h).sum())
    case.refused("it is not the derivative of its forward", lambda s, h: Reversed.apply(h).sum())


def gradients_inside(case):
    def hooked(s, h):
        h.register_hook(lambda gradient: 2 * gradient)
        return h.sum()

    def written(s, h):
        with torch.no_grad():
            h.mul_(2)
        return h.sum()
    case.refused("in place", lambda s, h: (h.detach().add_(1) * h).sum(), written)
    case.refused("takes or changes gradients inside the model", hooked,
                 lambda s, h: torch.autograd.grad(h.sum(), s.w, allow_unused=True)[0] or h.sum())


def chosen(case):
    def experts(s, h):
        scores, out = F.softmax(h[:, :2], 1), torch.zeros_like(h)
        for number in range(2):
            rows, = torch.where(scores.argmax(1) == number)
            out = out.index_add(0, rows, h[rows].tanh() * scores[rows, number, None])
        return out.sum()
    case.trained(lambda s, h: h[h > 0].sin().sum(), lambda s, h: h.masked_select(h > 0).sum(),
                 lambda s, h: h[torch.nonzero(h[:, 0] > 0)[:, 0]].pow(2).mean(), experts,
                 lambda s, h: h[torch.nonzero(h[:, 0] > -9)[:2, 0]].cos().sum(), holds=["NonZero"])
    case.refused("of what NonZero chooses at run time",
                 lambda s, h: (h[h > 0].cumsum(0) * 2).sum(), lambda s, h: h[h > 0].flip(0).sum(),
                 lambda s, h: h[h > 0].softmax(0).square().sum())


def written(case):
    def zeroed(s, h):
        h = h * 1
        h[h[:, 0] > 0] = 0
        return h.sum()

    def assigned(s, h):
        y = h * 1
        y[MASK[:, 0]] = s.b(h)[:3, :1] * s.w
        y[MASK[:, 0]] = y[MASK[:, 0]] + s.w[:3, None]
        return y.sin().sum()

    def put(s, h):
        at, rows = torch.nonzero(h[:, 0] > -9)[:, 0], (s.w * s.w[:, None]).sin()
        return (h.index_copy(0, at, rows) * h.index_add(0, at, rows) + h.index_put(
            (at,), rows)).sin().sum()
    case.trained(zeroed, assigned, put, lambda s, h: (h.masked_scatter(
        h > 0, s.w.repeat(6)) * h).sum(), holds=["ScatterND", "NonZero"])
    case.flags = ["--micro-batches", "2"]
    case.assert_trained(lambda: Small(lambda s, x: put(s, s.a(x))),
                        "expected nothing to go by what is chosen in samples before")
    case.flags = ()
    def row(s, h):
        h = h * 1
        h[h[:, 0] > -9] = s.b.bias
        return h.sum()

    def added(s, h):
        here = h[:, 0] * 0 + X[:, 0] > 0
        return h.index_add(0, torch.nonzero(here)[:, 0], h[:int((X[:, 0] > 0).sum())]).sum()
    for function, words in ((zeroed, "operator 'Where'"), (row, "expected indices"),
                            (added, "a number of the sample's is none")):
        # Of [6, 5]: of a square, rows and columns go together.
        error, _ = case.by_torchscript(lambda s, h, f=function: f(s, h[:, :5]))
        case.assertIn(words, error or "")


def one_number(case):
    case.trained(lambda s, h: (h * s.temperature).sin().sum(),
                 temperature=lambda: nn.Parameter(torch.tensor(0.5)))


def hooks(case):
    def hooked():
        layer = nn.Linear(6, 5)
        layer.register_forward_hook(lambda module, arguments, result: result * 2)
        return layer
    case.trained(lambda s, h: s.hooked(h).sin().sum(), hooked=hooked)


def changing(case):
    def counted(s, h):
        s.calls += 1
        return (h * s.calls).sum()

    def listed(s, h):
        s.table.append(len(s.table))
        return (h * len(s.table)).sum()
    numbers = iter(range(1, 1000))
    case.refused("a file holds what one call computes", counted, listed,
                 lambda s, h: (h * next(numbers)).sum())


def kept(case):
    def last(s, h):
        before, s.kept = s.kept, h.detach()
        return (h if before is None else h + before).sum()

    def switched(s, h):
        s.w.requires_grad_(False)
        return (h * s.w).sum()
    case.refused("the forward changes requires_grad", switched)
    case.refused("what was traced is not what the model computes", last,
                 lambda s, h: (h * (2 if torch.compiler.is_compiling() else 3)).sum())
    case.refused("cannot trace the model", lambda s, h: (h * s.w.detach().numpy().sum()).sum())


def unsupported(case):
    def table(**options):
        return lambda s, h: (F.embedding(torch.tensor([0, 1, 2, 3, 4, 0]), s.b.weight,
                                         **options) * h).sum()
    case.refused("has momentum=None", lambda s, h: s.n(h).pow(3).sum(),
                 n=lambda: nn.BatchNorm1d(6, momentum=None))
    case.refused("running statistics of an instance norm", lambda s, h: s.n(
        h.reshape(3, 4, 3)).pow(3).sum(), n=lambda: nn.InstanceNorm1d(4, track_running_stats=True))
    case.refused("max_norm", table(max_norm=0.1))
    case.refused("scale_grad_by_freq", table(scale_grad_by_freq=True))
    case.refused("sparse", table(sparse=True))
    case.refused("control flow", lambda s, h: torch.cond(
        h.sum() > 0, lambda x: x.sin(), lambda x: x.cos(), (h,)).sum())
    case.refused("draws from Python's module random", lambda s, h: (h * random.random()).sum())


def halves(case):
    for dtype in (torch.bfloat16, torch.float16):
        case.trained(lambda s, h: s.n(h.to(s.n.weight.dtype)).sin().sum().to(h.dtype),
                     n=lambda dtype=dtype: nn.Linear(6, 5).to(dtype))


def changed(case):
    class Counting(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("count", torch.zeros(()))

        def forward(self, h):
            self.count += 1
            return h * self.count
    class Shared(nn.Module):
        def __init__(self):
            super().__init__()
            self.whole = nn.Parameter(torch.randn(6))
            self.part = nn.Parameter(self.whole.data[:3])

        def forward(self, h):
            return (h * self.whole)[:, :3] * self.part

    def cast(s, h):
        with torch.autocast("cpu", torch.bfloat16):
            return s.b(h).float().sum()
    case.refused("a training step changes parameters only", lambda s, h: s.n(h).sum(), n=Counting)
    case.refused("tie them", lambda s, h: s.n(h).sum(), n=Shared)
    case.refused("leave it out and let acc compute in bfloat16", cast)


#: By what a row's first cell begins with, in the order of the rows.
ROWS = {
    "parameters": parameters, "buffers, constants": buffers, "parametrised modules": parametrised,
    "`detach()`": stops, "dropout in training mode": dropout,
    "stochastic depth": stochastic_depth, "other random numbers": noise,
    "`cross_entropy`, plain": plain_cross_entropy, "label smoothing": losses,
    "batch norm in training mode": trained_norms,
    "batch norm in `eval()`": formulas, "complex tensors": complex_numbers,
    "`padding_idx`": padding, "regions of `torch.utils.checkpoint`": checkpointed,
    "an `autograd.Function`": autograd_functions, "in-place writes": gradients_inside,
    "`x[mask]`": chosen, "`h[mask] = 0`": written, "a parameter of one number": one_number,
    "forward hooks": hooks, "a counter, list": changing, "a tensor kept": kept,
    "instance norm that keeps": unsupported, "bfloat16 or float16 parameters": halves,
    "buffers that the forward changes": changed,
}


def by_default(case, function, opset=None, **parts):
    """A file of torch.onnx.export as it comes is trained as in PyTorch. What acc-opt says."""
    class Layer(nn.Module):
        def __init__(self):
            super().__init__()
            self.a = nn.Linear(5, 6)
            for name, part in parts.items():
                setattr(self, name, part())

        def forward(self, x):
            return function(self, self.a(x))
    return train_default(case, Layer(), opset)


def train_default(case, module, opset=None):
    """The same of a module."""
    with warnings.catch_warnings(), trace.quiet():
        warnings.simplefilter("ignore")
        torch.onnx.export(module, (X,), str(case.folder / "model.onnx"), dynamo=True,
                          opset_version=opset, verbose=False, input_names=["x"], output_names=["loss"])
    (case.folder / "inputs").mkdir(exist_ok=True)
    np.save(case.folder / "inputs" / "x.npy", X.numpy())
    losses, _ = case.train_by_acc()
    torch.testing.assert_close(losses, train_by_torch(copy.deepcopy(module).double(), X.double(),
                                                      case.rate), rtol=1e-6, atol=1e-9)
    return case.said


def views_and_factors(case):
    said = by_default(case, lambda s, h: (h.clone() * (1 + 1e-7)).contiguous().sin().sum())
    case.assertEqual(said.count("warning"), 1, said)


def own_operators(case):
    def halves(s, h):
        one, other = F.rms_norm(h, (6,), s.scale).split(3, 1)
        return (one * other.sin()).sum()
    by_default(case, halves, opset=23, scale=lambda: nn.Parameter(torch.linspace(1, 2, 6)))
    case.check_file(holds=["RMSNormalization", "Split"])


class CutRows(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(5, 6)
        self.rows = nn.Parameter(torch.linspace(1, 2, 60).reshape(10, 6).sin())

    def forward(self, x):
        return (self.a(x) + self.rows[2:8]).sin().sum()


def original_weights(case):
    module = CutRows()
    with case.assertRaisesRegex(Refused, "computed by the exporter from parameter 'rows'"):
        train_default(case, module)
    given = case.folder / "given.safetensors"
    save_file({name: value.detach() for name, value in module.named_parameters()}, given)
    case.flags = ("--original-weights", given)
    train_default(case, module)


#: The same of the other table: modules of test/Fixtures/border, of files by default, and
#: what is tried here. Each module begins with what becomes of it.
BELIEVED = {
    "transposed a weight for its product": ["trains BuffersLikeANorm EqualNorms TiedTranspose"],
    "computed a second copy": ["trains TransposeBesideWeight SliceBesideWeight ScaleAndSquare"],
    "kept of a parameter only": ["trains TransposeAlone OneAndWeight WholeTable",
                                 "refused NumberOnAnotherLine TransposeWithoutGradient"],
    "the same, and `--original-weights": [original_weights],
    "left a table of an encoder": ["trains SharedTable"],
    "anything else computed": ["refused Gram Positions AddAlphaAlone"],
    "merged a literal or buffer": ["trains OnesLikeAWeight LiteralLikeAScalar ExponentLikeAScalar",
                                   "refused OnesBesideWeight"],
    "merged two calls": ["refused DetachedTwin DetachedTwinOfOne EqualNormsOfOne"],
    "merged two draws": ["refused TwoDropouts DropoutOfConstant"],
    "dropped `detach`": ["refused Detach FactorOfOne Epsilon PenaltyOfZero"],
    "dropped a copy or view": ["refused CopyOfDetached DetachedClone"],
    "dropped any other copy": [views_and_factors],
    "replaced calls by one of its own": [own_operators],
    "dropped a parameter": ["refused Unused"],
}


class Tables(unittest.TestCase):
    def check(self, heading, rows):
        cells = first_cells(heading)
        self.assertEqual(len(cells), len(rows))
        for cell, beginning in zip(cells, rows):
            self.assertTrue(cell.startswith(beginning), f"{cell} is not of row {beginning}")

    def test_each_row_is_tried(self):
        self.check("What becomes of what", ROWS)
        self.check("What acc believes of a file of torch.onnx.export", BELIEVED)

    def test_modules_of_the_border(self):
        cases = json.loads((ROOT / "test" / "Fixtures" / "border" / "cases.json").read_text())
        for row, modules in BELIEVED.items():
            for text in modules:
                what, *names = text.split() if isinstance(text, str) else [""]
                for name in names:
                    self.assertEqual(cases[name]["default"] == "trains", what == "trains",
                                     f"{row}: {name}")


for _check in [*ROWS.values(), *(f for all in BELIEVED.values() for f in all if callable(f))]:
    setattr(Documented, f"test_{_check.__name__}", lambda self, check=_check: check(self))
Documented = unittest.skipIf(WITHOUT_TOOLS, WITHOUT_TOOLS)(Documented)

if __name__ == "__main__":
    unittest.main()
