// Every vector-Jacobian product of the table (VjpCases.h) against central
// differences of the float64 evaluator; and which ops have one at all.

#include "lib/Autodiff/Differentiate.h"
#include "AttentionRectangles.h"
#include "VjpCases.h"
#include "dialects/Interfaces/Differentiable.h"
#include "dialects/NN/NN.h"
#include "lib/Driver/InitAll.h"
#include "lib/Evaluate/Interpreter.h"
#include "mlir/Parser/Parser.h"
#include "gtest/gtest.h"

#include <random>

using namespace mlir;
using namespace accel;
using namespace accel::test;

namespace {
/// Numbers of the case's range for every argument.
evaluate::TensorsByName makeInputs(func::FuncOp function, const VjpCase &op,
                                   unsigned seed) {
  std::mt19937_64 random(seed);
  std::uniform_real_distribution<double> uniform(op.low, op.high);
  evaluate::TensorsByName inputs;
  for (BlockArgument argument : function.getArguments()) {
    Tensor tensor(cast<RankedTensorType>(argument.getType()));
    for (double &element : tensor.mutableFloats())
      element = uniform(random);
    inputs["arg" + std::to_string(argument.getArgNumber())] = tensor;
  }
  return inputs;
}

DialectRegistry makeRegistry() {
  DialectRegistry registry;
  registerAllDialects(registry);
  return registry;
}

class Vjp : public ::testing::TestWithParam<VjpCase> {
protected:
  Vjp() : context(makeRegistry()) { context.loadAllAvailableDialects(); }

