// Every vector-Jacobian product against central differences of the float64
// evaluator, one line per form of an op; and which ops have one at all.

#include "accel/Autodiff/Differentiate.h"
#include "accel/Evaluate/Interpreter.h"
#include "accel/InitAll.h"
#include "dialects/Interfaces/Differentiable.h"
#include "dialects/NN/NN.h"
#include "mlir/Parser/Parser.h"
#include "gtest/gtest.h"

#include <random>

using namespace mlir;
using namespace accel;

namespace {
struct OpCase {
  const char *name;
  const char *operands; ///< their types, which are all differentiated
  const char *body;     ///< ops on %0, %1…, the last of which defines %r
  const char *result;   ///< its type
  double low = -2, high = 2;
};

std::ostream &operator<<(std::ostream &stream, const OpCase &op) {
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
#define ATTENTION(NAME, Q, K, V, MASK, FLAGS, R)                               \
  {                                                                            \
    NAME, Q " " K " " V,                                                       \
        "%m = nn.constant " MASK " %r = nn.attention %0, %1, %2 " FLAGS        \
        " -> tensor<" R "xf64>",                                               \
        R                                                                      \
  }

const OpCase kOps[] = {
    UNARY("neg"),
    UNARY("abs"),
    UNARY("exp"),
    UNARY("log", 0.5, 3),
    UNARY("sqrt", 0.5, 3),
    UNARY("rsqrt", 0.5, 3),
    UNARY("reciprocal", 0.5, 3),
    UNARY("tanh"),
    UNARY("erf"),
    UNARY("sigmoid"),
    UNARY("relu"),
    UNARY("sin"),
    UNARY("cos"),
    UNARY("floor"),
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
     "%c = nn.constant dense<2.0> : tensor<2x3xf64> : tensor<2x3xf64> %r = "
     "nn.pow %0, %c : (tensor<2x3xf64>, tensor<2x3xf64>) -> tensor<2x3xf64>",
     "2x3"},
    {"cube", "2x3",
     "%c = nn.constant dense<3.0> : tensor<2x3xf64> : tensor<2x3xf64> %r = "
     "nn.pow %0, %c : (tensor<2x3xf64>, tensor<2x3xf64>) -> tensor<2x3xf64>",
     "2x3"},
    {"pow_constant", "2x3",
     "%c = nn.constant dense<1.5> : tensor<2x3xf64> : tensor<2x3xf64> %r = "
     "nn.pow %0, %c : (tensor<2x3xf64>, tensor<2x3xf64>) -> tensor<2x3xf64>",
     "2x3", 0.5, 3},
    {"select", "2x3 2x3",
     "%c = nn.constant dense<[[true, false, true], [false, false, true]]> : "
     "tensor<2x3xi1> : tensor<2x3xi1> %r = nn.select %c, %0, %1 : "
     "(tensor<2x3xi1>, tensor<2x3xf64>, tensor<2x3xf64>) -> tensor<2x3xf64>",
     "2x3"},
    {"cast_through_i64_is_flat", "2x3",
     "%i = nn.cast %0 : (tensor<2x3xf64>) -> tensor<2x3xi64> %f = nn.cast %i : "
     "(tensor<2x3xi64>) -> tensor<2x3xf64> %r = nn.mul %f, %0 : "
     "(tensor<2x3xf64>, tensor<2x3xf64>) -> tensor<2x3xf64>",
     "2x3", 0.6, 0.9},
    {"several_readers", "2x3",
     "%e = nn.exp %0 : (tensor<2x3xf64>) -> tensor<2x3xf64> %m = nn.mul %e, "
     "%0 : (tensor<2x3xf64>, tensor<2x3xf64>) -> tensor<2x3xf64> %r = nn.add "
     "%m, %0 : (tensor<2x3xf64>, tensor<2x3xf64>) -> tensor<2x3xf64>",
     "2x3"},
    MATMUL("matmul", "2x3", "3x4", "", "2x4"),
    MATMUL("matmul_nt", "2x3", "4x3", "{transpose_rhs}", "2x4"),
    MATMUL("matmul_tn", "3x2", "3x4", "{transpose_lhs}", "2x4"),
    MATMUL("matmul_tt", "3x2", "4x3", "{transpose_lhs, transpose_rhs}", "2x4"),
    MATMUL("matmul_batched", "2x2x3", "2x3x4", "", "2x2x4"),
    MATMUL("matmul_batched_tt", "2x3x2", "2x4x3",
           "{transpose_lhs, transpose_rhs}", "2x2x4"),
    MATMUL("matmul_shared", "2x2x3", "3x4", "", "2x2x4"),
    MATMUL("matmul_shared_nt", "2x5x2x3", "4x3", "{transpose_rhs}", "2x5x2x4"),
    MATMUL("matmul_shared_tn", "2x3x2", "3x4", "{transpose_lhs}", "2x2x4"),
    MATMUL("matmul_shared_tt", "2x3x2", "4x3", "{transpose_lhs, transpose_rhs}",
           "2x2x4"),
    {"reduce_sum", "2x3x4",
     "%r = nn.reduce sum %0 dims [0, 2] : (tensor<2x3x4xf64>) -> "
     "tensor<3xf64>",
     "3"},
    {"reduce_max", "2x3x4",
     "%r = nn.reduce max %0 dims [1] : (tensor<2x3x4xf64>) -> tensor<2x4xf64>",
     "2x4"},
    {"reduce_min", "2x3",
     "%s = nn.reduce min %0 dims [0, 1] : (tensor<2x3xf64>) -> tensor<f64> %r "
     "= nn.reshape %s : (tensor<f64>) -> tensor<1xf64>",
     "1"},
    {"cumsum", "2x4",
     "%r = nn.cumsum %0 dim 1 : (tensor<2x4xf64>) -> tensor<2x4xf64>", "2x4"},
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
     "nn.mul %a, %b : (tensor<2x4xf64>, tensor<2x4xf64>) -> tensor<2x4xf64>",
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
     "%i = nn.constant dense<[[1, -1, 1]]> : tensor<1x3xi64> : "
     "tensor<1x3xi64> %r = nn.gather %0, %i dim 0 : (tensor<4x3xf64>, "
     "tensor<1x3xi64>) -> tensor<1x3x3xf64>",
     "1x3x3"},
    {"gather_columns", "2x4",
     "%i = nn.constant dense<[3, 0, 3]> : tensor<3xi64> : tensor<3xi64> %r = "
     "nn.gather %0, %i dim 1 : (tensor<2x4xf64>, tensor<3xi64>) -> "
     "tensor<2x3xf64>",
     "2x3"},
    {"scatter_add", "4x3 3x3",
     "%i = nn.constant dense<[1, 3, 1]> : tensor<3xi64> : tensor<3xi64> %r = "
     "nn.scatter_add %0, %i, %1 dim 0 : (tensor<4x3xf64>, tensor<3xi64>, "
     "tensor<3x3xf64>) -> tensor<4x3xf64>",
     "4x3"},
    {"softmax", "2x4",
     "%r = nn.softmax %0 dim 1 : (tensor<2x4xf64>) -> tensor<2x4xf64>", "2x4"},
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
     "%l = nn.constant dense<[2, -100, 0]> : tensor<3xi64> : tensor<3xi64> %r "
     "= nn.cross_entropy %0, %l : (tensor<3x4xf64>, tensor<3xi64>) -> "
     "tensor<3xf64>",
     "3"},
    ATTENTION("attention", "2x2x3x4", "2x2x5x4", "2x2x5x3",
              "dense<0.0> : tensor<f64> : tensor<f64>",
              "{scale = 0.4} : (tensor<2x2x3x4xf64>, tensor<2x2x5x4xf64>, "
              "tensor<2x2x5x3xf64>)",
              "2x2x3x3"),
    ATTENTION("attention_causal_grouped", "1x4x3x2", "1x2x3x2", "1x2x3x2",
              "dense<0.0> : tensor<f64> : tensor<f64>",
              "{causal, scale = 0.4} : (tensor<1x4x3x2xf64>, "
              "tensor<1x2x3x2xf64>, tensor<1x2x3x2xf64>)",
              "1x4x3x2"),
    ATTENTION("attention_float_mask", "1x2x2x2", "1x2x3x2", "1x2x3x2",
              "dense<[[[[0.5, -1.0, 2.0], [0.0, 0.3, -0.3]]]]> : "
              "tensor<1x1x2x3xf64> : tensor<1x1x2x3xf64>",
              "mask %m {scale = 1.0} : (tensor<1x2x2x2xf64>, "
              "tensor<1x2x3x2xf64>, tensor<1x2x3x2xf64>, "
              "tensor<1x1x2x3xf64>)",
              "1x2x2x2"),
    {"attention_mask_gradient", "1x2x2x2 1x2x3x2 1x2x3x2 1x1x2x3",
     "%r = nn.attention %0, %1, %2 mask %3 {scale = 0.7} : "
     "(tensor<1x2x2x2xf64>, tensor<1x2x3x2xf64>, tensor<1x2x3x2xf64>, "
     "tensor<1x1x2x3xf64>) -> tensor<1x2x2x2xf64>",
     "1x2x2x2"},
    ATTENTION("attention_masked_row", "1x1x2x2", "1x1x3x2", "1x1x3x2",
              "dense<[[[[false, false, false], [true, false, true]]]]> : "
              "tensor<1x1x2x3xi1> : tensor<1x1x2x3xi1>",
              "mask %m {scale = 1.0, zero_masked_rows} : "
              "(tensor<1x1x2x2xf64>, tensor<1x1x3x2xf64>, "
              "tensor<1x1x3x2xf64>, tensor<1x1x2x3xi1>)",
              "1x1x2x2"),
};

