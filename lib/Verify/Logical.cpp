// Indexes the logical program.

#include "Logical.h"

#include "dialects/Dist/Dist.h"
#include "dialects/NN/NN.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace accel;
using namespace accel::verify;

static bool isLookedThrough(Operation *op) {
  return isa<dist::ReshardOp, dist::AccumulateOp, nn::GradientOp>(op);
}

Value Logical::rootOf(Value value) {
  while (Operation *op = value.getDefiningOp()) {
    if (!isLookedThrough(op))
      break;
    value = op->getOperand(0);
  }
  return value;
}

Logical::Logical(func::FuncOp entry) {
  for (BlockArgument argument : entry.getArguments()) {
    unsigned number = argument.getArgNumber();
    if (auto name = entry.getArgAttrOfType<StringAttr>(number, nn::kInputAttr))
      inputs[name] = argument;
    if (auto state =
            entry.getArgAttrOfType<FlatSymbolRefAttr>(number, nn::kStateAttr))
      states[state.getValue()] = argument;
  }
  for (Operation &op : entry.front().without_terminator()) {
    if (isLookedThrough(&op))
      continue;
    if (op.getNumOperands() == 0)
      sources[op.getName()].insert(&op);
    for (Value operand : op.getOperands()) {
      Value root = rootOf(operand);
      readers[root].insert(&op);
      SplatElementsAttr splat;
      if (matchPattern(root, m_Constant(&splat)))
        readersOfElement[splat.getSplatValue<Attribute>()].insert(&op);
    }
  }
  for (OpOperand &operand : entry.front().getTerminator()->getOpOperands()) {
    unsigned number = operand.getOperandNumber();
    Value root = rootOf(operand.get());
    if (auto name =
            entry.getResultAttrOfType<StringAttr>(number, nn::kOutputAttr))
      outputs[name] = root;
    if (auto state = entry.getResultAttrOfType<FlatSymbolRefAttr>(
            number, nn::kStateAttr))
      newStates[state.getValue()] = root;
  }
}

template <class Map, class Key>
static const Logical::Ops &find(const Map &map, Key key) {
  static const Logical::Ops none;
  auto found = map.find(key);
  return found == map.end() ? none : found->second;
}

const Logical::Ops &Logical::getReaders(Value root) const {
  return find(readers, root);
}
const Logical::Ops &Logical::getReaders(Attribute element) const {
  return find(readersOfElement, element);
}
const Logical::Ops &Logical::getSources(OperationName name) const {
  return find(sources, name);
}
