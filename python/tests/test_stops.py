"""Where a gradient stops in PyTorch it stops in the traced program, and the file says so
at an Identity; where the trace could not tell, the export is refused."""
import unittest

import torch
import torch.utils.checkpoint

from common import Calls, ExportCase

torch.manual_seed(1)
X = torch.randn(6, 5)


def stops_of(model):
    """The Identities that stop a gradient."""
    return [node for node in model.graph.node
            if any(p.key == "accel.stop_gradient" and p.value == "1" for p in node.metadata_props)]


@torch.no_grad()
def without(module, x):
    return module.a(x)


class Double(torch.autograd.Function):
    """Whose backward is not that of its forward."""
    @staticmethod
    def forward(ctx, x):
        return 2 * x

    @staticmethod
    def backward(ctx, gradient):
        return gradient


class Square(torch.autograd.Function):
    """Whose backward is that of its forward."""
    @staticmethod
    def forward(ctx, x, factor):
        ctx.save_for_backward(x)
        ctx.factor = factor
        return factor * x * x

    @staticmethod
    def backward(ctx, gradient):
        x, = ctx.saved_tensors
        return 2 * ctx.factor * x * gradient, None


class Clipped(torch.autograd.Function):
    """Whose backward is another one only where values are large."""
    @staticmethod
    def forward(x):
        return 3 * x

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx, gradient):
        return 3 * gradient * (ctx.saved_tensors[0].abs() < 5)


class Stops(ExportCase):
    def check(self, count, function, **parts):
        model = self.assert_same(Calls(function, **parts), (X,))
        found = stops_of(model)
        self.assertEqual(len(found), count)
        for node in found:
            self.assertEqual(node.op_type, "Identity")

    def test_detach(self):
        self.check(1, lambda s, x: (s.a(x).detach() * s.a(x)).sum())

    def test_data(self):
        self.check(2, lambda s, x: (s.a(x).data * s.a(x) * s.a.weight.data.sum()).sum())

    def test_detach_of_a_parameter(self):
        self.check(1, lambda s, x: (x @ s.a.weight.detach().T + s.a(x)).pow(2).sum())

    def test_detach_of_an_integer_is_nothing(self):
        self.check(0, lambda s, x: (s.a(x) * (x > 0).sum().detach()).sum())

    def test_no_grad(self):
        def region(module, x):
            with torch.no_grad():
                h = module.a(x).tanh()
            return (module.b(h) * module.b(module.a(x))).sum()
        self.check(1, region)

    def test_each_result_of_a_region(self):
        def region(module, x):
            with torch.no_grad():
                h = module.a(x)
                g = h.tanh()
            return (h * module.a(x) + g * module.a(x)).sum()
        self.check(2, region)

    def test_decorated_function(self):
        self.check(1, lambda s, x: (without(s, x) * s.a(x)).sum())

    def test_inference_mode(self):
        def region(module, x):
            with torch.inference_mode():
                h = module.a(x)
            return (h.clone() * module.a(x)).sum()
        self.check(1, region)

    def test_enable_grad_inside(self):
        def region(module, x):
            with torch.no_grad():
                h = module.a(x)
                with torch.enable_grad():
                    g = module.b(h)
            return (g + module.b(h)).pow(2).sum()
        self.check(2, region)

    def test_what_only_passes_through_a_region(self):
        def region(module, x):
            h = module.a(x)
            with torch.no_grad():
                same, changed = h, h * 2
            return (same * changed).sum()
        self.check(1, region)

    def test_view_made_in_a_region(self):
        def region(module, x):
            h = module.a(x)
            with torch.no_grad():
                view = h[:, :2]
            return (view * h[:, 2:4]).sum()
        self.check(1, region)

    def test_loss_made_in_a_region(self):
        def region(module, x):
            with torch.no_grad():
                h = module.a(x).sum()
            return h + 0 * module.a(x).sum()
        self.check(1, region)

    def test_disabled_autocast(self):
        def region(module, x):
            with torch.autocast("cpu", enabled=False):
                h = module.a(x)
            return h.sum()
        self.check(0, region)

    def test_checkpointed_regions(self):
        for reentrant in (False, True):
            with self.subTest(reentrant):
                self.check(0, lambda s, x: torch.utils.checkpoint.checkpoint(
                    lambda v: torch.tanh(s.b(v)), s.a(x), use_reentrant=reentrant).pow(2).sum())

    def test_switched_off_and_on(self):
        def switch(module, x):
            torch.set_grad_enabled(False)
            h = module.a(x)
            torch.set_grad_enabled(True)
            return (h * module.a(x)).sum()
        self.check(1, switch)
        self.assertTrue(torch.is_grad_enabled())

    def test_copies_that_detach(self):
        self.check(2, lambda s, x: (torch.tensor(s.a(x)) * s.a(x)).sum())
        self.check(1, lambda s, x: (torch.nn.Parameter(s.a(x)) * s.a(x)).sum())
        self.check(0, lambda s, x: (torch.as_tensor(s.a(x)) * s.a(x)).sum())

    def test_numbers_of_python(self):
        self.check(1, lambda s, x: (s.a(x) * s.a.weight.max().item()).sum())

    def test_halves_overflow_where_the_check_asks_for_large_gradients(self):
        self.check(0, lambda s, x: s.a(x).half().to(x.dtype).pow(2).sum())

    def test_own_backward_that_is_the_derivative(self):
        self.check(0, lambda s, x: Square.apply(s.a(x), 0.5).sum())


