#!/usr/bin/env python3
"""Makes border/: small modules that exporters fold, merge or drop parts of, each
exported as today's exporter does by default and with optimize=False, and how PyTorch
trains each in float64. What an export may come to is in its entry of cases.json:
`trains`, or the words of the error that refuses it. Run it with the versions of
requirements.txt; test/Import/border.test reads it."""
import copy
import json
import os
import pathlib
import re
import shutil

import numpy as np
import onnx
import torch
import torch.nn.functional as F
from torch import nn

import exported

FOLDER = pathlib.Path(__file__).resolve().parent / "border"
STEPS, RATE, BATCH = 3, 0.1, 8
CASES = {}


def case(default, arguments, raw="trains"):
    """Registers a module: what becomes of its default export, and of the raw one."""
    def register(kind):
        CASES[kind.__name__] = (kind, default, raw, arguments)
        return kind
    return register


def floats(*shape):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(5))


X = floats(BATCH, 5)
SEQUENCE = floats(BATCH, 4, 6)
IDS = torch.arange(BATCH * 4).reshape(BATCH, 4) * 7 % 11
CLASSES = torch.arange(BATCH) * 3 % 5
IGNORED = torch.where(CLASSES == 1, -100, CLASSES)
FOLLOW = "and would not follow it in training"


class Linear(nn.Module):
    """What most cases add something to."""
    def __init__(self):
        super().__init__()
        self.k = nn.Linear(5, 5)


class WithParameter(Linear):
    def __init__(self, value):
        super().__init__()
        self.w = nn.Parameter(value)


# A second use of a parameter, folded.

@case("trains", (IDS,))
class TiedTranspose(nn.Module):
    """A decoder's head over its own embedding."""
    def __init__(self):
        super().__init__()
        self.e, self.k = nn.Embedding(11, 6), nn.Linear(6, 6)

    def forward(self, ids):
        scores = torch.tanh(self.k(self.e(ids))) @ self.e.weight.T
        return F.cross_entropy(scores.flatten(0, 1), ids.flatten())


@case("trains", (X,))
class TransposeBesideWeight(WithParameter):
    def __init__(self):
        super().__init__(floats(5, 5))

    def forward(self, x):
        return (torch.tanh(self.k(x) @ self.w) @ self.w.T).pow(2).mean()


@case("trains", (X,))
class SliceBesideWeight(WithParameter):
    def __init__(self):
        super().__init__(floats(5, 5))

    def forward(self, x):
        h = self.k(x)
        return torch.tanh(h @ self.w).pow(2).mean() + torch.tanh(h @ self.w[1:4].T).mean()


@case("trains", (X,))
class ScaleAndSquare(WithParameter):
    def __init__(self):
        super().__init__(floats(5))

    def forward(self, x):
        return (self.k(x) + 0.5 * self.w + torch.tanh(x * self.w) * self.w.pow(2)).pow(2).mean()


@case("trains", (X,))
class AddAlpha(WithParameter):
    """The other term is folded with its factor, beside a plain use."""
    def __init__(self):
        super().__init__(floats(5))

    def forward(self, x):
        return torch.add(self.k(x) * self.w, self.w, alpha=3).tanh().pow(2).mean()


@case(f"from parameter 'k.weight', {FOLLOW}", (X,))
class Gram(Linear):
    def forward(self, x):
        own = self.k.weight @ self.k.weight.T - torch.eye(5)
        return self.k(x).tanh().pow(2).mean() + 0.1 * own.pow(2).sum()


@case("nothing tells whether operand 1 is parameter 'w'", (X,))
class ReluBesideWeight(WithParameter):
    """The value alone looks like a copy: no element is negative."""
    def __init__(self):
        super().__init__(floats(5).abs())

    def forward(self, x):
        return (x * self.w + torch.tanh(self.k(x) * F.relu(self.w))).pow(2).mean()


