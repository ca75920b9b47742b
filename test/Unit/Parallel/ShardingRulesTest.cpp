// Every sharding rule, factor by factor: the op with that factor split over a
// mesh axis, placed, split and run on virtual ranks, gives what the whole op
// gives. Partial sums likewise, for every linear group. The proof, which knows
// none of these rules, accepts all of it.

#include "dialects/Accel/Accel.h"
#include "dialects/Interfaces/ShardingRule.h"
#include "dialects/NN/NN.h"
#include "lib/Driver/InitAll.h"
#include "lib/Equivalence/Equivalence.h"
#include "lib/Evaluate/Interpreter.h"
#include "lib/Parallel/Passes.h"
#include "lib/Tasks/Passes.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/ADT/StringSet.h"
#include "gtest/gtest.h"

using namespace mlir;
using namespace accel;

namespace {
/// A function with one nn op, at the names that failures are reported under.
struct OpCase {
  const char *name;
  const char *arguments; ///< "%0: tensor<…>, %1: …"
  const char *op;        ///< "%r = nn.op %0, …"
  /// Its type, or that of each of its results; or all their types.
  const char *result;
  int results = 1;
};

std::ostream &operator<<(std::ostream &stream, const OpCase &op) {
  return stream << op.name;
}

const OpCase kOps[] = {
    {"neg", "%0: tensor<4x6xf32>", "nn.neg %0 : tensor<4x6xf32>",
     "tensor<4x6xf32>"},
    {"exp", "%0: tensor<4x6xf32>", "nn.exp %0 : tensor<4x6xf32>",
     "tensor<4x6xf32>"},
    {"add", "%0: tensor<4x6xf32>, %1: tensor<4x6xf32>",
     "nn.add %0, %1 : tensor<4x6xf32>", "tensor<4x6xf32>"},
    {"sub", "%0: tensor<4x6xf32>, %1: tensor<4x6xf32>",
     "nn.sub %0, %1 : tensor<4x6xf32>", "tensor<4x6xf32>"},
    {"mul", "%0: tensor<4x6xf32>, %1: tensor<4x6xf32>",
     "nn.mul %0, %1 : tensor<4x6xf32>", "tensor<4x6xf32>"},
    {"div", "%0: tensor<4x6xf32>, %1: tensor<4x6xf32>",
     "nn.div %0, %1 : tensor<4x6xf32>", "tensor<4x6xf32>"},
    {"select", "%0: tensor<4x6xi1>, %1: tensor<4x6xf32>, %2: tensor<4x6xf32>",
     "nn.select %0, %1, %2 : (tensor<4x6xi1>, tensor<4x6xf32>, "
     "tensor<4x6xf32>) -> tensor<4x6xf32>",
     "tensor<4x6xf32>"},
    {"cast", "%0: tensor<4x6xf32>",
     "nn.cast %0 : (tensor<4x6xf32>) -> tensor<4x6xf16>", "tensor<4x6xf16>"},
    {"cast_wider", "%0: tensor<4x6xbf16>",
     "nn.cast %0 : (tensor<4x6xbf16>) -> tensor<4x6xf32>", "tensor<4x6xf32>"},
    {"abs", "%0: tensor<4x6xf32>", "nn.abs %0 : tensor<4x6xf32>",
     "tensor<4x6xf32>"},
    {"log", "%0: tensor<4x6xf32>", "nn.log %0 : tensor<4x6xf32>",
     "tensor<4x6xf32>"},
    {"log1p", "%0: tensor<4x6xf32>", "nn.log1p %0 : tensor<4x6xf32>",
     "tensor<4x6xf32>"},
    {"sqrt", "%0: tensor<4x6xf32>", "nn.sqrt %0 : tensor<4x6xf32>",
     "tensor<4x6xf32>"},
    {"rsqrt", "%0: tensor<4x6xf32>", "nn.rsqrt %0 : tensor<4x6xf32>",
     "tensor<4x6xf32>"},
    {"reciprocal", "%0: tensor<4x6xf32>", "nn.reciprocal %0 : tensor<4x6xf32>",
     "tensor<4x6xf32>"},
    {"tanh", "%0: tensor<4x6xf32>", "nn.tanh %0 : tensor<4x6xf32>",
     "tensor<4x6xf32>"},
    {"erf", "%0: tensor<4x6xf32>", "nn.erf %0 : tensor<4x6xf32>",
     "tensor<4x6xf32>"},
    {"sigmoid", "%0: tensor<4x6xf32>", "nn.sigmoid %0 : tensor<4x6xf32>",
     "tensor<4x6xf32>"},
    {"relu", "%0: tensor<4x6xf32>", "nn.relu %0 : tensor<4x6xf32>",
     "tensor<4x6xf32>"},
    {"sin", "%0: tensor<4x6xf32>", "nn.sin %0 : tensor<4x6xf32>",
     "tensor<4x6xf32>"},
    {"atan", "%0: tensor<4x6xf32>", "nn.atan %0 : tensor<4x6xf32>",
     "tensor<4x6xf32>"},
    {"bitcast", "%0: tensor<4x6xf32>",
     "nn.bitcast %0 : (tensor<4x6xf32>) -> tensor<4x6xi32>", "tensor<4x6xi32>"},
    {"cos", "%0: tensor<4x6xf32>", "nn.cos %0 : tensor<4x6xf32>",
     "tensor<4x6xf32>"},
    {"floor", "%0: tensor<4x6xf32>", "nn.floor %0 : tensor<4x6xf32>",
     "tensor<4x6xf32>"},
    {"round", "%0: tensor<4x6xf32>", "nn.round %0 : tensor<4x6xf32>",
     "tensor<4x6xf32>"},
    {"floor_power2", "%0: tensor<4x6xf32>",
     "nn.floor_power2 %0 : tensor<4x6xf32>", "tensor<4x6xf32>"},
    {"gelu", "%0: tensor<4x6xf32>", "nn.gelu erf %0 : tensor<4x6xf32>",
     "tensor<4x6xf32>"},
    {"is_nan", "%0: tensor<4x6xf32>", "nn.is_nan %0 : tensor<4x6xf32>",
     "tensor<4x6xi1>"},
    {"dynamic_encode", "%0: tensor<4x6xf32>",
     "nn.dynamic_encode %0 {is_signed} : (tensor<4x6xf32>) -> tensor<4x6xui8>",
     "tensor<4x6xui8>"},
    {"dynamic_decode", "%0: tensor<4x6xui8>",
     "nn.dynamic_decode %0 {is_signed} : (tensor<4x6xui8>) -> tensor<4x6xf32>",
     "tensor<4x6xf32>"},
    {"not", "%0: tensor<4x6xi1>", "nn.not %0 : tensor<4x6xi1>",
     "tensor<4x6xi1>"},
    {"mod", "%0: tensor<4x6xf32>, %1: tensor<4x6xf32>",
     "nn.mod %0, %1 : tensor<4x6xf32>", "tensor<4x6xf32>"},
    {"pow", "%0: tensor<4x6xf32>, %1: tensor<4x6xf32>",
     "nn.pow %0, %1 : tensor<4x6xf32>", "tensor<4x6xf32>"},
    {"min", "%0: tensor<4x6xf32>, %1: tensor<4x6xf32>",
     "nn.min %0, %1 : tensor<4x6xf32>", "tensor<4x6xf32>"},
    {"max", "%0: tensor<4x6xf32>, %1: tensor<4x6xf32>",
     "nn.max %0, %1 : tensor<4x6xf32>", "tensor<4x6xf32>"},
    {"and", "%0: tensor<4x6xi1>, %1: tensor<4x6xi1>",
     "nn.and %0, %1 : tensor<4x6xi1>", "tensor<4x6xi1>"},
    {"or", "%0: tensor<4x6xi1>, %1: tensor<4x6xi1>",
     "nn.or %0, %1 : tensor<4x6xi1>", "tensor<4x6xi1>"},
    {"compare", "%0: tensor<4x6xf32>, %1: tensor<4x6xf32>",
     "nn.compare lt %0, %1 : tensor<4x6xf32>", "tensor<4x6xi1>"},
    {"matmul", "%0: tensor<4x6xf32>, %1: tensor<6x8xf32>",
     "nn.matmul %0, %1 : (tensor<4x6xf32>, tensor<6x8xf32>) -> "
     "tensor<4x8xf32>",
     "tensor<4x8xf32>"},
    {"matmul_shared_rhs", "%0: tensor<2x4x6xf32>, %1: tensor<8x6xf32>",
     "nn.matmul %0, %1 {transpose_rhs} : (tensor<2x4x6xf32>, "
     "tensor<8x6xf32>) -> tensor<2x4x8xf32>",
     "tensor<2x4x8xf32>"},
    {"matmul_batched", "%0: tensor<2x6x4xf32>, %1: tensor<2x6x8xf32>",
     "nn.matmul %0, %1 {transpose_lhs} : (tensor<2x6x4xf32>, "
     "tensor<2x6x8xf32>) -> tensor<2x4x8xf32>",
     "tensor<2x4x8xf32>"},
    {"newton_schulz", "%0: tensor<2x4x6xf32>",
     "nn.newton_schulz %0 steps 2 coefficients [1.5, -0.5, 0.25] : "
     "tensor<2x4x6xf32>",
     "tensor<2x4x6xf32>"},
    {"grouped_matmul",
     "%0: tensor<8x6xf32>, %1: tensor<3x6x4xf32>, %2: tensor<8xi64>",
     "nn.grouped_matmul %0, %1, %2 : (tensor<8x6xf32>, tensor<3x6x4xf32>, "
     "tensor<8xi64>) -> tensor<8x4xf32>",
     "tensor<8x4xf32>"},
    {"grouped_matmul_nt",
     "%0: tensor<8x6xf32>, %1: tensor<3x4x6xf32>, %2: tensor<8xi64>",
     "nn.grouped_matmul %0, %1, %2 {transpose_rhs} : (tensor<8x6xf32>, "
     "tensor<3x4x6xf32>, tensor<8xi64>) -> tensor<8x4xf32>",
     "tensor<8x4xf32>"},
    {"grouped_matmul_grad",
     "%0: tensor<8x6xf32>, %1: tensor<8x4xf32>, %2: tensor<8xi64>",
     "nn.grouped_matmul_grad %0, %1, %2 num_groups 3 : (tensor<8x6xf32>, "
     "tensor<8x4xf32>, tensor<8xi64>) -> tensor<3x6x4xf32>",
     "tensor<3x6x4xf32>"},
    {"conv", "%0: tensor<4x6x5x5xf32>, %1: tensor<8x6x3x3xf32>",
     "nn.conv %0, %1 sizes [5, 5] strides [1, 1] dilations [1, 1] low [1, 1] : "
     "(tensor<4x6x5x5xf32>, tensor<8x6x3x3xf32>) -> tensor<4x8x5x5xf32>",
     "tensor<4x8x5x5xf32>"},
    {"conv_groups", "%0: tensor<4x2x6x5xf32>, %1: tensor<2x8x6x3xf32>",
     "nn.conv %0, %1 sizes [3] strides [2] dilations [1] low [1] : "
     "(tensor<4x2x6x5xf32>, tensor<2x8x6x3xf32>) -> tensor<4x2x8x3xf32>",
     "tensor<4x2x8x3xf32>"},
    {"conv_input_grad", "%0: tensor<4x8x5x5xf32>, %1: tensor<8x6x3x3xf32>",
     "nn.conv_input_grad %0, %1 sizes [5, 5] strides [1, 1] dilations [1, 1] "
     "low [1, 1] : "
     "(tensor<4x8x5x5xf32>, tensor<8x6x3x3xf32>) -> tensor<4x6x5x5xf32>",
     "tensor<4x6x5x5xf32>"},
    {"conv_input_grad_groups",
     "%0: tensor<4x2x8x3xf32>, %1: tensor<2x8x6x3xf32>",
     "nn.conv_input_grad %0, %1 sizes [5] strides [2] dilations [1] low [1] : "
     "(tensor<4x2x8x3xf32>, tensor<2x8x6x3xf32>) -> tensor<4x2x6x5xf32>",
     "tensor<4x2x6x5xf32>"},
    {"conv_weight_grad", "%0: tensor<4x6x5x5xf32>, %1: tensor<4x8x5x5xf32>",
     "nn.conv_weight_grad %0, %1 sizes [3, 3] strides [1, 1] dilations [1, 1] "
     "low [1, 1] : "
     "(tensor<4x6x5x5xf32>, tensor<4x8x5x5xf32>) -> tensor<8x6x3x3xf32>",
     "tensor<8x6x3x3xf32>"},
    {"conv_weight_grad_groups",
     "%0: tensor<4x2x6x5xf32>, %1: tensor<4x2x8x3xf32>",
     "nn.conv_weight_grad %0, %1 sizes [3] strides [2] dilations [1] low [1] : "
     "(tensor<4x2x6x5xf32>, tensor<4x2x8x3xf32>) -> tensor<2x8x6x3xf32>",
     "tensor<2x8x6x3xf32>"},
    {"top_k", "%0: tensor<4x2x6xf32>",
     "nn.top_k %0 k 3 : (tensor<4x2x6xf32>) -> tensor<4x2x3xi64>",
     "tensor<4x2x3xi64>"},
    {"reshape_merge", "%0: tensor<2x3x8xf32>",
     "nn.reshape %0 : (tensor<2x3x8xf32>) -> tensor<6x8xf32>",
     "tensor<6x8xf32>"},
    {"reshape_split", "%0: tensor<8x1x4xf32>",
     "nn.reshape %0 : (tensor<8x1x4xf32>) -> tensor<2x4x4xf32>",
     "tensor<2x4x4xf32>"},
    {"reshape_merge_all", "%0: tensor<2x2x4xf32>",
     "nn.reshape %0 : (tensor<2x2x4xf32>) -> tensor<16xf32>", "tensor<16xf32>"},
    {"reshape_unaligned", "%0: tensor<12x8x2xf32>",
     "nn.reshape %0 : (tensor<12x8x2xf32>) -> tensor<8x12x2xf32>",
     "tensor<8x12x2xf32>"},
    {"transpose", "%0: tensor<4x6x2xf32>",
     "nn.transpose %0 [2, 0, 1] : (tensor<4x6x2xf32>) -> tensor<2x4x6xf32>",
     "tensor<2x4x6xf32>"},
    {"broadcast", "%0: tensor<1x6xf32>",
     "nn.broadcast %0 : (tensor<1x6xf32>) -> tensor<2x4x6xf32>",
     "tensor<2x4x6xf32>"},
    {"slice", "%0: tensor<4x6xf32>",
     "nn.slice %0 starts [0, 1] sizes [4, 2] steps [1, 2] : "
     "(tensor<4x6xf32>) -> tensor<4x2xf32>",
     "tensor<4x2xf32>"},
    {"slice_reversed", "%0: tensor<4x6xf32>",
     "nn.slice %0 starts [3, 0] sizes [4, 6] steps [-1, 1] : "
     "(tensor<4x6xf32>) -> tensor<4x6xf32>",
     "tensor<4x6xf32>"},
    {"concat", "%0: tensor<4x6xf32>, %1: tensor<4x2xf32>",
     "nn.concat %0, %1 dim 1 : (tensor<4x6xf32>, tensor<4x2xf32>) -> "
     "tensor<4x8xf32>",
     "tensor<4x8xf32>"},
    {"pad", "%0: tensor<4x6xf32>, %1: tensor<f32>",
     "nn.pad %0, %1 low [0, 1] high [0, 1] : (tensor<4x6xf32>, tensor<f32>) "
     "-> tensor<4x8xf32>",
     "tensor<4x8xf32>"},
    {"gather_rows", "%0: tensor<8x6xf32>, %1: tensor<4x2xi64>",
     "nn.gather %0, %1 dim 0 : (tensor<8x6xf32>, tensor<4x2xi64>) -> "
     "tensor<4x2x6xf32>",
     "tensor<4x2x6xf32>"},
    {"gather_columns", "%0: tensor<4x6x2xf32>, %1: tensor<8xi64>",
     "nn.gather %0, %1 dim 1 : (tensor<4x6x2xf32>, tensor<8xi64>) -> "
     "tensor<4x8x2xf32>",
     "tensor<4x8x2xf32>"},
    {"scatter_add", "%0: tensor<4x2xi64>, %1: tensor<4x2x6xf32>",
     "nn.scatter_add %zero, %0, %1 dim 0 : (tensor<8x6xf32>, "
     "tensor<4x2xi64>, tensor<4x2x6xf32>) -> tensor<8x6xf32>",
     "tensor<8x6xf32>"},
    {"scatter_add_batches",
     "%0: tensor<4x2xi64>, %1: tensor<4x2x6xf32>, %2: tensor<4x8x6xf32>",
     "nn.scatter_add %2, %0, %1 dim 1 {batch_dims = 1 : i64} : "
     "(tensor<4x8x6xf32>, tensor<4x2xi64>, tensor<4x2x6xf32>) -> "
     "tensor<4x8x6xf32>",
     "tensor<4x8x6xf32>"},
    {"scatter_add_onto",
     "%0: tensor<8x6xf32>, %1: tensor<4xi64>, %2: tensor<4x6xf32>",
     "nn.scatter_add %0, %1, %2 dim 0 : (tensor<8x6xf32>, tensor<4xi64>, "
     "tensor<4x6xf32>) -> tensor<8x6xf32>",
     "tensor<8x6xf32>"},
    {"gradient", "%0: tensor<4x6xf32>",
     "nn.gradient %0 of @w : tensor<4x6xf32>", "tensor<4x6xf32>"},
    {"cut", "%0: tensor<4x6xf32>", "nn.cut %0 from 0 to 1 : tensor<4x6xf32>",
     "tensor<4x6xf32>"},
    {"complete", "%0: tensor<4x6xf32>", "nn.complete %0 : tensor<4x6xf32>",
     "tensor<4x6xf32>"},
    {"random_uniform", "%0: tensor<4x6xi64>, %1: tensor<4x6xi64>",
     "nn.random_uniform %0, %1 : (tensor<4x6xi64>, tensor<4x6xi64>) -> "
     "tensor<4x6xf32>",
     "tensor<4x6xf32>"},
    {"attention_grad",
     "%0: tensor<2x4x6x8xf32>, %1: tensor<2x4x6x8xf32>, %2: "
     "tensor<2x4x6x8xf32>, %3: tensor<2x4x6x8xf32>, %4: tensor<2x4x6xf32>, "
     "%5: tensor<2x4x6x8xf32>",
     "nn.attention_grad %0, %1, %2 output %3, %4 gradient %5 {scale = 0.5} : "
     "(tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>, "
     "tensor<2x4x6x8xf32>, tensor<2x4x6xf32>, tensor<2x4x6x8xf32>) -> "
     "(tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>)",
     "tensor<2x4x6x8xf32>", 3},
    {"attention_grad_of_log_sum_exp",
     "%0: tensor<2x4x2x2xf32>, %1: tensor<2x2x2x2xf32>, %2: "
     "tensor<2x4x2x2xf32>, %3: tensor<2x4x2xf32>, %4: tensor<2x1x1x2xi1>",
     "nn.attention_grad %0, %1, %1 output %2, %3 gradient %2, %3 mask %4 "
     "{causal, scale = 0.5} : (tensor<2x4x2x2xf32>, tensor<2x2x2x2xf32>, "
     "tensor<2x2x2x2xf32>, tensor<2x4x2x2xf32>, tensor<2x4x2xf32>, "
     "tensor<2x4x2x2xf32>, tensor<2x4x2xf32>, tensor<2x1x1x2xi1>) -> "
     "(tensor<2x4x2x2xf32>, tensor<2x2x2x2xf32>, tensor<2x2x2x2xf32>)",
     "tensor<2x4x2x2xf32>, tensor<2x2x2x2xf32>, tensor<2x2x2x2xf32>", 3},
    {"gather_nd", "%0: tensor<4x6x2xf32>, %1: tensor<4x8x1xi64>",
     "nn.gather_nd %0, %1 {batch_dims = 1} : (tensor<4x6x2xf32>, "
     "tensor<4x8x1xi64>) -> tensor<4x8x2xf32>",
     "tensor<4x8x2xf32>"},
    {"reduce_sum", "%0: tensor<4x6x2xf32>",
     "nn.reduce sum %0 dims [1] : (tensor<4x6x2xf32>) -> tensor<4x2xf32>",
     "tensor<4x2xf32>"},
    {"reduce_max", "%0: tensor<4x6x2xf32>",
     "nn.reduce max %0 dims [0, 1] : (tensor<4x6x2xf32>) -> tensor<2xf32>",
     "tensor<2xf32>"},
    {"reduce_min", "%0: tensor<4x6x2xf32>",
     "nn.reduce min %0 dims [2] : (tensor<4x6x2xf32>) -> tensor<4x6xf32>",
     "tensor<4x6xf32>"},
    {"reduce_prod", "%0: tensor<4x6x2xf32>",
     "nn.reduce prod %0 dims [1] : (tensor<4x6x2xf32>) -> tensor<4x2xf32>",
     "tensor<4x2xf32>"},
    {"cumsum", "%0: tensor<4x6xf32>", "nn.cumsum %0 dim 1 : tensor<4x6xf32>",
     "tensor<4x6xf32>"},
    {"softmax", "%0: tensor<4x6x2xf32>",
     "nn.softmax %0 dim 1 : tensor<4x6x2xf32>", "tensor<4x6x2xf32>"},
    {"layer_norm",
     "%0: tensor<4x2x6xf32>, %1: tensor<6xf32>, %2: tensor<6xf32>",
     "nn.layer_norm %0, %1, %2 dim 2 epsilon 1.0e-5 : (tensor<4x2x6xf32>, "
     "tensor<6xf32>, tensor<6xf32>) -> tensor<4x2x6xf32>",
     "tensor<4x2x6xf32>"},
    {"cross_entropy", "%0: tensor<4x2x6xf32>, %1: tensor<4x2xi64>",
     "nn.cross_entropy %0, %1 : (tensor<4x2x6xf32>, tensor<4x2xi64>) -> "
     "tensor<4x2xf32>",
     "tensor<4x2xf32>"},
    {"attention",
     "%0: tensor<2x4x6x8xf32>, %1: tensor<2x4x6x8xf32>, %2: "
     "tensor<2x4x6x8xf32>, %3: tensor<2x4x6x6xf32>",
     "nn.attention %0, %1, %2 mask %3 {scale = 0.5} : (tensor<2x4x6x8xf32>, "
     "tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>, tensor<2x4x6x6xf32>) -> "
     "(tensor<2x4x6x8xf32>, tensor<2x4x6xf32>)",
     "tensor<2x4x6x8xf32>, tensor<2x4x6xf32>", 2},
    {"attention_grouped_causal",
     "%0: tensor<2x4x2x8xf32>, %1: tensor<2x2x6x8xf32>, %2: "
     "tensor<2x2x6x4xf32>, %3: tensor<2x1x1x6xf32>",
     "nn.attention %0, %1, %2 mask %3 {causal, row_offset = 4, scale = 0.5} : "
     "(tensor<2x4x2x8xf32>, tensor<2x2x6x8xf32>, tensor<2x2x6x4xf32>, "
     "tensor<2x1x1x6xf32>) -> (tensor<2x4x2x4xf32>, tensor<2x4x2xf32>)",
     "tensor<2x4x2x4xf32>, tensor<2x4x2xf32>", 2},
    {"attention_grad_causal",
     "%0: tensor<2x4x4x8xf32>, %1: tensor<2x2x6x8xf32>, %2: "
     "tensor<2x2x6x4xf32>, %3: tensor<2x4x4x4xf32>, %4: tensor<2x4x4xf32>, "
     "%5: tensor<2x4x4x4xf32>, %6: tensor<2x4x4xf32>, %7: tensor<2x1x4x6xi1>",
     "nn.attention_grad %0, %1, %2 output %3, %4 gradient %5, %6 mask %7 "
     "{causal, row_offset = 2, scale = 0.5} : "
     "(tensor<2x4x4x8xf32>, tensor<2x2x6x8xf32>, tensor<2x2x6x4xf32>, "
     "tensor<2x4x4x4xf32>, tensor<2x4x4xf32>, tensor<2x4x4x4xf32>, "
     "tensor<2x4x4xf32>, tensor<2x1x4x6xi1>) -> (tensor<2x4x4x8xf32>, "
     "tensor<2x2x6x8xf32>, tensor<2x2x6x4xf32>)",
     "tensor<2x4x4x8xf32>, tensor<2x2x6x8xf32>, tensor<2x2x6x4xf32>", 3},
    {"constant", "",
     "nn.constant dense<[[1.0, 2.0], [3.0, 4.0]]> : tensor<2x2xf32>"
     "",
     "tensor<2x2xf32>"},
    {"constant_splat", "", "nn.constant dense<2.0> : tensor<4x2xf32>",
     "tensor<4x2xf32>"},
    {"iota", "", "nn.iota {dim = 1 : i64, start = 3 : i64} : tensor<4x6xf32>",
     "tensor<4x6xf32>"},
    {"iota_integer", "",
     "nn.iota {dim = 0 : i64, start = 0 : i64} : tensor<4x6xi64>",
     "tensor<4x6xi64>"},
};

class ShardingRulesTest : public ::testing::TestWithParam<OpCase> {
protected:
  static MLIRContext &context() {
    static MLIRContext *instance = [] {
      DialectRegistry registry;
      registerAllDialects(registry);
      auto *context = new MLIRContext(registry);
      context->loadAllAvailableDialects();
      context->disableMultithreading();
      return context;
    }();
    return *instance;
  }

