// Keeps the program of a phase while later ones change it.

#include "KeepProgram.h"

#include "mlir/Parser/Parser.h"

using namespace mlir;

namespace accel::equivalence {
struct KeptProgram {
  OwningOpRef<ModuleOp> module;
};

std::shared_ptr<KeptProgram> makeKeptProgram(OwningOpRef<ModuleOp> module) {
  return std::make_shared<KeptProgram>(KeptProgram{std::move(module)});
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
} // namespace

std::unique_ptr<Pass>
createKeepProgramPass(std::shared_ptr<KeptProgram> program) {
  return std::make_unique<KeepProgramPass>(std::move(program));
}
} // namespace accel::equivalence
