// Comparing terms op by op.

#include "AlikeTerms.h"

#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace accel;
using namespace accel::transforms;

std::optional<int64_t> transforms::getNumber(Value value) {
  SplatElementsAttr elements;
  if (!matchPattern(value, m_Constant(&elements)) ||
      !elements.getElementType().isInteger(64))
    return std::nullopt;
  return elements.getSplatValue<APInt>().getSExtValue();
}

bool transforms::isStateArgument(Value value) {
  auto argument = dyn_cast<BlockArgument>(value);
  if (!argument)
    return false;
  auto entry = dyn_cast<func::FuncOp>(argument.getOwner()->getParentOp());
  return entry &&
         entry.getArgAttr(argument.getArgNumber(), nn::kStateAttr) != nullptr;
}

/// An op's attributes but those that may differ between terms.
static NamedAttrList getCommon(Operation *op) {
  NamedAttrList attributes(op->getAttrDictionary());
  if (auto slice = dyn_cast<nn::SliceOp>(op))
    attributes.erase(slice.getStartsAttrName());
  return attributes;
}

bool AlikeTerms::compare(Value one, Value other, Places &places) const {
  auto [known, isNew] = places.try_emplace(one, other);
  if (!isNew)
    return known->second == other;
  if (one == other)
    return true;
  if (one.getType() != other.getType())
    return false;
  if (isStateArgument(one) || isStateArgument(other))
    return isStateArgument(one) && isStateArgument(other);
  if (getNumber(one) && getNumber(other))
    return true;
  Operation *first = one.getDefiningOp(), *second = other.getDefiningOp();
  if (!first || !second || first->getName() != second->getName() ||
      first->getNumOperands() != second->getNumOperands() ||
      first->getNumOperands() == 0 || first->getNumResults() != 1 ||
      second->getNumResults() != 1 || first->getNumRegions() != 0 ||
      getCommon(first) != getCommon(second))
    return false;
  // Slices at different places are of what is the same in all terms.
  if (auto slice = dyn_cast<nn::SliceOp>(first))
    if (slice.getStarts() != cast<nn::SliceOp>(second).getStarts() &&
        first->getOperand(0) != second->getOperand(0))
      return false;
  for (auto [a, b] : llvm::zip(first->getOperands(), second->getOperands()))
    if (!compare(a, b, places))
      return false;
  return true;
}

bool AlikeTerms::add(Value term) {
  Places places;
  if (!compare(getFirst(), term, places))
    return false;
  terms.push_back(term);
  others.push_back(std::move(places));
  return true;
}

SmallVector<Value> AlikeTerms::getAll(Value value) const {
  SmallVector<Value> all{value};
  for (const Places &places : others) {
    auto found = places.find(value);
    all.push_back(found == places.end() ? value : found->second);
  }
  return all;
}

bool AlikeTerms::varies(Value value) const {
  return !llvm::all_equal(getAll(value));
}

SmallVector<Value> AlikeTerms::getOfParameters() const {
  SmallVector<Value> found;
  if (!others.empty())
    for (auto [value, place] : others.front())
      if (variesByParameter(value))
        found.push_back(value);
  return found;
}

bool AlikeTerms::variesByParameter(Value value) const {
  SmallVector<Value> left{value};
  llvm::SmallDenseSet<Value> seen;
  while (!left.empty()) {
    Value next = left.pop_back_val();
    if (!seen.insert(next).second || !varies(next))
      continue;
    if (isStateArgument(next))
      return true;
    if (Operation *op = next.getDefiningOp())
      llvm::append_range(left, op->getOperands());
  }
  return false;
}
