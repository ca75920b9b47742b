// Says which states the host keeps, by what they are for.

#include "dialects/NN/NN.h"
#include "dialects/Plan/Offloaded.h"
#include "lib/Plan/Passes.h"

using namespace mlir;

namespace accel::plan {
#define GEN_PASS_DEF_MARKOFFLOADEDPASS
#include "lib/Plan/Passes.h.inc"

namespace {
struct MarkOffloadedPass : impl::MarkOffloadedPassBase<MarkOffloadedPass> {
  using Base::Base;

  void runOnOperation() override {
    if (!optimizer && !parameters)
      return;
    SymbolTable symbols(getOperation());
    for (auto program : getOperation().getOps<ProgramOp>())
      for (auto buffer : program.getOps<BufferOp>()) {
        if (buffer.getRole() != Role::state || !buffer.getSourceAttr())
          continue;
        auto state =
            symbols.lookup<nn::StateOp>(buffer.getSourceAttr().getAttr());
        if (state && isOffloaded(state.getRole()))
          buffer->setAttr(kOffloadedAttr, UnitAttr::get(&getContext()));
      }
  }

  bool isOffloaded(nn::StateRole role) const {
    return (role == nn::StateRole::moment && optimizer) ||
           (role == nn::StateRole::parameter && parameters);
  }
};
} // namespace
} // namespace accel::plan
