// Keeps the program of a phase while later ones change it, and compares.

#include "Passes.h"

#include "Equivalence.h"
#include "PlanEquivalence.h"
#include "dialects/Dist/Dist.h"
#include "dialects/NN/NN.h"
#include "dialects/Plan/Plan.h"
#include "mlir/IR/OwningOpRef.h"
#include "mlir/Parser/Parser.h"

using namespace mlir;

namespace accel::equivalence {
#define GEN_PASS_DEF_VERIFYEQUIVALENCEPASS
#define GEN_PASS_DEF_VERIFYPLANEQUIVALENCEPASS
#include "lib/Equivalence/Passes.h.inc"

struct KeptProgram {
  OwningOpRef<ModuleOp> module;
};

std::shared_ptr<KeptProgram> makeKeptProgram(OwningOpRef<ModuleOp> module) {
  return std::make_shared<KeptProgram>(KeptProgram{std::move(module)});
}

namespace {
struct KeepProgramPass : PassWrapper<KeepProgramPass, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(KeepProgramPass)
  explicit KeepProgramPass(std::shared_ptr<KeptProgram> program)
      : program(std::move(program)) {}
  StringRef getName() const override { return "KeepProgramPass"; }
  StringRef getArgument() const override { return "keep-program"; }
  StringRef getDescription() const override {
    return "Copies the program that a proof compares the next phase with";
  }
  void runOnOperation() override {
    // The first phase that runs has the program that all others follow from.
    if (!program->module)
      program->module = getOperation().clone();
    markAllAnalysesPreserved();
  }
  std::shared_ptr<KeptProgram> program;
};

/// The program that was kept, or that `file` holds; null, with an error, if
/// there is none.
OwningOpRef<ModuleOp> getProgram(ModuleOp module,
                                 const std::shared_ptr<KeptProgram> &kept,
                                 StringRef file, StringRef missing) {
  if (kept)
    return std::move(kept->module);
  if (!file.empty())
    return parseSourceFile<ModuleOp>(file, module.getContext());
  module.emitError() << missing;
  return nullptr;
}

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
        getProgram(getOperation(), kept, logical,
                   "dist-verify-equivalence: expected logical=FILE, the "
                   "program in phase 'train' that this one was made from");
    if (!program || failed(verifyEquivalence(*program, getOperation())))
      signalPassFailure();
    markAllAnalysesPreserved();
  }

  std::shared_ptr<KeptProgram> kept;
};

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
        getProgram(getOperation(), kept, local,
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
createKeepProgramPass(std::shared_ptr<KeptProgram> program) {
  return std::make_unique<KeepProgramPass>(std::move(program));
}

std::unique_ptr<Pass>
createVerifyEquivalencePass(std::shared_ptr<KeptProgram> program) {
  return std::make_unique<VerifyEquivalencePass>(std::move(program));
}

std::unique_ptr<Pass>
createVerifyPlanEquivalencePass(std::shared_ptr<KeptProgram> program) {
  return std::make_unique<VerifyPlanEquivalencePass>(std::move(program));
}
} // namespace accel::equivalence