  /// The case as a module, with a mesh of three axes of two.
  OwningOpRef<ModuleOp> parse() {
    const OpCase &op = GetParam();
    std::string types = op.result, values = "%r#0";
    bool areAlike = !StringRef(op.result).contains(", ");
    for (int result = 1; result < op.results; ++result) {
      if (areAlike)
        types += std::string(", ") + op.result;
      values += ", %r#" + std::to_string(result);
    }
    std::string text =
        std::string("dist.mesh @mesh [\"a\" = 2, \"b\" = 2, \"c\" = 2]\n"
                    "nn.state @w : tensor<4x6xf32> = dense<0.0>\n"
                    "func.func @main(") +
        op.arguments + ") -> (" + types +
        ") attributes {nn.entry} {\n  %zero = nn.constant dense<0.0> : "
        "tensor<8x6xf32>\n  %r:" +
        std::to_string(op.results) + " = " + op.op + "\n  return " + values +
        " : " + types + "\n}\n";
    return parseSourceString<ModuleOp>(text, &context());
  }
  /// Names that tasks and the proof know arguments and results by.
  static void name(func::FuncOp main) {
    Builder builder(&context());
    for (unsigned index = 0; index < main.getNumArguments(); ++index)
      main.setArgAttr(index, nn::kInputAttr,
                      builder.getStringAttr("arg" + std::to_string(index)));
    for (unsigned index = 0; index < main.getNumResults(); ++index)
      main.setResultAttr(
          index, nn::kOutputAttr,
          builder.getStringAttr("result" + std::to_string(index)));
  }
  static func::FuncOp mainOf(ModuleOp module) {
    return *module.getOps<func::FuncOp>().begin();
  }
  static Operation *opOf(ModuleOp module) {
    Operation *found = nullptr;
    mainOf(module).walk([&](Operation *op) {
      if (op->getDialect()->getNamespace() == "nn")
        found = op;
    });
    return found;
  }
  static dist::AxesAttr axesAttr(ArrayRef<char> axes) {
    SmallVector<StringAttr> names;
    for (char axis : axes)
      names.push_back(StringAttr::get(&context(), StringRef(&axis, 1)));
    return dist::AxesAttr::get(&context(), names, false);
  }

