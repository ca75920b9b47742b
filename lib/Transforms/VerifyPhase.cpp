// The contract at the end of phase 1.

#include "Passes.h"

using namespace mlir;

namespace accel::transforms {
#define GEN_PASS_DEF_VERIFYPHASEPASS
#include "lib/Transforms/Passes.h.inc"

namespace {

bool hasName(Location loc) {
  return loc
      ->walk([](Location part) {
        return isa<NameLoc>(part) ? WalkResult::interrupt()
                                  : WalkResult::advance();
      })
      .wasInterrupted();
}

struct VerifyPhasePass : impl::VerifyPhasePassBase<VerifyPhasePass> {
  using Base::Base;

  void runOnOperation() override {
    bool valid = true;
    unsigned entries = 0;
    for (Operation &op : *getOperation().getBody()) {
      if (isa<nn::StateOp>(op))
        continue;
      auto function = dyn_cast<func::FuncOp>(op);
      if (!function || !function->hasAttr(nn::kEntryAttr)) {
        op.emitOpError() << "is not legal in phase 'nn', expected states and "
                            "an entry";
        valid = false;
        continue;
      }
      if (++entries > 1) {
        op.emitOpError() << "is a second entry, expected one";
        valid = false;
      }
      valid &= verifyEntry(function);
    }
    if (entries == 0) {
      getOperation().emitError() << "expected an entry, found none";
      valid = false;
    }
    if (!valid)
      signalPassFailure();
  }

  static bool verifyEntry(func::FuncOp function) {
    bool valid = true;
    for (unsigned index = 0; index < function.getNumArguments(); ++index)
      if (!function.getArgAttr(index, nn::kInputAttr) &&
          !function.getArgAttr(index, nn::kStateAttr)) {
        function.emitOpError()
            << "argument #" << index << " is neither an input nor a state";
        valid = false;
      }
    for (unsigned index = 0; index < function.getNumResults(); ++index)
      if (!function.getResultAttr(index, nn::kOutputAttr) &&
          !function.getResultAttr(index, nn::kStateAttr)) {
        function.emitOpError()
            << "result #" << index << " is neither an output nor a state";
        valid = false;
      }
    for (Type type : llvm::concat<const Type>(function.getArgumentTypes(),
                                              function.getResultTypes()))
      valid &= verifyType(function, type);
    function.getBody().walk([&](Operation *op) {
      if (isa<func::ReturnOp>(op))
        return;
      if (!isa_and_nonnull<nn::NNDialect>(op->getDialect())) {
        op->emitOpError() << "is not legal in phase 'nn', expected ops of nn";
        valid = false;
        return;
      }
      // Equal constants are one, and then nobody's in particular.
      if (!op->hasTrait<OpTrait::ConstantLike>() && !hasName(op->getLoc())) {
        op->emitOpError() << "has no name, expected that of its ONNX node";
        valid = false;
      }
      for (Type type : op->getResultTypes())
        valid &= verifyType(op, type);
    });
    return valid;
  }

  static bool verifyType(Operation *op, Type type) {
    auto tensor = dyn_cast<RankedTensorType>(type);
    if (tensor && tensor.hasStaticShape() && !tensor.getEncoding())
      return true;
    op->emitOpError() << "has type " << type
                      << ", expected a tensor of static shape without encoding";
    return false;
  }
};

} // namespace
} // namespace accel::transforms