@case(f"from parameter 'w', {FOLLOW}", (X,))
class DetachedTranspose(WithParameter):
    """The copy follows, and passes no gradient."""
    def __init__(self):
        super().__init__(floats(5, 5))

    def forward(self, x):
        return (torch.tanh(self.k(x) @ self.w) @ self.w.detach().T).pow(2).mean()


@case("from parameter 'p.weight', " + FOLLOW, (IDS,))
class Positions(nn.Module):
    def __init__(self):
        super().__init__()
        self.e, self.p = nn.Embedding(11, 6), nn.Embedding(4, 6)

    def forward(self, ids):
        return (self.e(ids) + self.p(torch.arange(4))).tanh().pow(2).mean()


# Constants merged with an equal parameter.

@case("trains", (X,))
class BuffersLikeANorm(Linear):
    def __init__(self):
        super().__init__()
        self.n = nn.LayerNorm(5)
        self.register_buffer("mean", torch.zeros(5))
        self.register_buffer("deviation", torch.ones(5))

    def forward(self, x):
        h = self.k((x - self.mean) / self.deviation)
        return (self.n(h).tanh() * x).pow(2).mean()


@case("trains", (X,))
class LiteralLikeAScalar(WithParameter):
    def __init__(self):
        super().__init__(torch.tensor(0.5))

    def forward(self, x):
        return (0.5 * self.k(x) + self.w * x).tanh().pow(2).mean()


@case("trains", (X,))
class ExponentLikeAScalar(WithParameter):
    def __init__(self):
        super().__init__(torch.tensor(2.0))

    def forward(self, x):
        return (self.k(x) * self.w).tanh().pow(2).mean()


@case("trains", (X,))
class OnesLikeAWeight(WithParameter):
    def __init__(self):
        super().__init__(torch.ones(5))

    def forward(self, x):
        return ((self.k(x) * self.w).tanh() - torch.ones(5)).pow(2).mean()


@case("trains", (X,))
class EqualNorms(Linear):
    """Parameters of one value, merged, each of its own."""
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.LayerNorm(5), nn.LayerNorm(5)

    def forward(self, x):
        return (self.a(self.k(x)).tanh() + self.b(x)).pow(3).mean()


@case("may have been a call with another parameter", (X,))
class EqualNormsOfOne(Linear):
    """Two calls made one, because their parameters are equal today."""
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.LayerNorm(5), nn.LayerNorm(5)

    def forward(self, x):
        h = self.k(x)
        both = self.a(h).tanh() * self.b(h)
        return both.pow(2).mean() + self.b(x).tanh().mean()


# Initializers that are not the parameter they look like.

@case("from parameter 'w', " + FOLLOW, (X,))
class AddAlphaAlone(WithParameter):
    def __init__(self):
        super().__init__(floats(5))

    def forward(self, x):
        return torch.add(self.k(x), self.w, alpha=2).tanh().pow(2).mean()


@case("trains", (CLASSES,))
class Column(WithParameter):
    def __init__(self):
        super().__init__(floats(5, 5))

    def forward(self, ids):
        return self.k(self.w[:, ids].T).tanh().pow(2).mean()


@case("from parameter 'keys', " + FOLLOW, (SEQUENCE,))
class LearnedKeys(nn.Module):
    def __init__(self):
        super().__init__()
        self.q = nn.Linear(6, 6)
        self.keys = nn.Parameter(floats(1, 2, 3, 3))
        self.values = nn.Parameter(floats(1, 2, 3, 3) + 1)

    def forward(self, x):
        q = self.q(x).view(BATCH, 4, 2, 3).transpose(1, 2)
        return F.scaled_dot_product_attention(q, self.keys, self.values).tanh().pow(2).mean()


@case("may have computed with parameter 'w'", (X,))
class FactorOfOne(WithParameter):
    """x * w is dropped while w is 1."""
    def __init__(self):
        super().__init__(torch.tensor(1.0))

    def forward(self, x):
        return ((self.k(x) * self.w).tanh() + x.exp() ** self.w).mean()


