"""Each row of explicit.ROWS, value and gradient, against PyTorch in float64, and that the
operator which the row avoids is not in the file."""
import unittest

import torch
import torch.nn.functional as F

from common import Calls, ExportCase, operators

torch.manual_seed(1)
X = torch.randn(6, 5)
Y = torch.tensor([0, 4, -100, 2, 2, -100])
WEIGHT = torch.arange(1., 6.)
SOFT = F.softmax(torch.randn(6, 5), -1)


class Losses(ExportCase):
    def check(self, function, *args):
        # The sum of everything, so that 'none' has a gradient too.
        model = self.assert_same(Calls(lambda s, x, *r: function(s.b(torch.tanh(s.a(x))), *r)),
                                 (X, *args))
        self.assertNotIn("NegativeLogLikelihoodLoss", operators(model))
        for node in model.graph.node:  # no weights
            self.assertFalse(node.op_type == "SoftmaxCrossEntropyLoss" and len(node.input) > 2)

    def test_label_smoothing(self):
        for reduction in ("mean", "sum", "none"):
            with self.subTest(reduction):
                self.check(lambda z, y: F.cross_entropy(z, y, label_smoothing=0.1,
                                                        reduction=reduction), Y)

    def test_label_smoothing_with_weights(self):
        for reduction in ("mean", "sum", "none"):
            with self.subTest(reduction):
                self.check(lambda z, y: F.cross_entropy(
                    z, y, weight=WEIGHT.to(z.dtype), label_smoothing=0.3,
                    reduction=reduction), Y)

    def test_class_weights(self):
        for reduction in ("mean", "sum", "none"):
            with self.subTest(reduction):
                self.check(lambda z, y: F.cross_entropy(
                    z, y, weight=WEIGHT.to(z.dtype), ignore_index=2, reduction=reduction),
                    Y.clamp(min=0))

    def test_probabilities(self):
        for options in ({}, {"label_smoothing": 0.2}, {"reduction": "sum"},
                        {"reduction": "none"}):
            with self.subTest(options):
                self.check(lambda z, p: F.cross_entropy(z, p, **options), SOFT)

    def test_probabilities_with_weights(self):
        self.check(lambda z, p: F.cross_entropy(z, p, weight=WEIGHT.to(z.dtype),
                                                label_smoothing=0.1), SOFT)

    def test_one_sample_without_batch(self):
        self.check(lambda z: F.cross_entropy(z[0], torch.tensor(3), label_smoothing=0.1))
        self.check(lambda z: F.cross_entropy(z[0], torch.tensor(3), reduction="none"))
        self.check(lambda z, p: F.cross_entropy(z[0], p[0]), SOFT)

    def test_more_dimensions(self):
        def loss(z, y):
            return F.cross_entropy(z.reshape(2, 3, 5).transpose(1, 2), y.reshape(2, 3),
                                   weight=WEIGHT.to(z.dtype), label_smoothing=0.1)
        self.check(loss, Y)

    def test_nll(self):
        for options in ({}, {"weight": WEIGHT}, {"reduction": "sum"}, {"reduction": "none"}):
            def loss(z, y):
                given = {k: v.to(z.dtype) if k == "weight" else v for k, v in options.items()}
                return F.nll_loss(F.log_softmax(z, -1), y, **given)
            with self.subTest(list(options)):
                self.check(loss, Y)
                # Of what is no logarithm of probabilities.
                self.check(lambda z, y: loss(3 * z, y) + F.nll_loss(z, y, reduction="sum"), Y)

    def test_nll_of_a_log_softmax_is_one_operator(self):
        model = self.assert_same(Calls(lambda s, x, y: F.nll_loss(
            F.log_softmax(s.b(s.a(x)), -1), y)), (X, Y))
        self.assertIn("SoftmaxCrossEntropyLoss", operators(model))

    def test_nll_two_dimensional(self):
        self.check(lambda z, y: F.nll_loss(
            F.log_softmax(z.reshape(2, 3, 5, 1).transpose(1, 2), 1), y.reshape(2, 3, 1)), Y)

    def test_nll_by_its_older_names(self):
        self.check(lambda z, y: torch._C._nn.nll_loss(F.log_softmax(z, -1), y), Y)
        self.check(lambda z, y: torch._C._nn.nll_loss2d(
            F.log_softmax(z.reshape(2, 3, 5, 1).transpose(1, 2), 1), y.reshape(2, 3, 1)), Y)

    def test_kl_div(self):
        target = SOFT.clone()
        target[0, 1] = 0
        for options in ({"reduction": "batchmean"}, {"reduction": "sum"}, {"reduction": "none"},
                        {"reduction": "batchmean", "log_target": True}):
            given = SOFT.log() if options.get("log_target") else SOFT
            with self.subTest(options):
                self.check(lambda z, t: F.kl_div(F.log_softmax(z, -1), t, **options), given)
                # No gradient is asked at 0, where PyTorch has none.
                self.check(lambda z: F.kl_div(F.log_softmax(z, -1), target.to(z.dtype), **options))

    def test_plain_cross_entropy_stays_one_operator(self):
        model = self.assert_same(Calls(lambda s, x, y: F.cross_entropy(s.b(s.a(x)), y)), (X, Y))
        self.assertIn("SoftmaxCrossEntropyLoss", operators(model))


