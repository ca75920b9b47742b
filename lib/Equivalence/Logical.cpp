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

/// How many sums a term may be in, one of another.
static constexpr size_t kSums = 64;

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

void Logical::add(Operation *op) {
  if (op->getNumOperands() == 0)
    sources[op->getName()].insert(op);
  for (Value operand : op->getOperands()) {
    Value root = rootOf(operand);
    readers[root].insert(op);
    SplatElementsAttr splat;
    if (matchPattern(root, m_Constant(&splat)))
      readersOfElement[splat.getSplatValue<Attribute>()].insert(op);
  }
  if (!isa<nn::ReshapeOp, nn::TransposeOp>(op))
    return;
  View view = getView(rootOf(op->getOperand(0)));
  if (auto transpose = dyn_cast<nn::TransposeOp>(op))
    view.transpose(transpose.getPermutation());
  else if (!view.reshape(shapeOf(op->getResult(0))))
    return; // a root of its own
  auto &family = viewsOf[view.root];
  if (family.empty())
    family.push_back(view.root);
  family.push_back(op->getResult(0));
  views[op->getResult(0)] = std::move(view);
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

std::optional<std::pair<Value, Value>> Logical::getTerms(Value root) const {
  Operation *op = addedFrom.lookup(root);
  if (!op)
    op = root.getDefiningOp<nn::AddOp>();
  if (!op)
    return std::nullopt;
  return std::pair(rootOf(op->getOperand(0)), rootOf(op->getOperand(1)));
}

SmallVector<Operation *> Logical::findReadersOfSums(OperationName name,
                                                    Value term) const {
  SmallVector<Operation *> found;
  llvm::SmallSetVector<Value, 8> added;
  added.insert(term);
  for (size_t next = 0; next < added.size() && next < kSums; ++next)
    for (Operation *reader : getReaders(added[next])) {
      if (isa<nn::AddOp>(reader)) {
        Value sum = reader->getResult(0);
        added.insert(sum);
        if (Value is = getSumOf(sum))
          added.insert(is);
      } else if (next > 0 && reader->getName() == name) {
        found.push_back(reader);
      }
    }
  return found;
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

void Logical::distribute(Operation *op, Value term) {
  // From the whole sum down to the term.
  Value sum = rootOf(op->getOperand(0));
  auto isIn = [&](Value part) {
    llvm::SmallSetVector<Value, 8> parts;
    parts.insert(part);
    for (size_t next = 0; next < parts.size() && next < kSums; ++next) {
      if (parts[next] == term)
        return true;
      if (auto terms = getTerms(parts[next])) {
        parts.insert(terms->first);
        parts.insert(terms->second);
      }
    }
    return false;
  };
  for (size_t depth = 0; sum != term && depth < kSums; ++depth) {
    auto terms = getTerms(sum);
    if (!terms)
      return;
    Operation *first = make(op, terms->first),
              *second = make(op, terms->second);
    OpBuilder builder(op->getContext());
    auto add =
        nn::AddOp::create(builder, op->getLoc(), first->getResult(0).getType(),
                          first->getResult(0), second->getResult(0));
    Value whole = rootOf(op->getResult(0));
    if (Operation *same = findSame(add)) {
      add->destroy();
      sums.try_emplace(same->getResult(0), whole);
      addedFrom.try_emplace(whole, same);
    } else {
      written.push_back(add);
      this->add(add);
      sums[add.getResult()] = whole;
      addedFrom.try_emplace(whole, add);
    }
    bool inFirst = isIn(terms->first);
    sum = inFirst ? terms->first : terms->second;
    op = inFirst ? first : second;
  }
}
