// Declares the type that gradients are rounded to on their way between ranks.

#include "Passes.h"
#include "dialects/NN/NN.h"

using namespace mlir;

namespace accel::precision {
#define GEN_PASS_DEF_DECLAREWIREPASS
#include "lib/Precision/Passes.h.inc"

namespace {
struct DeclareWirePass : impl::DeclareWirePassBase<DeclareWirePass> {
  using Base::Base;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    if (hook == "no")
      return;
    if (hook != "fp16" && hook != "bf16") {
      module.emitError() << "expected no, fp16 or bf16 as the hook, found '"
                         << hook << "'";
      return signalPassFailure();
    }
    // A forward program sends no gradient.
    if (!module.walk([](nn::GradientOp) { return WalkResult::interrupt(); })
             .wasInterrupted()) {
      module.emitWarning() << "comm_hook=" << hook
                           << " compresses nothing: the program has no "
                              "gradients";
      return;
    }
    Type type = hook == "fp16" ? Type(Float16Type::get(&getContext()))
                               : BFloat16Type::get(&getContext());
    module->setAttr(kGradientWireAttr, TypeAttr::get(type));
  }
};
} // namespace
} // namespace accel::precision
