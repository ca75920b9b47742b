// Holds the arenas of a plan against the memory budget.

#include "Trial.h"

#include "dialects/NN/NN.h"
#include "dialects/Plan/Plan.h"
#include "lib/Cost/OffloadDecisions.h"
#include "lib/Names/Bytes.h"
#include "lib/Plan/Roles.h"

using namespace mlir;

namespace accel::search {
#define GEN_PASS_DEF_VERIFYMEMORYPASS
#include "lib/Search/Passes.h.inc"

namespace {
/// A budget, and how it is said. Of an arena that has what is offloaded,
/// `elsewhere` is where else that could lie.
struct Budget {
  StringLiteral key, flag, wayOut, elsewhere;
};
constexpr Budget kCheckedBudgets[] = {
    {kMemoryBudgetKey, "--memory-budget",
     "--memory-budget looks for what fits where --recompute is left out", ""},
    {kHostBudgetKey, "offload.host_budget", "", "nvme"},
    {kNvmeBudgetKey, "offload.nvme_budget", "", "the host"},
};

/// What has less of each role there.
constexpr std::pair<StringLiteral, StringLiteral> kOffloads[] = {
    {"moments", "a smaller offload.ratio"},
    {"parameters", "--set offload.parameters=none"},
    {"activations", "--set offload.activations=none"}};

struct VerifyMemoryPass : impl::VerifyMemoryPassBase<VerifyMemoryPass> {
  using Base::Base;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    auto decisions = module->getAttrOfType<DictionaryAttr>(kDecisionsAttr);
    if (!decisions)
      return;
    SymbolTable symbols(module);
    for (auto program : module.getOps<plan::ProgramOp>()) {
      for (auto [key, role] :
           {std::pair(kOffloadOptimizer, nn::StateRole::moment),
            std::pair(kOffloadParameters, nn::StateRole::parameter)})
        if (decisions.contains(key) &&
            failed(checkOffloaded(program, key, role, symbols)))
          return signalPassFailure();
      for (const Budget &budget : kCheckedBudgets)
        if (auto most = decisions.getAs<IntegerAttr>(budget.key);
            most && failed(check(program, budget, most.getInt(), decisions)))
          return signalPassFailure();
    }
  }

  /// Whether any state of the role lies where it was decided, if there are any:
  /// a ratio may leave others where they are.
  LogicalResult checkOffloaded(plan::ProgramOp program, StringRef key,
                               nn::StateRole role, const SymbolTable &symbols) {
    bool hasAny = false;
    for (auto buffer : program.getOps<plan::BufferOp>()) {
      auto state =
          buffer.getSourceAttr()
              ? symbols.lookup<nn::StateOp>(buffer.getSourceAttr().getAttr())
              : nn::StateOp();
      if (!state || state.getRole() != role)
        continue;
      hasAny = true;
      if (buffer.getSpace() == plan::Space::host ||
          buffer.getSpace() == plan::Space::nvme)
        return success();
    }
    if (!hasAny)
      return success();
    return program.emitError()
           << "expected states in another arena than the device's, as '" << key
           << "' of '" << kDecisionsAttr << "' says, found none";
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
    if (budget.elsewhere.empty())
      return failure();
    SmallVector<StringRef> ways;
    for (auto [name, way] : kOffloads)
      if (llvm::any_of(roles, [&, name = name](const auto &role) {
            return role.first == name && role.second > 0;
          }))
        ways.push_back(way);
    note << "less of it is offloaded ";
    if (!ways.empty()) {
      note << "with ";
      llvm::interleave(ways, note, " or ");
      note << ", or ";
    }
    note << "to " << budget.elsewhere;
    return failure();
  }
};
} // namespace
} // namespace accel::search
