// Holds one rank's program against the whole one that it was made from.

#include "Equivalence.h"
#include "KeepProgram.h"
#include "dialects/Dist/Dist.h"
#include "dialects/NN/NN.h"

using namespace mlir;

namespace accel::equivalence {
#define GEN_PASS_DEF_VERIFYEQUIVALENCEPASS
#include "lib/Equivalence/Passes.h.inc"

namespace {
struct VerifyEquivalencePass
    : impl::VerifyEquivalencePassBase<VerifyEquivalencePass> {
  using Base::Base;
  explicit VerifyEquivalencePass(std::shared_ptr<KeptProgram> kept)
      : kept(std::move(kept)) {}

  void getDependentDialects(DialectRegistry &registry) const override {
    registry.insert<dist::DistDialect, nn::NNDialect>();
  }

  void runOnOperation() override {
    OwningOpRef<ModuleOp> program =
        takeProgram(getOperation(), kept, logical,
                    "dist-verify-equivalence: expected logical=FILE, the "
                    "program in phase 'train' that this one was made from");
    if (!program || failed(verifyEquivalence(*program, getOperation())))
      signalPassFailure();
    markAllAnalysesPreserved();
  }

  std::shared_ptr<KeptProgram> kept;
};
} // namespace

std::unique_ptr<Pass>
createVerifyEquivalencePass(std::shared_ptr<KeptProgram> program) {
  return std::make_unique<VerifyEquivalencePass>(std::move(program));
}
} // namespace accel::equivalence
