// Says what a rank will hold beside its arenas, from what its plan makes it
// prepare.

#include "dialects/Plan/Storage.h"
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
      for (auto arena : program.getOps<ArenaOp>()) {
        int64_t bytes = (*chosen)->estimateReserve(program, arena.getSpace());
        // A file is moved by way of the host's memory, whatever the target is.
        if (arena.getSpace() == Space::nvme) {
          FailureOr<Storage> storage = Storage::read(arena);
          if (failed(storage))
            return signalPassFailure();
          bytes += storage->getStagedBytes();
        }
        arena.setReserve(bytes);
      }
  }
};
} // namespace
} // namespace accel::plan
