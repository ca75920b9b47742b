// Which values of the logical program are sums, and of what.

#include "Logical.h"

#include "dialects/NN/NN.h"

using namespace mlir;
using namespace accel;
using namespace accel::equivalence;

/// How many sums a term may be in, one of another.
static constexpr size_t kSums = 64;
/// How many terms a sum may have.
static constexpr size_t kTerms = 1024;

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
      if (isa<nn::AddOp, nn::SubOp>(reader)) {
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

std::vector<Value> Logical::getLeaves(std::vector<Value> values) const {
  std::vector<Value> leaves;
  while (!values.empty()) {
    if (leaves.size() + values.size() > kTerms)
      return {};
    Value value = values.back();
    values.pop_back();
    if (auto terms = getTerms(value)) {
      values.push_back(terms->first);
      values.push_back(terms->second);
    } else {
      leaves.push_back(value);
    }
  }
  // To be compared: their order means nothing.
  llvm::sort(leaves, [](Value lhs, Value rhs) {
    return lhs.getAsOpaquePointer() < rhs.getAsOpaquePointer();
  });
  return leaves;
}

/// A number that sums of the same leaves share.
uint64_t Logical::numberLeaves(Value root) {
  if (auto known = leafNumbers.find(root); known != leafNumbers.end())
    return known->second;
  auto terms = getTerms(root);
  uint64_t number =
      terms ? numberLeaves(terms->first) + numberLeaves(terms->second)
            : static_cast<size_t>(hash_value(root));
  leafNumbers[root] = number;
  return number;
}

SmallVector<Value> Logical::findSums(ArrayRef<Value> leaves) {
  // Operands come first, so that no number asks for many others.
  for (; numbered < added.size(); ++numbered)
    sumsByLeaves[numberLeaves(added[numbered])].push_back(added[numbered]);
  uint64_t number = 0;
  for (Value leaf : leaves)
    number += numberLeaves(leaf);
  SmallVector<Value> found;
  auto same = sumsByLeaves.find(number);
  if (same == sumsByLeaves.end())
    return found;
  for (Value sum : same->second)
    if (ArrayRef(getLeaves({sum})) == leaves)
      found.push_back(sum);
  return found;
}

/// A root is known to be a sum from now on.
void Logical::noteSum(Value root, Operation *add) {
  if (!addedFrom.try_emplace(root, add).second)
    return;
  if (!root.getDefiningOp<nn::AddOp>())
    added.push_back(root);
  // It was a leaf of others.
  leafNumbers.clear();
  sumsByLeaves.clear();
  numbered = 0;
}

/// What adds or subtracts two values to give a root; null if it is neither.
Operation *Logical::getCombination(Value root) const {
  if (Operation *op = addedFrom.lookup(root))
    return op;
  if (Operation *op = subtractedFrom.lookup(root))
    return op;
  Operation *op = root.getDefiningOp();
  return isa_and_present<nn::AddOp, nn::SubOp>(op) ? op : nullptr;
}

bool Logical::isSumOf(Value sum, Value term) const {
  llvm::SmallSetVector<Value, 8> parts;
  parts.insert(rootOf(sum));
  for (size_t next = 0; next < parts.size() && next < kSums; ++next) {
    if (parts[next] == term)
      return true;
    if (Operation *op = getCombination(parts[next]))
      for (Value part : op->getOperands())
        parts.insert(rootOf(part));
  }
  return false;
}

void Logical::distribute(Operation *op, unsigned operand, Value term) {
  // From the whole sum down to the term.
  Value sum = rootOf(op->getOperand(operand));
  auto makeOf = [&](Value value) {
    SmallVector<Value> operands(op->getOperands());
    operands[operand] = value;
    return make(op, operands);
  };
  for (size_t depth = 0; sum != term && depth < kSums; ++depth) {
    Operation *combination = getCombination(sum);
    if (!combination)
      return;
    Value lhs = rootOf(combination->getOperand(0)),
          rhs = rootOf(combination->getOperand(1));
    Operation *first = makeOf(lhs), *second = makeOf(rhs);
    OpBuilder builder(op->getContext());
    Value whole = rootOf(op->getResult(0)), left = rootOf(first->getResult(0)),
          right = rootOf(second->getResult(0));
    bool isSum = isa<nn::AddOp>(combination);
    Operation *made =
        isSum ? nn::AddOp::create(builder, op->getLoc(), left, right)
              : nn::SubOp::create(builder, op->getLoc(), left, right)
                    .getOperation();
    if (Operation *same = findSame(made)) {
      made->destroy();
      made = same;
      sums.try_emplace(made->getResult(0), whole);
    } else {
      written.push_back(made);
      add(made);
      sums[made->getResult(0)] = whole;
    }
    if (isSum)
      noteSum(whole, made);
    else
      subtractedFrom.try_emplace(whole, made);
    bool inFirst = isSumOf(lhs, term);
    sum = inFirst ? lhs : rhs;
    op = inFirst ? first : second;
  }
}
