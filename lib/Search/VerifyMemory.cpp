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
/// A budget, and how it is said.
struct Budget {
  StringLiteral key, flag, wayOut;
};
constexpr Budget kBudgets[] = {
    {kMemoryBudgetKey, "--memory-budget",
     "--memory-budget looks for what fits where --recompute is left out"},
    {kHostBudgetKey, "offload.host_budget",
     "less of it is offloaded with a smaller offload.ratio, or to nvme"},
    {kNvmeBudgetKey, "offload.nvme_budget",
     "less of it is offloaded with a smaller offload.ratio, or to cpu"},
};

struct VerifyMemoryPass : impl::VerifyMemoryPassBase<VerifyMemoryPass> {
  using Base::Base;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    auto decisions = module->getAttrOfType<DictionaryAttr>(kDecisionsAttr);
    if (!decisions)
      return;
    for (auto program : module.getOps<plan::ProgramOp>())
      for (const Budget &budget : kBudgets)
        if (auto most = decisions.getAs<IntegerAttr>(budget.key);
            most && failed(check(program, budget, most.getInt(), decisions)))
          return signalPassFailure();
  }

  LogicalResult check(plan::ProgramOp program, const Budget &budget,
                      int64_t most, DictionaryAttr decisions) {
    int64_t bytes = 0;
    llvm::SmallDenseSet<plan::Space> spaces;
    for (auto arena : program.getOps<plan::ArenaOp>())
      if (getBudgetKey(plan::stringifySpace(arena.getSpace()), decisions) ==
          budget.key) {
        bytes += arena.getBytes();
        spaces.insert(arena.getSpace());
      }
    if (bytes <= most)
      return success();
    InFlightDiagnostic error =
        program.emitError() << "expected a plan of at most "
                            << formatBytes(most) << " for each rank ("
                            << budget.flag << "), found " << formatBytes(bytes);
    Diagnostic &note = error.attachNote();
    note << "at its peak it has ";
    auto roles = plan::addRoles(
        program, plan::Liveness::compute(program), SymbolTable(getOperation()),
        [&](plan::Space space) { return spaces.contains(space); });
    llvm::interleaveComma(
        ArrayRef(roles).take_front(4), note, [&](const auto &role) {
          note << formatBytes(role.second) << " of " << role.first;
        });
    note << "; " << budget.wayOut;
    return failure();
  }
};
} // namespace
} // namespace accel::search
