// Which programs a dimension can be padded in: every op that has it is one that
// leaves its elements where they are, or combines them by what has a neutral
// element.

#include "ChooseDims.h"
#include "DimPadder.h"
#include "dialects/NN/TensorTypes.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace accel;
using namespace accel::parallel;

std::optional<unsigned> DimPadder::findDim(Value value) {
  for (unsigned dim = 0, rank = typeOf(value).getRank(); dim < rank; ++dim)
    if (number && classes.find(value, dim) == *number &&
        typeOf(value).getDimSize(dim) > 1)
      return dim;
  return std::nullopt;
}

SmallVector<std::pair<unsigned, unsigned>>
parallel::findTied(const ShardingRule &rule, unsigned factor) {
  SmallVector<std::pair<unsigned, unsigned>> tied;
  for (auto [number, operand] : llvm::enumerate(rule.operands))
    for (auto [dim, factors] : llvm::enumerate(operand))
      if (factors == ShardingRule::Dim{factor})
        tied.emplace_back(number, dim);
  return tied;
}

static bool isSplat(Operation *op) {
  SplatElementsAttr splat;
  return matchPattern(op, m_Constant(&splat));
}

/// Whether a value can be made in any size: a constant, or what is repeated.
static bool isMade(Value value) {
  Operation *op = value.getDefiningOp();
  return op && (isa<nn::IotaOp, nn::BroadcastOp>(op) || isSplat(op));
}

std::optional<unsigned> parallel::findFactor(
    Operation *op, const ShardingRule &rule,
    llvm::function_ref<std::optional<unsigned>(Value)> findDim) {
  for (auto [value, tensor] : llvm::zip(op->getOperands(), rule.operands))
    if (auto dim = findDim(value); dim && tensor[*dim].size() == 1)
      return tensor[*dim].front();
  for (auto [value, tensor] : llvm::zip(op->getResults(), rule.results))
    if (auto dim = findDim(value); dim && tensor[*dim].size() == 1)
      return tensor[*dim].front();
  return std::nullopt;
}

/// Whether a reshape leaves a dimension what it is.
static bool keepsDim(nn::ReshapeOp op, unsigned from, unsigned to) {
  auto product = [](ArrayRef<int64_t> shape) {
    int64_t all = 1;
    for (int64_t size : shape)
      all *= size;
    return all;
  };
  ArrayRef<int64_t> in = op.getInput().getType().getShape(),
                    out = op.getType().getShape();
  return in[from] == out[to] &&
         product(in.take_front(from)) == product(out.take_front(to));
}

bool DimPadder::supports(Operation *op) {
  auto find = [&](Value value) { return findDim(value); };
  auto has = [&](Value value) { return findDim(value).has_value(); };
  // It has the dimension once, as it is.
  auto isPlain = [&](Value value) {
    unsigned count = 0;
    for (unsigned dim = 0, rank = typeOf(value).getRank(); dim < rank; ++dim)
      if (classes.find(value, dim) == *number &&
          typeOf(value).getDimSize(dim) > 1)
        count += typeOf(value).getDimSize(dim) == size ? 1 : 2;
    return count <= 1;
  };
  if (llvm::none_of(op->getOperands(), has) &&
      llvm::none_of(op->getResults(), has))
    return true;
  if (!llvm::all_of(op->getOperands(), isPlain) ||
      !llvm::all_of(op->getResults(), isPlain))
    return false;
  if (isa<func::ReturnOp, dist::ConstraintOp, nn::GradientOp, nn::CutOp>(op))
    return true;
  if (auto reshape = dyn_cast<nn::ReshapeOp>(op)) {
    auto from = findDim(reshape.getInput()), to = findDim(reshape.getResult());
    return from && to && keepsDim(reshape, *from, *to);
  }
  bool isKnown =
      op->hasTrait<nn::Elementwise>() ||
      isa<nn::TransposeOp, nn::MatmulOp, nn::BroadcastOp, nn::IotaOp,
          nn::SoftmaxOp, nn::CrossEntropyOp, nn::GatherOp, nn::GatherNdOp,
          nn::StopGradientOp, nn::SliceOp, nn::PadOp>(op) ||
      isSplat(op);
  if (auto reduce = dyn_cast<nn::ReduceOp>(op))
    isKnown = reduce.getKind() != nn::ReductionKind::prod &&
              isa<FloatType>(reduce.getType().getElementType());
  // Onto anything else the proof does not follow.
  if (auto scatter = dyn_cast<nn::ScatterAddOp>(op))
    isKnown = matchPattern(scatter.getInit(), m_AnyZeroFloat()) &&
              findDim(scatter) == scatter.getDim();
  auto shardable = dyn_cast<ShardingRuleOpInterface>(op);
  if (!isKnown || !shardable)
    return false;
  ShardingRule rule = shardable.getShardingRule();
  std::optional<unsigned> factor = findFactor(op, rule, find);
  if (!factor)
    return false;
  // What is tied to it must be it, or made in any size.
  for (auto [number, dim] : findTied(rule, *factor)) {
    Value operand = op->getOperand(number);
    if (findDim(operand) != dim &&
        !(isMade(operand) && typeOf(operand).getDimSize(dim) == size))
      return false;
  }
  // And all that is it, tied.
  for (OpOperand &operand : op->getOpOperands())
    if (auto dim = findDim(operand.get());
        dim && rule.operands[operand.getOperandNumber()][*dim] !=
                   ShardingRule::Dim{*factor})
      return false;
  return true;
}

bool DimPadder::canPad() {
  for (Operation &op : entry.front())
    if (!supports(&op))
      return false;
  for (BlockArgument argument : entry.getArguments()) {
    std::optional<unsigned> dim = findDim(argument);
    if (!dim)
      continue;
    Attribute state = getState(entry, argument);
    dist::ConstraintOp constraint = findConstraint(argument);
    if (!state || typeOf(argument).getDimSize(*dim) != size || !constraint ||
        !constraint.getSharding().getDims()[*dim].empty())
      return false;
    states[state] = widen(typeOf(argument), *dim);
  }
  return true;
}
