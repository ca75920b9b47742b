// Ranks that were a dimension are one on each of them: what cuts or joins
// beside such a dimension does so without it, and so do collectives between.

#include "DropUnits.h"

#include "dialects/Dist/Dist.h"
#include "dialects/NN/NN.h"
#include "lib/Parallel/Propagation/BatchPlaces.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace accel;
using namespace accel::parallel;

/// Stated, not inferred: what is not valid is the verifier's to say.
static Type getTypeWithout(Value value, unsigned unit) {
  auto type = cast<RankedTensorType>(value.getType());
  return type.clone(withDim(type.getShape(), unit, {}));
}

static Value getWithout(Value value, unsigned unit);

/// A collective along another dimension, without `unit`.
template <typename Collective>
static Value takeBefore(Collective op, unsigned unit) {
  Value input = op.getDim() == unit ? Value() : getWithout(op.getInput(), unit);
  if (!input)
    return {};
  OpBuilder builder(op);
  auto made = cast<Collective>(builder.clone(*op));
  made.getInputMutable().assign(input);
  made.setDim(op.getDim() - (unit < op.getDim()));
  made.getResult().setType(
      cast<RankedTensorType>(getTypeWithout(op.getResult(), unit)));
  return made;
}

/// What a value is with a dimension of one element, `unit`, put in, by itself
/// or in front of a collective; null if it is nothing with one.
static Value getWithout(Value value, unsigned unit) {
  Operation *op = value.getDefiningOp();
  if (!op)
    return {};
  return llvm::TypeSwitch<Operation *, Value>(op)
      .Case([&](nn::ReshapeOp op) -> Value {
        ArrayRef<int64_t> shape = shapeOf(value);
        if (shape[unit] != 1 ||
            ArrayRef(withDim(shape, unit, {})) != shapeOf(op.getInput()))
          return {};
        return op.getInput();
      })
      .Case<dist::AllSliceOp, dist::AllGatherOp, dist::ReduceScatterOp>(
          [&](auto op) { return takeBefore(op, unit); })
      .Default(Value());
}

static Value dropUnit(nn::SliceOp op, OpBuilder &builder) {
  // Neighbours are cut, of shares; every second one of a model's own heads.
  if (llvm::any_of(op.getSteps(), [](int64_t step) { return step != 1; }))
    return {};
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
    if (isa<nn::ReshapeOp, dist::AllSliceOp, dist::AllGatherOp,
            dist::ReduceScatterOp>(op) &&
        isOpTriviallyDead(&op))
      op.erase();
}
