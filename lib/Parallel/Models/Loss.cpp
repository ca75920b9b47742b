// Softmax, and the loss that is made of it. Ranks that have some of the classes
// (of a vocabulary) need of the others but two numbers for each row, the
// largest and the sum of exponentials, and the loss the label's logit: they
// exchange these, and no logits.

#include "Group.h"
#include "dialects/Dist/Dist.h"
#include "dialects/Interfaces/ShardingRule.h"
#include "dialects/NN/NN.h"

using namespace mlir;
using namespace accel;

static RankedTensorType typeOf(Value value) {
  return cast<RankedTensorType>(value.getType());
}

namespace {
/// Ops on a rank's part of rows whose classes stand in dimension `dim`, and of
/// which `axes` have parts.
struct RowOps {
  OpBuilder &builder;
  Location loc;
  int64_t dim;
  FlatSymbolRefAttr mesh;
  dist::AxesAttr axes;

  template <typename Op, typename... Args> Value make(Args &&...args) const {
    return Op::create(builder, loc, std::forward<Args>(args)...)->getResult(0);
  }
  Value splat(RankedTensorType type, int64_t value) const {
    Type element = type.getElementType();
    Attribute number =
        isa<FloatType>(element)
            ? Attribute(builder.getFloatAttr(element, double(value)))
            : Attribute(builder.getIntegerAttr(element, value));
    return make<nn::ConstantOp>(type, DenseElementsAttr::get(type, number));
  }
  /// Of all classes, those of other ranks among them.
  Value reduce(nn::ReductionKind kind, Value value) const {
    SmallVector<int64_t> rows(typeOf(value).getShape());
    rows.erase(rows.begin() + dim);
    Value own = make<nn::ReduceOp>(
        RankedTensorType::get(rows, typeOf(value).getElementType()), kind,
        value, ArrayRef<int64_t>{dim});
    auto combine = kind == nn::ReductionKind::max ? dist::Reduction::max
                                                  : dist::Reduction::sum;
    return make<dist::AllReduceOp>(own.getType(), combine, own, mesh.getValue(),
                                   axes, TypeAttr());
  }
  /// What a row has, for each of its classes.
  Value expand(Value row, ArrayRef<int64_t> shape) const {
    SmallVector<int64_t> units(typeOf(row).getShape());
    units.insert(units.begin() + dim, 1);
    Type element = typeOf(row).getElementType();
    row = make<nn::ReshapeOp>(RankedTensorType::get(units, element), row);
    return make<nn::BroadcastOp>(RankedTensorType::get(shape, element), row);
  }
  /// What is at most 0, so that no exponential overflows.
  Value shift(Value logits) const {
    Value largest = reduce(nn::ReductionKind::max, logits);
    return make<nn::SubOp>(logits, expand(largest, typeOf(logits).getShape()));
  }
};
} // namespace

