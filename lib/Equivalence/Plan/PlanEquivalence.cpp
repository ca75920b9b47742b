// First the local program on value numbers, then the plan, in one numbering.

#include "lib/Equivalence/PlanEquivalence.h"

#include "Replay.h"
#include "dialects/NN/Entry.h"

using namespace mlir;
using namespace accel;
using namespace accel::equivalence;

template <class Op> static FailureOr<Op> findOnly(ModuleOp module) {
  auto ops = module.getOps<Op>();
  if (!llvm::hasSingleElement(ops))
    return module.emitError()
           << "expected one " << Op::getOperationName() << ", found "
           << std::distance(ops.begin(), ops.end());
  return *ops.begin();
}

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

LogicalResult accel::equivalence::verifyPlanEquivalence(ModuleOp local,
                                                        ModuleOp plan) {
  FailureOr<plan::ProgramOp> program = findOnly<plan::ProgramOp>(plan);
  if (failed(program))
    return failure();
  dist::MeshOp mesh = dist::MeshOp::of(plan);
  dist::MeshOp localMesh = dist::MeshOp::of(local);
  if (bool(mesh) != bool(localMesh) ||
      (mesh && mesh.getAxesAttr() != localMesh.getAxesAttr()))
    return plan.emitError() << "expected the mesh of the local program";
  if (failed(checkStates(local, plan)))
    return failure();
  Terms terms;
  Meaning meaning(terms, mesh);
  std::map<StringRef, LocalValues> values;
  for (func::FuncOp entry : nn::getEntries(local)) {
    StringRef kind = nn::stringifyEntryKind(*nn::getEntryKind(entry));
    auto [at, isNew] = values.try_emplace(kind, entry, meaning);
    if (!isNew)
      return entry.emitOpError()
             << "expected one entry of kind '" << kind << "', found two";
    if (failed(at->second.read()))
      return failure();
  }
  return PlanReplay(plan, *program, meaning, values).run();
}
