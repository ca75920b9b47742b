// Ranks that were a dimension are one on each of them: what cuts or joins
// beside such a dimension does so without it.

#include "DropUnits.h"

#include "dialects/NN/NN.h"
#include "lib/Parallel/Propagation/BatchPlaces.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;
using namespace accel;
using namespace accel::parallel;

/// What a value is with a dimension of one element, `unit`, put in; null if it
/// is nothing with one.
static Value getWithout(Value value, unsigned unit) {
  auto op = value.getDefiningOp<nn::ReshapeOp>();
  ArrayRef<int64_t> shape = shapeOf(value);
  if (!op || shape[unit] != 1 ||
      ArrayRef(withDim(shape, unit, {})) != shapeOf(op.getInput()))
    return {};
  return op.getInput();
}

/// Stated, not inferred: what is not valid is the verifier's to say.
static Type getTypeWithout(Value value, unsigned unit) {
  auto type = cast<RankedTensorType>(value.getType());
  return type.clone(withDim(type.getShape(), unit, {}));
}

static Value dropUnit(nn::SliceOp op, OpBuilder &builder) {
  for (unsigned dim = 0; dim < shapeOf(op.getResult()).size(); ++dim)
    if (Value input = getWithout(op.getInput(), dim))
      return nn::SliceOp::create(
          builder, op.getLoc(), getTypeWithout(op.getResult(), dim), input,
          withDim(op.getStarts(), dim, {}), withDim(op.getSizes(), dim, {}),
          withDim(op.getSteps(), dim, {}));
  return {};
}

static Value dropUnit(nn::ConcatOp op, OpBuilder &builder) {
  for (unsigned dim = 0; dim < shapeOf(op.getResult()).size(); ++dim) {
    SmallVector<Value> inputs;
    for (Value input : op.getInputs())
      if (Value without = getWithout(input, dim); without && dim != op.getDim())
        inputs.push_back(without);
    if (inputs.size() == op.getInputs().size())
      return nn::ConcatOp::create(builder, op.getLoc(),
                                  getTypeWithout(op.getResult(), dim), inputs,
                                  op.getDim() - (dim < op.getDim()));
  }
  return {};
}

void parallel::dropUnits(func::FuncOp function) {
  for (Operation &op : llvm::make_early_inc_range(function.front())) {
    OpBuilder builder(&op);
    Value made;
    if (auto slice = dyn_cast<nn::SliceOp>(op))
      made = dropUnit(slice, builder);
    else if (auto concat = dyn_cast<nn::ConcatOp>(op))
      made = dropUnit(concat, builder);
    if (!made)
      continue;
    Value whole = reshape(builder, op.getLoc(), made, shapeOf(op.getResult(0)));
    // What takes the dimension out again comes next.
    for (Operation *user : llvm::to_vector(op.getResult(0).getUsers()))
      if (auto back = dyn_cast<nn::ReshapeOp>(user)) {
        OpBuilder there(back);
        back.replaceAllUsesWith(
            reshape(there, back.getLoc(), made, shapeOf(back.getResult())));
      }
    op.getResult(0).replaceAllUsesWith(whole);
    op.erase();
  }
  for (Operation &op :
       llvm::make_early_inc_range(llvm::reverse(function.front())))
    if (isa<nn::ReshapeOp>(op) && isOpTriviallyDead(&op))
      op.erase();
}
