// By the rules that say what ranks may have pieces of: what is right for ranks
// one beside another is right for parts one after another.

#include "RowPlaces.h"

#include "dialects/Interfaces/ShardingRule.h"
#include "dialects/NN/NN.h"
#include "dialects/NN/TensorTypes.h"

using namespace mlir;
using namespace accel;
using namespace accel::parallel;

bool parallel::worksByRows(Operation *op) {
  return op->getNumResults() == 1 &&
         (op->hasTrait<nn::Elementwise>() ||
          isa<nn::MatmulOp, nn::ReshapeOp, nn::TransposeOp, nn::BroadcastOp,
              nn::SliceOp, nn::PadOp, nn::ReduceOp, nn::SoftmaxOp,
              nn::CrossEntropyOp, nn::CompareOp, nn::SelectOp, nn::CastOp>(op));
}

/// Where a digit of one shape is in another of the same elements.
static std::optional<RowPlace> moveDigit(RowPlace place, ArrayRef<int64_t> from,
                                         ArrayRef<int64_t> to) {
  int64_t size = from[place.dim] / place.outer / place.inner,
          stride = place.inner *
                   ShapedType::getNumElements(from.drop_front(place.dim + 1));
  int64_t behind = 1;
  for (unsigned dim = to.size(); dim-- > 0; behind *= to[dim]) {
    int64_t inner = stride / behind;
    if (stride % behind == 0 && to[dim] % (inner * size) == 0)
      return RowPlace{dim, to[dim] / (inner * size), inner};
  }
  return std::nullopt;
}

/// The factor that a dimension is, all of it; none if it is several, or none.
static std::optional<unsigned> getFactor(const ShardingRule::Tensor &tensor,
                                         unsigned dim) {
  if (tensor[dim].size() != 1)
    return std::nullopt;
  return tensor[dim].front();
}

static std::optional<unsigned> findFactor(const ShardingRule::Tensor &tensor,
                                          unsigned factor) {
  for (auto [dim, factors] : llvm::enumerate(tensor))
    if (llvm::is_contained(factors, factor))
      return dim;
  return std::nullopt;
}

RowsMade parallel::followRows(Operation *op, unsigned number, RowPlace place,
                              bool isAlong) {
  if (isa<nn::ReshapeOp>(op)) {
    auto moved =
        moveDigit(place, shapeOf(op->getOperand(0)), shapeOf(op->getResult(0)));
    return moved ? RowsMade{RowsMade::Placed, *moved} : RowsMade();
  }
  // What is cut off classes, or put behind them, leaves them classes.
  if (isAlong && isa<nn::SliceOp, nn::PadOp>(op))
    return {number == 0 ? RowsMade::Placed : RowsMade::Other, place};
  ShardingRule rule = cast<ShardingRuleOpInterface>(op).getShardingRule();
  std::optional<unsigned> factor = getFactor(rule.operands[number], place.dim);
  if (!factor)
    return {};
  FactorKind kind = rule.factors[*factor].kind;
  std::optional<unsigned> dim = findFactor(rule.results[0], *factor);
  if (dim && (kind == FactorKind::PassThrough ||
              (kind == FactorKind::Inside && isAlong)))
    return {RowsMade::Placed, {*dim, place.outer, place.inner}};
  if (!dim && (kind == FactorKind::Sum || isAlong))
    return {RowsMade::Summed, {0}};
  return {};
}

FailureOr<std::optional<RowPlace>>
parallel::findRows(Operation *op, unsigned number, RowPlace place) {
  if (isa<nn::ReshapeOp>(op)) {
    auto moved =
        moveDigit(place, shapeOf(op->getResult(0)), shapeOf(op->getOperand(0)));
    if (!moved)
      return failure();
    return moved;
  }
  ShardingRule rule = cast<ShardingRuleOpInterface>(op).getShardingRule();
  std::optional<unsigned> factor = getFactor(rule.results[0], place.dim);
  if (!factor || rule.factors[*factor].kind != FactorKind::PassThrough)
    return failure();
  std::optional<unsigned> dim = findFactor(rule.operands[number], *factor);
  if (!dim)
    return std::optional<RowPlace>();
  return std::optional<RowPlace>({*dim, place.outer, place.inner});
}

FailureOr<std::optional<RowPlace>> parallel::findRowsBeside(Operation *op,
                                                            unsigned number,
                                                            RowPlace place,
                                                            unsigned other) {
  if (number == other)
    return std::optional<RowPlace>(place);
  ShardingRule rule = cast<ShardingRuleOpInterface>(op).getShardingRule();
  std::optional<unsigned> factor = getFactor(rule.operands[number], place.dim);
  if (!factor)
    return failure();
  std::optional<unsigned> dim = findFactor(rule.operands[other], *factor);
  if (!dim)
    return std::optional<RowPlace>();
  return std::optional<RowPlace>({*dim, place.outer, place.inner});
}
