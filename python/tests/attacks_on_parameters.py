"""Attacks by parameters under other names, in other shapes, or outside the trace; and by the
order of writes and reads."""
import copy

import torch
import torch.nn.functional as F
import torch.utils.checkpoint
from torch import nn
from torch.nn.utils import parametrizations

from attack import Small, attack
from attacks_on_gradients import halved


@attack("")
class WeightNorm(Small):
    def __init__(self):
        super().__init__()
        parametrizations.weight_norm(self.a)

    def forward(self, x):
        return self.a(x).pow(2).sum() * 0.1


@attack("")
class OldWeightNorm(Small):
    def __init__(self):
        super().__init__()
        nn.utils.weight_norm(self.a)

    def forward(self, x):
        return self.a(x).pow(2).sum() * 0.1


@attack("changes buffer")
class SpectralNorm(Small):
    def __init__(self):
        super().__init__()
        parametrizations.spectral_norm(self.a)

    def forward(self, x):
        return self.a(x).pow(2).sum() * 0.1


@attack("")
class SpectralNormAtRest(Small):
    def __init__(self):
        super().__init__()
        parametrizations.spectral_norm(self.a)
        self.eval()

    def forward(self, x):
        return self.a(x).pow(2).sum() * 0.1


@attack("")
class Parametrised(Small):
    class Positive(nn.Module):
        def forward(self, w):
            return F.softplus(w)

    def __init__(self):
        super().__init__()
        nn.utils.parametrize.register_parametrization(self.b, "weight", self.Positive())

    def forward(self, x):
        return self.b(self.a(x)).pow(2).sum() * 0.1


@attack("on the same memory")
class SharedMemory(Small):
    def __init__(self):
        super().__init__()
        self.alias = self.w.data

    def forward(self, x):
        return (self.a(x) * self.alias).pow(2).sum()


@attack("")
class NotRegistered(Small):
    """A tensor that no optimizer sees."""

    def __init__(self):
        super().__init__()
        self.free = [torch.ones(6, requires_grad=True)]

    def forward(self, x):
        return (self.a(x) * self.free[0]).pow(2).sum()


@attack("is not what the model computes")
class NumberOfAParameter(Small):
    """Which Python computes behind the trace's back."""

    def __init__(self):
        super().__init__()
        self.seen = [self.w.detach().numpy()]

    def forward(self, x):
        return (self.a(x) * float(self.seen[0].max())).pow(2).sum()


@attack("torch.export cannot trace")
def branch_on_a_parameter(s, x):
    h = s.a(x)
    return (h if s.w.sum() > 0 else 2 * h).pow(2).sum()


@attack("")
def item_of_a_parameter(s, x):
    return (s.a(x) * s.w.max().item()).pow(2).sum()


@attack("")
def twins(s, x):
    return (s.a(x) + s.a(x)).pow(2).sum() + (s.w * s.w.T).sum()


@attack("")
class EqualButNotTied(Small):
    def __init__(self):
        super().__init__()
        self.c, self.d = (nn.Parameter(torch.ones(6)) for _ in range(2))
        self.register_buffer("ones", torch.ones(6))

    def forward(self, x):
        return (self.a(x) * self.c * self.ones + self.d.pow(2)).pow(2).mean()


@attack("")
def checkpointed(s, x):
    return torch.utils.checkpoint.checkpoint(
        lambda v: s.b(v).tanh(), s.a(x), use_reentrant=True).pow(2).sum()


@attack("")
def written_view(s, x):
    h = s.a(x) * 1
    h[:, :2] = 0.5 * h[:, 2:4]
    h[:, 3].mul_(2)
    return h.pow(2).sum()


@attack("")
def written_after_a_read(s, x):
    h = s.a(x).tanh()
    g = h * 2
    h = h + 0
    h.add_(1)
    return (g * h).sum()


@attack("")
def compared(s, x):
    h = s.a(x)
    return torch.where(h > s.w, h, s.w * 2).pow(2).sum() + torch.maximum(h, s.w).sum()


@attack("")
def vmapped(s, x):
    return torch.func.vmap(lambda row: (s.a(row) * s.w).tanh())(x).pow(2).sum()


@attack("gradients inside the model")
def functional_gradient(s, x):
    return torch.func.grad(lambda w: (s.a(x) * w).pow(2).sum())(s.w).pow(2).sum()


@attack("has a backward of its own")
def vmapped_function(s, x):
    return torch.func.vmap(halved)(s.a(x)).pow(2).sum()


@attack("")
def functional_call(s, x):
    doubled = {name: 2 * p for name, p in s.a.named_parameters()}
    return torch.func.functional_call(s.a, doubled, (x,)).pow(2).sum()


@attack("")
class ReturnsAParameter(Small):
    """Beside the loss, which is returned twice."""

    def forward(self, x):
        loss = (self.a(x) * self.w).pow(2).sum()
        return loss, self.w, x, loss, {"w": self.w}


@attack("")
def as_a_vector(s, x):
    return (s.a(x) * nn.utils.parameters_to_vector(s.b.parameters())[:6]).pow(2).sum()


@attack("")
def through_other_types(s, x):
    return (s.a(x).double().float() * s.w.to(torch.int32) + s.w.double().to(x.dtype)).pow(2).sum()


@attack("the gradient of parameter|torch.export cannot")
def deep_copy(s, x):
    return copy.deepcopy(s.a)(x).pow(2).sum() + s.a(x).sum()


@attack("")
class Compiled(Small):
    def __init__(self):
        super().__init__()
        self.c = torch.compile(self.a)

    def forward(self, x):
        return self.c(x).pow(2).sum()


@attack("")
class OneLayerTwice(Small):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(6, 6)] * 2)

    def forward(self, x):
        h = self.a(x)
        for layer in self.layers:
            h = layer(h).tanh()
        return h.pow(2).sum()


@attack("torch.export cannot trace")
def through_numpy(s, x):
    return (s.a(x) * torch.from_numpy(s.w.detach().numpy())).pow(2).sum()


@attack("detach_() at")
def through_a_list(s, x):
    return (s.a(x) * torch.tensor(s.w.tolist())).pow(2).sum()


@attack("")
def rows_without_a_key(s, x):
    """Of which PyTorch's attention makes 0, never the mean, and no gradient."""
    h = s.a(x).reshape(1, 1, 6, 6)
    keep = (x[:, :1] @ x[:, :1].T)[None, None] > 0
    keep = keep & (x[:, 1] > 0)[None, None, :, None]
    return (F.scaled_dot_product_attention(h, h, h, keep) - 1).pow(2).sum()