@case("drops what adds less than 1e-8", (X,))
class Epsilon(Linear):
    """x + 1e-9 is dropped, too."""
    def forward(self, x):
        return torch.sqrt(self.k(x).pow(2) + 1e-9).mean()


@case("trains", (X,))
class RoundedToBf16(Linear):
    def forward(self, x):
        return (self.k(x).bfloat16().to(x.dtype) * x).mean()


# What nodes have no word for.

@case("trains", (X, IGNORED))
class LabelSmoothing(Linear):
    def forward(self, x, labels):
        return F.cross_entropy(self.k(x), labels, label_smoothing=0.2)


class WeightedClasses(Linear):
    def __init__(self):
        super().__init__()
        self.register_buffer("weights", torch.tensor([1.0, 0.5, 2.0, 1.5, 0.25]))


@case("trains", (X, IGNORED))
class SmoothWeights(WeightedClasses):
    """Weights of classes, smoothing and ignored labels together."""
    def forward(self, x, labels):
        return F.cross_entropy(self.k(x), labels, weight=self.weights, label_smoothing=0.1)


@case("trains", (X, IGNORED))
class LogLikelihood(WeightedClasses):
    def forward(self, x, labels):
        return F.nll_loss(F.log_softmax(self.k(x), dim=-1), labels, weight=self.weights)


@case("'detach' of the traced call 'mul' (mul) stopped a gradient", (X,))
class Detach(Linear):
    def forward(self, x):
        h = self.k(x)
        return (h * h.tanh().detach()).pow(2).mean()


@case("'clone' of the traced call 'mul' (mul) stopped a gradient", (X,))
class DetachedClone(Linear):
    def forward(self, x):
        h = self.k(x)
        return (h * h.tanh().detach().clone()).pow(2).mean()


@case("was made in a region", (X,), raw="was made in a region")
class NoGrad(Linear):
    def forward(self, x):
        h = self.k(x)
        with torch.no_grad():
            target = self.k(h).tanh()
        return (h - target).pow(2).mean()


@case("was made in a region", (X,), raw="was made in a region")
class NoGradPower(Linear):
    """The first node of the region's call is a constant."""
    def forward(self, x):
        h = self.k(x)
        with torch.no_grad():
            factor = h**2
        return (h * factor).mean()


@case("'tanh_1' of the traced call 'exp' (exp) was merged with 'tanh'", (X,))
class DetachedTwin(Linear):
    """What is gone with the second tanh is what its argument was."""
    def forward(self, x):
        h = self.k(x)
        return (h.tanh() * 0.3 - h.detach().tanh().exp()).pow(2).mean()


@case("'clone' of the traced call 'sub' (sub) is gone, and nothing tells", (X,))
class CopyOfDetached(Linear):
    """In a function of its own, whose lines the exporter does not quote."""
    def forward(self, x):
        h = self.k(x)
        return (h.tanh() - detached_copy(h)).pow(2).mean()


def detached_copy(x):
    return x.detach().clone()


@case("'linear_2' of the traced call 'mul' (mul) was merged with 'linear_1'", (X,))
class DetachedTwinOfOne(Linear):
    """Both arguments are one value."""
    def forward(self, x):
        h = self.k(x)
        d = h.detach()
        return (self.k(h) * self.k(d)).tanh().mean()


@case("trains", (X,))
class SumOfList(Linear):
    """Python's sum begins with 0 + x, which is dropped."""
    def forward(self, x):
        return sum(h.pow(2).mean() for h in (self.k(x), self.k(x.tanh())))


@case("the forward changes 'count'", (X,), raw="the forward changes 'count'")
class CountsSteps(Linear):
    def __init__(self):
        super().__init__()
        self.register_buffer("count", torch.ones(()))

    def forward(self, x):
        self.count.add_(1.0)
        return self.k(x).pow(2).mean() * self.count