class Refusals(ExportCase):
    def check(self, words, function, **parts):
        self.assert_refused(words, Calls(function, **parts), (X,))

    def test_custom_function(self):
        self.check("Double' at", lambda s, x: Double.apply(s.a(x)).sum())
        self.check("Clipped' at", lambda s, x: Clipped.apply(s.a(x)).sum())
        self.check("test_stops.py:", lambda s, x: Double.apply(s.a(x)).sum())

    def test_checkpoint_that_trains_nothing(self):
        self.check("has no input that needs a gradient", lambda s, x: (
            torch.utils.checkpoint.checkpoint(s.a, x, use_reentrant=True).sum()))

    def test_gradients_inside(self):
        self.check("torch.autograd.grad at",
                   lambda s, x: torch.autograd.grad(s.a(x).sum(), s.a.weight)[0].sum())

    def test_hook(self):
        def hooked(module, x):
            h = module.a(x)
            h.register_hook(lambda g: 2 * g)
            return h.sum()
        self.check("Tensor.register_hook at", hooked)

    def test_write_under_no_grad(self):
        def write(module, x):
            h = module.a(x)
            with torch.no_grad():
                h.mul_(2)
            return h.sum()
        self.check("mul_() at", write)

    def test_write_into_a_detached_view(self):
        def write(module, x):
            h = module.a(x)
            h.detach().mul_(2)
            return h.sum()
        self.check("mul_() at", write)

    def test_write_before_a_detach_is_fine(self):
        def write(module, x):
            h = module.a(x).clone()
            h.mul_(2)
            return (h.detach() * h).sum()
        self.assert_same(Calls(write), (X,))

    def test_write_into_what_a_region_made(self):
        def write(module, x):
            with torch.no_grad():
                h = module.a(x)
            h.add_(module.a(x))
            return h.sum()
        self.check("add_() at", write)

    def test_detach_in_place(self):
        self.check("detach_() at", lambda s, x: s.a(x).detach_().sum() + s.a(x).sum())

    def test_autocast(self):
        def cast(module, x):
            with torch.autocast("cpu", dtype=torch.bfloat16):
                return module.a(x).float().sum()
        self.check("--mixed-precision=bf16", cast)

    def test_guards_are_gone_afterwards(self):
        self.check("Double", lambda s, x: Double.apply(s.a(x)).sum())
        x = torch.ones(2, requires_grad=True)
        Double.apply(x).sum().backward()
        self.assertTrue(torch.equal(x.grad, torch.ones(2)))
        self.assertFalse(x.data.requires_grad)
        with torch.inference_mode():
            self.assertTrue(torch.is_inference_mode_enabled())


if __name__ == "__main__":
    unittest.main()
