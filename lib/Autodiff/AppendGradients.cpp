// A function's own gradient: differentiation as a pass of its own, for programs
// that are no step, and to look at what the rules build.

#include "Differentiate.h"
#include "Passes.h"
#include "dialects/NN/Entry.h"
#include "lib/Autodiff/Models/Group.h"

using namespace mlir;

namespace accel::autodiff {
#define GEN_PASS_DEF_APPENDGRADIENTSPASS
#include "lib/Autodiff/Passes.h.inc"

namespace {
struct AppendGradientsPass
    : impl::AppendGradientsPassBase<AppendGradientsPass> {
  void runOnOperation() override {
    func::FuncOp function = getOperation();
    if (function.isExternal())
      return;
    if (failed(nn::requireTypes(function, /*placed=*/false)))
      return signalPassFailure();
    Operation *exit = function.front().getTerminator();
    if (exit->getNumOperands() == 0 || !isFloat(exit->getOperand(0)) ||
        typeOf(exit->getOperand(0)).getNumElements() != 1) {
      function.emitError() << "expected a scalar of floats as first result, "
                              "found function type "
                           << function.getFunctionType();
      return signalPassFailure();
    }
    SmallVector<Value> arguments = llvm::to_vector_of<Value>(
        llvm::make_filter_range(function.getArguments(), isFloat));
    OpBuilder builder(exit);
    FailureOr<SmallVector<Value>> gradients =
        differentiate(builder, exit->getOperand(0), arguments);
    if (failed(gradients))
      return signalPassFailure();
    SmallVector<Value> results = exit->getOperands();
    for (auto [argument, gradient] : llvm::zip(arguments, *gradients))
      results.push_back(
          gradient ? gradient
                   : NNBuilder{builder, argument.getLoc()}.splat(0, argument));
    SmallVector<DictionaryAttr> attributes;
    function.getAllResultAttrs(attributes);
    attributes.resize(results.size());
    exit->setOperands(results);
    function.setFunctionType(builder.getFunctionType(
        function.getArgumentTypes(), ValueRange(results).getTypes()));
    function.setAllResultAttrs(attributes);
  }
};
} // namespace
} // namespace accel::autodiff
