// Holds the arenas of a plan against the memory budget.

#include "Trial.h"

#include "dialects/Accel/Accel.h"
#include "dialects/Plan/Plan.h"
#include "lib/Names/Bytes.h"
#include "lib/Plan/Roles.h"

using namespace mlir;

namespace accel::search {
#define GEN_PASS_DEF_VERIFYMEMORYPASS
#include "lib/Search/Passes.h.inc"

namespace {
struct VerifyMemoryPass : impl::VerifyMemoryPassBase<VerifyMemoryPass> {
  using Base::Base;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    auto decisions = module->getAttrOfType<DictionaryAttr>(kDecisionsAttr);
    auto budget = decisions ? decisions.getAs<IntegerAttr>(kMemoryBudgetKey)
                            : IntegerAttr();
    if (!budget)
      return;
    for (auto program : module.getOps<plan::ProgramOp>()) {
      int64_t bytes = 0;
      for (auto arena : program.getOps<plan::ArenaOp>())
        if (arena.getSpace() != plan::Space::nvme) // a file, no memory
          bytes += arena.getBytes();
      if (bytes <= budget.getInt())
        continue;
      InFlightDiagnostic error =
          program.emitError()
          << "expected a plan of at most " << formatBytes(budget.getInt())
          << " for each rank (--memory-budget), found " << formatBytes(bytes);
      Diagnostic &note = error.attachNote();
      note << "at its peak it has ";
      llvm::interleaveComma(
          ArrayRef(plan::addRoles(program, plan::Liveness::compute(program),
                                  SymbolTable(module)))
              .take_front(4),
          note, [&](const auto &role) {
            note << formatBytes(role.second) << " of " << role.first;
          });
      note << "; --memory-budget looks for what fits where --recompute is left "
              "out";
      return signalPassFailure();
    }
  }
};
} // namespace
} // namespace accel::search
