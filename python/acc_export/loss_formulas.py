"""The losses of explicit.ROWS as ordinary calls, with the same value and gradient: over
classes, of probabilities, between distributions. Arguments are those of ATen."""
import torch
import torch.nn.functional as F


def _reduce(loss, reduction, count=None):
    """`reduction` as ATen numbers them: 0 none, 1 mean, 2 sum."""
    if reduction == 0:
        return loss
    if reduction == 2:
        return loss.sum()
    return loss.mean() if count is None else loss.sum() / count


def _along(weight, classes, rank):
    """`weight`, one number a class, shaped to be multiplied with dimension `classes`."""
    shape = [1] * rank
    shape[classes] = -1
    return weight.reshape(shape)


def _weights_of(target, weight, ignore_index):
    """How much each target counts, in the type of `weight`."""
    ignored = target == ignore_index
    inside = torch.where(ignored, torch.zeros_like(target), target)
    return torch.where(ignored, torch.zeros_like(weight[inside]), weight[inside])


#: PyTorch's 1e-12, which is a float of 32 bits in all types.
_LEAST = 9.999999960041972e-13


def nll_loss(self, target, weight=None, reduction=1, ignore_index=-100):
    """-log p of the target class, ignored targets left out."""
    classes = 1 if self.dim() > 1 else 0
    ignored = target == ignore_index
    inside = torch.where(ignored, torch.zeros_like(target), target)
    loss = -self.gather(classes, inside.unsqueeze(classes)).squeeze(classes)
    # where, not a product: what is ignored may be infinite.
    loss = torch.where(ignored, torch.zeros_like(loss), loss)
    kept = (~ignored).to(self.dtype)
    if weight is not None:
        kept = _weights_of(target, weight, ignore_index)
        loss = loss * kept
    return _reduce(loss, reduction, kept.sum())


def cross_entropy(self, target, weight=None, reduction=1, ignore_index=-100,
                  label_smoothing=0.0):
    """With label smoothing, weights of classes, probabilities for targets, or no batch."""
    if self.dim() == 1:
        loss = cross_entropy(self.unsqueeze(0), target.unsqueeze(0), weight, reduction,
                             ignore_index, label_smoothing)
        return loss.squeeze(0) if reduction == 0 else loss
    classes = 1
    count = self.shape[classes]
    if target.is_floating_point():
        if label_smoothing:
            target = target * (1 - label_smoothing) + label_smoothing / count
        terms = F.log_softmax(self, classes) * target
        if weight is not None:
            terms = terms * _along(weight, classes, self.dim())
        # The mean is over samples, whatever the weights.
        return _reduce(-terms.sum(classes), reduction)
    # What one sample loses without weights is what ONNX has an operator for.
    loss = F.cross_entropy(self, target, reduction="none", ignore_index=ignore_index)
    ignored = target == ignore_index
    kept = (~ignored).to(self.dtype)
    if weight is not None:
        kept = _weights_of(target, weight, ignore_index)
        loss = loss * kept
    if label_smoothing:
        terms = F.log_softmax(self, classes)
        if weight is not None:
            terms = terms * _along(weight, classes, self.dim())
        smooth = torch.where(ignored, torch.zeros_like(loss), -terms.sum(classes))
        loss = loss * (1 - label_smoothing) + smooth * (label_smoothing / count)
    return _reduce(loss, reduction, kept.sum())


def binary_cross_entropy(self, target, weight=None, reduction=1):
    """Of probabilities: logarithms end at -100, and gradients do not grow beyond 1e12. What
    is added is 0, and brings those gradients: that of log would be infinite where it ends."""
    stop = torch.ops.accel.stop_gradient
    p, t = stop(self), stop(target)
    log, log_rest = (torch.clamp(x.log(), min=-100.0) for x in (p, 1 - p))
    loss = -(target * log + (1 - target) * log_rest)
    loss = loss + (self - p) * stop((p - t) / torch.clamp(p * (1 - p), min=_LEAST))
    return _reduce(loss if weight is None else loss * weight, reduction)


def kl_div(self, target, reduction=1, log_target=False):
    """Where the target is 0 its logarithm is not taken."""
    if log_target:
        loss = target.exp() * (target - self)
    else:
        zero = target == 0
        log = torch.where(zero, torch.ones_like(target), target).log()
        loss = torch.where(zero, torch.zeros_like(target), target * log) - target * self
    return _reduce(loss, reduction)