  using FactorAxes = std::vector<std::string>; ///< letters of axes per factor

  dist::ShardingAttr shardingOf(const ShardingRule::Tensor &tensor,
                                const FactorAxes &factors) {
    SmallVector<dist::AxesAttr> dims;
    for (const ShardingRule::Dim &dim : tensor) {
      std::string letters;
      for (unsigned factor : dim)
        letters += factors[factor];
      dims.push_back(axesAttr(ArrayRef(letters.data(), letters.size())));
    }
    return dist::ShardingAttr::get(
        &context(), FlatSymbolRefAttr::get(&context(), "mesh"), dims);
  }

  static Value constrain(OpBuilder &builder, Value value,
                         dist::ShardingAttr sharding) {
    return dist::ConstraintOp::create(builder, value.getLoc(), value, sharding);
  }

  /// Places, splits and evaluates a module with constraints. `place` is looked
  /// at between the two.
  void check(ModuleOp original, ModuleOp constrained,
             llvm::function_ref<void(ModuleOp)> look) {
    auto inputs = evaluate::makeRandomInputs(original, 7);
    ASSERT_TRUE(succeeded(inputs));
    evaluate::TensorsByName expected, placed, split;
    evaluate::InterpreterOptions options;
    ASSERT_TRUE(succeeded(
        evaluate::evaluateModule(original, *inputs, options, expected)));

    PassManager place(&context());
    parallel::buildPlacePipeline(place, {});
    ASSERT_TRUE(succeeded(place.run(constrained)));
    look(constrained);
    ASSERT_TRUE(succeeded(
        evaluate::evaluateModule(constrained, *inputs, options, placed)));
    name(mainOf(constrained));
    OwningOpRef<ModuleOp> logical(constrained.clone());
    // Nothing else than the default.
    constrained->setAttr(kDecisionsAttr, DictionaryAttr::get(&context()));
    PassManager localize(&context());
    parallel::buildSplitPipeline(localize);
    localize.addPass(tasks::createSplitTasksPass());
    ASSERT_TRUE(succeeded(localize.run(constrained)));
    EXPECT_TRUE(
        succeeded(equivalence::verifyEquivalence(*logical, constrained)));
    ASSERT_TRUE(succeeded(
        evaluate::evaluateModule(constrained, *inputs, options, split)));
    for (auto &[name, tensor] : expected) {
      EXPECT_LE(evaluate::getMaxDifference(placed[name], tensor), 1e-12);
      EXPECT_LE(evaluate::getMaxDifference(split[name], tensor), 1e-12);
    }
  }
};
} // namespace