DialectRegistry makeRegistry() {
  DialectRegistry registry;
  registerAllDialects(registry);
  return registry;
}

class Vjp : public ::testing::TestWithParam<OpCase> {
protected:
  Vjp() : context(makeRegistry()) { context.loadAllAvailableDialects(); }

  /// loss = Σ %r · weights, weights being the last argument.
  OwningOpRef<ModuleOp> parse(const OpCase &op) {
    SmallVector<StringRef> types;
    StringRef(op.operands).split(types, ' ');
    std::string text = "func.func @f(";
    for (auto [index, type] : llvm::enumerate(types))
      text += ("%" + Twine(index) + ": tensor<" + type + "xf64>, ").str();
    std::string result = "tensor<" + std::string(op.result) + "xf64>";
    size_t rank = StringRef(op.result).count('x') + 1;
    text += "%weights: " + result + ") -> tensor<f64> {\n" + op.body +
            "\n%p = nn.mul %r, %weights : (" + result + ", " + result +
            ") -> " + result + "\n%loss = nn.reduce sum %p dims [";
    for (size_t dim = 0; dim < rank; ++dim)
      text += (dim ? ", " : "") + std::to_string(dim);
    text +=
        "] : (" + result + ") -> tensor<f64>\nreturn %loss : tensor<f64>\n}\n";
    return parseSourceString<ModuleOp>(text, &context);
  }

