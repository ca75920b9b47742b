"""Attacks by gradients that are others than the calls say: autograd functions under other
names, hooks, regions without gradients."""
import functools

import torch
import torch.utils.checkpoint

from attack import Small, attack


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
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, gradient):
        return 2 * ctx.saved_tensors[0] * gradient


def identity_with(change, by_setup=False):
    """x, with a gradient that is changed."""
    class Function(torch.autograd.Function):
        if by_setup:
            @staticmethod
            def forward(x):
                return x * 1

            @staticmethod
            def setup_context(ctx, inputs, output):
                pass
        else:
            @staticmethod
            def forward(ctx, x):
                return x * 1

        @staticmethod
        def backward(ctx, gradient):
            return change(gradient)
    return Function.apply


bound_double, bound_square = Double.apply, Square.apply
partial_double = functools.partial(Double.apply)
clipped = identity_with(lambda g: g.clamp(-5, 5))
clipped_by_norm = identity_with(lambda g: g * (100 / g.norm().clamp(min=100)), by_setup=True)
signed = identity_with(torch.sign)
without_small = identity_with(lambda g: torch.where(g.abs() < 1e-6, 0 * g, g))
capped = identity_with(lambda g: g.clamp(max=1e4))
same = identity_with(lambda g: g, by_setup=True)
halved = identity_with(lambda g: g / 2, by_setup=True)


def around(x):
    return bound_double(x)


@attack("Double' at")
def bound_at_module_level(s, x):
    return bound_double(s.a(x)).pow(2).sum()


@attack("Double' at")
def in_a_partial(s, x):
    return partial_double(s.a(x)).pow(2).sum()


@attack("Double' at")
def in_a_helper(s, x):
    return s.b(around(s.a(x))).pow(2).sum()


@attack("Double' at")
class BoundAsAttribute(Small):
    def __init__(self):
        super().__init__()
        self.act = Double.apply

    def forward(self, x):
        return self.act(self.a(x)).pow(2).sum()


@attack("")
def bound_and_right(s, x):
    return bound_square(s.a(x)).sum() + same(s.b(s.a(x))).pow(2).sum()


for _name, _apply in (("clipped", clipped), ("clipped_by_norm", clipped_by_norm),
                      ("signed", signed), ("without_small", without_small), ("capped", capped)):
    attack("has a backward of its own", _name)(
        lambda s, x, apply=_apply: (100 * apply(s.a(x))).pow(2).sum())


@attack("has a backward of its own")
class TensorsInAList(Small):
    class Sum(torch.autograd.Function):
        @staticmethod
        def forward(ctx, tensors):
            return tensors[0] + tensors[1]

        @staticmethod
        def backward(ctx, gradient):
            return None

    def forward(self, x):
        return (self.Sum.apply([self.a(x), self.w]) + self.a(x)).pow(2).sum()


@attack("has a backward of its own")
class ClosedOver(Small):
    """PyTorch passes no gradient to what is no argument."""
    class Scale(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, module):
            ctx.save_for_backward(module.w)
            return x * module.w

        @staticmethod
        def backward(ctx, gradient):
            return gradient * ctx.saved_tensors[0], None

    def forward(self, x):
        return self.Scale.apply(self.a(x), self).pow(2).sum()


