// Asks the target how it computes each command.

#include "Passes.h"
#include "lib/Target/TargetTable.h"

using namespace mlir;

namespace accel::plan {
#define GEN_PASS_DEF_CHOOSEFORMSPASS
#include "lib/Plan/Passes.h.inc"

namespace {
struct ChooseFormsPass : impl::ChooseFormsPassBase<ChooseFormsPass> {
  using Base::Base;

  void runOnOperation() override {
    FailureOr<const Target *> chosen =
        findTarget(getOperation(), target, threads);
    if (failed(chosen))
      return signalPassFailure();
    for (auto program : getOperation().getOps<ProgramOp>())
      if (failed((*chosen)->chooseForms(program)))
        return signalPassFailure();
  }
};
} // namespace
} // namespace accel::plan
