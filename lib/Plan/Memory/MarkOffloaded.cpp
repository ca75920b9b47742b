// Says which states the host or a disk keeps, by what they are for.

#include "dialects/NN/NN.h"
#include "dialects/Plan/Offloaded.h"
#include "lib/Cost/OffloadDecisions.h"
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
    ModuleOp module = getOperation();
    FailureOr<std::optional<Space>> moments = parse(
        resolveOffload(module, kOffloadOptimizer, optimizer), "optimizer");
    FailureOr<std::optional<Space>> weights = parse(
        resolveOffload(module, kOffloadParameters, parameters), "parameters");
    if (failed(moments) || failed(weights))
      return signalPassFailure();
    ofMoments = *moments;
    ofParameters = *weights;
    if (mostOnHost < 0) {
      getOperation().emitError()
          << "expected at least 0 numbers of parameters on the host, found "
          << int64_t(mostOnHost);
      return signalPassFailure();
    }
    SymbolTable symbols(getOperation());
    for (auto program : getOperation().getOps<ProgramOp>())
      runOnProgram(program, symbols);
  }

  /// Where states lie that `what` says; none: where they are.
  FailureOr<std::optional<Space>> parse(StringRef where, StringRef what) {
    if (where == "none")
      return std::optional<Space>();
    std::optional<Space> space = symbolizeSpace(where);
    if (space == Space::host || space == Space::nvme)
      return space;
    return getOperation().emitError()
           << "expected '" << what
           << "' to be none, host, nvme or auto, found '" << where << "'";
  }

  /// Of a parameter: what fits lies on the host. `onHost` is what does already.
  Space findPlace(nn::StateOp state, BufferOp buffer, int64_t &onHost) const {
    int64_t bits = cast<RankedTensorType>(state.getType())
                       .getElementTypeBitWidth(),
            numbers =
                int64_t(buffer.getBytes()) * 8 / std::max<int64_t>(bits, 8);
    if (*ofParameters != Space::nvme || onHost + numbers > mostOnHost)
      return *ofParameters;
    onHost += numbers;
    return Space::host;
  }

  void runOnProgram(ProgramOp program, const SymbolTable &symbols) {
    SmallVector<BufferOp> moments;
    int64_t onHost = 0;
    auto mark = [&](BufferOp buffer, Space space) {
      buffer->setAttr(kOffloadedAttr, SpaceAttr::get(&getContext(), space));
    };
    for (auto buffer : program.getOps<BufferOp>()) {
      if (buffer.getRole() != Role::state || !buffer.getSourceAttr())
        continue;
      auto state =
          symbols.lookup<nn::StateOp>(buffer.getSourceAttr().getAttr());
      if (!state)
        continue;
      if (state.getRole() == nn::StateRole::moment && ofMoments)
        moments.push_back(buffer);
      if (state.getRole() == nn::StateRole::parameter && ofParameters)
        mark(buffer, findPlace(state, buffer, onHost));
    }
    double total = 0, moved = 0;
    for (BufferOp buffer : moments)
      total += double(buffer.getBytes());
    for (BufferOp buffer : moments) {
      if (moved >= ratio * total)
        break;
      moved += double(buffer.getBytes());
      mark(buffer, *ofMoments);
    }
  }

  std::optional<Space> ofMoments, ofParameters;
};
} // namespace
} // namespace accel::plan
