"""What the file declares of parameters and buffers, and what about a module is refused."""
import copy
import json
import random
import unittest

import numpy as np
import onnx
import torch
import torch.nn.functional as F
from onnx import numpy_helper

from common import Calls, ExportCase, acc_export, operators

torch.manual_seed(1)
X = torch.randn(6, 5)
IDS = torch.randint(0, 5, (4, 3))


def declared(model):
    """accel.parameters by name."""
    [text] = [p.value for p in model.graph.metadata_props if p.key == "accel.parameters"]
    return {entry["name"]: entry for entry in json.loads(text)}


def property_of(node, key):
    return next((p.value for p in node.metadata_props if p.key == key), "")


class Tied(torch.nn.Module):
    def __init__(self, **options):
        super().__init__()
        self.e = torch.nn.Embedding(5, 4, **options)
        self.o = torch.nn.Linear(4, 5, bias=False)
        self.o.weight = self.e.weight
        self.also = self.e

    def forward(self, ids):
        return self.o(torch.tanh(self.e(ids))).sum() + (self.e.weight.T @ self.e.weight).sum()


class Signature(ExportCase):
    def test_file_is_marked(self):
        _, model = self.export(Calls(lambda s, x: s.a(x).sum()), (X,))
        [text] = [p.value for p in model.metadata_props if p.key == "accel.export"]
        mark = json.loads(text)
        self.assertEqual((mark["version"], mark["acc_export"], mark["torch"]),
                         (1, acc_export.__version__, torch.__version__))

    def test_ties_are_aliases(self):
        _, model = self.export(Tied(), (IDS,))
        self.assertEqual(declared(model), {"e.weight": {
            "name": "e.weight", "aliases": ["o.weight", "also.weight"], "kind": "parameter",
            "requires_grad": True, "initializer": "e.weight", "shape": [5, 4],
            "dtype": "float32"}})
        uses = [i for node in model.graph.node for i in node.input if i == "e.weight"]
        self.assertGreaterEqual(len(uses), 3)
        self.assertEqual([i.name for i in model.graph.initializer if len(i.dims) == 2],
                         ["e.weight"])

    def test_parameters_are_inputs_with_values(self):
        module = Calls(lambda s, x: s.b(s.a(x)).sum())
        _, model = self.export(module, (X,))
        inputs = [i.name for i in model.graph.input]
        self.assertEqual(inputs[1:], [n for n, _ in module.named_parameters()])
        held = {i.name: numpy_helper.to_array(i) for i in model.graph.initializer}
        for name, parameter in module.named_parameters():
            np.testing.assert_array_equal(held[name], parameter.detach().numpy())

    def test_equal_parameters_stay_apart(self):
        _, model = self.export(Calls(lambda s, x: s.n(s.m(s.a(x))).sum(), n=torch.nn.LayerNorm(6),
                                     m=torch.nn.LayerNorm(6)), (X,))
        self.assertLessEqual({"n.weight", "m.weight", "n.bias", "m.bias"}, set(declared(model)))

    def test_nothing_is_folded(self):
        _, model = self.export(Calls(lambda s, x: (
            x @ s.a.weight.T + s.a.bias.pow(2) + (1 + s.b.weight.mean())).sum()), (X,))
        self.assertIn("Transpose", operators(model))
        self.assertIn("Pow", operators(model))
        self.assertIn("ReduceMean", operators(model))

    def test_frozen_unused_and_buffers(self):
        module = Calls(lambda s, x: (s.a(x) * s.scale).sum())
        module.a.weight.requires_grad_(False)
        module.register_buffer("scale", torch.full((6,), 2.0))
        module.register_buffer("unread", torch.ones(2))
        summary, model = self.export(module, (X,))
        entries = declared(model)
        self.assertEqual({n: (e["kind"], e["requires_grad"]) for n, e in entries.items()},
                         {"a.weight": ("parameter", False), "a.bias": ("parameter", True),
                          "b.weight": ("parameter", True), "b.bias": ("parameter", True),
                          "scale": ("buffer", False)})
        self.assertNotIn("scale", [i.name for i in model.graph.input])
        self.assertEqual((summary.parameters, summary.trained), (4, 3))
        held = {i.name: numpy_helper.to_array(i) for i in model.graph.initializer}
        np.testing.assert_array_equal(held["b.weight"], module.b.weight.detach().numpy())

    def test_numbers_that_are_not_trained(self):
        module = Calls(lambda s, x: (s.a(x) * s.n).sum(), n=torch.nn.Parameter(
            torch.arange(6), requires_grad=False))
        _, model = self.export(module, (X,))
        self.assertEqual(declared(model)["n"]["kind"], "buffer")

    def test_compiled_modules_are_the_users(self):
        module = Calls(lambda s, x: s.a(x).sum())
        _, model = self.export(torch.compile(module), (X,))
        self.assertIn("a.weight", declared(model))

    def test_parametrized_modules_keep_their_parameters(self):
        module = Calls(lambda s, x: s.w(x).sum(), w=torch.nn.utils.parametrizations.weight_norm(
            torch.nn.Linear(5, 3)))
        model = self.assert_same(module, (X,))
        self.assertLessEqual({"w.parametrizations.weight.original0",
                              "w.parametrizations.weight.original1", "w.bias"},
                             set(declared(model)))

    def test_padding_row_is_in_the_calls(self):
        _, model = self.export(Tied(padding_idx=2), (IDS,))
        gathers = [n for n in model.graph.node if n.op_type == "Gather"]
        self.assertTrue(any(", 2)" in property_of(n, "pkg.torch.onnx.fx_node") for n in gathers))

    def test_sample_is_saved_under_the_inputs_names(self):
        summary, model = self.export(Calls(lambda s, x: s.a(x).sum()), (X,),
                                     input_names=["a/b"])
        self.assertEqual(list(summary.inputs), ["a/b"])
        np.testing.assert_array_equal(np.load(self.folder / "inputs" / "a%2Fb.npy"), X.numpy())

    def test_one_tensor_as_two_inputs(self):
        x = X.clone()
        _, model = self.export(Calls(lambda s, x, y: (s.a(x) - y.sum()).sum()), (x, x),
                               input_names=["x", "y"])
        read = {name for node in model.graph.node for name in node.input}
        self.assertLessEqual({"x", "y"}, read)
        _, model = self.export(Calls(lambda s, x: s.a(x)), (x,), {"labels": x},
                               loss=lambda y, labels: (y.sum() - labels.mean()) ** 2)
        read = {name for node in model.graph.node for name in node.input}
        self.assertLessEqual({"args_0", "labels"}, read)

    def test_outputs_are_named(self):
        for function, names in ((lambda s, x: s.a(x).sum(), ["loss"]),
                                (lambda s, x: s.a(x), ["output"]),
                                (lambda s, x: (s.a(x).sum(), s.a(x)), ["loss", "output_1"]),
                                (lambda s, x: {"loss": s.a(x).sum(), "y": s.a(x)}, ["loss", "y"])):
            self.assertEqual(self.export(Calls(function), (X,))[0].outputs, names)

    def test_symbolic_batch(self):
        summary, _ = self.export(Calls(lambda s, x: s.b(s.a(x))), (X,),
                                 dynamic_shapes=(({0: "batch"},),))
        self.assertEqual([i["shape"] for i in summary.inputs.values()], [["batch", 5]])

    def test_opset(self):
        self.assertEqual(self.export(Calls(lambda s, x: s.a(x).sum()), (X,), opset=18)[0].opset, 18)

    def test_large_weights_go_beside_the_model(self):
        from acc_export import write
        limit, write._EXTERNAL_BYTES = write._EXTERNAL_BYTES, 10
        self.addCleanup(setattr, write, "_EXTERNAL_BYTES", limit)
        module = Calls(lambda s, x: s.l(x).sum(), l=torch.nn.Linear(5, 300))
        _, model = self.export(module, (X,))
        self.assertTrue((self.folder / "model.onnx.data").is_file())
        alone = onnx.load(self.folder / "model.onnx", load_external_data=False)
        self.assertFalse(next(i for i in alone.graph.initializer if i.name == "l.weight").raw_data)
        held = next(i for i in model.graph.initializer if i.name == "l.weight")
        np.testing.assert_array_equal(numpy_helper.to_array(held), module.l.weight.detach().numpy())

    def test_the_loss_is_inside(self):
        module = Calls(lambda s, x: s.a(x))
        summary, _ = self.export(module, (X,), {"labels": torch.randn(6, 6)}, loss=F.mse_loss)
        self.assertEqual(summary.outputs, ["loss", "output"])
        self.assertIn("labels", summary.inputs)
        self.assertNotIn("forward", vars(module))

    def test_causal_lm_shifts(self):
        from acc_export import losses
        logits, labels = torch.randn(2, 4, 5), torch.tensor([[1, 2, 3, 4], [0, -100, 2, -100]])
        expected = F.cross_entropy(logits[:, :-1].reshape(-1, 5), labels[:, 1:].reshape(-1))
        torch.testing.assert_close(losses.causal_lm(logits, labels), expected)
        torch.testing.assert_close(losses.causal_lm({"logits": logits}, labels), expected)