class Attention(ExportCase):
    Q, K, V = (torch.randn(2, 4, 3, 8, dtype=torch.float64) for _ in range(3))

    def check(self, key=K, value=V, **options):
        from acc_export import formulas
        found = formulas.attention(self.Q, key, value, dropout_p=0.0, **options)
        expected = F.scaled_dot_product_attention(self.Q, key, value, **options)
        torch.testing.assert_close(found, expected)

    def test_is_pytorchs(self):
        self.check()
        self.check(is_causal=True)
        self.check(scale=0.3)
        self.check(attn_mask=torch.randn(3, 3, dtype=torch.float64))
        self.check(attn_mask=torch.ones(3, 3, dtype=torch.bool).tril())
        self.check(key=self.K[:, :2], value=self.V[:, :2], enable_gqa=True)

    def test_dropout_is_in_the_file(self):
        def attend(module, x):
            h = module.a(x).reshape(1, 1, 6, 6)
            return F.scaled_dot_product_attention(h, h, h, dropout_p=0.5).sum()
        summary, model = self.export(Calls(attend), (X,))
        self.assertEqual(summary.dropouts, 1)
        self.assertEqual(operators(model).count("Dropout"), 1)


class Rows(ExportCase):
    """The other rows: what the plain exporter would write for each is not in the file."""
    def check(self, operator, function, x=X * 3, **parts):
        model = self.assert_same(Calls(lambda s, x: function(s, s.a(x)).sum(), **parts), (x,))
        self.assertNotIn(operator, operators(model))

    def test_batch_norm_in_eval_mode(self):
        norm = torch.nn.BatchNorm1d(6).eval()
        norm.running_mean.uniform_()
        norm.running_var.uniform_(0.5, 2)
        self.check("BatchNormalization", lambda s, z: s.n(z).pow(3), n=norm)
        self.check("BatchNormalization", lambda s, z: s.n(z).pow(3),
                   n=torch.nn.BatchNorm1d(6, affine=False).eval())

    def test_group_norm(self):
        self.check("InstanceNormalization", lambda s, z: s.n(z.reshape(3, 4, 3)).pow(3),
                   n=torch.nn.GroupNorm(2, 4))
        self.check("InstanceNormalization", lambda s, z: F.group_norm(
            z.reshape(3, 4, 3), 2).pow(3))

    def test_activations(self):
        for operator, function in (
                ("Elu", lambda s, z: F.elu(z, 0.7)), ("Selu", lambda s, z: F.selu(z)),
                ("Celu", lambda s, z: F.celu(z, 1.5)), ("Mish", lambda s, z: F.mish(z)),
                ("PRelu", lambda s, z: F.prelu(z, s.w)),
                ("PRelu", lambda s, z: F.prelu(z, s.w[:1])),
                ("Tan", lambda s, z: torch.tan(z / 9)),
                ("Round", lambda s, z: torch.round(z * 2) * z)):
            with self.subTest(operator):
                self.check(operator, function, w=torch.nn.Parameter(torch.rand(6)))

    def test_activations_at_their_edges(self):
        from acc_export import formulas
        x = torch.tensor([0., -0., 1e-30, -1e-30, -1e-8, 5e3, -5e3, 0.5, 1.5, 2.5, -0.5, -1.5,
                          0.49999999999999994], dtype=torch.float64)
        for ours, theirs in ((formulas.elu, F.elu), (formulas.selu, F.selu),
                             (formulas.celu, F.celu), (formulas.mish, F.mish),
                             (formulas.round_to_even, torch.round)):
            a, b = x.clone().requires_grad_(), x.clone().requires_grad_()
            found, expected = ours(a), theirs(b)
            torch.testing.assert_close(found, expected, rtol=1e-14, atol=0)
            found.sum().backward()
            expected.sum().backward()
            torch.testing.assert_close(a.grad, b.grad, rtol=1e-12, atol=0)

    def test_angles(self):
        from acc_export import formulas
        line = torch.tensor([0., -0., 1e-30, -1e-30, 1., -1., 3., -3., 1e20, -1e20],
                            dtype=torch.float64)
        y, x = (part.flatten() for part in torch.meshgrid(line, line, indexing="ij"))
        is_point = (x != 0) | (y != 0)  # the origin has no gradient
        ours, theirs = (tuple(part.clone().requires_grad_() for part in (y, x)) for _ in range(2))
        found, expected = formulas.atan2(*ours), torch.atan2(*theirs)
        torch.testing.assert_close(found, expected, rtol=1e-15, atol=0)
        found[is_point].sum().backward()
        expected[is_point].sum().backward()
        for a, b in zip(ours, theirs):
            torch.testing.assert_close(a.grad[is_point], b.grad[is_point], rtol=1e-12, atol=1e-300)

    def test_bounds_of_two_types(self):
        self.check("If", lambda s, z: torch.clamp(z, 0, 0.5))

    def test_extremes_of_all(self):
        self.check("If", lambda s, z: z.amax() * 2 + z.amin())

    def test_diagonal(self):
        self.check("EyeLike", lambda s, z: (z @ z.T).diagonal().tanh())

    def test_distances(self):
        for p in (2.0, 1.0):
            with self.subTest(p):
                # Of a row to itself there is none, and no gradient.
                self.assert_same(Calls(lambda s, x: torch.cdist(s.a(x), s.a(x), p).sum()), (X,))

    def test_masked_select(self):
        self.check("Compress", lambda s, z: z.masked_select(z > 0).pow(3))
        self.check("Compress", lambda s, z: z.masked_select(z[:, :1] > 0).sin())

    def test_trace(self):
        self.check("EyeLike", lambda s, z: (z.T @ z).trace() * z.trace())

    def test_ranges_of_two_types(self):
        for given in ((1., 7), (0, 3.0, 0.5), (6., 0, -1)):
            with self.subTest(given):
                self.assert_same(Calls(lambda s, x: (s.a(x).sum(1) * torch.arange(*given)).sum()), (X,))
        self.assert_same(Calls(lambda s, x: s.a(x)[torch.arange(1, 5)].sum()), (X,))

    def test_formulas_that_end_at_0(self):
        def logs(s, z):
            # Exact zeros among them.
            z = z * (z > 0)
            return torch.xlogy(z, z + 2) + torch.xlogy(z, 3.0) + torch.xlogy(2.0, z + 1)
        self.assert_same(Calls(lambda s, x: logs(s, s.a(x)).sum()), (X,))
        self.check("Sinc", lambda s, z: torch.sinc(z * (z > 0)))

    def test_gradients_at_0(self):
        from acc_export import formulas, loss_formulas
        x = torch.tensor([0., 1., 0.25, 1e-200, 1., 0.], dtype=torch.float64)
        y = torch.tensor([0., 1., 0.5, 1., 0., 1.], dtype=torch.float64)
        for ours, theirs in (
                (formulas.sinc, torch.sinc),
                (lambda v: formulas.xlogy(v, y + 1), lambda v: torch.xlogy(v, y + 1)),
                (lambda v: formulas.xlogy(v, y), lambda v: torch.xlogy(v, y)),
                (lambda v: loss_formulas.binary_cross_entropy(v, y, reduction=0),
                 lambda v: F.binary_cross_entropy(v, y, reduction="none")),
                (lambda v: loss_formulas.binary_cross_entropy((y + 1) / 3, v, reduction=0),
                 lambda v: F.binary_cross_entropy((y + 1) / 3, v, reduction="none")),
                (lambda v: loss_formulas.binary_cross_entropy(v, y, weight=2 + y),
                 lambda v: F.binary_cross_entropy(v, y, weight=2 + y))):
            a, b = x.clone().requires_grad_(), x.clone().requires_grad_()
            found, expected = ours(a), theirs(b)
            torch.testing.assert_close(found, expected, rtol=1e-14, atol=0)
            found.sum().backward()
            expected.sum().backward()
            torch.testing.assert_close(a.grad, b.grad, rtol=1e-12, atol=0)

    def test_binary_cross_entropy_in_the_file(self):
        model = self.assert_same(Calls(lambda s, x: F.binary_cross_entropy(
            s.a(x).clamp(0, 1), torch.full((6, 6), 0.3, dtype=x.dtype))), (X,))
        self.assertIn("accel.stop_gradient", str(model.graph.node))

    def test_whole_numbers(self):
        n = torch.arange(-3, 3)
        for operator, function in (("Mod", lambda n: torch.fmod(n, 2) + torch.fmod(n, n + 7)),
                                   ("BitShift", lambda n: (n >> 1) + (n << 2) + torch.
                                    bitwise_right_shift(n, 2) + torch.bitwise_left_shift(n, 1))):
            with self.subTest(operator):
                self.check(operator, lambda s, z: z * function(n))

    def test_attention_without_heads(self):
        for shape in ((6, 2, 3), (1, 6, 1, 2, 3), (6, 6)):
            with self.subTest(shape):
                self.assert_same(Calls(lambda s, x: F.scaled_dot_product_attention(
                    *[s.a(x).reshape(shape)] * 3,
                    attn_mask=torch.ones(shape[-2], shape[-2], dtype=torch.bool).tril()).pow(
                        2).sum()), (X,))

    def test_attention_with_one_query_for_all(self):
        def attend(module, z):
            keys = z.reshape(3, 2, 2, 3)
            return F.scaled_dot_product_attention(module.q, keys, keys)
        model = self.assert_same(Calls(lambda s, x: attend(s, s.a(x)).sum(),
                                       q=torch.nn.Parameter(torch.rand(1, 2, 5, 3))), (X,))
        self.assertIn("Expand", operators(model))

    def test_attention_whose_heads_are_joined(self):
        # Where its result lies depends on the learned mask (T5's position bias).
        def attend(module, z):
            heads = z.reshape(1, 6, 2, 3).transpose(1, 2)
            found = F.scaled_dot_product_attention(heads, heads, heads,
                                                   attn_mask=module.bias.permute(2, 0, 1)[None])
            return found.transpose(1, 2).reshape(6, 6).pow(2).sum()
        self.assert_same(Calls(lambda s, x: attend(s, s.a(x)),
                               bias=torch.nn.Parameter(torch.rand(6, 6, 2))), (X,))