  /// loss = Σ %r · weights, weights being the last argument.
  OwningOpRef<ModuleOp> parse(const VjpCase &op) {
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
  const VjpCase &op = GetParam();
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

  evaluate::TensorsByName inputs = makeInputs(function, op, /*seed=*/7), found;
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

/// What is asked of one operand does not depend on what is asked of others.
TEST_P(Vjp, OfOneOperandIsThatOfAll) {
  OwningOpRef<ModuleOp> all = parse(GetParam());
  ASSERT_TRUE(all);
  auto gradientsOf = [&](ModuleOp module, std::optional<size_t> only) {
    auto function = *module.getOps<func::FuncOp>().begin();
    auto exit = cast<func::ReturnOp>(function.front().getTerminator());
    OpBuilder builder(exit);
    ValueRange wrt = function.getArguments().drop_back();
    if (only)
      wrt = wrt.slice(*only, 1);
    auto gradients = autodiff::differentiate(builder, exit.getOperand(0), wrt);
    EXPECT_TRUE(succeeded(gradients));
    exit->setOperands(*gradients);
    function.setFunctionType(builder.getFunctionType(
        function.getArgumentTypes(), exit.getOperandTypes()));
    std::mt19937_64 random(11);
    std::uniform_real_distribution<double> uniform(GetParam().low,
                                                   GetParam().high);
    evaluate::TensorsByName inputs, found;
    for (BlockArgument argument : function.getArguments()) {
      Tensor tensor(cast<RankedTensorType>(argument.getType()));
      for (double &element : tensor.mutableFloats())
        element = uniform(random);
      inputs["arg" + std::to_string(argument.getArgNumber())] = tensor;
    }
    EXPECT_TRUE(succeeded(evaluate::evaluateModule(module, inputs, {}, found)));
    return found;
  };
  auto function = *all->getOps<func::FuncOp>().begin();
  size_t operands = function.getNumArguments() - 1;
  evaluate::TensorsByName joint = gradientsOf(*all, {});
  for (size_t index = 0; operands > 1 && index < operands; ++index) {
    OwningOpRef<ModuleOp> one = parse(GetParam());
    Tensor alone = gradientsOf(*one, index)["result0"];
    const Tensor &among = joint["result" + std::to_string(index)];
    for (int64_t i = 0; i < among.getNumElements(); ++i)
      EXPECT_NEAR(alone.floats()[i], among.floats()[i],
                  1e-12 * (1 + std::abs(among.floats()[i])))
          << "operand " << index << ", element " << i;
  }
}

INSTANTIATE_TEST_SUITE_P(Ops, Vjp, ::testing::ValuesIn(kVjpCases),
                         [](auto &info) {
                           std::string name = info.param.name;
                           std::replace(name.begin(), name.end(), ' ', '_');
                           return name;
                         });

/// Attention of rectangles of scores, combined: each against differences, and
/// against the whole.
INSTANTIATE_TEST_SUITE_P(Attention, Vjp,
                         ::testing::ValuesIn(attentionRectangles()),
                         [](auto &info) { return info.param.name; });

class Rectangles : public Vjp {
protected:
  /// Result and gradients of a case.
  evaluate::TensorsByName evaluateAll(const VjpCase &op) {
    OwningOpRef<ModuleOp> module = parse(op);
    auto function = *module->getOps<func::FuncOp>().begin();
    auto exit = cast<func::ReturnOp>(function.front().getTerminator());
    OpBuilder builder(exit);
    auto gradients = autodiff::differentiate(
        builder, exit.getOperand(0), function.getArguments().drop_back());
    EXPECT_TRUE(succeeded(gradients));
    Value product = exit.getOperand(0).getDefiningOp()->getOperand(0);
    SmallVector<Value> results{product.getDefiningOp()->getOperand(0)};
    llvm::append_range(results, *gradients);
    exit->setOperands(results);
    function.setFunctionType(builder.getFunctionType(
        function.getArgumentTypes(), exit.getOperandTypes()));
    evaluate::TensorsByName inputs = makeInputs(function, op, /*seed=*/5),
                            found;
    EXPECT_TRUE(
        succeeded(evaluate::evaluateModule(*module, inputs, {}, found)));
    return found;
  }
};

TEST_P(Rectangles, AreTheWhole) {
  std::string name = GetParam().name;
  std::vector<VjpCase> all = attentionRectangles();
  auto whole = llvm::find_if(all, [&](const VjpCase &op) {
    return op.name == name.substr(0, name.size() - 1) + "1";
  });
  ASSERT_NE(whole, all.end());
  evaluate::TensorsByName expected = evaluateAll(*whole),
                          found = evaluateAll(GetParam());
  ASSERT_EQ(found.size(), 4u);
  for (auto &[output, tensor] : expected)
    EXPECT_LE(evaluate::getMaxDifference(found[output], tensor), 1e-12)
        << output.str();
}

INSTANTIATE_TEST_SUITE_P(Attention, Rectangles,
                         ::testing::ValuesIn(attentionRectangles()),
                         [](auto &info) { return info.param.name; });

/// A rule without a line in the table is a rule that nobody has checked. What
/// stops gradients has none that differences could see: its test is
/// test/Autodiff/stop-gradient.mlir.
TEST(Differentiate, EveryRuleIsInTheTable) {
  MLIRContext context(makeRegistry());
  context.loadAllAvailableDialects();
  std::string bodies;
  for (const VjpCase &op : kVjpCases)
    bodies += op.body;
  int rules = 0;
  for (RegisteredOperationName name :
       context.getRegisteredOperationsByDialect("nn"))
    if (name.hasInterface<DifferentiableOpInterface>() &&
        name.getStringRef() != "nn.stop_gradient") {
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
      nn.state @w : tensor<1xf64> = dense<1.0>
      func.func @f(%w: tensor<1xf64> {nn.state = @w}) -> tensor<1xf64> {
        %t = nn.exp %w : tensor<1xf64>
        %r = nn.dropout %t ratio 0.5 site 0 : tensor<1xf64>
        return %r : tensor<1xf64>
      })"),
            "'nn.dropout' op has no gradient, on the way from the loss to "
            "parameter 'w'");
}
} // namespace
