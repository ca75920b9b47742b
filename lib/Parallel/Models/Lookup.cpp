// Tables that indices point into: where ranks have ranges of the rows (of a
// vocabulary), each looks up what lies in its own and has zeros elsewhere. What
// is looked up is their sum; what is added to a row is added by its owner.

#include "Group.h"
#include "Zeros.h"
#include "dialects/Dist/Dist.h"
#include "dialects/Interfaces/ShardingRule.h"
#include "dialects/NN/NN.h"
#include "dialects/NN/TensorTypes.h"

using namespace mlir;
using namespace accel;
using nn::ComparePredicate;

namespace {
/// Indices into a table as indices into a rank's range of it.
struct OwnIndices {
  Value indices;
  Value isOwn; ///< of each, whether it points into the range
};
} // namespace

static Value makeSplat(OpBuilder &builder, Location loc, RankedTensorType type,
                       int64_t value) {
  Type element = type.getElementType();
  Attribute number =
      isa<FloatType>(element)
          ? Attribute(builder.getFloatAttr(element, double(value)))
          : Attribute(builder.getIntegerAttr(element, value));
  return nn::ConstantOp::create(builder, loc, type,
                                DenseElementsAttr::get(type, number));
}

/// Of `size` rows of `op`'s table `own` are the rank's. An index of another's
/// range becomes 0, whose row is not used; one that points nowhere stays what
/// it is, and stops the run as it did: it is outside every range too.
static OwnIndices makeOwn(Operation *op, OpBuilder &builder, Value indices,
                          dist::AxesAttr axes, int64_t size, int64_t own,
                          bool countsFromEnd) {
  Location loc = op->getLoc();
  RankedTensorType type =
      RankedTensorType::get(shapeOf(indices), builder.getI64Type());
  if (typeOf(indices) != type)
    indices = nn::CastOp::create(builder, loc, type, indices);
  auto splat = [&](int64_t value) {
    return makeSplat(builder, loc, type, value);
  };
  auto isIn = [&](Value value, Value first, Value end) -> Value {
    Value above = nn::CompareOp::create(builder, loc, ComparePredicate::ge,
                                        value, first),
          below = nn::CompareOp::create(builder, loc, ComparePredicate::lt,
                                        value, end);
    return nn::AndOp::create(builder, loc, above, below);
  };
  Value zero = splat(0), rows = splat(size), row = indices;
  if (countsFromEnd) {
    Value counts = nn::CompareOp::create(builder, loc, ComparePredicate::lt,
                                         indices, zero);
    Value fromEnd = nn::AddOp::create(builder, loc, indices, rows);
    row = nn::SelectOp::create(builder, loc, counts, fromEnd, indices);
  }
  auto scalar = RankedTensorType::get({}, builder.getI64Type());
  auto sharding = dist::ShardingAttr::of(op->getOperand(0).getType());
  Value rank = dist::AxisIndexOp::create(builder, loc, scalar,
                                         sharding.getMesh().getValue(), axes);
  Value first = nn::MulOp::create(builder, loc, rank,
                                  makeSplat(builder, loc, scalar, own));
  first = nn::BroadcastOp::create(builder, loc, type, first);
  Value end = nn::AddOp::create(builder, loc, first, splat(own));
  Value isOwn = isIn(row, first, end);
  Value elsewhere =
      nn::SelectOp::create(builder, loc, isIn(row, zero, rows), zero, indices);
  Value offset = nn::SubOp::create(builder, loc, row, first);
  return {nn::SelectOp::create(builder, loc, isOwn, offset, elsewhere), isOwn};
}

/// Zeros where an index is not the rank's own. The dimensions of indices stand
/// in `value` one by one, the first `batch` in front and the others from `at`.
static Value maskOthers(OpBuilder &builder, Location loc, Value value,
                        Value isOwn, size_t batch, size_t at) {
  ArrayRef<int64_t> of = shapeOf(isOwn);
  SmallVector<int64_t> shape(of.take_front(batch));
  shape.append(at - batch, 1);
  llvm::append_range(shape, of.drop_front(batch));
  shape.resize(typeOf(value).getRank(), 1);
  auto withShape = [&](ArrayRef<int64_t> wanted) {
    return RankedTensorType::get(wanted, builder.getI1Type());
  };
  if (ArrayRef(shape) != of)
    isOwn = nn::ReshapeOp::create(builder, loc, withShape(shape), isOwn);
  if (ArrayRef(shape) != shapeOf(value))
    isOwn =
        nn::BroadcastOp::create(builder, loc, withShape(shapeOf(value)), isOwn);
  Value zeros = makeSplat(builder, loc, typeOf(value), 0);
  return nn::SelectOp::create(builder, loc, isOwn, value, zeros);
}

