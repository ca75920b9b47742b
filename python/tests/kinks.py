"""Functions where ONNX's operators leave the gradient, or the value, open: at kinks, ties and
ends of ranges. Each takes whole numbers `h` with zeros and ties among them, a module `s` of
two layers and a vector, and the input `x`. Run by test_kinks.py."""
import torch
import torch.nn.functional as F



def apart(h):
    """No two alike: which of equal elements PyTorch takes first depends on the machine, where
    it is not asked for a stable order."""
    return h + torch.arange(h.numel()).view(h.shape) / 256


KINKS = {
    "relu": lambda h, s, x: (F.relu(h) * x).sum(),
    "relu6": lambda h, s, x: (F.relu6(3 * h) * x).sum(),
    "hardtanh": lambda h, s, x: (F.hardtanh(h) * x).sum(),
    "leaky": lambda h, s, x: (F.leaky_relu(h, 0.1) * x).sum(),
    "abs": lambda h, s, x: (h.abs() * x).sum(),
    "clamp": lambda h, s, x: (h.clamp(-1, 1) * x).sum(),
    "clamp_by_tensors": lambda h, s, x: (h.clamp(torch.full((5,), -1.), s.b.bias.detach() * 0
                                                 + 1) * x).sum(),
    "maximum": lambda h, s, x: (torch.maximum(h, 0 * h) * x).sum(),
    "minimum": lambda h, s, x: (torch.minimum(h, h.flip(1)) * x).sum(),
    "max": lambda h, s, x: h.max() * 3,
    "amax": lambda h, s, x: (h.amax(1) * x[:, 0]).sum(),
    "max_of_rows": lambda h, s, x: (h.max(1).values * x[:, 0]).sum(),
    "min_of_rows": lambda h, s, x: (h.min(1)[0] * x[:, 0]).sum(),
    "norm": lambda h, s, x: ((0 * h).norm(dim=1) * x[:, 0]).sum() + h.norm(),
    "norm1": lambda h, s, x: (h.norm(p=1, dim=1) * x[:, 0]).sum(),
    "norm_inf": lambda h, s, x: (h.norm(p=float("inf"), dim=1) * x[:, 0]).sum(),
    "norm3": lambda h, s, x: (h.norm(p=3, dim=1) * x[:, 0]).sum(),
    "std": lambda h, s, x: (h.std(1) * x[:, 0]).sum(),
    "prod": lambda h, s, x: (h.prod(1) * x[:, 0]).sum(),
    "pow": lambda h, s, x: (h.pow(3) * x).sum() + (h.abs().pow(1.5) * x).sum(),
    "pow_of_2": lambda h, s, x: (torch.pow(2, h) * x).sum(),
    "floor": lambda h, s, x: (h.floor() * h + h.ceil() * h + h.trunc() * h).sum(),
    "frac": lambda h, s, x: ((0.3 * h).frac() * x).sum(),
    "sign": lambda h, s, x: (h.sign() * h * x).sum(),
    "remainder": lambda h, s, x: (torch.remainder(h, 2) * x).sum() + (
        torch.fmod(h, 2) * x).sum(),
    "where": lambda h, s, x: torch.where(h > 0, h.clamp(min=0.5).log(), h).sum(),
    "softplus": lambda h, s, x: (F.softplus(h * 15) * x).sum(),
    "hardswish": lambda h, s, x: (F.hardswish(3 * h) * x).sum(),
    "hardsigmoid": lambda h, s, x: (F.hardsigmoid(3 * h) * x).sum(),
    "softshrink": lambda h, s, x: (F.softshrink(h, 1.0) * x).sum(),
    "hardshrink": lambda h, s, x: (F.hardshrink(h, 1.0) * x).sum(),
    "threshold": lambda h, s, x: (F.threshold(h, 1.0, 0.5) * x).sum(),
    "celu": lambda h, s, x: (F.celu(h, 0.5) * x).sum(),
    "elu": lambda h, s, x: (F.elu(h, 0.5) * x).sum(),
    "selu": lambda h, s, x: (F.selu(h) * x).sum(),
    "prelu": lambda h, s, x: (F.prelu(h, s.w[:1]) * x).sum(),
    "softsign": lambda h, s, x: (F.softsign(h) * x).sum(),
    "mish": lambda h, s, x: (F.mish(20 * h) * x).sum(),
    "tan": lambda h, s, x: (torch.tan(h) * x).sum(),
    "hyperbolic": lambda h, s, x: ((torch.sinh(h) + torch.cosh(h)) * x).sum(),
    "areas": lambda h, s, x: ((torch.asinh(h) + torch.acosh(h.abs() + 1.5) + torch.atanh(
        h / 16)) * x).sum(),
    "pixel_shuffle": lambda h, s, x: (F.pixel_unshuffle(F.pixel_shuffle(
        h[:4, :4].reshape(1, 4, 2, 2), 2) * x[:4, :4].reshape(1, 1, 4, 4), 2)).pow(2).sum(),
    "l1": lambda h, s, x: F.l1_loss(h, torch.ones_like(h)),
    "smooth_l1": lambda h, s, x: F.smooth_l1_loss(h, torch.zeros_like(h), beta=1.0),
    "huber": lambda h, s, x: F.huber_loss(h, torch.zeros_like(h), delta=1.0),
    "hinge": lambda h, s, x: F.margin_ranking_loss(h[:, 0], h[:, 1], x[:, 0].sign(), margin=1.),
    "triplet": lambda h, s, x: F.triplet_margin_loss(h, h.flip(1), h * 2),
    "logsumexp": lambda h, s, x: (h.logsumexp(1) * x[:, 0]).sum(),
    "masked_softmax": lambda h, s, x: (F.softmax(h.masked_fill(h > 0, float("-inf")), 1) *
                                       x).nan_to_num().sum(),
    "sqrt": lambda h, s, x: (h.abs() + 1e-12).sqrt().sum(),
    "cumsum": lambda h, s, x: (h.cumsum(1) * x).sum(),
    "gather": lambda h, s, x: h.gather(1, (x > 0).long()).pow(2).sum(),
    "sort": lambda h, s, x: (apart(h).sort(1).values * x).sum(),
    "stable_sort": lambda h, s, x: (h.sort(dim=1, stable=True).values * x).sum(),
    "topk": lambda h, s, x: (apart(h).topk(2, 1).values * x[:, :2]).sum(),
    "cosine": lambda h, s, x: F.cosine_similarity(h, h.flip(0) * 0 + x, dim=1).sum(),
    "normalize": lambda h, s, x: (F.normalize(h * (x[:, :1] > 0), dim=1) * x).sum(),
    "var": lambda h, s, x: (h.var(1, correction=0) * x[:, 0]).sum(),
    "logsigmoid": lambda h, s, x: (F.logsigmoid(40 * h) * x).sum(),
    "bce": lambda h, s, x: F.binary_cross_entropy_with_logits(50 * h, (x > 0).to(h.dtype)),
    "gelu": lambda h, s, x: (F.gelu(9 * h) * x).sum() + (
        F.gelu(9 * h, approximate="tanh") * x).sum(),
    "roll": lambda h, s, x: (torch.roll(h, 1, 1) * x).sum(),
    "heaviside": lambda h, s, x: (h * (h >= 0)).sum(),
    "xlogy": lambda h, s, x: torch.xlogy(h, h.abs() + 1).sum(),
    "fake_quantize": lambda h, s, x: (torch.fake_quantize_per_tensor_affine(
        h, 0.3, 0, -4, 4) * x).sum(),
    "straight_through": lambda h, s, x: ((h + (h.round() - h).detach()) * x).pow(2).sum(),
    "logaddexp": lambda h, s, x: (torch.logaddexp(h, 0 * h) * x).sum(),
    "dist": lambda h, s, x: torch.dist(h, 0 * h) + F.pairwise_distance(h, 2 * h).sum(),
    "median": lambda h, s, x: h.median(),
    "cross_entropy_of_ties": lambda h, s, x: F.cross_entropy(h, h.argmax(1)),
    "lerp": lambda h, s, x: torch.lerp(h, 2 * h, 0.3).pow(2).sum() + (
        torch.lerp(h, x, s.w[0])).sum(),
    "addcdiv": lambda h, s, x: torch.addcdiv(h, x, s.w[1:], value=0.5).pow(2).sum(),
    "cumprod": lambda h, s, x: (h.cumprod(1) * x).sum(),
    "atan2": lambda h, s, x: (torch.atan2(h, x) * x).sum(),
    "glu": lambda h, s, x: F.glu(h[:, :4], 1).pow(2).sum(),
    "silu": lambda h, s, x: (F.silu(30 * h) * x).sum(),
    "log1p": lambda h, s, x: (torch.log1p(h.abs() * 1e-6) * x).sum() + torch.expm1(h).sum(),
    "reflect": lambda h, s, x: F.pad(h, (1, 1), mode="reflect").pow(2).sum(),
    "unfold": lambda h, s, x: h.unfold(1, 2, 1).pow(2).sum(),
    "einsum": lambda h, s, x: torch.einsum("bi,bj->ji", h, x).pow(2).sum() + torch.einsum(
        "ii,...i,ji->j...", h[:5], x, s.a.weight).pow(2).sum() + torch.einsum(
        "bi,bi->b", h, x).pow(2).sum(),
    "outer": lambda h, s, x: torch.outer(h[0], s.w).pow(2).sum(),
    "tril": lambda h, s, x: (h[:5] @ h[:5].T).tril().pow(2).sum(),
    "index": lambda h, s, x: h[torch.tensor([0, 0, 3])].pow(2).sum() + h[:, -1].sum(),
    "select_by_mask": lambda h, s, x: h[x > 0].pow(2).sum(),
    "select_by_known_mask": lambda h, s, x: h[
        torch.tensor([True, False, True, True, False, False])].pow(2).sum(),
    "repeat": lambda h, s, x: h.repeat(2, 1).pow(2).sum() + h.repeat_interleave(2, 1).sum(),
    "argmax_of": lambda h, s, x: (h * F.one_hot(h.argmax(1), 5)).pow(2).sum(),
    "argmin_of": lambda h, s, x: (h * F.one_hot(h.argmin(1), 5)).pow(2).sum() + (
        h.argmax(0, keepdim=True) * h).sum() + h.argmin() * h.sum(),
    "bce_of_probabilities": lambda h, s, x: F.binary_cross_entropy(
        h.clamp(0, 1), (x > 0).to(h.dtype)),
    "entropy": lambda h, s, x: torch.special.entr(h.abs() + 0.5).sum(),
    "sinc": lambda h, s, x: (torch.sinc(h) * x).sum(),
    "logit": lambda h, s, x: (torch.logit(h.clamp(0, 1), eps=0.25) * x).sum(),
    "logcumsumexp": lambda h, s, x: (h.logcumsumexp(1) * x).sum(),
    "poisson": lambda h, s, x: F.poisson_nll_loss(h, x.abs()),
    "hinge_embedding": lambda h, s, x: F.hinge_embedding_loss(h, x.sign()),
    "multi_margin": lambda h, s, x: F.multi_margin_loss(h, (x[:, 0] > 0).long()),
    "soft_margin": lambda h, s, x: F.soft_margin_loss(h, x.sign()),
    "multilabel": lambda h, s, x: F.multilabel_soft_margin_loss(h, (x > 0).to(h.dtype)),
    "cosine_embedding": lambda h, s, x: F.cosine_embedding_loss(
        h, x, x[:, 0].sign(), margin=0.2),
    "norm0": lambda h, s, x: torch.linalg.vector_norm(h, ord=0) + h.sum(),
    "matrix_norm": lambda h, s, x: torch.linalg.matrix_norm(h, ord=1),
    "rms_norm": lambda h, s, x: (F.rms_norm(h, (5,), s.w[1:]) * x).sum(),
    "rms_norm_of_zeros": lambda h, s, x: (F.rms_norm(0 * h + x, (5,), eps=1e-6) * x).sum(),
    "layer_norm_of_ties": lambda h, s, x: (F.layer_norm(0 * h, (5,), s.w[1:]) * x).sum(),
    "instance_norm": lambda h, s, x: (F.instance_norm(h[None]) * x).pow(3).sum(),
    "scatter_add": lambda h, s, x: (h * 0).scatter_add(1, (x > 0).long(), h).pow(2).sum(),
    "index_add": lambda h, s, x: h.index_add(0, torch.tensor([0, 0]), h[:2]).pow(2).sum(),
    "scatter": lambda h, s, x: (h.scatter(1, apart(h).topk(2, 1).indices, x[:, :2]) * h).sum() + (
        (0 * h).scatter(1, h.argmax(1, keepdim=True), 1.) * h).pow(2).sum(),
    "scatter_extremes": lambda h, s, x: (h.scatter_reduce(
        1, (x > 0).long(), h.flip(1), "amax") * x).sum() + h.scatter_reduce(
        0, (x > 0).long(), 2 * h, "amin").pow(2).sum(),
    "scatter_products": lambda h, s, x: (h.scatter_reduce(
        1, (x > 0).long(), h.flip(1), "prod") * x).sum(),
    "index_put": lambda h, s, x: (h.index_put((torch.arange(6), h.argmax(1)), x[:, 0]) * h).sum(),
    "index_put_sums": lambda h, s, x: h.index_put(
        ((x[:, 0] > 0).long(), (x[:, 1] > 0).long()), h[:, 2], accumulate=True).pow(2).sum(),
    "index_copy": lambda h, s, x: h.index_copy(0, torch.tensor([4, 0, 1]), x[:3]).pow(2).sum(),
    "diag_embed": lambda h, s, x: torch.diag_embed(h).pow(2).sum(),
    "trace": lambda h, s, x: h[:5].trace() * h[5, 0],
    "bilinear": lambda h, s, x: F.bilinear(h, x, s.a.weight.reshape(6, 5, 1).expand(
        6, 5, 5)).pow(2).sum(),
    "cross": lambda h, s, x: (torch.linalg.cross(h[:, :3], x[:, :3]) * x[:, 1:4]).sum(),
    "kron": lambda h, s, x: torch.kron(h[:2], s.w[None]).pow(2).sum(),
    "interpolate": lambda h, s, x: F.interpolate(h[None], scale_factor=2).pow(2).sum() + (
        F.interpolate(h[None, None], size=(4, 7)) ** 3).sum(),
    "interpolate_lines": lambda h, s, x: F.interpolate(
        h[None, None], size=(9, 4), mode="bilinear").pow(2).sum() + F.interpolate(
        h[None, None], scale_factor=2.0, mode="bilinear", align_corners=True).pow(2).sum(),
    "interpolate_cubes": lambda h, s, x: F.interpolate(
        h[None, None], size=(9, 4), mode="bicubic").pow(2).sum(),
    "interpolate_antialias": lambda h, s, x: F.interpolate(
        h[None, None], size=(4, 3), mode="bilinear", antialias=True).pow(2).sum(),
    "avg_pool": lambda h, s, x: F.avg_pool1d(h[None], 2).pow(2).sum(),
    "max_pool": lambda h, s, x: F.max_pool1d(h[None], 2).pow(2).sum(),
    "embedding_bag": lambda h, s, x: F.embedding_bag(
        (x > 0).long(), s.b.weight * h[:5, :1], mode="mean").pow(2).sum(),
    "rnn": lambda h, s, x: (torch.rnn_tanh_cell(h, s.b.bias.expand(6, 5) * 0.1, s.b.weight[
        :, :5], s.a.weight[:5]) * x).sum(),
    "all_masked": lambda h, s, x: F.scaled_dot_product_attention(
        h[None], h[None], x[None], (x @ x.T)[None] > 1).nan_to_num().pow(2).sum(),
    "causal": lambda h, s, x: (F.scaled_dot_product_attention(
        h[None], x[None], x[None], is_causal=True, scale=0.3) * x).sum(),
    "square_of_a_difference": lambda h, s, x: (torch.square(h - x) + torch.rsub(h, 2)).sum(),
    "true_divide": lambda h, s, x: (torch.div(h, 2, rounding_mode="floor") * h + torch.div(
        h, x, rounding_mode="trunc")).sum(),
    "exp2": lambda h, s, x: (torch.exp2(h) * x + torch.log2(h.abs() + 1)).sum(),
    "erf": lambda h, s, x: (torch.erf(h) * x).sum() + torch.erfc(h).sum(),
    "rsqrt": lambda h, s, x: (h.abs() + 1).rsqrt().sum() + (h.abs() + 1).reciprocal().sum(),
    "cumsum_of_booleans": lambda h, s, x: (h * (x > 0).cumsum(1)).sum(),
    "masked_scatter": lambda h, s, x: h.masked_scatter(x > 0, x).pow(2).sum(),
    "movedim": lambda h, s, x: (h.movedim(0, 1).flatten().reshape(6, 5) * x).sum(),
    "as_strided": lambda h, s, x: h.as_strided((3, 3), (1, 2)).pow(2).sum(),
    "complex": lambda h, s, x: torch.fft.rfft(h).abs().sum(),
    "softmax_of_integers": lambda h, s, x: (F.softmax(torch.arange(5) * 1., 0) * h).sum(),
    "mixed_types": lambda h, s, x: (h * torch.arange(5) + (x > 0) * h).pow(2).sum(),
    "int_division": lambda h, s, x: (h * (torch.arange(5) // 2) * (
        torch.arange(-2, 3) % 3)).pow(2).sum(),
    "baddbmm": lambda h, s, x: torch.addmm(s.b.bias, h, s.b.weight[:, :5], beta=0.5,
                                           alpha=2).pow(2).sum(),
    "in_place": lambda h, s, x: F.relu((h * 1), inplace=True).add(0).mul_(2).add_(x).pow(2).sum(),
    "quantile": lambda h, s, x: torch.quantile(apart(h), 0.3),
    "remainder_of_integers": lambda h, s, x: (h * torch.fmod(torch.arange(-2, 3), 2) + h * (
        torch.arange(-2, 3) >> 1) + h * (torch.arange(5) << 1)).pow(2).sum(),
    "inverse_sines": lambda h, s, x: ((torch.asin(h / 8) + torch.acos(h / 16) + torch.atan(
        h)) * x).sum(),
    "sample_lines": lambda h, s, x: sum((F.grid_sample(
        h[None, None], (h[:4, :4] * 0.4 + x[:4, :4] * 0.01).reshape(1, 2, 4, 2), mode="bilinear",
        padding_mode=padding, align_corners=aligned) ** 2).sum() for padding, aligned in (
            ("zeros", False), ("border", True), ("reflection", False), ("reflection", True))),
    "sample_cubes": lambda h, s, x: sum((F.grid_sample(
        h[None, None], (h[:4, :4] * 0.4 + x[:4, :4] * 0.01).reshape(1, 2, 4, 2), mode="bicubic",
        padding_mode=padding, align_corners=True) ** 2).sum() for padding in (
            "zeros", "border", "reflection")),
    "sample_nearest": lambda h, s, x: (F.grid_sample(
        h[None, None], x[:4, :4].reshape(1, 2, 4, 2), mode="nearest",
        align_corners=False) ** 3).sum(),
    "affine_grid": lambda h, s, x: (F.grid_sample(x[None, None], F.affine_grid(
        h[:2, :3][None] * 0.3 + 0.01, (1, 1, 3, 4), align_corners=False),
        align_corners=False) ** 2).sum(),
    "bits": lambda h, s, x: (h * ((torch.arange(5) & 3) | (torch.arange(5) ^ 6))).pow(2).sum(),
    "renorm": lambda h, s, x: h.renorm(2, 0, 1.0).pow(2).sum(),
}

MISSING = {
    "cumprod": "has no ONNX for prims.prod, which a call",
    "median": "has no ONNX for aten.median", "stable_sort": "has no ONNX for aten.sort.stable",
    "fake_quantize": "ONNX allows only", "complex": "fft_rfft() at ",
    # Its own formula at the margin is not that of the calls PyTorch takes it apart into.
    "multi_margin": "the gradient of parameter"}