class Refusals(ExportCase):
    def refuse(self, words, module, **options):
        self.assert_refused(words, module, (X,), **options)

    def test_batch_statistics(self):
        module = Calls(lambda s, x: s.n(s.a(x)).pow(3).sum(),
                       n=torch.nn.BatchNorm1d(6, momentum=None))
        self.refuse("module 'n' (BatchNorm1d) has momentum=None", module)
        module.eval()
        self.assert_same(module, (X,))
        self.assert_same(Calls(lambda s, x: F.batch_norm(
            s.a(x), None, None, training=True).pow(3).sum()), (X,))
        module = Calls(lambda s, x: s.n(s.a(x).reshape(3, 4, 3)).sum(),
                       n=torch.nn.InstanceNorm1d(4, track_running_stats=True))
        self.refuse("instance_norm() at", module)

    def test_embeddings(self):
        for options, words in (({"scale_grad_by_freq": True}, "scale_grad_by_freq"),
                               ({"sparse": True}, "sparse"), ({"max_norm": 1.0}, "max_norm")):
            self.assert_refused(words, Tied(**options), (IDS,))
        bag = Calls(lambda s, ids: s.e(ids).sum(), e=torch.nn.EmbeddingBag(
            5, 4, scale_grad_by_freq=True))
        self.assert_refused("scale_grad_by_freq", bag, (IDS,))

    def test_shared_memory(self):
        module = Calls(lambda s, x: s.b(s.a(x)).sum())
        module.b.bias = torch.nn.Parameter(module.a.weight.data[0, :5])
        self.refuse("'b.bias' and 'a.weight' are different tensors on the same memory", module)
        module = Calls(lambda s, x: (s.a(x) * s.same).sum())
        module.register_buffer("same", module.a.bias.detach())
        self.refuse("'a.bias' and 'same'", module)
        module = Calls(lambda s, x: (s.a(x) * s.same).sum())
        module.same = module.a.bias.detach()
        self.refuse("the constant", module)

    def test_neighbours_in_one_memory_are_fine(self):
        flat = torch.randn(12)
        module = Calls(lambda s, x: (s.a(x) * s.l * s.r).sum(), l=torch.nn.Parameter(flat[:6]),
                       r=torch.nn.Parameter(flat[6:]))
        self.assert_same(module, (X,))

    def test_complex(self):
        self.refuse("'c' is complex", Calls(lambda s, x: s.a(x).sum() + s.c.real.sum(),
                                            c=torch.nn.Parameter(torch.randn(2).cfloat())))

    def test_hooks(self):
        module = Calls(lambda s, x: s.a(x).sum())
        module.a.weight.register_hook(lambda g: 2 * g)
        self.refuse("parameter 'a.weight' has a hook", module)
        module = Calls(lambda s, x: s.a(x).sum())
        module.a.register_full_backward_hook(lambda *g: None)
        self.refuse("module 'a' (Linear) has a backward hook", module)

    def test_no_values(self):
        self.refuse("has no values yet", Calls(lambda s, x: s.a(x).sum()).to("meta"))
        self.refuse("has no values yet", Calls(lambda s, x: s.l(x).sum(),
                                               l=torch.nn.LazyLinear(2)))

    def test_changed_buffer(self):
        def count(module, x):
            module.calls.add_(1)
            return module.a(x).sum()
        module = Calls(count)
        module.register_buffer("calls", torch.zeros(()))
        self.refuse("changes buffer 'calls'", module)

    def test_own_parameter_held_elsewhere(self):
        module = Calls(lambda s, x: (s.a(x) * s.held[0]).sum())
        module.held = [module.a.bias]
        self.refuse("the constant", module)

    def test_loss(self):
        module = Calls(lambda s, x: s.a(x))
        self.refuse("a loss needs labels", module, loss=F.mse_loss)
        labels = {"labels": torch.randn(6, 6)}
        self.assert_refused("unknown loss 'mse'", module, (X,), labels, loss="mse")
        self.assert_refused("it must return one number", module, (X,), labels,
                            loss=lambda o, y: o - y)
        def counting(outputs, given):
            counting.calls += 1
            return F.mse_loss(outputs, given) * (2 if counting.calls > 7 else 1)
        counting.calls = 0
        self.assert_refused("each call of the forward changes attribute 'counting.calls'", module,
                            (X,), labels, loss=counting)
        hooked = copy.deepcopy(module)
        hooked.register_forward_hook(lambda module, given, output: 2 * output)
        self.assert_refused("has a forward hook", hooked, (X,), labels, loss=F.mse_loss)
        self.assert_refused("parameters of its own", module, (X,), labels,
                            loss=torch.nn.Linear(2, 2))

    def test_names_and_places(self):
        module = Calls(lambda s, x: s.a(x).sum())
        self.refuse("expected 1 input_names", module, input_names=["a", "b"])
        self.refuse("has the name of a parameter", module, input_names=["a.bias"])
        with self.assertRaisesRegex(acc_export.Refused, "one of path="):
            acc_export.export(module, (X,))

    def test_other_random_numbers(self):
        self.refuse("Python's module random,", Calls(lambda s, x: s.a(x).sum() * random.random()))
        self.refuse("Python's module numpy.random,", Calls(
            lambda s, x: s.a(x).sum() * float(np.random.rand())))

    def test_changed_parameter(self):
        def change(module, x):
            with torch.no_grad():
                module.a.bias.mul_(0.9)
            return module.a(x).sum()
        self.refuse("in place", Calls(change))

    def test_control_flow(self):
        self.refuse("control flow that depends on values", Calls(lambda s, x: torch.cond(
            x.sum() > 0, lambda h: s.a(h), lambda h: s.a(h) * 2, (x,)).sum()))

    def test_what_cannot_be_traced(self):
        self.refuse("torch.export cannot trace the model at",
                    Calls(lambda s, x: s.a(x).sum() if x.sum() > 0 else s.b(x).sum()))


if __name__ == "__main__":
    unittest.main()