TEST_P(ShardingRulesTest, EveryFactorSplits) {
  auto original = parse();
  ASSERT_TRUE(original);
  ShardingRule rule =
      cast<ShardingRuleOpInterface>(opOf(*original)).getShardingRule();
  int tried = 0;
  for (unsigned factor = 0; factor < rule.factors.size(); ++factor) {
    if (rule.factors[factor].size % 2 != 0)
      continue;
    // Factors before it in a dimension must be split completely: sizes of two.
    FactorAxes axes(rule.factors.size());
    std::string spare = "cb";
    axes[factor] = "a";
    bool possible = true;
    for (auto *tensors : {&rule.operands, &rule.results})
      for (const ShardingRule::Tensor &tensor : *tensors)
        for (const ShardingRule::Dim &dim : tensor) {
          if (!llvm::is_contained(dim, factor))
            continue;
          for (unsigned before : dim) {
            if (before == factor)
              break;
            if (!axes[before].empty() || rule.factors[before].size == 1)
              continue;
            possible &= rule.factors[before].size == 2 && !spare.empty();
            if (possible) {
              axes[before] = spare.substr(0, 1);
              spare.erase(0, 1);
            }
          }
        }
    if (!possible)
      continue;
    ++tried;
    SCOPED_TRACE("factor " + std::to_string(factor));
    OwningOpRef<ModuleOp> module = original->clone();
    Operation *op = opOf(*module);
    OpBuilder builder(op);
    for (auto [index, tensor] : llvm::enumerate(rule.operands))
      op->setOperand(index, constrain(builder, op->getOperand(index),
                                      shardingOf(tensor, axes)));
    builder.setInsertionPointAfter(op);
    Value result =
        constrain(builder, op->getResult(0), shardingOf(rule.results[0], axes));
    op->getResult(0).replaceAllUsesExcept(result, result.getDefiningOp());
    check(*original, *module, [&](ModuleOp placed) {
      // The op itself is split: nothing is resharded on its way in.
      for (Value operand : opOf(placed)->getOperands())
        EXPECT_FALSE(operand.getDefiningOp<dist::ReshardOp>());
      auto sharding =
          dist::ShardingAttr::of(opOf(placed)->getResult(0).getType());
      FactorKind kind = rule.factors[factor].kind;
      bool reduced =
          kind != FactorKind::PassThrough && kind != FactorKind::Inside &&
          llvm::none_of(rule.results[0], [&](const ShardingRule::Dim &dim) {
            return llvm::is_contained(dim, factor);
          });
      EXPECT_EQ(sharding.isPartial(), reduced);
    });
    if (HasFatalFailure())
      return;
  }
  EXPECT_GT(tried, 0);
}

