// Pads one class of dimensions. The program stays what it is: whatever combines
// elements of such a dimension gets the number that changes nothing for those
// behind its end.

#include "DimPadder.h"
#include "ChooseDims.h"
#include "dialects/NN/Casts.h"
#include "dialects/NN/Entry.h"
#include "dialects/NN/TensorTypes.h"
#include "lib/Parallel/Models/ClassRows.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace accel;
using namespace accel::parallel;

DimPadder::DimPadder(func::FuncOp entry, const StateDim &which)
    : entry(entry), size(which.size), paddedSize(which.padded), classes(entry) {
  for (BlockArgument argument : entry.getArguments())
    if (getState(entry, argument) == which.state)
      number = classes.find(argument, which.dim);
}

RankedTensorType DimPadder::widen(RankedTensorType type, unsigned dim) {
  SmallVector<int64_t> shape(type.getShape());
  shape[dim] = paddedSize;
  return RankedTensorType::get(shape, type.getElementType());
}

Value DimPadder::widenMade(Value value, unsigned dim) {
  Operation *op = value.getDefiningOp();
  RankedTensorType type = widen(typeOf(value), dim);
  OpBuilder builder(op);
  SplatElementsAttr splat;
  if (matchPattern(value, m_Constant(&splat)))
    return nn::ConstantOp::create(builder, op->getLoc(), type,
                                  splat.resizeSplat(type));
  Operation *wide = builder.clone(*op);
  wide->getResult(0).setType(type);
  return wide->getResult(0);
}

/// All that comes after reads what has been filled with zeros: one value is
/// kept, and not two.
Value DimPadder::fill(OpOperand &operand, unsigned dim,
                      nn::ReductionKind kind) {
  Value value = operand.get();
  bool isSum = kind == nn::ReductionKind::sum;
  if (isSum && zeros.contains(value))
    return value;
  OpBuilder builder(operand.getOwner());
  if (isSum && value.getDefiningOp())
    builder.setInsertionPointAfterValue(value);
  Value filled = fillPadding(builder, operand.getOwner()->getLoc(), value, dim,
                             size, kind);
  if (isSum) {
    value.replaceAllUsesExcept(filled, filled.getDefiningOp());
    zeros.insert(filled);
    dims[filled] = dim;
  }
  return filled;
}

/// Files and users get what they had.
void DimPadder::padReturn(Operation *op) {
  for (OpOperand &operand : op->getOpOperands()) {
    auto found = dims.find(operand.get());
    if (found == dims.end())
      continue;
    Value value = operand.get();
    unsigned dim = found->second;
    if (entry.getResultAttr(operand.getOperandNumber(), nn::kStateAttr)) {
      operand.set(fill(operand, dim, nn::ReductionKind::sum));
      continue;
    }
    SmallVector<int64_t> shape(typeOf(value).getShape()),
        starts(shape.size(), 0), steps(shape.size(), 1);
    shape[dim] = size;
    OpBuilder builder(op);
    operand.set(nn::SliceOp::create(
        builder, op->getLoc(),
        RankedTensorType::get(shape, typeOf(value).getElementType()), value,
        starts, shape, steps));
  }
}

/// Softmax and losses over it are reductions of rows.
bool DimPadder::replaceByRows(Operation *op) {
  OpBuilder builder(op);
  auto rowsOf = [&](Value logits, int64_t dim) -> std::optional<ClassRows> {
    auto found = dims.find(logits);
    if (found == dims.end() || found->second != dim)
      return std::nullopt;
    return ClassRows{builder, op->getLoc(), dim, size, {}, {}};
  };
  Value made;
  if (auto softmax = dyn_cast<nn::SoftmaxOp>(op)) {
    if (auto rows = rowsOf(softmax.getInput(), softmax.getDim()))
      made = rows->defineSoftmax(softmax.getInput(), softmax.getLog());
  } else if (auto loss = dyn_cast<nn::CrossEntropyOp>(op)) {
    if (auto rows =
            rowsOf(loss.getLogits(), loss.getLogits().getType().getRank() - 1))
      made = rows->defineCrossEntropy(loss.getLogits(), loss.getLabels(),
                                      loss.getIgnoreIndex());
  }
  if (!made)
    return false;
  Value before = op->getResult(0);
  if (auto found = dims.find(before); found != dims.end()) {
    unsigned dim = found->second;
    dims.erase(before); // its address may be another's
    dims[made] = dim;
  }
  before.replaceAllUsesWith(made);
  op->erase();
  return true;
}

