// The forms of ops whose vector-Jacobian products are checked, one line each:
// of every op with a rule its attributes, ranks, broadcasting, equal operands
// and readers of several kinds, after the op by shape by attribute matrix of
// ONNX Runtime's gradient tests. A table of facts, hence its length.

#ifndef ACCEL_TEST_UNIT_AUTODIFF_VJPCASES_H
#define ACCEL_TEST_UNIT_AUTODIFF_VJPCASES_H

#include <ostream>

namespace accel::test {

struct VjpCase {
  const char *name;
  const char *operands; ///< their types, which are all differentiated
  const char *body;     ///< ops on %0, %1…, the last of which defines %r
  const char *result;   ///< its type
  double low = -2, high = 2;
};

inline std::ostream &operator<<(std::ostream &stream, const VjpCase &op) {
  return stream << op.name;
}

/// "%r = nn.OP %0 : (T) -> T" and the like, for elementwise ops.
#define UNARY(OP, ...)                                                         \
  {                                                                            \
    OP, "2x3", "%r = nn." OP " %0 : (tensor<2x3xf64>) -> tensor<2x3xf64>",     \
        "2x3", ##__VA_ARGS__                                                   \
  }
#define BINARY(OP, ...)                                                        \
  {                                                                            \
    OP, "2x3 2x3",                                                             \
        "%r = nn." OP " %0, %1 : (tensor<2x3xf64>, tensor<2x3xf64>) -> "       \
        "tensor<2x3xf64>",                                                     \
        "2x3", ##__VA_ARGS__                                                   \
  }
#define MATMUL(NAME, A, B, FLAGS, R)                                           \
  {                                                                            \
    NAME, A " " B,                                                             \
        "%r = nn.matmul %0, %1 " FLAGS " : (tensor<" A "xf64>, tensor<" B      \
        "xf64>) -> tensor<" R "xf64>",                                         \
        R                                                                      \
  }
#define CONVOLUTION(NAME, OP, A, B, WINDOWS, R)                                \
  {                                                                            \
    NAME, A " " B,                                                             \
        "%r = nn." OP " %0, %1 " WINDOWS " : (tensor<" A "xf64>, tensor<" B    \
        "xf64>) -> tensor<" R "xf64>",                                         \
        R                                                                      \
  }
#define ATTENTION(NAME, Q, K, V, MASK, FLAGS, ROWS, E)                         \
  {                                                                            \
    NAME, Q " " K " " V,                                                       \
        "%m = nn.constant " MASK " %r:2 = nn.attention %0, %1, %2 " FLAGS      \
        " -> (tensor<" ROWS "x" E "xf64>, tensor<" ROWS "xf64>)",              \
        ROWS "x" E                                                             \
  }

inline const VjpCase kVjpCases[] = {
    UNARY("neg"),
    UNARY("abs"),
    UNARY("exp"),
    UNARY("log", 0.5, 3),
    UNARY("log1p", -0.5, 3),
    UNARY("sqrt", 0.5, 3),
    UNARY("rsqrt", 0.5, 3),
    UNARY("reciprocal", 0.5, 3),
    UNARY("tanh"),
    UNARY("erf"),
    UNARY("sigmoid"),
    UNARY("relu"),
    UNARY("sin"),
    UNARY("cos"),
    UNARY("atan"),
    UNARY("floor"),
    UNARY("round"),
    UNARY("floor_power2"),
    UNARY("gelu erf"),
    UNARY("gelu tanh"),
    BINARY("add"),
    BINARY("sub"),
    BINARY("mul"),
    BINARY("div", 0.5, 3),
    BINARY("mod", 0.6, 3),
    BINARY("pow", 0.5, 3),
    BINARY("min"),
    BINARY("max"),
    {"square", "2x3",
     "%c = nn.constant dense<2.0> : tensor<2x3xf64> %r = "
     "nn.pow %0, %c : tensor<2x3xf64>",
     "2x3"},
    {"cube", "2x3",
     "%c = nn.constant dense<3.0> : tensor<2x3xf64> %r = "
     "nn.pow %0, %c : tensor<2x3xf64>",
     "2x3"},
    {"pow_constant", "2x3",
     "%c = nn.constant dense<1.5> : tensor<2x3xf64> %r = "
     "nn.pow %0, %c : tensor<2x3xf64>",
     "2x3", 0.5, 3},
    {"select", "2x3 2x3",
     "%c = nn.constant dense<[[true, false, true], [false, false, true]]> : "
     "tensor<2x3xi1> %r = nn.select %c, %0, %1 : "
     "(tensor<2x3xi1>, tensor<2x3xf64>, tensor<2x3xf64>) -> tensor<2x3xf64>",
     "2x3"},
    {"cut", "2x3",
     "%c = nn.cut %0 from 0 to 1 : tensor<2x3xf64> %r = nn.mul %c, %c : "
     "(tensor<2x3xf64>, tensor<2x3xf64>) -> tensor<2x3xf64>",
     "2x3"},
    {"cast_through_i64_is_flat", "2x3",
     "%i = nn.cast %0 : (tensor<2x3xf64>) -> tensor<2x3xi64> %f = nn.cast %i : "
     "(tensor<2x3xi64>) -> tensor<2x3xf64> %r = nn.mul %f, %0 : "
     "(tensor<2x3xf64>, tensor<2x3xf64>) -> tensor<2x3xf64>",
     "2x3", 0.6, 0.9},
    {"several_readers", "2x3",
     "%e = nn.exp %0 : tensor<2x3xf64> %m = nn.mul %e, "
     "%0 : tensor<2x3xf64> %r = nn.add "
     "%m, %0 : tensor<2x3xf64>",
     "2x3"},
    MATMUL("matmul", "2x3", "3x4", "", "2x4"),
    MATMUL("matmul_nt", "2x3", "4x3", "{transpose_rhs}", "2x4"),
    MATMUL("matmul_tn", "3x2", "3x4", "{transpose_lhs}", "2x4"),
    MATMUL("matmul_tt", "3x2", "4x3", "{transpose_lhs, transpose_rhs}", "2x4"),
    MATMUL("matmul_batched", "2x2x3", "2x3x4", "", "2x2x4"),
    MATMUL("matmul_batched_tt", "2x3x2", "2x4x3",
           "{transpose_lhs, transpose_rhs}", "2x2x4"),
    {"grouped_matmul", "4x3 2x3x5",
     "%g = nn.constant dense<[1, 0, -1, 1]> : tensor<4xi64> "
     "%r = nn.grouped_matmul %0, %1, %g : (tensor<4x3xf64>, tensor<2x3x5xf64>, "
     "tensor<4xi64>) -> tensor<4x5xf64> ",
     "4x5"},
    {"grouped_matmul_nt", "4x3 3x5x3",
     "%g = nn.constant dense<[2, 0, 2, 2]> : tensor<4xi32> "
     "%r = nn.grouped_matmul %0, %1, %g {transpose_rhs} : (tensor<4x3xf64>, "
     "tensor<3x5x3xf64>, tensor<4xi32>) -> tensor<4x5xf64> ",
     "4x5"},
    MATMUL("matmul_shared", "2x2x3", "3x4", "", "2x2x4"),
    MATMUL("matmul_shared_nt", "2x5x2x3", "4x3", "{transpose_rhs}", "2x5x2x4"),
    MATMUL("matmul_shared_tn", "2x3x2", "3x4", "{transpose_lhs}", "2x2x4"),
    MATMUL("matmul_shared_tt", "2x3x2", "4x3", "{transpose_lhs, transpose_rhs}",
           "2x2x4"),
    CONVOLUTION("conv_1d", "conv", "2x3x7", "4x3x3",
                "sizes [7] strides [1] dilations [1] low [1]", "2x4x7"),
    CONVOLUTION("conv_strided", "conv", "2x2x7x6", "3x2x3x2",
                "sizes [3, 3] strides [2, 2] dilations [1, 1] low [0, 0]",
                "2x3x3x3"),
    CONVOLUTION("conv_dilated", "conv", "1x2x7x6", "2x2x3x2",
                "sizes [5, 4] strides [1, 2] dilations [2, 3] low [1, 2]",
                "1x2x5x4"),
    CONVOLUTION("conv_groups", "conv", "2x2x2x4x4", "2x3x2x2x2",
                "sizes [4, 3] strides [1, 1] dilations [1, 1] low [1, 0]",
                "2x2x3x4x3"),
    CONVOLUTION("conv_pointwise", "conv", "2x3x2x2", "4x3x1x1",
                "sizes [2, 2] strides [1, 1] dilations [1, 1] low [0, 0]",
                "2x4x2x2"),
    CONVOLUTION("conv_3d", "conv", "1x2x3x4x3", "2x2x2x3x2",
                "sizes [2, 2, 3] strides [1, 2, 1] dilations [1, 1, 1] "
                "low [0, 1, 1]",
                "1x2x2x2x3"),
    CONVOLUTION("conv_input_grad", "conv_input_grad", "2x3x3x3", "3x2x3x2",
                "sizes [7, 6] strides [2, 2] dilations [1, 1] low [0, 0]",
                "2x2x7x6"),
    CONVOLUTION("conv_input_grad_groups", "conv_input_grad", "2x2x3x4",
                "2x3x2x3", "sizes [9] strides [2] dilations [1] low [1]",
                "2x2x2x9"),
    CONVOLUTION("conv_weight_grad", "conv_weight_grad", "2x2x7x6", "2x3x3x3",
                "sizes [3, 2] strides [2, 2] dilations [1, 1] low [1, 0]",
                "3x2x3x2"),
    CONVOLUTION("conv_weight_grad_groups", "conv_weight_grad", "2x2x2x5",
                "2x2x3x4", "sizes [3] strides [1] dilations [2] low [1]",
                "2x3x2x3"),
    {"reduce_sum", "2x3x4",
     "%r = nn.reduce sum %0 dims [0, 2] : (tensor<2x3x4xf64>) -> "
     "tensor<3xf64>",
     "3"},
    {"reduce_max", "2x3x4",
     "%r = nn.reduce max %0 dims [1] : (tensor<2x3x4xf64>) -> tensor<2x4xf64>",
     "2x4"},
    {"reduce_max_to_the_first", "2x3x4",
     "%r = nn.reduce max %0 dims [1] {first} : (tensor<2x3x4xf64>) -> "
     "tensor<2x4xf64>",
     "2x4"},
    {"reduce_min", "2x3",
     "%s = nn.reduce min %0 dims [0, 1] : (tensor<2x3xf64>) -> tensor<f64> %r "
     "= nn.reshape %s : (tensor<f64>) -> tensor<1xf64>",
     "1"},
    {"cumsum", "2x4", "%r = nn.cumsum %0 dim 1 : tensor<2x4xf64>", "2x4"},
    {"cumsum_reverse_exclusive", "4x2",
     "%r = nn.cumsum %0 dim 0 {exclusive, reverse} : (tensor<4x2xf64>) -> "
     "tensor<4x2xf64>",
     "4x2"},
    {"reshape", "2x6",
     "%r = nn.reshape %0 : (tensor<2x6xf64>) -> tensor<3x4xf64>", "3x4"},
    {"transpose", "2x3x4",
     "%r = nn.transpose %0 [2, 0, 1] : (tensor<2x3x4xf64>) -> "
     "tensor<4x2x3xf64>",
     "4x2x3"},
    {"broadcast_leading", "3",
     "%r = nn.broadcast %0 : (tensor<3xf64>) -> tensor<2x3xf64>", "2x3"},
    {"broadcast_ones", "2x1x3",
     "%r = nn.broadcast %0 : (tensor<2x1x3xf64>) -> tensor<4x2x5x3xf64>",
     "4x2x5x3"},
    {"slice", "4x5",
     "%r = nn.slice %0 starts [1, 2] sizes [2, 3] steps [1, 1] : "
     "(tensor<4x5xf64>) -> tensor<2x3xf64>",
     "2x3"},
    {"slice_reversed", "4x5",
     "%r = nn.slice %0 starts [3, 1] sizes [3, 2] steps [-1, 1] : "
     "(tensor<4x5xf64>) -> tensor<3x2xf64>",
     "3x2"},
    {"slice_strided", "5x4",
     "%r = nn.slice %0 starts [4, 0] sizes [3, 2] steps [-2, 3] : "
     "(tensor<5x4xf64>) -> tensor<3x2xf64>",
     "3x2"},
    {"slices_that_tile", "2x6",
     "%a = nn.slice %0 starts [0, 2] sizes [2, 4] steps [1, 1] : "
     "(tensor<2x6xf64>) -> tensor<2x4xf64> %b = nn.slice %0 starts [0, 0] "
     "sizes [2, 2] steps [1, 1] : (tensor<2x6xf64>) -> tensor<2x2xf64> %r = "
     "nn.concat %a, %b dim 1 : (tensor<2x4xf64>, tensor<2x2xf64>) -> "
     "tensor<2x6xf64>",
     "2x6"},
    {"slices_that_overlap", "2x6",
     "%a = nn.slice %0 starts [0, 0] sizes [2, 4] steps [1, 1] : "
     "(tensor<2x6xf64>) -> tensor<2x4xf64> %b = nn.slice %0 starts [0, 2] "
     "sizes [2, 4] steps [1, 1] : (tensor<2x6xf64>) -> tensor<2x4xf64> %r = "
     "nn.mul %a, %b : tensor<2x4xf64>",
     "2x4"},
    {"concat", "2x1 2x3",
     "%r = nn.concat %0, %1, %0 dim 1 : (tensor<2x1xf64>, tensor<2x3xf64>, "
     "tensor<2x1xf64>) -> tensor<2x5xf64>",
     "2x5"},
    {"pad", "2x3 1",
     "%v = nn.reshape %1 : (tensor<1xf64>) -> tensor<f64> %r = nn.pad %0, %v "
     "low [1, 0] high [0, 2] : (tensor<2x3xf64>, tensor<f64>) -> "
     "tensor<3x5xf64>",
     "3x5"},
    {"gather", "4x3",
     "%i = nn.constant dense<[[1, -1, 1]]> : tensor<1x3xi64> "
     "%r = nn.gather %0, %i dim 0 : (tensor<4x3xf64>, "
     "tensor<1x3xi64>) -> tensor<1x3x3xf64>",
     "1x3x3"},
    {"gather_columns", "2x4",
     "%i = nn.constant dense<[3, 0, 3]> : tensor<3xi64> %r = "
     "nn.gather %0, %i dim 1 : (tensor<2x4xf64>, tensor<3xi64>) -> "
     "tensor<2x3xf64>",
     "2x3"},
    {"scatter_add", "4x3 3x3",
     "%i = nn.constant dense<[1, 3, 1]> : tensor<3xi64> %r = "
     "nn.scatter_add %0, %i, %1 dim 0 : (tensor<4x3xf64>, tensor<3xi64>, "
     "tensor<3x3xf64>) -> tensor<4x3xf64>",
     "4x3"},
    {"softmax", "2x4", "%r = nn.softmax %0 dim 1 : tensor<2x4xf64>", "2x4"},
    {"log_softmax_middle", "2x4x3",
     "%r = nn.softmax %0 dim 1 {log} : (tensor<2x4x3xf64>) -> "
     "tensor<2x4x3xf64>",
     "2x4x3"},
    {"layer_norm", "3x4 4 4",
     "%r = nn.layer_norm %0, %1, %2 dim 1 epsilon 1.0e-2 : (tensor<3x4xf64>, "
     "tensor<4xf64>, tensor<4xf64>) -> tensor<3x4xf64>",
     "3x4"},
    {"layer_norm_two_dims", "2x3x4 3x4",
     "%r = nn.layer_norm %0, %1 dim 1 epsilon 1.0e-2 : (tensor<2x3x4xf64>, "
     "tensor<3x4xf64>) -> tensor<2x3x4xf64>",
     "2x3x4"},
    {"cross_entropy", "3x4",
     "%l = nn.constant dense<[2, -100, 0]> : tensor<3xi64> %r "
     "= nn.cross_entropy %0, %l : (tensor<3x4xf64>, tensor<3xi64>) -> "
     "tensor<3xf64>",
     "3"},
    ATTENTION("attention", "2x2x3x4", "2x2x5x4", "2x2x5x3",
              "dense<0.0> : tensor<f64>",
              "{scale = 0.4} : (tensor<2x2x3x4xf64>, tensor<2x2x5x4xf64>, "
              "tensor<2x2x5x3xf64>)",
              "2x2x3", "3"),
    ATTENTION("attention_causal_grouped", "1x4x3x2", "1x2x3x2", "1x2x3x2",
              "dense<0.0> : tensor<f64>",
              "{causal, scale = 0.4} : (tensor<1x4x3x2xf64>, "
              "tensor<1x2x3x2xf64>, tensor<1x2x3x2xf64>)",
              "1x4x3", "2"),
    ATTENTION("attention_float_mask", "1x2x2x2", "1x2x3x2", "1x2x3x2",
              "dense<[[[[0.5, -1.0, 2.0], [0.0, 0.3, -0.3]]]]> : "
              "tensor<1x1x2x3xf64>",
              "mask %m {scale = 1.0} : (tensor<1x2x2x2xf64>, "
              "tensor<1x2x3x2xf64>, tensor<1x2x3x2xf64>, "
              "tensor<1x1x2x3xf64>)",
              "1x2x2", "2"),
    {"attention_mask_gradient", "1x2x2x2 1x2x3x2 1x2x3x2 1x1x2x3",
     "%r:2 = nn.attention %0, %1, %2 mask %3 {scale = 0.7} : "
     "(tensor<1x2x2x2xf64>, tensor<1x2x3x2xf64>, tensor<1x2x3x2xf64>, "
     "tensor<1x1x2x3xf64>) -> (tensor<1x2x2x2xf64>, tensor<1x2x2xf64>)",
     "1x2x2x2"},
    ATTENTION("attention_masked_row", "1x1x2x2", "1x1x3x2", "1x1x3x2",
              "dense<[[[[false, false, false], [true, false, true]]]]> : "
              "tensor<1x1x2x3xi1>",
              "mask %m {scale = 1.0, zero_masked_rows} : "
              "(tensor<1x1x2x2xf64>, tensor<1x1x3x2xf64>, "
              "tensor<1x1x3x2xf64>, tensor<1x1x2x3xi1>)",
              "1x1x2", "2"),
    {"same_operand_twice", "2x3",
     "%s = nn.mul %0, %0 : (tensor<2x3xf64>, tensor<2x3xf64>) -> "
     "tensor<2x3xf64> "
     "%r = nn.sub %s, %0 : (tensor<2x3xf64>, tensor<2x3xf64>) -> "
     "tensor<2x3xf64> ",
     "2x3"},
    {"max_with_itself", "2x3",
     "%r = nn.max %0, %0 : (tensor<2x3xf64>, tensor<2x3xf64>) -> "
     "tensor<2x3xf64> ",
     "2x3"},
    {"clip", "2x3",
     "%lo = nn.constant dense<-1.0> : tensor<2x3xf64> "
     "%hi = nn.constant dense<1.5> : tensor<2x3xf64> "
     "%a = nn.max %0, %lo : (tensor<2x3xf64>, tensor<2x3xf64>) -> "
     "tensor<2x3xf64> "
     "%r = nn.min %a, %hi : (tensor<2x3xf64>, tensor<2x3xf64>) -> "
     "tensor<2x3xf64> ",
     "2x3"},
    {"pow_zero", "2x3",
     "%c = nn.constant dense<0.0> : tensor<2x3xf64> "
     "%q = nn.pow %0, %c : (tensor<2x3xf64>, tensor<2x3xf64>) -> "
     "tensor<2x3xf64> "
     "%r = nn.mul %q, %0 : (tensor<2x3xf64>, tensor<2x3xf64>) -> "
     "tensor<2x3xf64> ",
     "2x3"},
    {"pow_minus_one", "2x3",
     "%c = nn.constant dense<-1.0> : tensor<2x3xf64> "
     "%r = nn.pow %0, %c : (tensor<2x3xf64>, tensor<2x3xf64>) -> "
     "tensor<2x3xf64> ",
     "2x3", 0.5, 3},
    {"pow_each_its_own", "4",
     "%c = nn.constant dense<[2.0, 0.0, 3.0, 1.0]> : tensor<4xf64> "
     "%r = nn.pow %0, %c : tensor<4xf64> ",
     "4"},
    {"pow_of_constant", "4",
     "%c = nn.constant dense<[2.0, 0.5, 3.0, 0.0]> : tensor<4xf64> "
     "%r = nn.pow %c, %0 : tensor<4xf64> ",
     "4", 0.5, 3},
    {"select_by_comparison", "2x3 2x3",
     "%c = nn.compare gt %0, %1 : (tensor<2x3xf64>, tensor<2x3xf64>) -> "
     "tensor<2x3xi1> "
     "%s = nn.mul %0, %1 : (tensor<2x3xf64>, tensor<2x3xf64>) -> "
     "tensor<2x3xf64> "
     "%r = nn.select %c, %s, %1 : (tensor<2x3xi1>, tensor<2x3xf64>, "
     "tensor<2x3xf64>) -> tensor<2x3xf64> ",
     "2x3"},
    {"not_a_number_elsewhere", "2x3",
     "%l = nn.log %0 : tensor<2x3xf64> "
     "%n = nn.is_nan %l : tensor<2x3xf64> "
     "%e = nn.exp %0 : tensor<2x3xf64> "
     "%r = nn.select %n, %e, %0 : (tensor<2x3xi1>, tensor<2x3xf64>, "
     "tensor<2x3xf64>) -> tensor<2x3xf64> ",
     "2x3"},
    {"scalars", "1 1",
     "%a = nn.reshape %0 : (tensor<1xf64>) -> tensor<f64> "
     "%b = nn.reshape %1 : (tensor<1xf64>) -> tensor<f64> "
     "%m = nn.mul %a, %b : tensor<f64> "
     "%r = nn.broadcast %m : (tensor<f64>) -> tensor<3xf64> ",
     "3"},
    {"bias", "4x3 3",
     "%b = nn.broadcast %1 : (tensor<3xf64>) -> tensor<4x3xf64> "
     "%r = nn.add %0, %b : (tensor<4x3xf64>, tensor<4x3xf64>) -> "
     "tensor<4x3xf64> ",
     "4x3"},
    {"rows_divided_by_their_norm", "3x4",
     "%s = nn.mul %0, %0 : (tensor<3x4xf64>, tensor<3x4xf64>) -> "
     "tensor<3x4xf64> "
     "%n = nn.reduce sum %s dims [1] : (tensor<3x4xf64>) -> tensor<3xf64> "
     "%q = nn.sqrt %n : tensor<3xf64> "
     "%c = nn.reshape %q : (tensor<3xf64>) -> tensor<3x1xf64> "
     "%b = nn.broadcast %c : (tensor<3x1xf64>) -> tensor<3x4xf64> "
     "%r = nn.div %0, %b : (tensor<3x4xf64>, tensor<3x4xf64>) -> "
     "tensor<3x4xf64> ",
     "3x4"},
    {"matmul_gram", "3x4",
     "%r = nn.matmul %0, %0 {transpose_rhs} : (tensor<3x4xf64>, "
     "tensor<3x4xf64>) -> tensor<3x3xf64> ",
     "3x3"},
    {"matmul_rank_4", "2x2x3x2 2x2x3x4",
     "%r = nn.matmul %0, %1 {transpose_lhs} : (tensor<2x2x3x2xf64>, "
     "tensor<2x2x3x4xf64>) -> tensor<2x2x2x4xf64> ",
     "2x2x2x4"},
    {"mlp", "5x3 3x4 4 4x2",
     "%h = nn.matmul %0, %1 : (tensor<5x3xf64>, tensor<3x4xf64>) -> "
     "tensor<5x4xf64> "
     "%b = nn.broadcast %2 : (tensor<4xf64>) -> tensor<5x4xf64> "
     "%s = nn.add %h, %b : (tensor<5x4xf64>, tensor<5x4xf64>) -> "
     "tensor<5x4xf64> "
     "%g = nn.gelu tanh %s : tensor<5x4xf64> "
     "%r = nn.matmul %g, %3 : (tensor<5x4xf64>, tensor<4x2xf64>) -> "
     "tensor<5x2xf64> ",
     "5x2"},
    {"tied_table", "5x3",
     "%i = nn.constant dense<[[4, 0], [-1, 2]]> : tensor<2x2xi64> "
     "%e = nn.gather %0, %i dim 0 : (tensor<5x3xf64>, tensor<2x2xi64>) -> "
     "tensor<2x2x3xf64> "
     "%r = nn.matmul %e, %0 {transpose_rhs} : (tensor<2x2x3xf64>, "
     "tensor<5x3xf64>) -> tensor<2x2x5xf64> ",
     "2x2x5"},
    {"reduce_sum_all", "2x3",
     "%s = nn.reduce sum %0 dims [0, 1] : (tensor<2x3xf64>) -> tensor<f64> "
     "%r = nn.reshape %s : (tensor<f64>) -> tensor<1xf64> ",
     "1"},
    {"reduce_sum_of_nothing", "2x3",
     "%r = nn.reduce sum %0 dims [] : (tensor<2x3xf64>) -> tensor<2x3xf64> ",
     "2x3"},
    {"reduce_max_first", "3x2",
     "%r = nn.reduce max %0 dims [0] : (tensor<3x2xf64>) -> tensor<2xf64> ",
     "2"},
    {"reduce_max_shared", "3x1",
     "%b = nn.broadcast %0 : (tensor<3x1xf64>) -> tensor<3x4xf64> "
     "%r = nn.reduce max %b dims [1] : (tensor<3x4xf64>) -> tensor<3xf64> ",
     "3"},
    {"reduce_min_two", "2x3x4",
     "%r = nn.reduce min %0 dims [0, 2] : (tensor<2x3x4xf64>) -> "
     "tensor<3xf64> ",
     "3"},
    {"reduce_prod", "2x3x4",
     "%r = nn.reduce prod %0 dims [0, 2] : (tensor<2x3x4xf64>) -> "
     "tensor<3xf64> ",
     "3"},
    {"reduce_prod_with_zeros", "3x3",
     "%c = nn.constant dense<[[1.0, 0.0, 2.0], [0.0, 1.0, 0.0], [1.0, 1.0, "
     "1.0]]> : tensor<3x3xf64> "
     "%m = nn.mul %0, %c : (tensor<3x3xf64>, tensor<3x3xf64>) -> "
     "tensor<3x3xf64> "
     "%r = nn.reduce prod %m dims [1] : (tensor<3x3xf64>) -> tensor<3xf64> ",
     "3"},
    {"cumsum_exclusive", "2x3x2",
     "%r = nn.cumsum %0 dim 1 {exclusive} : (tensor<2x3x2xf64>) -> "
     "tensor<2x3x2xf64> ",
     "2x3x2"},
    {"cumsum_reverse", "4",
     "%r = nn.cumsum %0 dim 0 {reverse} : tensor<4xf64> ", "4"},
    {"transpose_swap", "2x3",
     "%r = nn.transpose %0 [1, 0] : (tensor<2x3xf64>) -> tensor<3x2xf64> ",
     "3x2"},
    {"transpose_heads", "2x3x2x4",
     "%r = nn.transpose %0 [0, 2, 1, 3] : (tensor<2x3x2x4xf64>) -> "
     "tensor<2x2x3x4xf64> ",
     "2x2x3x4"},
    {"broadcast_both", "1x3x1",
     "%r = nn.broadcast %0 : (tensor<1x3x1xf64>) -> tensor<2x4x3x2xf64> ",
     "2x4x3x2"},
    {"broadcast_nothing", "2x3",
     "%r = nn.broadcast %0 : (tensor<2x3xf64>) -> tensor<2x3xf64> ", "2x3"},
    {"slice_every_second", "7",
     "%r = nn.slice %0 starts [1] sizes [3] steps [2] : (tensor<7xf64>) -> "
     "tensor<3xf64> ",
     "3"},
    {"slice_every_second_from_the_end", "7x2",
     "%r = nn.slice %0 starts [6, 1] sizes [3, 2] steps [-3, -1] : "
     "(tensor<7x2xf64>) -> tensor<3x2xf64> ",
     "3x2"},
    {"slice_one_with_a_long_step", "5",
     "%r = nn.slice %0 starts [3] sizes [1] steps [9] : (tensor<5xf64>) -> "
     "tensor<1xf64> ",
     "1"},
    {"slice_all", "2x3",
     "%r = nn.slice %0 starts [0, 0] sizes [2, 3] steps [1, 1] : "
     "(tensor<2x3xf64>) -> tensor<2x3xf64> ",
     "2x3"},
    {"slice_of_rank_3", "3x4x5",
     "%r = nn.slice %0 starts [1, 0, 4] sizes [2, 2, 3] steps [1, 3, -2] : "
     "(tensor<3x4x5xf64>) -> tensor<2x2x3xf64> ",
     "2x2x3"},
    {"slices_and_the_whole", "2x4",
     "%a = nn.slice %0 starts [0, 0] sizes [2, 2] steps [1, 1] : "
     "(tensor<2x4xf64>) -> tensor<2x2xf64> "
     "%b = nn.slice %0 starts [0, 2] sizes [2, 2] steps [1, 1] : "
     "(tensor<2x4xf64>) -> tensor<2x2xf64> "
     "%m = nn.mul %a, %b : (tensor<2x2xf64>, tensor<2x2xf64>) -> "
     "tensor<2x2xf64> "
     "%c = nn.concat %m, %m dim 1 : (tensor<2x2xf64>, tensor<2x2xf64>) -> "
     "tensor<2x4xf64> "
     "%r = nn.mul %c, %0 : (tensor<2x4xf64>, tensor<2x4xf64>) -> "
     "tensor<2x4xf64> ",
     "2x4"},
    {"slices_reversed_that_tile", "4",
     "%a = nn.slice %0 starts [1] sizes [2] steps [-1] : (tensor<4xf64>) -> "
     "tensor<2xf64> "
     "%b = nn.slice %0 starts [2] sizes [2] steps [1] : (tensor<4xf64>) -> "
     "tensor<2xf64> "
     "%r = nn.mul %a, %b : tensor<2xf64> ",
     "2"},
    {"slices_with_a_gap", "5",
     "%a = nn.slice %0 starts [0] sizes [2] steps [1] : (tensor<5xf64>) -> "
     "tensor<2xf64> "
     "%b = nn.slice %0 starts [3] sizes [2] steps [1] : (tensor<5xf64>) -> "
     "tensor<2xf64> "
     "%r = nn.mul %a, %b : tensor<2xf64> ",
     "2"},
    {"slices_that_tile_twice", "4",
     "%a = nn.slice %0 starts [0] sizes [2] steps [1] : (tensor<4xf64>) -> "
     "tensor<2xf64> "
     "%b = nn.slice %0 starts [2] sizes [2] steps [1] : (tensor<4xf64>) -> "
     "tensor<2xf64> "
     "%c = nn.slice %0 starts [2] sizes [2] steps [1] : (tensor<4xf64>) -> "
     "tensor<2xf64> "
     "%m = nn.mul %a, %b : tensor<2xf64> "
     "%r = nn.mul %m, %c : tensor<2xf64> ",
     "2"},
    {"slices_of_two_dimensions", "4x4",
     "%a = nn.slice %0 starts [0, 0] sizes [2, 4] steps [1, 1] : "
     "(tensor<4x4xf64>) -> tensor<2x4xf64> "
     "%b = nn.slice %0 starts [0, 2] sizes [4, 2] steps [1, 1] : "
     "(tensor<4x4xf64>) -> tensor<4x2xf64> "
     "%t = nn.transpose %b [1, 0] : (tensor<4x2xf64>) -> tensor<2x4xf64> "
     "%r = nn.mul %a, %t : (tensor<2x4xf64>, tensor<2x4xf64>) -> "
     "tensor<2x4xf64> ",
     "2x4"},
    {"concat_one", "2x3",
     "%r = nn.concat %0 dim 0 : (tensor<2x3xf64>) -> tensor<2x3xf64> ", "2x3"},
    {"concat_middle", "2x1x2 2x3x2 2x2x2",
     "%r = nn.concat %0, %1, %2 dim 1 : (tensor<2x1x2xf64>, tensor<2x3x2xf64>, "
     "tensor<2x2x2xf64>) -> tensor<2x6x2xf64> ",
     "2x6x2"},
    {"pad_none", "2x3 1",
     "%v = nn.reshape %1 : (tensor<1xf64>) -> tensor<f64> "
     "%q = nn.pad %0, %v low [0, 0] high [0, 0] : (tensor<2x3xf64>, "
     "tensor<f64>) -> tensor<2x3xf64> "
     "%b = nn.broadcast %1 : (tensor<1xf64>) -> tensor<2x3xf64> "
     "%r = nn.mul %q, %b : (tensor<2x3xf64>, tensor<2x3xf64>) -> "
     "tensor<2x3xf64> ",
     "2x3"},
    {"pad_with_a_constant", "3",
     "%v = nn.constant dense<2.0> : tensor<f64> "
     "%r = nn.pad %0, %v low [2] high [1] : (tensor<3xf64>, tensor<f64>) -> "
     "tensor<6xf64> ",
     "6"},
    {"gather_one", "4x3",
     "%i = nn.constant dense<2> : tensor<i64> "
     "%r = nn.gather %0, %i dim 0 : (tensor<4x3xf64>, tensor<i64>) -> "
     "tensor<3xf64> ",
     "3"},
    {"gather_middle", "2x3x2",
     "%i = nn.constant dense<[[2, 0], [1, 2]]> : tensor<2x2xi32> "
     "%r = nn.gather %0, %i dim 1 : (tensor<2x3x2xf64>, tensor<2x2xi32>) -> "
     "tensor<2x2x2x2xf64> ",
     "2x2x2x2"},
    {"gather_nd_elements", "3x4",
     "%i = nn.constant dense<[[0, 1], [2, -1], [0, 1]]> : tensor<3x2xi64> "
     "%r = nn.gather_nd %0, %i : (tensor<3x4xf64>, tensor<3x2xi64>) -> "
     "tensor<3xf64> ",
     "3"},
    {"gather_nd_rows", "3x4x2",
     "%i = nn.constant dense<[[[2], [0]], [[-3], [0]]]> : tensor<2x2x1xi32> "
     "%r = nn.gather_nd %0, %i : (tensor<3x4x2xf64>, tensor<2x2x1xi32>) -> "
     "tensor<2x2x4x2xf64> ",
     "2x2x4x2"},
    {"gather_nd_of_batches", "2x3x4",
     "%i = nn.constant dense<[[[0, 1], [2, -1]], [[1, 1], [1, 1]]]> : "
     "tensor<2x2x2xi64> "
     "%r = nn.gather_nd %0, %i {batch_dims = 1 : i64} : (tensor<2x3x4xf64>, "
     "tensor<2x2x2xi64>) -> tensor<2x2xf64> ",
     "2x2"},
    {"scatter_add_columns", "2x3 2x4",
     "%i = nn.constant dense<[0, 2, 0, -1]> : tensor<4xi64> "
     "%r = nn.scatter_add %0, %i, %1 dim 1 : (tensor<2x3xf64>, tensor<4xi64>, "
     "tensor<2x4xf64>) -> tensor<2x3xf64> ",
     "2x3"},
    {"scatter_add_of_batches", "2x3x2 2x2x2x2",
     "%i = nn.constant dense<[[[0, 2], [0, -1]], [[1, 1], [1, 0]]]> : "
     "tensor<2x2x2xi64> %r = nn.scatter_add %0, %i, %1 dim 1 {batch_dims = 1 : "
     "i64} : (tensor<2x3x2xf64>, tensor<2x2x2xi64>, tensor<2x2x2x2xf64>) -> "
     "tensor<2x3x2xf64> ",
     "2x3x2"},
    {"softmax_first", "3x2", "%r = nn.softmax %0 dim 0 : tensor<3x2xf64> ",
     "3x2"},
    {"log_softmax", "2x4", "%r = nn.softmax %0 dim 1 {log} : tensor<2x4xf64> ",
     "2x4", -20, 20},
    {"layer_norm_last_of_3", "2x2x4 4 4",
     "%r = nn.layer_norm %0, %1, %2 dim 2 epsilon 1.0e-5 : (tensor<2x2x4xf64>, "
     "tensor<4xf64>, tensor<4xf64>) -> tensor<2x2x4xf64> ",
     "2x2x4"},
    {"layer_norm_whole", "4 4 4",
     "%r = nn.layer_norm %0, %1, %2 dim 0 epsilon 1.0e-5 : (tensor<4xf64>, "
     "tensor<4xf64>, tensor<4xf64>) -> tensor<4xf64> ",
     "4"},
    {"layer_norm_of_a_residual", "3x4 3x4 4",
     "%s = nn.add %0, %1 : (tensor<3x4xf64>, tensor<3x4xf64>) -> "
     "tensor<3x4xf64> "
     "%n = nn.layer_norm %s, %2 dim 1 epsilon 1.0e-5 : (tensor<3x4xf64>, "
     "tensor<4xf64>) -> tensor<3x4xf64> "
     "%r = nn.add %n, %s : (tensor<3x4xf64>, tensor<3x4xf64>) -> "
     "tensor<3x4xf64> ",
     "3x4"},
    {"cross_entropy_of_sequences", "2x2x3",
     "%l = nn.constant dense<[[2, 7], [0, 1]]> : tensor<2x2xi32> "
     "%r = nn.cross_entropy %0, %l {ignore_index = 7 : i64} : "
     "(tensor<2x2x3xf64>, tensor<2x2xi32>) -> tensor<2x2xf64> ",
     "2x2", -10, 10},
    {"cross_entropy_ignored_inside", "2x3",
     "%l = nn.constant dense<[2, 1]> : tensor<2xi64> "
     "%r = nn.cross_entropy %0, %l {ignore_index = 1 : i64} : "
     "(tensor<2x3xf64>, tensor<2xi64>) -> tensor<2xf64> ",
     "2"},
    {"attention_mask_wanted", "2x2x2x2 2x1x3x2 2x1x3x2 1x2x2x3",
     "%r:2 = nn.attention %0, %1, %2 mask %3 {scale = 0.7 : f64} : "
     "(tensor<2x2x2x2xf64>, tensor<2x1x3x2xf64>, tensor<2x1x3x2xf64>, "
     "tensor<1x2x2x3xf64>) -> (tensor<2x2x2x2xf64>, tensor<2x2x2xf64>) ",
     "2x2x2x2"},
    {"attention_mask_wanted_causal", "1x2x3x2 1x2x3x2 1x2x3x2 1x1x1x3",
     "%r:2 = nn.attention %0, %1, %2 mask %3 {causal, scale = 0.7 : f64} : "
     "(tensor<1x2x3x2xf64>, tensor<1x2x3x2xf64>, tensor<1x2x3x2xf64>, "
     "tensor<1x1x1x3xf64>) -> (tensor<1x2x3x2xf64>, tensor<1x2x3xf64>) ",
     "1x2x3x2"},
    {"attention_causal_with_a_past", "1x1x2x2 1x1x4x2 1x1x4x3",
     "%r:2 = nn.attention %0, %1, %2 {causal, row_offset = 2, scale = 0.7} : "
     "(tensor<1x1x2x2xf64>, tensor<1x1x4x2xf64>, tensor<1x1x4x3xf64>) -> "
     "(tensor<1x1x2x3xf64>, tensor<1x1x2xf64>) ",
     "1x1x2x3"},
    {"attention_causal_without_keys", "1x1x3x2 1x1x2x2 1x1x2x2",
     "%r:2 = nn.attention %0, %1, %2 {causal, column_offset = 1, scale = 0.7, "
     "zero_masked_rows} : (tensor<1x1x3x2xf64>, tensor<1x1x2x2xf64>, "
     "tensor<1x1x2x2xf64>) -> (tensor<1x1x3x2xf64>, tensor<1x1x3xf64>) ",
     "1x1x3x2"},
    {"attention_log_sum_exp", "1x4x3x2 1x2x4x2 1x2x4x3",
     "%a:2 = nn.attention %0, %1, %2 {causal, row_offset = 1, scale = 0.7} : "
     "(tensor<1x4x3x2xf64>, tensor<1x2x4x2xf64>, tensor<1x2x4x3xf64>) -> "
     "(tensor<1x4x3x3xf64>, tensor<1x4x3xf64>) "
     "%l = nn.reshape %a#1 : (tensor<1x4x3xf64>) -> tensor<1x4x3x1xf64> "
     "%w = nn.broadcast %l : (tensor<1x4x3x1xf64>) -> tensor<1x4x3x3xf64> "
     "%r = nn.mul %a#0, %w : (tensor<1x4x3x3xf64>, tensor<1x4x3x3xf64>) -> "
     "tensor<1x4x3x3xf64> ",
     "1x4x3x3"},
    {"attention_log_sum_exp_alone", "1x2x2x2 1x2x3x2",
     "%a:2 = nn.attention %0, %1, %1 {scale = 0.7} : (tensor<1x2x2x2xf64>, "
     "tensor<1x2x3x2xf64>, tensor<1x2x3x2xf64>) -> (tensor<1x2x2x2xf64>, "
     "tensor<1x2x2xf64>) "
     "%r = nn.sin %a#1 : tensor<1x2x2xf64> ",
     "1x2x2"},
    {"attention_log_sum_exp_mask_wanted", "1x2x2x2 1x2x3x2 1x2x3x2 1x1x2x3",
     "%a:2 = nn.attention %0, %1, %2 mask %3 {scale = 0.7} : "
     "(tensor<1x2x2x2xf64>, tensor<1x2x3x2xf64>, tensor<1x2x3x2xf64>, "
     "tensor<1x1x2x3xf64>) -> (tensor<1x2x2x2xf64>, tensor<1x2x2xf64>) "
     "%l = nn.reshape %a#1 : (tensor<1x2x2xf64>) -> tensor<1x2x2x1xf64> "
     "%w = nn.broadcast %l : (tensor<1x2x2x1xf64>) -> tensor<1x2x2x2xf64> "
     "%r = nn.mul %a#0, %w : (tensor<1x2x2x2xf64>, tensor<1x2x2x2xf64>) -> "
     "tensor<1x2x2x2xf64> ",
     "1x2x2x2"},
    {"attention_to_itself", "1x2x3x2",
     "%r:2 = nn.attention %0, %0, %0 {scale = 0.7 : f64} : "
     "(tensor<1x2x3x2xf64>, tensor<1x2x3x2xf64>, tensor<1x2x3x2xf64>) -> "
     "(tensor<1x2x3x2xf64>, tensor<1x2x3xf64>) ",
     "1x2x3x2"},
};

#undef UNARY
#undef BINARY
#undef MATMUL
#undef ATTENTION

} // namespace accel::test

#endif // ACCEL_TEST_UNIT_AUTODIFF_VJPCASES_H
