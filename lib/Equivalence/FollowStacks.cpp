// Stacks of matrices of which the logical program does the same to each.

#include "Follow.h"

#include "dialects/NN/NN.h"

using namespace mlir;
using namespace accel;
using namespace accel::equivalence;

/// Whether two ops are the same function of matrices of one type.
static bool areAlike(nn::NewtonSchulzOp lhs, nn::NewtonSchulzOp rhs) {
  return lhs.getType().getShape() == rhs.getType().getShape() &&
         lhs.getType().getElementType() == rhs.getType().getElementType() &&
         holds(Premise::StackedAlike, haveSameAttributes(lhs, rhs));
}

/// Where the logical program iterates on each of what is joined, matrix by
/// matrix, and what is left is zeros, writes the iterations on all of it; false
/// if it does not.
bool Follower::stackMatrices(nn::ConcatOp op) {
  // A rank's one row of a matrix is joined as such.
  int64_t rank = op.getType().getRank();
  if (op.getDim() != 0 || (rank != 2 && rank != 3))
    return false;
  std::vector<SmallVector<nn::NewtonSchulzOp>> candidates;
  int64_t zeros = 0;
  for (Value input : op.getInputs()) {
    if (at(input).isZero()) {
      zeros += shapeOf(input)[0];
      continue;
    }
    if (zeros != 0 || shapeOf(input)[0] != 1)
      return false;
    auto &readers = candidates.emplace_back();
    for (const View &view : getViews(input)) {
      ArrayRef<Value> family = logical.getViews(view.root);
      for (Value value : family.empty() ? ArrayRef(view.root) : family)
        for (Operation *reader : logical.getReaders(value))
          if (auto iterations = dyn_cast<nn::NewtonSchulzOp>(reader);
              iterations && iterations.getType().getRank() == 2)
            readers.push_back(iterations);
    }
  }
  if (candidates.empty())
    return false;
  bool found = false;
  for (nn::NewtonSchulzOp first : candidates.front()) {
    SmallVector<nn::NewtonSchulzOp> ops;
    for (ArrayRef<nn::NewtonSchulzOp> readers : candidates) {
      auto alike = llvm::find_if(readers, [&](nn::NewtonSchulzOp reader) {
        return areAlike(first, reader);
      });
      if (alike == readers.end())
        break;
      ops.push_back(ops.empty() ? first : *alike);
    }
    if (ops.size() < candidates.size())
      continue;
    logical.stack(ops, zeros);
    found = true;
  }
  return found;
}

/// What is joined may be iterated on together.
void Follower::followStack(Operation *op, Known &) {
  if (auto concat = dyn_cast<nn::ConcatOp>(op);
      concat && stackMatrices(concat)) {
    addViews(op);
    applyMaps(op);
  }
}
