// Keeps the program of a phase while later ones change it.

#include "KeepProgram.h"

#include "dialects/NN/NN.h"
#include "mlir/Parser/Parser.h"

using namespace mlir;

namespace accel::equivalence {
struct KeptProgram {
  OwningOpRef<ModuleOp> module;
};

std::shared_ptr<KeptProgram> makeKeptProgram(OwningOpRef<ModuleOp> module) {
  return std::make_shared<KeptProgram>(KeptProgram{std::move(module)});
}

OwningOpRef<ModuleOp> takePadded(MLIRContext *context,
                                 const std::shared_ptr<KeptProgram> &kept,
                                 StringRef file) {
  if (kept)
    return std::move(kept->module);
  return file.empty() ? OwningOpRef<ModuleOp>()
                      : parseSourceFile<ModuleOp>(file, context);
}

OwningOpRef<ModuleOp> takeProgram(ModuleOp module,
                                  const std::shared_ptr<KeptProgram> &kept,
                                  StringRef file, StringRef missing) {
  if (kept)
    return std::move(kept->module);
  if (!file.empty())
    return parseSourceFile<ModuleOp>(file, module.getContext());
  module.emitError() << missing;
  return nullptr;
}

namespace {
struct KeepProgramPass : PassWrapper<KeepProgramPass, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(KeepProgramPass)
  KeepProgramPass(std::shared_ptr<KeptProgram> program, bool onlyPadded)
      : program(std::move(program)), onlyPadded(onlyPadded) {}
  StringRef getName() const override { return "KeepProgramPass"; }
  StringRef getArgument() const override { return "keep-program"; }
  StringRef getDescription() const override {
    return "Copies the program that a proof compares the next phase with";
  }
  void runOnOperation() override {
    // The first phase that runs has the program that all others follow from.
    auto isPadded = [](nn::StateOp state) {
      return state.getLogical().has_value();
    };
    if (!program->module &&
        (!onlyPadded ||
         llvm::any_of(getOperation().getOps<nn::StateOp>(), isPadded)))
      program->module = getOperation().clone();
    markAllAnalysesPreserved();
  }
  std::shared_ptr<KeptProgram> program;
  bool onlyPadded;
};
} // namespace

std::unique_ptr<Pass>
createKeepPaddedPass(std::shared_ptr<KeptProgram> program) {
  return std::make_unique<KeepProgramPass>(std::move(program), true);
}

std::unique_ptr<Pass>
createKeepProgramPass(std::shared_ptr<KeptProgram> program) {
  return std::make_unique<KeepProgramPass>(std::move(program), false);
}
} // namespace accel::equivalence
