// Helpers of the tests of the Evaluate models: one op written as text, operands
// as lists of numbers.

#ifndef ACCEL_TEST_UNIT_EVALUATE_RULES_H
#define ACCEL_TEST_UNIT_EVALUATE_RULES_H

#include "dialects/Interfaces/Evaluate.h"
#include "dialects/NN/NN.h"
#include "lib/Evaluate/Models.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/Parser/Parser.h"
#include "gmock/gmock.h"
#include <cmath>

namespace accel::test {

using List = std::vector<double>;

inline Tensor makeTensor(mlir::RankedTensorType type, const List &values) {
  Tensor tensor(type);
  EXPECT_EQ(static_cast<size_t>(tensor.getNumElements()), values.size());
  for (size_t i = 0; i < values.size(); ++i)
    if (tensor.isFloat())
      tensor.mutableFloats()[i] = values[i];
    else
      tensor.mutableInts()[i] = static_cast<int64_t>(values[i]);
  return tensor;
}

inline List listOf(const Tensor &tensor) {
  List list;
  for (int64_t i = 0; i < tensor.getNumElements(); ++i)
    list.push_back(tensor.asDouble(i));
  return list;
}

class RulesTest : public ::testing::Test {
protected:
  RulesTest() {
    mlir::DialectRegistry registry;
    registry.insert<nn::NNDialect, mlir::func::FuncDialect>();
    evaluate::registerEvaluateModels(registry);
    context.appendDialectRegistry(registry);
    context.loadAllAvailableDialects();
  }

  /// Evaluates `text`, one op whose operands %0, %1… have the types of
  /// `operands`, as in evaluate("nn.neg %0", {{"2xf32", {1, 2}}}, "2xf32").
  /// An error's message is in `message`; the results of an op of several, whose
  /// types are separated by ';', are in `all`.
  List evaluate(llvm::StringRef text,
                std::vector<std::pair<std::string, List>> operands,
                llvm::StringRef resultType,
                EvaluationMode mode = EvaluationMode::Float64) {
    std::string types, arguments;
    for (size_t i = 0; i < operands.size(); ++i) {
      std::string separator = i ? ", " : "";
      types += separator + "tensor<" + operands[i].first + ">";
      arguments += separator + "%" + std::to_string(i) + ": tensor<" +
                   operands[i].first + ">";
    }
    bool leaf = operands.empty();
    llvm::SmallVector<llvm::StringRef> resultTypes;
    resultType.split(resultTypes, ';');
    std::string resultText;
    for (llvm::StringRef type : resultTypes)
      resultText +=
          (resultText.empty() ? "tensor<" : ", tensor<") + type.str() + ">";
    if (resultTypes.size() > 1)
      resultText = "(" + resultText + ")";
    std::string source = "func.func @f(" + arguments +
                         ") {\n  %r:" + std::to_string(resultTypes.size()) +
                         " = " + text.str() + " : " +
                         (leaf ? "" : "(" + types + ") -> ") + resultText +
                         "\n  return\n}";
    message.clear();
    all.clear();
    mlir::ScopedDiagnosticHandler handler(&context,
                                          [&](mlir::Diagnostic &diagnostic) {
                                            message += diagnostic.str();
                                            return mlir::success();
                                          });
    module = mlir::parseSourceString<mlir::ModuleOp>(source, &context);
    if (!module) {
      ADD_FAILURE() << source << "\n" << message;
      return {};
    }
    auto function = *module->getOps<mlir::func::FuncOp>().begin();
    mlir::Operation *op = &function.front().front();
    llvm::SmallVector<Tensor> tensors, results;
    for (size_t i = 0; i < operands.size(); ++i)
      tensors.push_back(makeTensor(
          llvm::cast<mlir::RankedTensorType>(function.getArgument(i).getType()),
          operands[i].second));
    if (mlir::failed(evaluateOp(op, tensors, mode, results)))
      return {};
    for (const Tensor &result : results)
      all.push_back(listOf(result));
    return all[0];
  }

  mlir::MLIRContext context;
  mlir::OwningOpRef<mlir::ModuleOp> module;
  std::string message;
  std::vector<List> all;
};

MATCHER_P(Near, expected, "") {
  if (arg.size() != expected.size())
    return false;
  for (size_t i = 0; i < arg.size(); ++i)
    if (!(std::abs(arg[i] - expected[i]) <=
          1e-12 * (1 + std::abs(expected[i]))))
      return false;
  return true;
}

} // namespace accel::test

#endif // ACCEL_TEST_UNIT_EVALUATE_RULES_H
