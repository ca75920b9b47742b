// Keeps the logical program while phases place and split it, and compares.

#include "accel/Verify/Passes.h"

#include "accel/Verify/Equivalence.h"
#include "dialects/Dist/Dist.h"
#include "dialects/NN/NN.h"
#include "mlir/IR/OwningOpRef.h"
#include "mlir/Parser/Parser.h"

using namespace mlir;

namespace accel::verify {
#define GEN_PASS_DEF_VERIFYEQUIVALENCEPASS
#include "accel/Verify/Passes.h.inc"

struct KeptProgram {
  OwningOpRef<ModuleOp> module;
};

std::shared_ptr<KeptProgram> makeKeptProgram() {
  return std::make_shared<KeptProgram>();
}

namespace {
struct KeepLogicalPass : PassWrapper<KeepLogicalPass, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(KeepLogicalPass)
  explicit KeepLogicalPass(std::shared_ptr<KeptProgram> program)
      : program(std::move(program)) {}
  StringRef getName() const override { return "KeepLogicalPass"; }
  StringRef getArgument() const override { return "dist-keep-logical"; }
  StringRef getDescription() const override {
    return "Copies the logical program for dist-verify-equivalence";
  }
  void runOnOperation() override {
    // The first phase that runs has the program that all others follow from.
    if (!program->module)
      program->module = getOperation().clone();
    markAllAnalysesPreserved();
  }
  std::shared_ptr<KeptProgram> program;
};

struct VerifyEquivalencePass
    : impl::VerifyEquivalencePassBase<VerifyEquivalencePass> {
  using Base::Base;
  explicit VerifyEquivalencePass(std::shared_ptr<KeptProgram> kept)
      : kept(std::move(kept)) {}

  void getDependentDialects(DialectRegistry &registry) const override {
    registry.insert<dist::DistDialect, nn::NNDialect>();
  }

  void runOnOperation() override {
    OwningOpRef<ModuleOp> program;
    if (kept)
      program = std::move(kept->module);
    else if (logical.empty())
      getOperation().emitError()
          << "dist-verify-equivalence: expected logical=FILE, the program in "
             "phase 'train' that this one was made from";
    else
      program = parseSourceFile<ModuleOp>(logical, &getContext());
    if (!program || failed(verifyEquivalence(*program, getOperation())))
      signalPassFailure();
    markAllAnalysesPreserved();
  }

  std::shared_ptr<KeptProgram> kept;
};
} // namespace

std::unique_ptr<Pass>
createKeepLogicalPass(std::shared_ptr<KeptProgram> program) {
  return std::make_unique<KeepLogicalPass>(std::move(program));
}

std::unique_ptr<Pass>
createVerifyEquivalencePass(std::shared_ptr<KeptProgram> program) {
  return std::make_unique<VerifyEquivalencePass>(std::move(program));
}
} // namespace accel::verify
