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
  VerifyEquivalencePass(std::shared_ptr<KeptProgram> kept,
                        std::shared_ptr<KeptProgram> keptPadded)
      : kept(std::move(kept)), keptPadded(std::move(keptPadded)) {}

  void getDependentDialects(DialectRegistry &registry) const override {
    registry.insert<dist::DistDialect, nn::NNDialect>();
  }

  void runOnOperation() override {
    OwningOpRef<ModuleOp> program =
        takeProgram(getOperation(), kept, logical,
                    "dist-verify-equivalence: expected logical=FILE, the "
                    "program in phase 'train' that this one was made from");
    if (!program)
      return signalPassFailure();
    // Two steps: it is padded, and what is padded is split.
    OwningOpRef<ModuleOp> wide = takePadded(&getContext(), keptPadded, padded);
    if ((!padded.empty() && !wide) ||
        (wide && failed(verifyPadding(*program, *wide))) ||
        failed(verifyEquivalence(wide ? *wide : *program, getOperation())))
      signalPassFailure();
    markAllAnalysesPreserved();
  }

  std::shared_ptr<KeptProgram> kept, keptPadded;
};
} // namespace

std::unique_ptr<Pass>
createVerifyEquivalencePass(std::shared_ptr<KeptProgram> program,
                            std::shared_ptr<KeptProgram> padded) {
  return std::make_unique<VerifyEquivalencePass>(std::move(program),
                                                 std::move(padded));
}
} // namespace accel::equivalence
