// Says what a rank will hold beside its arenas, from what its plan makes it
// prepare.

#include "lib/Plan/Passes.h"
#include "lib/Target/TargetTable.h"

using namespace mlir;

namespace accel::plan {
#define GEN_PASS_DEF_RESERVEFORLIBRARIESPASS
#include "lib/Plan/Passes.h.inc"

namespace {
struct ReserveForLibrariesPass
    : impl::ReserveForLibrariesPassBase<ReserveForLibrariesPass> {
  using Base::Base;

  void runOnOperation() override {
    FailureOr<const Target *> chosen =
        findTarget(getOperation(), target, threads);
    if (failed(chosen))
      return signalPassFailure();
    for (auto program : getOperation().getOps<ProgramOp>())
      for (auto arena : program.getOps<ArenaOp>())
        arena.setReserve((*chosen)->estimateReserve(program, arena.getSpace()));
  }
};
} // namespace
} // namespace accel::plan
