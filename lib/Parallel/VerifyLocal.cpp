// The contract of phase `local`: one rank's program, and a schedule that runs
// it.

#include "accel/Parallel/Passes.h"
#include "dialects/NN/NN.h"

using namespace mlir;

namespace accel::parallel {
#define GEN_PASS_DEF_VERIFYLOCALPASS
#include "accel/Parallel/Passes.h.inc"

static LogicalResult verifyEntry(func::FuncOp entry, bool isScheduled) {
  for (unsigned index = 0; index < entry.getNumArguments(); ++index)
    if (!entry.getArgAttr(index, dist::kLayoutAttr))
      return entry.emitError()
             << "expected a layout on argument " << index << ", found none";
  for (unsigned index = 0; index < entry.getNumResults(); ++index)
    if (!entry.getResultAttr(index, dist::kLayoutAttr))
      return entry.emitError()
             << "expected a layout on result " << index << ", found none";
  if (!isScheduled)
    return entry.emitError() << "no dist.schedule runs this entry";
  return success();
}

static LogicalResult verifyOp(Operation *op) {
  StringRef dialect = op->getName().getDialectNamespace();
  if (dialect != "nn" && dialect != "dist" && dialect != "func")
    return op->emitOpError() << "is not legal in phase local";
  if (isa<dist::ConstraintOp, dist::ReshardOp>(op))
    return op->emitOpError() << "is not legal in phase local: it is a "
                                "statement about whole tensors";
  SmallVector<Type> types(op->getResultTypes());
  if (auto function = dyn_cast<func::FuncOp>(op))
    llvm::append_range(types, function.getArgumentTypes());
  for (Type type : types)
    if (auto tensor = dyn_cast<RankedTensorType>(type);
        !tensor || tensor.getEncoding())
      return op->emitOpError()
             << "expected tensors without encoding in phase local, found "
             << type;
  return success();
}

namespace {
struct VerifyLocalPass : impl::VerifyLocalPassBase<VerifyLocalPass> {
  using Base::Base;

  void runOnOperation() override {
    markAllAnalysesPreserved();
    ModuleOp module = getOperation();
    WalkResult result = module.walk([&](Operation *op) {
      return op != module && failed(verifyOp(op)) ? WalkResult::interrupt()
                                                  : WalkResult::advance();
    });
    if (result.wasInterrupted())
      return signalPassFailure();
    llvm::SmallDenseSet<StringRef> scheduled;
    for (auto schedule : module.getOps<dist::ScheduleOp>())
      scheduled.insert(schedule.getEntry());
    for (auto function : module.getOps<func::FuncOp>())
      if (function->hasAttr(nn::kEntryAttr) &&
          failed(
              verifyEntry(function, scheduled.contains(function.getSymName()))))
        return signalPassFailure();
  }
};
} // namespace
} // namespace accel::parallel
