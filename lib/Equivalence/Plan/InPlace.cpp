// How far what a kernel computes looks around in one of its arguments.

#include "InPlace.h"

#include "dialects/NN/NN.h"
#include "dialects/NN/TensorTypes.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace accel;
using namespace accel::equivalence;

namespace {
/// What an element of a value depends on.
enum class Reach {
  None, ///< nothing of the argument
  /// Numbers that it has in common with its neighbours, or with all of its
  /// row: a kernel computes them where it reads them, so those of neighbours
  /// that are written already would be others.
  Row,
  Element, ///< the argument's element in the same place, and such reductions
  Far      ///< others
};

class RowFollower {
public:
  RowFollower(func::FuncOp kernel, int64_t rows) : kernel(kernel), rows(rows) {}
  bool follow(unsigned argument);

private:
  Reach at(Value value) const { return reach.lookup(value); }
  Reach follow(Operation *op);
  Reach followOperands(Operation *op, unsigned first, Reach result);
  bool isInRow(Value value, int64_t begin);

  func::FuncOp kernel;
  int64_t rows;
  llvm::DenseMap<Value, Reach> reach;
};
} // namespace

/// Whether an op leaves every element in its place, row-major: it moves, or
/// adds, dimensions of size 1.
static bool keepsOrder(Operation *op) {
  if (isa<nn::ReshapeOp>(op))
    return true;
  if (!isa<nn::TransposeOp, nn::BroadcastOp>(op) ||
      typeOf(op->getOperand(0)).getNumElements() !=
          typeOf(op->getResult(0)).getNumElements())
    return false;
  auto transpose = dyn_cast<nn::TransposeOp>(op);
  if (!transpose)
    return true;
  SmallVector<int64_t> moved;
  for (int64_t dim : transpose.getPermutation())
    if (typeOf(transpose.getInput()).getDimSize(dim) != 1)
      moved.push_back(dim);
  return llvm::is_sorted(moved);
}

/// Whether the dimensions from `begin` on lie in one row of the value.
bool RowFollower::isInRow(Value value, int64_t begin) {
  int64_t leading = 1;
  for (int64_t dim = 0; dim < begin; ++dim)
    leading *= typeOf(value).getDimSize(dim);
  return leading % rows == 0;
}

/// `result`, if the operands from `first` on have nothing of the argument.
Reach RowFollower::followOperands(Operation *op, unsigned first, Reach result) {
  for (Value operand : op->getOperands().drop_front(first))
    if (at(operand) != Reach::None)
      return Reach::Far;
  return result;
}

Reach RowFollower::follow(Operation *op) {
  Reach most = Reach::None;
  for (Value operand : op->getOperands())
    most = std::max(most, at(operand));
  if (most == Reach::None || most == Reach::Far)
    return most;
  if (op->hasTrait<nn::Elementwise>() || keepsOrder(op))
    return most;
  Value first = op->getOperand(0);
  return llvm::TypeSwitch<Operation *, Reach>(op)
      .Case([&](nn::BroadcastOp op) {
        // What elements have in common stays with these: no dimension that it
        // has is behind one that repeats it.
        ArrayRef<int64_t> from = op.getInput().getType().getShape(),
                          to = op.getType().getShape();
        for (bool hasOwn = false; !to.empty(); to = to.drop_back()) {
          int64_t size = from.empty() ? 1 : from.back();
          if (hasOwn && size != to.back())
            return Reach::Far;
          hasOwn |= size != 1;
          from = from.empty() ? from : from.drop_back();
        }
        return most == Reach::Row ? Reach::Row : Reach::Far;
      })
      .Case([&](nn::ReduceOp op) {
        int64_t rank = typeOf(first).getRank();
        ArrayRef<int64_t> dims = op.getDims();
        bool trailing = !dims.empty() && dims.back() == rank - 1 &&
                        dims.front() == rank - int64_t(dims.size());
        return trailing && isInRow(first, dims.front()) ? Reach::Row
                                                        : Reach::Far;
      })
      .Case([&](nn::SoftmaxOp op) {
        int64_t last = typeOf(first).getRank() - 1;
        return int64_t(op.getDim()) == last && isInRow(first, last)
                   ? most
                   : Reach::Far;
      })
      .Case([&](nn::LayerNormOp op) {
        return isInRow(first, op.getDim()) ? followOperands(op, 1, most)
                                           : Reach::Far;
      })
      .Case([&](nn::CrossEntropyOp op) {
        return isInRow(first, typeOf(first).getRank() - 1)
                   ? followOperands(op, 1, Reach::Row)
                   : Reach::Far;
      })
      .Case([&](nn::ScatterAddOp op) { return followOperands(op, 1, most); })
      .Default([](Operation *) { return Reach::Far; });
}

bool RowFollower::follow(unsigned argument) {
  reach[kernel.getArgument(argument)] = Reach::Element;
  for (Operation &op : kernel.front().without_terminator()) {
    Reach found = follow(&op);
    for (Value result : op.getResults())
      reach[result] = found;
  }
  // Results of other shapes have loops of their own, one after another.
  return llvm::all_of(
      kernel.front().getTerminator()->getOperands(), [&](Value value) {
        return at(value) != Reach::Far &&
               typeOf(value).getShape() ==
                   cast<RankedTensorType>(kernel.getResultTypes().front())
                       .getShape();
      });
}

bool accel::equivalence::mayWriteInPlace(func::FuncOp kernel, unsigned argument,
                                         int64_t rows) {
  if (rows < 1 || typeOf(kernel.getArgument(argument)).getNumElements() % rows)
    return false;
  return RowFollower(kernel, rows).follow(argument);
}