@case("the traced call 'add' that is output 'loss' is gone", (X,))
class PenaltyOfZero(Linear):
    """The term that keeps a weight near its start is 0 there, and dropped."""
    def __init__(self):
        super().__init__()
        self.register_buffer("start", self.k.weight.detach().clone())

    def forward(self, x):
        return self.k(x).pow(2).mean() + 0.5 * (self.k.weight - self.start).pow(2).sum()


class Straight(torch.autograd.Function):
    """Signs, whose gradient is that of what they are of."""
    @staticmethod
    def forward(context, x):
        return x.sign()

    @staticmethod
    def backward(context, gradient):
        return gradient


@case("by the forward of an autograd function", (X,),
      raw="by the forward of an autograd function")
class StraightThrough(Linear):
    def forward(self, x):
        return (Straight.apply(self.k(x)) * x).pow(2).mean()


straight = Straight.apply


@case("by the forward of an autograd function", (X,),
      raw="by the forward of an autograd function")
class StraightByName(Linear):
    """No line says `apply`."""
    def forward(self, x):
        return (straight(self.k(x)) * x).pow(2).mean()


class Reversal(torch.autograd.Function):
    """The same value, and the gradient with another sign."""
    @staticmethod
    def forward(context, x):
        return x.view_as(x)

    @staticmethod
    def backward(context, gradient):
        return -gradient


@case("by the forward of an autograd function", (X,),
      raw="by the forward of an autograd function")
class ReversedGradient(Linear):
    def forward(self, x):
        return (Reversal.apply(self.k(x)) * x).tanh().pow(2).mean()


@case("may be one draw of random numbers", (X,), raw=None)
class DropoutOfConstant(Linear):
    """Only refused or not, too."""
    def __init__(self):
        super().__init__()
        self.register_buffer("mask", torch.ones(5))

    def forward(self, x):
        return (self.k(x) * F.dropout(self.mask, 0.5, training=True)).tanh().mean()


@case("made one draw of two", (X,), raw=None)
class TwoDropouts(Linear):
    """Only refused or not: no draw of ours is PyTorch's."""
    def forward(self, x):
        h = self.k(x)
        return (F.dropout(h, 0.5, True) - F.dropout(h, 0.5, True)).pow(2).mean()


@case("'w' is in no initializer", (X,), raw="trains")
class Unused(WithParameter):
    """A default export does not tell it from one that was folded."""
    def __init__(self):
        super().__init__(floats(5))

    def forward(self, x):
        return self.k(x).pow(2).mean()


# Values that equal a parameter today.

@case("nothing tells whether operand 2 is parameter 'w'", (X,))
class OnesBesideWeight(WithParameter):
    """Both are operands of one call, and one tensor."""
    def __init__(self):
        super().__init__(torch.ones(5))

    def forward(self, x):
        h = self.k(x)
        return (torch.where(h > 0, self.w, torch.ones(5)) * h).pow(2).mean()


class WithCopy(WithParameter):
    """A buffer that equals the parameter today, and stays."""
    def __init__(self, value):
        super().__init__(value)
        self.register_buffer("kept", value.clone())


@case("nothing tells whether operand 1 is parameter 'w'", (X,))
class ClonedCopy(WithCopy):
    def __init__(self):
        super().__init__(floats(5))

    def forward(self, x):
        return (self.k(x) * self.w - (x + self.kept.clone())).pow(2).mean()


@case(f"from parameter 'w', {FOLLOW}", (X,))
class SlicesOfCopies(WithCopy):
    """The two slices are one initializer, computed from the parameter."""
    def __init__(self):
        super().__init__(floats(5, 5))

    def forward(self, x):
        h = self.k(x)
        return (h @ self.w + h * self.w[1] - x * self.kept[1]).pow(2).mean()