TEST(ShardingRules, EveryOpWithARuleHasACase) {
  llvm::StringSet<> tried;
  for (const OpCase &op : kOps)
    tried.insert(StringRef(op.op).split(' ').first);
  int rules = 0;
  DialectRegistry registry;
  registerAllDialects(registry);
  MLIRContext context(registry);
  context.loadAllAvailableDialects();
  for (RegisteredOperationName name : context.getRegisteredOperations()) {
    if (!name.hasInterface<ShardingRuleOpInterface>())
      continue;
    ++rules;
    EXPECT_TRUE(tried.contains(name.getStringRef()))
        << name.getStringRef().str() << " has a rule, and no case in kOps";
  }
  EXPECT_GT(rules, 40);
}

TEST_P(ShardingRulesTest, EveryLinearGroupPassesPartialSums) {
  auto original = parse();
  ASSERT_TRUE(original);
  Operation *op = opOf(*original);
  ShardingRule rule = cast<ShardingRuleOpInterface>(op).getShardingRule();
  // Every set of operands: partial sums pass exactly where a group says so, and
  // are reduced before the op otherwise.
  for (unsigned set = 1; set < (1u << op->getNumOperands()); ++set) {
    SmallVector<unsigned, 2> group;
    bool floats = true;
    for (unsigned operand = 0; operand < op->getNumOperands(); ++operand)
      if (set & (1u << operand)) {
        group.push_back(operand);
        floats &= isa<FloatType>(getElementTypeOrSelf(op->getOperand(operand)));
      }
    if (!floats)
      continue;
    SCOPED_TRACE("operands " + std::to_string(set));
    // main(…, 2 x T, …): the operand is the sum over the leading dimension.
    OwningOpRef<ModuleOp> summed = original->clone();
    func::FuncOp main = mainOf(*summed);
    Operation *inner = opOf(*summed);
    OpBuilder builder(inner);
    SmallVector<Value> sources;
    for (unsigned operand : group) {
      auto type = cast<RankedTensorType>(inner->getOperand(operand).getType());
      SmallVector<int64_t> shape = {2};
      llvm::append_range(shape, type.getShape());
      Value source = main.front().addArgument(
          RankedTensorType::get(shape, type.getElementType()), inner->getLoc());
      sources.push_back(source);
      inner->setOperand(operand,
                        nn::ReduceOp::create(builder, inner->getLoc(), type,
                                             nn::ReductionKind::sum, source,
                                             ArrayRef<int64_t>{0}));
    }
    main.setFunctionType(
        FunctionType::get(&context(), main.front().getArgumentTypes(),
                          main.getFunctionType().getResults()));
    OwningOpRef<ModuleOp> module = summed->clone();
    builder.setInsertionPointToStart(&mainOf(*module).front());
    for (BlockArgument argument : mainOf(*module).getArguments()) {
      SmallVector<dist::AxesAttr> dims(
          cast<RankedTensorType>(argument.getType()).getRank(), axesAttr({}));
      if (argument.getArgNumber() >=
          mainOf(*module).getNumArguments() - group.size())
        dims[0] = axesAttr({'a'});
      Value constrained = constrain(
          builder, argument,
          dist::ShardingAttr::get(
              &context(), FlatSymbolRefAttr::get(&context(), "mesh"), dims));
      argument.replaceAllUsesExcept(constrained, constrained.getDefiningOp());
    }
    check(*summed, *module, [&](ModuleOp placed) {
      auto sharding =
          dist::ShardingAttr::of(opOf(placed)->getResult(0).getType());
      EXPECT_EQ(sharding.isPartial(),
                llvm::is_contained(rule.linearGroups, group));
    });
    if (HasFatalFailure())
      return;
  }
}

INSTANTIATE_TEST_SUITE_P(Ops, ShardingRulesTest, ::testing::ValuesIn(kOps),
                         [](const auto &info) {
                           return std::string(info.param.name);
                         });
