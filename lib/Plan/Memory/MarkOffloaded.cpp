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
    if (!(ratio >= 0 && ratio <= 1)) {
      getOperation().emitError()
          << "expected a ratio of offloaded states from 0 to 1, found "
          << double(ratio);
      return signalPassFailure();
    }
    SymbolTable symbols(getOperation());
    for (auto program : getOperation().getOps<ProgramOp>())
      runOnProgram(program, symbols);
  }

  void runOnProgram(ProgramOp program, const SymbolTable &symbols) {
    SmallVector<BufferOp> marked, moments;
    for (auto buffer : program.getOps<BufferOp>()) {
      if (buffer.getRole() != Role::state || !buffer.getSourceAttr())
        continue;
      auto state =
          symbols.lookup<nn::StateOp>(buffer.getSourceAttr().getAttr());
      if (!state)
        continue;
      if (state.getRole() == nn::StateRole::moment && optimizer)
        moments.push_back(buffer);
      if (state.getRole() == nn::StateRole::parameter && parameters)
        marked.push_back(buffer);
    }
    double total = 0, moved = 0;
    for (BufferOp buffer : moments)
      total += double(buffer.getBytes());
    for (BufferOp buffer : moments) {
      if (moved >= ratio * total)
        break;
      moved += double(buffer.getBytes());
      marked.push_back(buffer);
    }
    for (BufferOp buffer : marked)
      buffer->setAttr(kOffloadedAttr, UnitAttr::get(&getContext()));
  }
};
} // namespace
} // namespace accel::plan
