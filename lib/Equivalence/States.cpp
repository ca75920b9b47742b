// States begin, are trained and are named as in the logical program; it has no
// sums over micro-batches.

#include "States.h"

#include "dialects/Accel/Reports.h"
#include "dialects/Accel/SeparateRows.h"
#include "mlir/IR/SymbolTable.h"

using namespace mlir;
using namespace accel;

/// What padding does not change of a state.
static DictionaryAttr describe(nn::StateOp state) {
  NamedAttrList attributes(state->getAttrDictionary());
  attributes.erase(state.getTypeAttrName());
  attributes.erase(state.getLogicalAttrName());
  attributes.erase(state.getInitAttrName());
  // A default may be said or not.
  attributes.set(state.getRoleAttrName(),
                 nn::StateRoleAttr::get(state.getContext(), state.getRole()));
  return attributes.getDictionary(state.getContext());
}

static LogicalResult verifySame(nn::StateOp state, nn::StateOp before) {
  // Neither what pads it nor where it lives is part of its value.
  RankedTensorType value = state.getLogicalType(),
                   expected = before.getLogicalType();
  // The first dimension of a residual has the terms of ranks; they are zeros
  // (StateOp::verify), and so is their sum.
  bool isResidual = before.getRole() == nn::StateRole::residual &&
                    state.getRole() == nn::StateRole::residual &&
                    value.getRank() == expected.getRank();
  if (isResidual)
    value = RankedTensorType::get(
        [&] {
          SmallVector<int64_t> shape(value.getShape());
          shape.front() = expected.getDimSize(0);
          return shape;
        }(),
        value.getElementType());
  if (value.getShape() != expected.getShape() ||
      value.getElementType() != expected.getElementType())
    return state.emitOpError() << "expected a value of " << expected
                               << " as in the logical program, found " << value;
  if (!isResidual && state.getInit() != before.getInit())
    return state.emitOpError()
           << "begins with another value than in the logical program";
  DictionaryAttr found = describe(state), wanted = describe(before);
  for (NamedAttribute attribute : wanted)
    if (found.get(attribute.getName()) != attribute.getValue())
      return state.emitOpError()
             << "expected '" << attribute.getName().getValue()
             << "' = " << attribute.getValue()
             << " as in the logical program, found "
             << found.get(attribute.getName());
  for (NamedAttribute attribute : found)
    if (!wanted.contains(attribute.getName()))
      return state.emitOpError()
             << "expected no '" << attribute.getName().getValue()
             << "' as in the logical program, found " << attribute.getValue();
  return success();
}

/// Accumulators are declared before a program is split, and used after.
static bool isAccumulator(nn::StateOp state) {
  return state.getRole() == nn::StateRole::accumulator;
}

LogicalResult equivalence::verifyStates(ModuleOp logical, ModuleOp local) {
  SymbolTable before(logical), after(local);
  for (auto state : logical.getOps<nn::StateOp>())
    if (!isAccumulator(state) &&
        !after.lookup<nn::StateOp>(state.getSymNameAttr()))
      return local.emitError() << "expected state @" << state.getSymName()
                               << " of the logical program, found none";
  for (auto state : local.getOps<nn::StateOp>()) {
    auto same = before.lookup<nn::StateOp>(state.getSymNameAttr());
    if (same && !isAccumulator(same)) {
      if (failed(verifySame(state, same)))
        return failure();
    } else if (!isAccumulator(state)) {
      return state.emitOpError()
             << "expected an accumulator, or a state of the logical program";
    }
  }
  return success();
}

LogicalResult equivalence::verifySaid(ModuleOp before, ModuleOp after) {
  for (StringRef name : {kSeparateRowsAttr, kRowMaskAttr, kReportsAttr})
    if (before->getAttr(name) != after->getAttr(name))
      return after.emitError()
             << "expected '" << name << "' as in the program before, found "
             << "another";
  return success();
}