/// None points to what was not there.
void DimPadder::checkIndices(Operation *op) {
  OpBuilder builder(op);
  auto check = [&](Value table, unsigned dim, OpOperand &indices,
                   bool nonNegative) {
    auto found = dims.find(table);
    if (found != dims.end() && found->second == dim)
      indices.set(ClassRows{builder, op->getLoc(), dim, size, {}, {}}.check(
          indices.get(), nonNegative));
  };
  if (auto gather = dyn_cast<nn::GatherOp>(op))
    check(gather.getTable(), gather.getDim(), gather.getIndicesMutable(),
          gather.getNonNegative());
  else if (auto gather = dyn_cast<nn::GatherNdOp>(op))
    check(gather.getTable(), gather.getBatchDims(), gather.getIndicesMutable(),
          /*nonNegative=*/false);
  else if (auto scatter = dyn_cast<nn::ScatterAddOp>(op))
    check(scatter.getResult(), scatter.getDim(), scatter.getIndicesMutable(),
          /*nonNegative=*/false);
}

static nn::ReductionKind getReduction(FactorKind kind) {
  return kind == FactorKind::Sum   ? nn::ReductionKind::sum
         : kind == FactorKind::Max ? nn::ReductionKind::max
                                   : nn::ReductionKind::min;
}

void DimPadder::padOp(Operation *op) {
  if (replaceByRows(op))
    return;
  checkIndices(op);
  // (A reshape has no rule before both of its types are there, and needs none.)
  ShardingRule rule;
  if (auto shardable = dyn_cast<ShardingRuleOpInterface>(op);
      shardable && !isa<nn::ReshapeOp>(op))
    rule = shardable.getShardingRule();
  std::optional<unsigned> factor =
      findFactor(op, rule, [&](Value value) -> std::optional<unsigned> {
        auto found = dims.find(value);
        return found == dims.end() ? std::nullopt
                                   : std::optional(found->second);
      });
  if (factor)
    for (auto [number, dim] : findTied(rule, *factor)) {
      OpOperand &operand = op->getOpOperand(number);
      if (typeOf(operand.get()).getDimSize(dim) == size)
        operand.set(widenMade(operand.get(), dim));
      FactorKind kind = rule.factors[*factor].kind;
      if (isa<nn::MatmulOp, nn::ReduceOp>(op) &&
          kind != FactorKind::PassThrough)
        operand.set(fill(operand, dim, getReduction(kind)));
    }
  for (Value result : op->getResults())
    if (auto found = dims.find(result); found != dims.end())
      result.setType(widen(typeOf(result), found->second));
  // Of other dimensions it takes what it did.
  if (auto slice = dyn_cast<nn::SliceOp>(op))
    slice.setSizes(slice.getType().getShape());
  bool keepsZeros = isa<dist::ConstraintOp, nn::GradientOp, nn::CutOp,
                        nn::TransposeOp, nn::ReshapeOp, nn::SliceOp>(op) ||
                    (isa<nn::CastOp>(op) && keepsZero(cast<nn::CastOp>(op)));
  if (keepsZeros && zeros.contains(op->getOperand(0)))
    zeros.insert(op->getResult(0));
}

void DimPadder::pad() {
  // By the program as it was.
  auto note = [&](Value value) {
    if (std::optional<unsigned> dim = findDim(value))
      dims[value] = *dim;
  };
  SmallVector<Operation *> ops;
  for (Operation &op : entry.front()) {
    ops.push_back(&op);
    llvm::for_each(op.getResults(), note);
  }
  for (BlockArgument argument : entry.getArguments()) {
    note(argument);
    if (!dims.contains(argument))
      continue;
    argument.setType(widen(typeOf(argument), dims[argument]));
    zeros.insert(argument);
    // It was chosen to be split, whatever its reductions look like now.
    dist::ConstraintOp constraint = findConstraint(argument);
    dist::ShardingAttr sharding = constraint.getSharding();
    SmallVector<dist::AxesAttr> axes(sharding.getDims());
    axes[dims[argument]] =
        dist::AxesAttr::get(entry.getContext(), dist::MeshOp::kTensorAxis);
    constraint.setShardingAttr(
        dist::ShardingAttr::get(entry.getContext(), sharding.getMesh(), axes));
  }
  for (Operation *op : ops) {
    auto has = [&](Value value) { return dims.contains(value); };
    if (isa<func::ReturnOp>(op))
      padReturn(op);
    else if (llvm::any_of(op->getOperands(), has) ||
             llvm::any_of(op->getResults(), has))
      padOp(op);
  }
  // What was made in the other size.
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(entry.front())))
    if (isOpTriviallyDead(&op))
      op.erase();
  entry.setFunctionType(
      FunctionType::get(entry.getContext(), entry.front().getArgumentTypes(),
                        entry.front().getTerminator()->getOperandTypes()));
}