@case(f"from parameter 'w', {FOLLOW}", (X,))
class TransposesOfEquals(WithParameter):
    """Of equal parameters: each trains by its own use."""
    def __init__(self):
        super().__init__(0.2 * floats(5, 5))
        self.v = nn.Parameter(self.w.detach().clone())

    def forward(self, x):
        h = self.k(x)
        return (h @ self.w + x @ self.w.t() - h.tanh() @ self.v.t() + x @ self.v).pow(2).mean()


@case("trains", (X, CLASSES))
class MadeInForward(Linear):
    """Modules of PyTorch's own and the user's that no other registers."""
    class Focal(nn.Module):
        def __init__(self, gamma):
            super().__init__()
            self.gamma = gamma

        def forward(self, scores, classes):
            each = nn.CrossEntropyLoss(reduction="none")(scores, classes)
            certain = torch.exp(-each)
            return ((1 - certain) ** self.gamma * each).mean()

    def forward(self, x, classes):
        h = nn.Sequential(nn.Tanh(), self.k, nn.Sequential(nn.GELU()))(x)
        loss = nn.CrossEntropyLoss()
        return loss(h, classes) + self.Focal(2.0)(h, classes)


class Context(torch.autograd.Function):
    """Half of its derivative, and a context of an unusual name."""
    @staticmethod
    def forward(self, x):
        self.factor = 3.0
        return torch.tanh(x) * self.factor

    @staticmethod
    def backward(self, gradient):
        return gradient / 2


named_context = Context.apply


@case("by the forward of an autograd function", (X,),
      raw="by the forward of an autograd function")
class ContextCalledSelf(Linear):
    def forward(self, x):
        return (named_context(self.k(x)) * x).pow(2).mean()


class AroundModule(torch.autograd.Function):
    @staticmethod
    def forward(context, x):
        return nn.Softplus()(x)

    @staticmethod
    def backward(context, gradient):
        return gradient / 2


around = AroundModule.apply


@case("by the forward of an autograd function", (X,),
      raw="by the forward of an autograd function")
class FunctionAroundModule(Linear):
    """The innermost frame is a module's of PyTorch."""
    def forward(self, x):
        return (around(self.k(x)) * x).pow(2).mean()


@case("by the forward of an autograd function", (X,),
      raw="by the forward of an autograd function")
class FunctionInHook(Linear):
    def __init__(self):
        super().__init__()
        self.k.register_forward_hook(lambda module, arguments, result: named_context(result))

    def forward(self, x):
        return (self.k(x) * x).pow(2).mean()


# What is nowhere but folded, and undone.

@case("trains", (X,))
class OneAndWeight(WithParameter):
    """Gemma's norms."""
    def __init__(self):
        super().__init__(floats(5))

    def forward(self, x):
        return (self.k(x) * (1.0 + self.w.float())).tanh().pow(2).mean()


@case(f"from parameter 'w', {FOLLOW}", (X,))
class NumberOnAnotherLine(WithParameter):
    def __init__(self):
        super().__init__(floats(5))

    def forward(self, x):
        scale = self.w + 0.5
        return (self.k(x) * scale).tanh().pow(2).mean()


@case("trains", (X,))
class TransposeAlone(WithParameter):
    def __init__(self):
        super().__init__(floats(7, 5))

    def forward(self, x):
        return (self.k(x).tanh() @ self.w.T).pow(2).mean()


@case("trains", (SEQUENCE,))
class WholeTable(nn.Module):
    """Positions of a fixed length, without a call that looks them up."""
    def __init__(self):
        super().__init__()
        self.k, self.p = nn.Linear(6, 6), nn.Parameter(floats(4, 6))

    def forward(self, x):
        return (self.k(x) + self.p.unsqueeze(0)).tanh().pow(2).mean()


@case(f"from parameter 'w', {FOLLOW}", (X,), raw="was made in a region")
class TransposeWithoutGradient(WithParameter):
    """Of the region nothing is left."""
    def __init__(self):
        super().__init__(0.3 * floats(7, 5))

    def forward(self, x):
        with torch.no_grad():
            w = self.w.T
        return ((x @ w).pow(2) + F.linear(self.k(x), self.w)).pow(2).mean()


