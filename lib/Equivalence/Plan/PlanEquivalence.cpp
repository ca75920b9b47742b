// First the local program on value numbers, then the plan, in one numbering.

#include "lib/Equivalence/PlanEquivalence.h"

#include "Messages.h"
#include "Replay.h"
#include "dialects/NN/Entry.h"
#include "dialects/Plan/ForEachProgram.h"
#include "lib/Equivalence/States.h"

using namespace mlir;
using namespace accel;
using namespace accel::equivalence;

/// States are declared alike: where they begin, and what they are for.
static LogicalResult checkStates(ModuleOp local, ModuleOp plan) {
  llvm::DenseMap<StringAttr, DictionaryAttr> declared;
  for (auto state : local.getOps<nn::StateOp>())
    declared[state.getSymNameAttr()] = state->getAttrDictionary();
  for (auto state : plan.getOps<nn::StateOp>()) {
    if (declared.lookup(state.getSymNameAttr()) != state->getAttrDictionary())
      return state.emitOpError()
             << "is declared otherwise than in the local program";
    declared.erase(state.getSymNameAttr());
  }
  if (!declared.empty())
    return plan.emitError()
           << "expected the states of the local program, found "
           << declared.size() << " fewer";
  return success();
}

/// One program against what its stage does of each entry.
static LogicalResult verifyProgram(ModuleOp local, ModuleOp plan,
                                   plan::ProgramOp program, dist::MeshOp mesh) {
  Terms terms;
  Meaning meaning(terms, mesh);
  std::map<StringRef, LocalValues> values;
  for (func::FuncOp entry : nn::getEntries(local)) {
    StringRef kind = nn::stringifyEntryKind(*nn::getEntryKind(entry));
    auto [at, isNew] =
        values.try_emplace(kind, entry, program.getStage(), meaning);
    if (!isNew)
      return entry.emitOpError()
             << "expected one entry of kind '" << kind << "', found two";
    if (failed(at->second.read()))
      return failure();
  }
  return PlanReplay(plan, program, meaning, values).run();
}

LogicalResult accel::equivalence::verifyPlanEquivalence(ModuleOp local,
                                                        ModuleOp plan) {
  dist::MeshOp mesh = dist::MeshOp::of(plan);
  dist::MeshOp localMesh = dist::MeshOp::of(local);
  if (bool(mesh) != bool(localMesh) ||
      (mesh && mesh.getAxesAttr() != localMesh.getAxesAttr()))
    return plan.emitError() << "expected the mesh of the local program";
  if (failed(checkStates(local, plan)) || failed(verifySaid(local, plan)))
    return failure();
  int64_t stages =
      mesh ? mesh.findAxisSize(dist::MeshOp::kPipelineAxis).value_or(1) : 1;
  SmallVector<plan::ProgramOp> programs(plan.getOps<plan::ProgramOp>());
  if (static_cast<int64_t>(programs.size()) != stages)
    return plan.emitError() << "expected a plan.program for each of " << stages
                            << " stages, found " << programs.size();
  for (auto [stage, program] : llvm::enumerate(programs))
    if (program.getStage() != stage)
      return program.emitOpError()
             << "expected the program of stage " << stage << ", found that of "
             << int64_t(program.getStage());
  LogicalResult each = plan::forEachProgram(plan, [&](plan::ProgramOp program) {
    return verifyProgram(local, plan, program, mesh);
  });
  return failed(each) ? each : verifyMessages(plan);
}