namespace {
struct SoftmaxRule
    : ShardingRuleOpInterface::ExternalModel<SoftmaxRule, nn::SoftmaxOp> {
  ShardingRule getShardingRule(Operation *op) const {
    auto softmax = cast<nn::SoftmaxOp>(op);
    auto rule = ShardingRule::getWhole(op);
    rule.indexFree = false;
    for (auto [dim, size] :
         llvm::enumerate(softmax.getInput().getType().getShape())) {
      auto kind = dim == softmax.getDim() ? FactorKind::Inside
                                          : FactorKind::PassThrough;
      rule.operands[0][dim] =
          rule.results[0][dim] = {rule.addFactor(size, kind)};
    }
    return rule;
  }

  LogicalResult localize(Operation *op, OpBuilder &builder, ValueRange operands,
                         TypeRange types,
                         SmallVectorImpl<Value> &results) const {
    auto softmax = cast<nn::SoftmaxOp>(op);
    int64_t dim = softmax.getDim();
    auto type = cast<RankedTensorType>(types[0]);
    if (type.getDimSize(dim) == softmax.getType().getDimSize(dim)) {
      results.push_back(nn::SoftmaxOp::create(
          builder, op->getLoc(), type, operands[0], dim, softmax.getLog()));
      return success();
    }
    auto sharding = dist::ShardingAttr::of(softmax.getInput().getType());
    RowOps rows{builder, op->getLoc(), dim, sharding.getMesh(),
                sharding.getDims()[dim]};
    Value shifted = rows.shift(operands[0]);
    Value powers = rows.make<nn::ExpOp>(shifted);
    Value sum = rows.reduce(nn::ReductionKind::sum, powers);
    if (softmax.getLog())
      results.push_back(rows.make<nn::SubOp>(
          shifted, rows.expand(rows.make<nn::LogOp>(sum), type.getShape())));
    else
      results.push_back(
          rows.make<nn::DivOp>(powers, rows.expand(sum, type.getShape())));
    return success();
  }
};

struct CrossEntropyRule
    : ShardingRuleOpInterface::ExternalModel<CrossEntropyRule,
                                             nn::CrossEntropyOp> {
  ShardingRule getShardingRule(Operation *op) const {
    auto loss = cast<nn::CrossEntropyOp>(op);
    auto rule = ShardingRule::getWhole(op);
    rule.indexFree = false;
    for (auto [dim, size] :
         llvm::enumerate(loss.getLabels().getType().getShape())) {
      rule.passThrough(size, 0, dim, dim);
      rule.operands[1][dim] = rule.results[0][dim];
    }
    rule.operands[0].back() = {rule.addFactor(
        loss.getLogits().getType().getShape().back(), FactorKind::Inside)};
    return rule;
  }

  LogicalResult localize(Operation *op, OpBuilder &builder, ValueRange operands,
                         TypeRange types,
                         SmallVectorImpl<Value> &results) const {
    auto loss = cast<nn::CrossEntropyOp>(op);
    RankedTensorType whole = loss.getLogits().getType(),
                     own = typeOf(operands[0]);
    int64_t dim = whole.getRank() - 1, classes = whole.getDimSize(dim),
            ownClasses = own.getDimSize(dim);
    if (ownClasses == classes) {
      results.push_back(nn::CrossEntropyOp::create(
          builder, op->getLoc(), types[0], operands[0], operands[1],
          loss.getIgnoreIndexAttr()));
      return success();
    }
    auto sharding = dist::ShardingAttr::of(whole);
    RowOps rows{builder, op->getLoc(), dim, sharding.getMesh(),
                sharding.getDims()[dim]};
    Type i64 = builder.getI64Type();
    auto ofRows = RankedTensorType::get(typeOf(operands[1]).getShape(), i64),
         ofClasses = RankedTensorType::get(own.getShape(), i64),
         all = RankedTensorType::get({classes}, i64),
         scalar = RankedTensorType::get({}, i64);
    Value labels = operands[1];
    if (labels.getType() != ofRows)
      labels = rows.make<nn::CastOp>(ofRows, labels);
    Value ignored =
        rows.make<nn::CompareOp>(nn::ComparePredicate::eq, labels,
                                 rows.splat(ofRows, loss.getIgnoreIndex()));
    labels = rows.make<nn::SelectOp>(ignored, rows.splat(ofRows, 0), labels);
    // Each label is itself, and one that is no class stops the run as it did.
    labels = rows.make<nn::GatherOp>(ofRows, rows.make<nn::IotaOp>(all, 0, 0),
                                     labels, uint64_t(0), IntegerAttr(), true);
    Value rank =
        rows.make<dist::AxisIndexOp>(scalar, rows.mesh.getValue(), rows.axes);
    Value first = rows.make<nn::MulOp>(rank, rows.splat(scalar, ownClasses));
    Value number =
        rows.make<nn::AddOp>(rows.make<nn::IotaOp>(ofClasses, dim, 0),
                             rows.make<nn::BroadcastOp>(ofClasses, first));
    Value isLabel = rows.make<nn::CompareOp>(
        nn::ComparePredicate::eq, number, rows.expand(labels, own.getShape()));

    Value shifted = rows.shift(operands[0]);
    Value sum =
        rows.reduce(nn::ReductionKind::sum, rows.make<nn::ExpOp>(shifted));
    // One rank has the label's logit, and the others zeros.
    Value label = rows.reduce(
        nn::ReductionKind::sum,
        rows.make<nn::SelectOp>(isLabel, shifted, rows.splat(own, 0)));
    Value each = rows.make<nn::SubOp>(rows.make<nn::LogOp>(sum), label);
    results.push_back(
        rows.make<nn::SelectOp>(ignored, rows.splat(typeOf(each), 0), each));
    return success();
  }
};
} // namespace

void parallel::attachLossModels(MLIRContext *context) {
  nn::SoftmaxOp::attachInterface<SoftmaxRule>(*context);
  nn::CrossEntropyOp::attachInterface<CrossEntropyRule>(*context);
}
