// Indexes the logical program.

#include "Logical.h"

#include "dialects/Accel/Accel.h"
#include "dialects/Dist/Dist.h"
#include "dialects/NN/NN.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;
using namespace accel;
using namespace accel::equivalence;

Value Logical::rootOf(Value value) const {
  value = skipPlacement(value);
  auto same = roots.find(value);
  return same == roots.end() ? value : same->second;
}

/// An op before it that is the same function of the same values; null if there
/// is none.
Operation *Logical::findSame(Operation *op) {
  if (!isMemoryEffectFree(op) || op->getNumRegions() != 0)
    return nullptr;
  llvm::hash_code hash = llvm::hash_combine(
      op->getName(), op->hashProperties(),
      llvm::hash_combine_range(op->result_type_begin(), op->result_type_end()));
  for (Value operand : op->getOperands())
    hash = llvm::hash_combine(hash, rootOf(operand).getAsOpaquePointer());
  auto &known = hashed[static_cast<size_t>(hash) >> 2];
  for (Operation *other : known)
    if (other->getName() == op->getName() &&
        other->getResultTypes() == op->getResultTypes() &&
        llvm::equal(
            llvm::map_range(other->getOperands(),
                            [&](Value value) { return rootOf(value); }),
            llvm::map_range(op->getOperands(),
                            [&](Value value) { return rootOf(value); })) &&
        haveSameAttributes(other, op))
      return other;
  known.push_back(op);
  return nullptr;
}

/// A number that the ops which are the same function have in common.
static size_t getKind(Operation *op) {
  llvm::hash_code hash =
      llvm::hash_combine(op->getName(), op->getNumOperands());
  if (auto slice = dyn_cast<nn::SliceOp>(op))
    hash = llvm::hash_combine(hash, slice.getStarts(), slice.getSteps());
  return static_cast<size_t>(hash) >> 2;
}

/// What only moves equal elements, or puts the same beside them, makes such.
void Logical::noteSplat(Operation *op) {
  SplatElementsAttr splat;
  if (matchPattern(op, m_Constant(&splat)))
    splats[op->getResult(0)] = splat.getSplatValue<Attribute>();
  else if (Attribute element = moveEqual(
               op, [&](Value operand) { return getSplat(rootOf(operand)); }))
    splats[op->getResult(0)] = element;
}

void Logical::add(Operation *op) {
  if (op->getNumOperands() == 0)
    sources[op->getName()].insert(op);
  for (Value operand : op->getOperands()) {
    Value root = rootOf(operand);
    readers[root].insert(op);
    readersOfKind[{root, getKind(op)}].insert(op);
    if (Attribute splat = getSplat(root))
      readersOfElement[splat].insert(op);
  }
  noteSplat(op);
  if (isa<nn::AddOp>(op))
    added.push_back(op->getResult(0));
  if (Value equal = findEqual(op))
    roots[op->getResult(0)] = equal;
}

Logical::Logical(func::FuncOp entry) {
  if (auto module = entry->getParentOfType<ModuleOp>())
    if (auto declared = module->getAttrOfType<TypeAttr>(kGradientWireAttr))
      wire = declared.getValue();
  for (BlockArgument argument : entry.getArguments()) {
    unsigned number = argument.getArgNumber();
    if (auto name = entry.getArgAttrOfType<StringAttr>(number, nn::kInputAttr))
      inputs[name] = argument;
    if (auto state =
            entry.getArgAttrOfType<FlatSymbolRefAttr>(number, nn::kStateAttr)) {
      states[state.getValue()] = argument;
      stateOrders[state.getValue()] =
          entry.getArgAttr(number, dist::kInterleavedAttr);
    }
  }
  for (Operation &op : entry.front().without_terminator()) {
    if (op.getNumResults() == 1 &&
        skipPlacement(op.getResult(0)) != op.getResult(0))
      continue;
    if (Operation *same = findSame(&op))
      for (auto [mine, theirs] :
           llvm::zip_equal(op.getResults(), same->getResults()))
        roots[mine] = theirs;
    else {
      add(&op);
      define(&op);
    }
  }
  for (OpOperand &operand : entry.front().getTerminator()->getOpOperands()) {
    unsigned number = operand.getOperandNumber();
    Value root = rootOf(operand.get());
    if (!isMarked(operand.get()))
      givenAsIs.insert(root);
    if (auto name =
            entry.getResultAttrOfType<StringAttr>(number, nn::kOutputAttr)) {
      outputs[name] = root;
      outputOrders[name] = entry.getResultAttr(number, dist::kInterleavedAttr);
    }
    if (auto state = entry.getResultAttrOfType<FlatSymbolRefAttr>(
            number, nn::kStateAttr))
      newStates[state.getValue()] = root;
  }
}

Logical::~Logical() { written.dropAllReferences(); }

template <class Map, class Key>
static const Logical::Ops &find(const Map &map, Key key) {
  static const Logical::Ops none;
  auto found = map.find(key);
  return found == map.end() ? none : found->second;
}

const Logical::Ops &Logical::getReaders(Value root) const {
  return find(readers, root);
}
const Logical::Ops &Logical::getReaders(Value root, Operation *like) const {
  return find(readersOfKind, std::pair(root, getKind(like)));
}
const Logical::Ops &Logical::getReaders(Attribute element) const {
  return find(readersOfElement, element);
}
const Logical::Ops &Logical::getSources(OperationName name) const {
  return find(sources, name);
}

const View &Logical::getView(Value root) const {
  auto [found, isNew] = views.try_emplace(root);
  if (isNew)
    found->second = View::of(root);
  return found->second;
}

ArrayRef<Value> Logical::getViews(Value root) const {
  auto found = viewsOf.find(root);
  return found == viewsOf.end() ? ArrayRef<Value>() : found->second;
}

/// The op on other values, found or written.
Operation *Logical::make(Operation *like, ValueRange operands) {
  Operation *op = like->clone();
  op->setOperands(operands);
  if (Operation *same = findSame(op)) {
    op->destroy();
    return same;
  }
  written.push_back(op);
  add(op);
  return op;
}
