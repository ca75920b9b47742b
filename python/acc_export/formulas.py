"""The other calls of explicit.ROWS as ordinary calls, with the same value and gradient.
Arguments are those of ATen."""
import math

import torch
import torch.nn.functional as F


# -- Attention ---------------------------------------------------------------------------

def attention(query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, *, scale=None,
              enable_gqa=False):
    """Scaled dot product attention with dropout, of which the exporter writes nothing."""
    scale = 1 / math.sqrt(query.shape[-1]) if scale is None else scale
    if enable_gqa:
        key = key.repeat_interleave(query.shape[-3] // key.shape[-3], -3)
        value = value.repeat_interleave(query.shape[-3] // value.shape[-3], -3)
    scores = query @ key.transpose(-2, -1) * scale
    if is_causal:
        rows = torch.arange(query.shape[-2]).unsqueeze(1)
        attn_mask = torch.arange(key.shape[-2]).unsqueeze(0) <= rows
    if attn_mask is not None and attn_mask.dtype == torch.bool:
        scores = torch.where(attn_mask, scores, float("-inf"))
    elif attn_mask is not None:
        scores = scores + attn_mask
    return F.dropout(F.softmax(scores, -1), dropout_p, True) @ value


def dropout_in_place(input, p, train):
    """Which the exporter takes apart into draws that nobody knows as a dropout."""
    return input.copy_(torch.dropout(input, p, train))


def float_range(start, end, step=1.0, **options):
    """Of numbers of two types, which the exporter leaves as they are, and a Range does not take."""
    return torch.arange(float(start), float(end), float(step), **options)


def without_generator(draw):
    """`generator=None`, which the exporter does not know, is the default."""
    return lambda *sizes, generator, **options: draw(*sizes, **options)


def uniform_in_place(self, low=0.0, high=1.0, **named):
    """Of which the exporter knows nothing; a bound's own name is no name in Python."""
    low, high = named.get("from", low), named.get("to", high)
    return self.copy_(low + (high - low) * torch.rand_like(self))


def masked_attention(query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, *,
                     scale=None, enable_gqa=False):
    """Where a mask of truth values leaves a row nothing, PyTorch gives 0; the exporter adds
    the least number instead of -inf, which gives the mean."""
    added = torch.where(attn_mask, 0.0, float("-inf")).to(query.dtype)
    return F.scaled_dot_product_attention(query, key, value, added, dropout_p, is_causal,
                                          scale=scale, enable_gqa=enable_gqa)


def flat_attention(query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, *, scale=None,
                   enable_gqa=False):
    """Without heads, or with more dimensions than the exporter can read: a batch and heads."""
    batch = torch.broadcast_shapes(query.shape[:-2], key.shape[:-2], value.shape[:-2])
    query, key, value = (x.expand(*batch, *x.shape[-2:]).reshape(-1, 1, *x.shape[-2:])
                         for x in (query, key, value))
    if attn_mask is not None:
        if attn_mask.dtype == torch.bool:
            attn_mask = torch.where(attn_mask, 0.0, float("-inf")).to(query.dtype)
        attn_mask = attn_mask.expand(*batch, *attn_mask.shape[-2:]).reshape(
            -1, 1, *attn_mask.shape[-2:])
    result = F.scaled_dot_product_attention(query, key, value, attn_mask, dropout_p, is_causal,
                                            scale=scale)
    return result.reshape(*batch, *result.shape[-2:])


def broadcast_attention(query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, *,
                        scale=None, enable_gqa=False):
    """Learned queries or keys for every sample: one operator, once they are as many."""
    batch = torch.broadcast_shapes(query.shape[:-2], key.shape[:-2], value.shape[:-2])
    query, key, value = (x.expand(*batch, *x.shape[-2:]) for x in (query, key, value))
    if attn_mask is not None and attn_mask.dtype == torch.bool:
        attn_mask = torch.where(attn_mask, 0.0, float("-inf")).to(query.dtype)
    return F.scaled_dot_product_attention(query, key, value, attn_mask, dropout_p, is_causal,
                                          scale=scale, enable_gqa=enable_gqa)


# -- Norms -------------------------------------------------------------------------------

def batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps,
               cudnn_enabled=True):
    """In eval mode: a scale and a shift of each channel, both trained."""
    shape = [1, -1] + [1] * (input.dim() - 2)
    scale = torch.rsqrt(running_var + eps)
    if weight is not None:
        scale = scale * weight
    result = (input - running_mean.reshape(shape)) * scale.reshape(shape)
    return result if bias is None else result + bias.reshape(shape)


def batch_norm_without_states(input, weight, bias, running_mean, running_var, training, momentum,
                              eps, cudnn_enabled=True):
    """By the statistics of all samples there are, which nobody keeps."""
    dims = [0, *range(2, input.dim())]
    mean = input.mean(dims)
    variance = (input - input.mean(dims, keepdim=True)).square().mean(dims)
    return batch_norm(input, weight, bias, mean, variance, False, momentum, eps)


def group_norm(input, num_groups, weight=None, bias=None, eps=1e-5, cudnn_enabled=True):
    """A layer norm of each group, then a scale and a shift of each channel."""
    groups = input.reshape(input.shape[0], num_groups, -1)
    result = F.layer_norm(groups, groups.shape[-1:], eps=eps).reshape(input.shape)
    shape = [1, -1] + [1] * (input.dim() - 2)
    if weight is not None:
        result = result * weight.reshape(shape)
    return result if bias is None else result + bias.reshape(shape)


# -- One element at a time ---------------------------------------------------------------

def elu(self, alpha=1, scale=1, input_scale=1):
    """x above 0, else alpha (exp(x) - 1), written so that nothing is lost near 0."""
    # The branch that is not taken must not overflow: its gradient is 0 times that.
    below = torch.where(self > 0, torch.zeros_like(self), self) * input_scale
    t = torch.tanh(below / 2)
    return torch.where(self > 0, self, 2 * t / (1 - t) * alpha) * scale


def selu(self):
    return elu(self, 1.6732632423543772, 1.0507009873554805)


def celu(self, alpha=1.0):
    return elu(self, alpha, 1, 1 / alpha)


def mish(self):
    return self * torch.tanh(F.softplus(self))


def prelu(self, weight):
    if weight.numel() > 1:
        weight = weight.reshape([1, -1] + [1] * (self.dim() - 2))
    return torch.where(self > 0, self, weight * self)


def round_to_even(self):
    low = torch.floor(self)
    rest = self - low
    tie = low + torch.remainder(low, 2)
    return torch.where(rest < 0.5, low, torch.where(rest > 0.5, low + 1, tie))


def tan(self):
    return torch.sin(self) / torch.cos(self)


def atan2(self, other):
    """The angle of a point, of the smaller over the larger coordinate, which is finite; the sign of
    a zero counts. The exporter divides by the second always."""
    is_steep = self.abs() > other.abs()
    over, under = torch.where(is_steep, other, self), torch.where(is_steep, self, other)
    angle = torch.atan(over / torch.where(under == 0, 1.0, under))
    is_above = (self > 0) | ((self == 0) & (1 / self > 0))
    half = torch.full_like(angle, math.pi)
    half = torch.where(is_above, half, -half)
    is_left = (other < 0) | ((other == 0) & (1 / other < 0))
    return torch.where(is_steep, half / 2 - angle, torch.where(is_left, half + angle, angle))


def sinc(self):
    """sin(pi x) / (pi x), and 1 at 0, with a gradient of 0."""
    here = self == 0
    angle = math.pi * torch.where(here, torch.ones_like(self), self)
    return torch.where(here, torch.ones_like(self), torch.sin(angle) / angle)


def xlogy(self, other):
    """0 where x is 0, whatever y; there the gradient of x is log y all the same."""
    lost = (self == 0) & (other <= 0)
    other = torch.where(lost, torch.ones_like(other), other)
    return self * other.log()


def clamp(self, min=None, max=None):
    """The exporter cannot read bounds of two types."""
    return torch.clamp(self, None if min is None else float(min),
                       None if max is None else float(max))


# -- Whole numbers -----------------------------------------------------------------------

def integer_fmod(self, other):
    """What is left of a division that rounds towards 0."""
    return self - torch.div(self, other, rounding_mode="trunc") * other


def shift_right(self, other):
    return torch.div(self, 2 ** other, rounding_mode="floor")


def shift_left(self, other):
    return self * 2 ** other


# -- Others ------------------------------------------------------------------------------

def cdist(x1, x2, p=2.0, compute_mode=None):
    """The distance of every row to every row."""
    return torch.linalg.vector_norm(x1.unsqueeze(-2) - x2.unsqueeze(-3), p, -1)


def masked_select(self, mask):
    self, mask = torch.broadcast_tensors(self, mask)
    return self[mask]


def over_all(reduce):
    """A reduction without dimensions, which the exporter cannot read."""
    def function(self, dim=(), keepdim=False):
        return reduce(self, list(range(self.dim())), keepdim)
    return function


def diagonal(self, offset=0, dim1=0, dim2=1):
    rows = torch.arange(self.shape[0])
    here = rows.unsqueeze(0) == rows.unsqueeze(1)
    return torch.where(here, self, torch.zeros_like(self)).sum(1)


def trace(self):
    rows, columns = (torch.arange(size) for size in self.shape)
    here = rows.unsqueeze(1) == columns.unsqueeze(0)
    return torch.where(here, self, torch.zeros_like(self)).sum()