@attack("has a backward of its own")
class WithoutDerivative(Small):
    class Both(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            double = x * 2
            ctx.mark_non_differentiable(double)
            return x * 1, double

        @staticmethod
        def backward(ctx, gradient, _):
            return gradient

    def forward(self, x):
        one, two = self.Both.apply(self.a(x))
        return (one * two).sum()


@attack("has a backward of its own")
class SecondKind(Small):
    """Right where values are small, which they are on the sample."""
    class Far(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return 3 * x

        @staticmethod
        def backward(ctx, gradient):
            return 3 * gradient * (ctx.saved_tensors[0].abs() < 500)

    def forward(self, x):
        return self.Far.apply(self.a(x)).pow(2).sum()


@attack("that torch.library registered")
def custom_operator(s, x):
    return shifted(s.a(x)).pow(2).sum()


@torch.library.custom_op("acctest::shifted", mutates_args=())
def shifted(x: torch.Tensor) -> torch.Tensor:
    return x + 1


shifted.register_fake(torch.empty_like)
shifted.register_autograd(lambda ctx, gradient: 2 * gradient)


# -- Gradients that a trace does not see -------------------------------------------------

early_hook = torch.Tensor.register_hook
early_gradient = torch.autograd.grad


@attack("Tensor.register_hook at")
def hook(s, x):
    h = s.a(x)
    h.register_hook(lambda g: 2 * g)
    return h.pow(2).sum()


@attack("Tensor.register_hook at")
def hook_by_another_name(s, x):
    h = s.a(x)
    early_hook(h, lambda g: 2 * g)
    return h.pow(2).sum()


@attack("the gradient of parameter")
def hook_that_clips(s, x):
    h = s.a(x)
    if h.grad_fn is not None:
        h.grad_fn.register_prehook(lambda gs: (gs[0].clamp(-500, 500),))
    return h.pow(2).sum()


@attack("the gradient of parameter")
def hook_on_a_node(s, x):
    h = s.a(x)
    if h.grad_fn is not None:
        h.grad_fn.register_prehook(lambda gs: (3 * gs[0],))
    return h.pow(2).sum()


@attack("takes or changes gradients")
def penalty(s, x):
    return early_gradient(s.a(x).sum(), s.w, allow_unused=True)[0] or s.a(x).pow(2).sum()


@attack("has a hook on its gradient")
class HookOnAParameter(Small):
    def __init__(self):
        super().__init__()
        self.w.register_hook(lambda g: 2 * g)

    def forward(self, x):
        return (self.a(x) * self.w).pow(2).sum()


@attack("has a hook on its gradient")
class HookAfterAccumulation(Small):
    def __init__(self):
        super().__init__()
        self.w.register_post_accumulate_grad_hook(lambda p: p.grad.mul_(0.1))

    def forward(self, x):
        return (self.a(x) * self.w).pow(2).sum()


@attack("")
class HookThatChangesTheOutput(Small):
    def __init__(self):
        super().__init__()
        self.a.register_forward_hook(lambda module, args, output: 3 * output)
        self.b.register_forward_pre_hook(lambda module, args: (args[0].tanh(),))
        self.register_forward_hook(lambda module, args, output: 0.1 * output)

    def forward(self, x):
        return self.b(self.a(x)).pow(2).sum()


@attack("has a backward hook")
class BackwardHook(Small):
    def __init__(self):
        super().__init__()
        self.a.register_full_backward_hook(lambda m, given, out: (None,))

    def forward(self, x):
        return self.a(x).pow(2).sum()


@attack("the gradient of parameter")
def packed_activations(s, x):
    def pack(t):
        return t.to(torch.bfloat16)
    with torch.autograd.graph.saved_tensors_hooks(pack, lambda t: t.to(torch.float32)):
        h = s.a(x).tanh()
    return h.pow(2).sum()


@attack("changes requires_grad of parameter 'w'")
def freezes(s, x):
    h = s.a(x) * s.w
    s.w.requires_grad_(False)
    return h.pow(2).sum() + (s.b(s.a(x))).sum()


@attack("changes requires_grad of parameter 'a.weight'")
def freezes_a_part(s, x):
    s.a.requires_grad_(False)
    return (s.a(x) * s.w).pow(2).sum()


@attack("")
def freezes_what_is_detached(s, x):
    h = s.a(x).detach().requires_grad_()
    return (h * s.w).pow(2).sum()


# -- Regions without gradients -----------------------------------------------------------

@attack("")
def inference(s, x):
    with torch.inference_mode():
        h = s.a(x)
    return (h.clone() * s.w).pow(2).sum() + s.a(x).sum()


@attack("")
def switched_off(s, x):
    torch.set_grad_enabled(False)
    h = s.a(x).tanh()
    torch.set_grad_enabled(True)
    return (h * s.w).pow(2).sum()


@attack("")
def asks_for_gradients(s, x):
    with torch.no_grad():
        h = s.a(x) * (1 if torch.is_grad_enabled() else 3)
    return (h * s.w).pow(2).sum() * (2 if torch.is_grad_enabled() else 1)


@attack("is not what the model computes")
def knows_the_exporter(s, x):
    return s.a(x).pow(2).sum() * (2 if torch.compiler.is_compiling() else 1)


@attack("")
def knows_its_mode(s, x):
    return s.a(x).pow(2).sum() * (2 if s.training else 1)


@attack("")
def data(s, x):
    return (s.a(x) * s.w.data * s.w).pow(2).sum()


@attack("mul_() at")
def data_in_place(s, x):
    s.w.data.mul_(0.9)
    return (s.a(x) * s.w).pow(2).sum()


@attack("clamp_() at")
def parameter_in_place(s, x):
    with torch.no_grad():
        s.w.clamp_(-0.5, 0.5)
    return (s.a(x) * s.w).pow(2).sum()


@attack("parameter 'w'")
def data_replaced(s, x):
    s.w.data = s.w.data * 0.9
    return (s.a(x) * s.w).pow(2).sum()


@attack("each call of the forward changes attribute 'w'")
def parameter_replaced(s, x):
    s.w = torch.nn.Parameter(s.w.detach() * 0.9)
    return (s.a(x) * s.w).pow(2).sum()


@attack("")
def copied_by_state_dict(s, x):
    return (s.a(x) * s.state_dict()["w"] * s.w).pow(2).sum()


@attack("")
def kept_elsewhere(s, x):
    with torch.autograd.graph.save_on_cpu():
        return s.a(x).tanh().pow(2).sum()


@attack("the gradient of parameter")
def hook_on_several(s, x):
    h, g = s.a(x), s.b(s.a(x))
    if h.requires_grad and h.grad_fn is not None:
        h.grad_fn.register_prehook(lambda gs: (gs[0].clamp(min=0),))
    return h.pow(2).sum() + g.pow(2).sum()


def _tenth(parameter):
    parameter.grad.mul_(0.1)


@attack("puts a hook on the gradient of parameter 'w'")
def hook_on_a_parameter_inside(s, x):
    s.w.register_post_accumulate_grad_hook(_tenth)
    return (s.a(x) * s.w).pow(2).sum()


@attack("the gradient of parameter 'w'")
class HookOnAnAccumulator(Small):
    """Which outlives the forward that put it there, as DDP's do."""

    def forward(self, x):
        if self.kept is None and self.w.requires_grad:
            view = self.w.expand_as(self.w)
            if view.grad_fn is not None and view.grad_fn.next_functions:
                self.table.append(view.grad_fn.next_functions[0][0])
                if hasattr(self.table[-1], "variable"):
                    self.table[-1].register_prehook(lambda gs: (0.1 * gs[0],))
                    self.kept = True
        return (self.a(x) * self.w).pow(2).sum()


@attack("")
def retained(s, x):
    h = s.a(x)
    if h.requires_grad:
        h.retain_grad()
    return h.pow(2).sum()


@attack("")
def forward_mode(s, x):
    return torch.func.jvp(lambda v: s.a(v).tanh(), (x,), (x,))[1].pow(2).sum()