/// Sums of what ranks look up are made by collectives, which add numbers.
static bool canSplitRows(Value table) {
  return isa<FloatType>(getElementTypeOrSelf(table));
}

namespace {
struct GatherRule
    : ShardingRuleOpInterface::ExternalModel<GatherRule, nn::GatherOp> {
  ShardingRule getShardingRule(Operation *op) const {
    auto gather = cast<nn::GatherOp>(op);
    auto rule = ShardingRule::getWhole(op);
    rule.linearGroups = {{0}};
    rule.indexFree = false;
    size_t at = gather.getDim();
    ArrayRef<int64_t> indices = shapeOf(gather.getIndices());
    for (auto [dim, size] : llvm::enumerate(indices))
      rule.passThrough(size, 1, dim, at + dim);
    for (auto [dim, size] : llvm::enumerate(shapeOf(gather.getTable())))
      if (dim != at)
        rule.passThrough(size, 0, dim,
                         dim < at ? dim : dim - 1 + indices.size());
      else if (canSplitRows(gather.getTable()))
        rule.operands[0][dim] = {rule.addFactor(size, FactorKind::Sum)};
    rule.numbered = rule.operands[0][at];
    return rule;
  }

  LogicalResult localize(Operation *op, OpBuilder &builder, ValueRange operands,
                         TypeRange types,
                         SmallVectorImpl<Value> &results) const {
    auto gather = cast<nn::GatherOp>(op);
    int64_t at = gather.getDim();
    int64_t size = shapeOf(gather.getTable())[at],
            own = shapeOf(operands[0])[at];
    auto pick = [&](Value indices, IntegerAttr padding) -> Value {
      return nn::GatherOp::create(builder, op->getLoc(), types[0], operands[0],
                                  indices, gather.getDimAttr(), padding,
                                  gather.getNonNegativeAttr());
    };
    if (own == size) {
      results.push_back(pick(operands[1], gather.getPaddingIndexAttr()));
      return success();
    }
    auto axes =
        dist::ShardingAttr::of(gather.getTable().getType()).getDims()[at];
    OwnIndices of = makeOwn(op, builder, operands[1], axes, size, own,
                            !gather.getNonNegative());
    // No gradient is made of it any more, which alone depends on padding.
    Value rows = pick(of.indices, nullptr);
    results.push_back(maskOthers(builder, op->getLoc(), rows, of.isOwn, 0, at));
    return success();
  }
};

struct GatherNdRule
    : ShardingRuleOpInterface::ExternalModel<GatherNdRule, nn::GatherNdOp> {
  ShardingRule getShardingRule(Operation *op) const {
    auto gather = cast<nn::GatherNdOp>(op);
    auto rule = ShardingRule::getWhole(op);
    rule.linearGroups = {{0}};
    rule.indexFree = false;
    size_t batch = gather.getBatchDims();
    ArrayRef<int64_t> indices = shapeOf(gather.getIndices());
    ArrayRef<int64_t> table = shapeOf(gather.getTable());
    for (size_t dim = 0; dim + 1 < indices.size(); ++dim) {
      rule.passThrough(indices[dim], 1, dim, dim);
      if (dim < batch)
        rule.operands[0][dim] = rule.results[0][dim];
    }
    if (indices.back() == 1 && canSplitRows(gather.getTable()))
      rule.operands[0][batch] = {rule.addFactor(table[batch], FactorKind::Sum)};
    rule.numbered = rule.operands[0][batch];
    size_t tuple = batch + indices.back();
    for (size_t dim = tuple; dim < table.size(); ++dim)
      rule.passThrough(table[dim], 0, dim, indices.size() - 1 + dim - tuple);
    return rule;
  }

  LogicalResult localize(Operation *op, OpBuilder &builder, ValueRange operands,
                         TypeRange types,
                         SmallVectorImpl<Value> &results) const {
    auto gather = cast<nn::GatherNdOp>(op);
    int64_t at = gather.getBatchDims();
    ArrayRef<int64_t> whole = shapeOf(gather.getTable()),
                      own = shapeOf(operands[0]);
    Value indices = operands[1], isOwn;
    if (at < static_cast<int64_t>(whole.size()) && own[at] != whole[at]) {
      auto axes =
          dist::ShardingAttr::of(gather.getTable().getType()).getDims()[at];
      OwnIndices of = makeOwn(op, builder, indices, axes, whole[at], own[at],
                              /*countsFromEnd=*/true);
      indices = of.indices;
      isOwn = of.isOwn;
    }
    results.push_back(nn::GatherNdOp::create(builder, op->getLoc(), types[0],
                                             operands[0], indices,
                                             gather.getBatchDimsAttr()));
    // A tuple has one index: that dimension comes or goes as another of size 1.
    if (isOwn)
      results[0] = maskOthers(builder, op->getLoc(), results[0], isOwn, 0, 0);
    return success();
  }
};

/// Where the table starts as zeros, ranks that have some of the indices have
/// terms of the sum; any other start would count once per rank. Batches have
/// indices of their own, and pass through.
struct ScatterAddRule
    : ShardingRuleOpInterface::ExternalModel<ScatterAddRule, nn::ScatterAddOp> {
  ShardingRule getShardingRule(Operation *op) const {
    auto scatter = cast<nn::ScatterAddOp>(op);
    auto rule = ShardingRule::getWhole(op);
    rule.linearGroups = {{0, 2}};
    rule.indexFree = false;
    size_t at = scatter.getDim(), batch = scatter.getBatchDims();
    ArrayRef<int64_t> indices = shapeOf(scatter.getIndices());
    if (parallel::isZeros(scatter.getInit())) {
      rule.linearGroups.push_back({2});
      for (size_t dim = batch; dim < indices.size(); ++dim)
        rule.operands[1][dim] = rule.operands[2][at + dim - batch] = {
            rule.addFactor(indices[dim], FactorKind::Sum)};
    }
    for (auto [dim, size] : llvm::enumerate(shapeOf(scatter.getInit()))) {
      if (dim == at) {
        rule.passThrough(size, 0, dim, dim);
        continue;
      }
      unsigned factor = rule.addFactor(size);
      rule.operands[0][dim] = rule.results[0][dim] = {factor};
      rule.operands[2][dim < at ? dim : dim - 1 + indices.size() - batch] = {
          factor};
      if (dim < batch)
        rule.operands[1][dim] = {factor};
    }
    rule.numbered = rule.operands[0][at];
    return rule;
  }

  LogicalResult localize(Operation *op, OpBuilder &builder, ValueRange operands,
                         TypeRange types,
                         SmallVectorImpl<Value> &results) const {
    auto scatter = cast<nn::ScatterAddOp>(op);
    size_t at = scatter.getDim(), batch = scatter.getBatchDims();
    int64_t size = shapeOf(scatter.getInit())[at],
            own = shapeOf(operands[0])[at];
    Value indices = operands[1], updates = operands[2];
    if (own != size) {
      auto axes =
          dist::ShardingAttr::of(scatter.getInit().getType()).getDims()[at];
      OwnIndices of = makeOwn(op, builder, indices, axes, size, own,
                              /*countsFromEnd=*/true);
      indices = of.indices;
      updates = maskOthers(builder, op->getLoc(), updates, of.isOwn, batch, at);
    }
    results.push_back(nn::ScatterAddOp::create(builder, op->getLoc(), types[0],
                                               operands[0], indices, updates,
                                               at, batch));
    return success();
  }
};
} // namespace

void parallel::attachLookupModels(MLIRContext *context) {
  nn::GatherOp::attachInterface<GatherRule>(*context);
  nn::GatherNdOp::attachInterface<GatherNdRule>(*context);
  nn::ScatterAddOp::attachInterface<ScatterAddRule>(*context);
}
