// Takes ops out of a copy, and keeps the copy where it verifies and the script
// still finds it of interest.

#include "ReduceBodies.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Reducer/Tester.h"

using namespace mlir;

/// A value of this type that is there before `op`; null if there is none.
static Value findEarlier(Operation *op, Type type) {
  for (Value operand : op->getOperands())
    if (operand.getType() == type)
      return operand;
  for (BlockArgument argument : op->getBlock()->getArguments())
    if (argument.getType() == type)
      return argument;
  for (Operation *before = op->getPrevNode(); before;
       before = before->getPrevNode())
    for (Value result : before->getResults())
      if (result.getType() == type)
        return result;
  return nullptr;
}

/// Takes the op out; false, with nothing done, where nothing can take its
/// place.
static bool takeOut(Operation *op) {
  if (isa<ModuleOp>(op) || op->hasTrait<OpTrait::IsTerminator>())
    return false;
  if (isa<SymbolOpInterface>(op) &&
      !SymbolTable::symbolKnownUseEmpty(op, op->getParentOp()))
    return false;
  SmallVector<Value> earlier;
  for (Value result : op->getResults()) {
    earlier.push_back(result.use_empty() ? result
                                         : findEarlier(op, result.getType()));
    if (!earlier.back())
      return false;
  }
  for (auto [result, value] : llvm::zip(op->getResults(), earlier))
    if (result != value)
      result.replaceAllUsesWith(value);
  op->erase();
  return true;
}

static SmallVector<Operation *> listOps(ModuleOp module) {
  SmallVector<Operation *> ops;
  module.walk<WalkOrder::PreOrder>([&](Operation *op) { ops.push_back(op); });
  return ops;
}

namespace {
class ReduceBodies : public PassWrapper<ReduceBodies, OperationPass<ModuleOp>> {
public:
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(ReduceBodies)

  ReduceBodies() = default;
  ReduceBodies(const ReduceBodies &) {}
  StringRef getArgument() const override { return "reduce-bodies"; }
  StringRef getDescription() const override {
    return "Takes ops out, one by one, as long as a script finds the module of "
           "interest";
  }

  void runOnOperation() override {
    Tester tester(test, testArguments);
    auto isOfInterest = [&](ModuleOp module) {
      return tester.isInteresting(module).first ==
             Tester::Interestingness::True;
    };
    ModuleOp module = getOperation();
    if (!isOfInterest(module)) {
      module.emitError() << "expected '" << test
                         << "' to exit with status 1 for the whole module, "
                            "which says that it is of interest";
      return signalPassFailure();
    }
    for (bool isSmaller = true; isSmaller;) {
      isSmaller = false;
      // One that is taken out holds those that follow it in the order.
      for (size_t index = listOps(module).size(); index-- > 0;) {
        OwningOpRef<ModuleOp> copy = module.clone();
        if (!takeOut(listOps(*copy)[index]) || !verifies(*copy) ||
            !isOfInterest(*copy))
          continue;
        module.getBodyRegion().takeBody(copy->getBodyRegion());
        isSmaller = true;
      }
    }
  }

private:
  /// Without a word where it does not.
  static bool verifies(ModuleOp module) {
    ScopedDiagnosticHandler silent(module.getContext(),
                                   [](Diagnostic &) { return success(); });
    return succeeded(verify(module));
  }

  Option<std::string> test{
      *this, "test",
      llvm::cl::desc("The script, which exits with status 1 for what is of "
                     "interest")};
  ListOption<std::string> testArguments{
      *this, "test-arg", llvm::cl::desc("What it gets before the file's name")};
};
} // namespace

void registerReduceBodies() { PassRegistration<ReduceBodies>(); }