  MLIRContext context;
};

TEST_P(Vjp, EqualsCentralDifferences) {
  const OpCase &op = GetParam();
  OwningOpRef<ModuleOp> forward = parse(op), both = parse(op);
  ASSERT_TRUE(forward && both);
  auto function = *both->getOps<func::FuncOp>().begin();
  auto exit = cast<func::ReturnOp>(function.front().getTerminator());
  OpBuilder builder(exit);
  ValueRange operands = function.getArguments().drop_back();
  FailureOr<SmallVector<Value>> gradients =
      autodiff::differentiate(builder, exit.getOperand(0), operands);
  ASSERT_TRUE(succeeded(gradients));
  for (auto [operand, gradient] : llvm::zip_equal(operands, *gradients)) {
    ASSERT_TRUE(gradient);
    ASSERT_EQ(gradient.getType(), operand.getType());
    exit.getOperandsMutable().append(gradient);
  }
  function.setFunctionType(builder.getFunctionType(function.getArgumentTypes(),
                                                   exit.getOperandTypes()));
  ASSERT_TRUE(succeeded(both->verify()));

  std::mt19937_64 random(7);
  std::uniform_real_distribution<double> uniform(op.low, op.high);
  evaluate::TensorsByName inputs, found;
  for (BlockArgument argument : function.getArguments()) {
    Tensor tensor(cast<RankedTensorType>(argument.getType()));
    for (double &element : tensor.mutableFloats())
      element = uniform(random);
    inputs["arg" + std::to_string(argument.getArgNumber())] = tensor;
  }
  ASSERT_TRUE(succeeded(evaluate::evaluateModule(*both, inputs, {}, found)));
  auto lossAt = [&](StringRef name, int64_t element, double delta) {
    Tensor &tensor = inputs[name];
    double &at = tensor.mutableFloats()[element], kept = at;
    at += delta;
    evaluate::TensorsByName outputs;
    EXPECT_TRUE(
        succeeded(evaluate::evaluateModule(*forward, inputs, {}, outputs)));
    tensor.mutableFloats()[element] = kept;
    return outputs["result0"].floats()[0];
  };
  const double step = 1e-5;
  for (size_t index = 0; index < operands.size(); ++index) {
    std::string name = "arg" + std::to_string(index);
    const Tensor &gradient = found["result" + std::to_string(index + 1)];
    for (int64_t i = 0; i < gradient.getNumElements(); ++i) {
      double expected =
          (lossAt(name, i, step) - lossAt(name, i, -step)) / (2 * step);
      EXPECT_NEAR(gradient.floats()[i], expected,
                  1e-6 * (1 + std::abs(expected)))
          << "operand " << index << ", element " << i;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Ops, Vjp, ::testing::ValuesIn(kOps), [](auto &info) {
  std::string name = info.param.name;
  std::replace(name.begin(), name.end(), ' ', '_');
  return name;
});

/// A rule without a line in the table is a rule that nobody has checked.
TEST(Differentiate, EveryRuleIsInTheTable) {
  MLIRContext context(makeRegistry());
  context.loadAllAvailableDialects();
  std::string bodies;
  for (const OpCase &op : kOps)
    bodies += op.body;
  int rules = 0;
  for (RegisteredOperationName name :
       context.getRegisteredOperationsByDialect("nn"))
    if (name.hasInterface<DifferentiableOpInterface>()) {
      ++rules;
      EXPECT_NE(bodies.find(name.getStringRef().str() + " "), std::string::npos)
          << name.getStringRef().str();
    }
  EXPECT_GE(rules, 35);
}

class Refusal : public ::testing::Test {
protected:
  Refusal() : context(makeRegistry()) { context.loadAllAvailableDialects(); }

  /// Differentiates the first result of the first function with respect to its
  /// first argument; gives the error.
  std::string differentiate(const char *text) {
    std::string message;
    ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) {
      message = diagnostic.str();
      return success();
    });
    OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(text, &context);
    EXPECT_TRUE(module);
    auto function = *module->getOps<func::FuncOp>().begin();
    Operation *exit = function.front().getTerminator();
    OpBuilder builder(exit);
    EXPECT_TRUE(failed(autodiff::differentiate(
        builder, exit->getOperand(0), function.getArguments().take_front(1))));
    return message;
  }

  MLIRContext context;
};

TEST_F(Refusal, NamesOpAndParameter) {
  EXPECT_EQ(differentiate(R"(
      nn.state @w : tensor<2xf64> {init = dense<1.0> : tensor<2xf64>}
      func.func @f(%w: tensor<2xf64> {nn.state = @w}, %i: tensor<1x1xi64>)
          -> tensor<1xf64> {
        %t = nn.exp %w : (tensor<2xf64>) -> tensor<2xf64>
        %r = nn.gather_nd %t, %i : (tensor<2xf64>, tensor<1x1xi64>)
          -> tensor<1xf64>
        return %r : tensor<1xf64>
      })"),
            "'nn.gather_nd' op has no gradient, on the way from the loss to "
            "parameter 'w'");
}

TEST_F(Refusal, Products) {
  EXPECT_EQ(differentiate(R"(
      func.func @f(%x: tensor<3xf64>) -> tensor<f64> {
        %r = nn.reduce prod %x dims [0] : (tensor<3xf64>) -> tensor<f64>
        return %r : tensor<f64>
      })"),
            "'nn.reduce' op has no gradient rule for 'prod', expected 'sum', "
            "'max' or 'min'");
}

} // namespace
