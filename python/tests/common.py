"""What the tests share: a traced program held against PyTorch in float64, value and
gradient, and the file that becomes of it against both in float32."""
import copy
import pathlib
import sys
import tempfile
import unittest

import onnx
import torch

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))

import acc_export  # noqa: E402
from acc_export import Refused, program  # noqa: E402

try:
    import onnxruntime
except ImportError:
    onnxruntime = None


class Calls(torch.nn.Module):
    """A module of two layers whose forward is a function of it and the arguments."""

    def __init__(self, function, **parts):
        super().__init__()
        torch.manual_seed(0)
        self.a, self.b = torch.nn.Linear(5, 6), torch.nn.Linear(6, 5)
        for name, part in parts.items():
            setattr(self, name, part)
        self.function = function

    def forward(self, *args):
        return self.function(self, *args)


def double(value):
    return value.double() if value.is_floating_point() else value


def gradients(module, values, total):
    """What backward() leaves in each parameter and floating-point argument, None where
    PyTorch leaves none."""
    total.backward()
    return {**{name: p.grad for name, p in module.named_parameters()},
            **{f"argument {i}": v.grad for i, v in enumerate(values) if v.is_floating_point()}}


def run(module, call, args):
    values = [double(a).clone().requires_grad_(a.is_floating_point()) for a in args]
    result = call(*values)
    return result, gradients(module, values, result.sum())


class ExportCase(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def export(self, module, args, kwargs=None, **options):
        """(the summary, the file) of an export into a folder of this test's own."""
        summary = acc_export.export(module, args, kwargs, dir=self.folder, **options)
        return summary, onnx.load(summary.path)

    def assert_traced(self, module, args):
        """The traced program, whose value and gradients are PyTorch's."""
        exact = copy.deepcopy(module).double()
        value, expected = run(exact, exact, args)
        exported = program.trace_module(exact, tuple(double(a) for a in args), {}, None, None,
                                        None)
        traced = exported.module()
        found_value, found = run(traced, traced, args)
        torch.testing.assert_close(found_value, value, rtol=1e-12, atol=1e-13)
        for name, gradient in expected.items():
            if gradient is None:
                # What the tape never reached may come out as no gradient or as zero.
                self.assertTrue(found.get(name) is None or not found[name].any(), name)
            else:
                self.assertIsNotNone(found[name], name)
                torch.testing.assert_close(found[name], gradient, rtol=1e-10, atol=1e-12,
                                           msg=lambda text, name=name: f"{name}: {text}")
        return exported

    def assert_same(self, module, args):
        """The traced program's value and gradients are PyTorch's, and the file's value."""
        self.assert_traced(module, args)
        _, model = self.export(module, args)
        if onnxruntime:
            quiet = onnxruntime.SessionOptions()
            quiet.log_severity_level = 3
            session = onnxruntime.InferenceSession(
                model.SerializeToString(), quiet, providers=["CPUExecutionProvider"])
            inputs = [i.name for i in session.get_inputs()]
            result = session.run(None, {n: a.numpy() for n, a in zip(inputs, args)})[0]
            torch.testing.assert_close(torch.from_numpy(result), module(*args).detach(),
                                       rtol=1e-4, atol=1e-5, equal_nan=True)
        return model

    def assert_refused(self, words, module, args, kwargs=None, **options):
        with self.assertRaises(Refused) as caught:
            self.export(module, args, kwargs, **options)
        message = str(caught.exception)
        self.assertIn(words, message)
        self.assertNotIn("\n", message)


def operators(model):
    """The operators of a file, those in functions too."""
    nodes = [*model.graph.node, *(n for f in model.functions for n in f.node)]
    return [node.op_type for node in nodes]
