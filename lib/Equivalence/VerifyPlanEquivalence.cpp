// Holds a plan against the local program that it was made from.

#include "KeepProgram.h"
#include "PlanEquivalence.h"
#include "dialects/Dist/Dist.h"
#include "dialects/NN/NN.h"
#include "dialects/Plan/Plan.h"

using namespace mlir;

namespace accel::equivalence {
#define GEN_PASS_DEF_VERIFYPLANEQUIVALENCEPASS
#include "lib/Equivalence/Passes.h.inc"

namespace {
struct VerifyPlanEquivalencePass
    : impl::VerifyPlanEquivalencePassBase<VerifyPlanEquivalencePass> {
  using Base::Base;
  explicit VerifyPlanEquivalencePass(std::shared_ptr<KeptProgram> kept)
      : kept(std::move(kept)) {}

  void getDependentDialects(DialectRegistry &registry) const override {
    registry.insert<dist::DistDialect, nn::NNDialect, plan::PlanDialect>();
  }

  void runOnOperation() override {
    OwningOpRef<ModuleOp> program =
        takeProgram(getOperation(), kept, local,
                    "plan-verify-equivalence: expected local=FILE, the program "
                    "in phase 'local' that this one was made from");
    if (!program || failed(verifyPlanEquivalence(*program, getOperation())))
      signalPassFailure();
    markAllAnalysesPreserved();
  }

  std::shared_ptr<KeptProgram> kept;
};
} // namespace

std::unique_ptr<Pass>
createVerifyPlanEquivalencePass(std::shared_ptr<KeptProgram> program) {
  return std::make_unique<VerifyPlanEquivalencePass>(std::move(program));
}
} // namespace accel::equivalence