class Half(nn.Module):
    def __init__(self, table):
        super().__init__()
        self.table = table

    def forward(self, ids):
        return self.table(ids)


@case("trains", (IDS,))
class SharedTable(nn.Module):
    """The table of an encoder and a decoder, which the file calls by another name."""
    def __init__(self):
        super().__init__()
        self.shared = nn.Embedding(11, 6)
        self.encoder, self.decoder = Half(nn.Embedding(11, 6)), Half(nn.Embedding(11, 6))
        self.k, self.head = nn.Linear(6, 6), nn.Linear(6, 11, bias=False)
        for table in (self.encoder.table, self.decoder.table, self.head):
            table.weight = self.shared.weight

    def forward(self, ids):
        scores = self.head(self.k(self.encoder(ids)).tanh() * self.decoder(10 - ids))
        return F.cross_entropy(scores.flatten(0, 1), ids.flatten())


def own_lines(proto):
    """Of each stack trace the frames in this script, and in code that torch.export
    generated: they quote nobody else. Of PyTorch's modules the place is left."""
    script = pathlib.Path(__file__).name
    for node in proto.graph.node:
        for entry in node.metadata_props:
            if entry.key != "pkg.torch.onnx.stack_trace":
                continue
            frames = re.findall(r'File "([^"]*)", (line \d+, in \S+)\n(.*)', entry.value)
            kept = []
            for path, where, text in frames:
                if pathlib.Path(path).name == script or path.startswith("<eval_with_key>"):
                    kept.append(f'  File "{pathlib.Path(path).name}", {where}\n{text}')
                elif "/torch/nn/modules/" in path:
                    name = path[path.index("/torch/nn/modules/") + 1:]
                    kept.append(f'  File "{name}", {where}')
            entry.value = "\n".join(kept)
            entry.key = "kept"
    exported.strip(proto)
    for node in proto.graph.node:
        for entry in node.metadata_props:
            if entry.key == "kept":
                entry.key = "pkg.torch.onnx.stack_trace"
    return proto


def train(model, arguments):
    """Loss of each step, and the parameters after the last, in float64."""
    model = copy.deepcopy(model).double()
    arguments = [a.double() if a.is_floating_point() else a for a in arguments]
    optimizer = torch.optim.SGD(model.parameters(), lr=RATE)
    losses = []
    for _ in range(STEPS):
        optimizer.zero_grad()
        loss = model(*arguments)
        losses.append(loss.item())
        loss.backward()
        optimizer.step()
    return losses, {name: value.detach().flatten().tolist()
                    for name, value in model.named_parameters()}


def main():
    shutil.rmtree(FOLDER, ignore_errors=True)
    record = {}
    for name, (kind, default, raw, arguments) in CASES.items():
        torch.manual_seed(1)
        model = kind().eval()
        names = [f"x{i}" for i in range(len(arguments))]
        for export, optimize in (("default", True), ("raw", False)):
            program = torch.onnx.export(
                copy.deepcopy(model), arguments, dynamo=True, optimize=optimize, verbose=False,
                input_names=names, output_names=["loss"])
            path = FOLDER / name / f"{export}.onnx"
            path.parent.mkdir(parents=True, exist_ok=True)
            data = own_lines(program.model_proto).SerializeToString(deterministic=True)
            assert b"site-packages" not in data and os.fsencode(pathlib.Path.home()) not in data
            path.write_bytes(data)
            onnx.checker.check_model(str(path))
        for each, value in zip(names, arguments):
            np.save(FOLDER / name / f"{each}.npy",
                    (value.double() if value.is_floating_point() else value).numpy())
        losses, parameters = train(model, arguments)
        record[name] = {"default": default, "raw": raw, "losses": losses,
                        "parameters": parameters, "unused": ["w"] if name == "Unused" else []}
    (FOLDER / "cases.json").write_text(json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    main()