class Dropout(ExportCase):
    def test_two_draws_of_one_value_stay_two(self):
        def two(module, x):
            h = module.a(x)
            return (F.dropout(h, 0.5, True) - F.dropout(h, 0.5, True)).pow(2).mean()
        summary, model = self.export(Calls(two), (X,))
        self.assertEqual(operators(model).count("Dropout"), 2)
        self.assertEqual(summary.dropouts, 2)

    def test_draws_in_another_order(self):
        def draw(module, x):
            if not torch.compiler.is_exporting():
                torch.rand(3)  # for nothing
            return F.dropout(module.a(x), 0.5, True).sum()
        self.assertEqual(self.export(Calls(draw), (X,))[0].dropouts, 1)

    def test_in_place(self):
        summary, model = self.export(Calls(
            lambda s, x: F.dropout(s.a(x), 0.5, True, inplace=True).sum()), (X,))
        self.assertEqual(operators(model).count("Dropout"), 1)

    def test_the_modules_mode_counts(self):
        module = Calls(lambda s, x: s.drop(s.a(x)).sum(), drop=torch.nn.Dropout(0.1))
        self.assertEqual(self.export(module.train(), (X,))[0].dropouts, 1)
        self.assertEqual(self.export(module.eval(), (X,))[0].dropouts, 0)


if __name__ == "__main__":
    unittest.main()
