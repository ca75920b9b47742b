// The maps of nn's ops, from their definitions (dialects/NN/*.td) alone.

#include "OpMaps.h"

#include "Rules.h"
#include "dialects/NN/Casts.h"
#include "dialects/NN/NN.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace accel;
using namespace accel::equivalence;

Value equivalence::skipPlacement(Value value) {
  while (
      isa_and_nonnull<dist::ReshardOp, dist::AccumulateOp, dist::ConstraintOp,
                      nn::GradientOp, nn::CompleteOp, nn::CutOp>(
          value.getDefiningOp()))
    value = value.getDefiningOp()->getOperand(0);
  return value;
}

Value equivalence::getOnlyJoined(Operation *op) {
  if (!isa<nn::ConcatOp>(op) ||
      llvm::count_if(op->getOperands(), hasElements) != 1)
    return {};
  return *llvm::find_if(op->getOperands(), hasElements);
}

Attribute
equivalence::moveEqual(Operation *op,
                       llvm::function_ref<Attribute(Value)> getElement) {
  if (!holds(Premise::OnlyMoved,
             isa<nn::ReshapeOp, nn::TransposeOp, nn::SliceOp, nn::BroadcastOp,
                 nn::ConcatOp, nn::PadOp>(op)))
    return {};
  Attribute element;
  for (Value operand :
       llvm::make_filter_range(op->getOperands(), hasElements)) {
    Attribute own = getElement(operand);
    if (!holds(Premise::AllAreEqual, own && (!element || own == element)))
      return {};
    if (own)
      element = own;
  }
  return element;
}

/// Whether a discardable attribute says what an op computes. Those of other
/// dialects say where it comes from.
static bool matters(NamedAttribute attribute) {
  return !attribute.getName().getValue().contains('.');
}

bool equivalence::haveSameAttributes(Operation *lhs, Operation *rhs) {
  return lhs->getName().compareOpProperties(lhs->getPropertiesStorage(),
                                            rhs->getPropertiesStorage()) &&
         llvm::equal(
             llvm::make_filter_range(lhs->getDiscardableAttrs(), matters),
             llvm::make_filter_range(rhs->getDiscardableAttrs(), matters));
}

static bool isZero(Value value) {
  value = skipPlacement(value);
  return matchPattern(value, m_AnyZeroFloat()) || matchPattern(value, m_Zero());
}

/// Every dimension of every operand and result must be whole.
static OpMap getWholeMap(Operation *op) {
  OpMap map;
  for (Value operand : op->getOperands())
    map.operands.emplace_back(shapeOf(operand).size(), OpMap::kWhole);
  for (Value result : op->getResults())
    map.results.emplace_back(shapeOf(result).size(), OpMap::kWhole);
  return map;
}

static OpMap getElementwiseMap(Operation *op) {
  OpMap map = getWholeMap(op);
  for (size_t dim = 0; dim < map.results[0].size(); ++dim) {
    int index = map.add();
    map.results[0][dim] = index;
    for (auto &operand : map.operands)
      operand[dim] = index;
  }
  bool isFloat = isa<FloatType>(getElementTypeOrSelf(op->getResult(0)));
  if (isa<nn::NegOp>(op))
    map.linear = {{0}};
  else if (isa<nn::AddOp, nn::SubOp>(op))
    map.linear = {{0, 1}};
  else if (isa<nn::MulOp>(op))
    map.linear = {{0}, {1}};
  else if (isa<nn::DivOp>(op) && isFloat)
    map.linear = {{0}};
  else if (isa<nn::SelectOp>(op))
    map.linear = {{1, 2}};
  else if (isa<nn::CastOp>(op) && isExact(cast<nn::CastOp>(op)))
    map.linear = {{0}};
  return map;
}

static OpMap getMap(nn::MatmulOp op) {
  OpMap map = getWholeMap(op);
  auto &lhs = map.operands[0], &rhs = map.operands[1], &out = map.results[0];
  size_t rank = out.size();
  int rows = map.add(), columns = map.add(), inner = map.add();
  lhs[lhs.size() - 2] = op.getTransposeLhs() ? inner : rows;
  lhs[lhs.size() - 1] = op.getTransposeLhs() ? rows : inner;
  rhs[rhs.size() - 2] = op.getTransposeRhs() ? columns : inner;
  rhs[rhs.size() - 1] = op.getTransposeRhs() ? inner : columns;
  out[rank - 2] = rows;
  out[rank - 1] = columns;
  // Batch dimensions, counted from the last.
  for (size_t back = 3; back <= rank; ++back) {
    int index = map.add();
    out[rank - back] = index;
    for (auto *operand : {&lhs, &rhs})
      if (operand->size() >= back)
        (*operand)[operand->size() - back] = index;
  }
  map.reduced = {inner};
  map.linear = {{0}, {1}};
  return map;
}

/// Each matrix by itself.
static OpMap getMap(nn::NewtonSchulzOp op) {
  OpMap map = getWholeMap(op);
  for (size_t dim = 0; dim + 2 < map.results[0].size(); ++dim)
    map.operands[0][dim] = map.results[0][dim] = map.add();
  return map;
}

/// Any row may be in any group: all of them stay whole.
static OpMap getMap(nn::GroupedMatmulOp op) {
  OpMap map = getWholeMap(op);
  int rows = map.add(), columns = map.add(), inner = map.add();
  map.operands[0] = {rows, inner};
  map.operands[1][op.getTransposeRhs() ? 1 : 2] = columns;
  map.operands[1][op.getTransposeRhs() ? 2 : 1] = inner;
  map.operands[2][0] = map.results[0][0] = rows;
  map.results[0][1] = columns;
  map.reduced = {inner};
  map.linear = {{0}, {1}};
  return map;
}

static OpMap getMap(nn::GroupedMatmulGradOp op) {
  OpMap map = getWholeMap(op);
  int rows = map.add();
  for (auto &operand : map.operands)
    operand[0] = rows;
  map.operands[0][1] = map.results[0][1] = map.add();
  map.operands[1][1] = map.results[0][2] = map.add();
  map.reduced = {rows};
  map.linear = {{0}, {1}};
  return map;
}

/// Dimensions of space are whole. `indices` are those of the leading ones, for
/// groups or without.
static OpMap getConvolutionMap(Operation *op, bool hasGroups,
                               ArrayRef<std::array<int, 3>> indices) {
  OpMap map = getWholeMap(op);
  map.indices = 4;
  std::vector<int> *tensors[] = {&map.operands[0], &map.operands[1],
                                 &map.results[0]};
  for (auto [tensor, leading] : llvm::zip_equal(tensors, indices)) {
    auto at = tensor->begin();
    for (int index : leading)
      if (hasGroups || index != 1)
        *at++ = index;
  }
  map.linear = {{0}, {1}};
  return map;
}

template <typename Op>
static OpMap getConvolutionMap(Op op, ArrayRef<std::array<int, 3>> indices,
                               int reduced) {
  bool hasGroups = shapeOf(op.getLhs()).size() == op.getSizes().size() + 3;
  OpMap map = getConvolutionMap(op, hasGroups, indices);
  map.reduced = {reduced};
  return map;
}

// Samples are index 0, groups 1, channels of the result 2, of the input 3.
static OpMap getMap(nn::ConvOp op) {
  return getConvolutionMap(op, {{0, 1, 3}, {1, 2, 3}, {0, 1, 2}}, 3);
}
static OpMap getMap(nn::ConvInputGradOp op) {
  return getConvolutionMap(op, {{0, 1, 2}, {1, 2, 3}, {0, 1, 3}}, 2);
}
static OpMap getMap(nn::ConvWeightGradOp op) {
  return getConvolutionMap(op, {{0, 1, 3}, {0, 1, 2}, {1, 2, 3}}, 0);
}

/// Rows run along; the places in them do not.
static OpMap getMap(nn::TopKOp op) {
  OpMap map = getWholeMap(op);
  for (size_t dim = 0; dim + 1 < map.results[0].size(); ++dim)
    map.operands[0][dim] = map.results[0][dim] = map.add();
  return map;
}

static OpMap getMap(nn::ReduceOp op) {
  OpMap map = getWholeMap(op);
  size_t kept = 0;
  for (size_t dim = 0; dim < map.operands[0].size(); ++dim) {
    bool isReduced =
        llvm::is_contained(op.getDims(), static_cast<int64_t>(dim));
    if (isReduced && op.getKind() == nn::ReductionKind::prod)
      continue; // ranks have no way to combine products
    int index = map.operands[0][dim] = map.add();
    if (isReduced)
      map.reduced.push_back(index);
    else
      map.results[0][kept++] = index;
  }
  if (op.getKind() == nn::ReductionKind::sum)
    map.linear = {{0}};
  else
    map.reduction = op.getKind() == nn::ReductionKind::max
                        ? dist::Reduction::max
                        : dist::Reduction::min;
  return map;
}

static OpMap getMap(nn::BroadcastOp op) {
  OpMap map = getWholeMap(op);
  ArrayRef<int64_t> from = shapeOf(op.getInput()), to = shapeOf(op.getResult());
  size_t lead = to.size() - from.size();
  for (size_t dim = 0; dim < to.size(); ++dim) {
    if (dim < lead || from[dim - lead] != to[dim])
      map.results[0][dim] = OpMap::kFree;
    else
      map.results[0][dim] = map.operands[0][dim - lead] = map.add();
  }
  map.linear = {{0}};
  return map;
}

static OpMap getMap(nn::TransposeOp op) {
  OpMap map = getWholeMap(op);
  for (auto [dim, source] : llvm::enumerate(op.getPermutation()))
    map.results[0][dim] = map.operands[0][source] = map.add();
  map.linear = {{0}};
  return map;
}

static OpMap getMap(nn::SliceOp op) {
  OpMap map = getWholeMap(op);
  for (auto [dim, size] : llvm::enumerate(shapeOf(op.getInput())))
    if (op.getStarts()[dim] == 0 && op.getSizes()[dim] == size &&
        op.getSteps()[dim] == 1)
      map.results[0][dim] = map.operands[0][dim] = map.add();
  map.linear = {{0}};
  return map;
}

static OpMap getMap(nn::ConcatOp op) {
  OpMap map = getWholeMap(op);
  for (size_t dim = 0; dim < map.results[0].size(); ++dim) {
    if (dim == op.getDim())
      continue;
    int index = map.results[0][dim] = map.add();
    for (auto &operand : map.operands)
      operand[dim] = index;
  }
  auto &all = map.linear.emplace_back();
  for (unsigned operand = 0; operand < map.operands.size(); ++operand)
    all.push_back(operand);
  return map;
}

static OpMap getMap(nn::PadOp op) {
  OpMap map = getWholeMap(op);
  for (size_t dim = 0; dim < map.results[0].size(); ++dim)
    if (op.getLow()[dim] == 0 && op.getHigh()[dim] == 0)
      map.results[0][dim] = map.operands[0][dim] = map.add();
  if (isZero(op.getValue()))
    map.linear = {{0}};
  return map;
}

static OpMap getMap(nn::GatherOp op, bool ownRows) {
  OpMap map = getWholeMap(op);
  size_t at = op.getDim(), rank = map.operands[1].size();
  for (size_t dim = 0; dim < map.operands[0].size(); ++dim)
    if (dim != at)
      map.operands[0][dim] = map.results[0][dim < at ? dim : dim - 1 + rank] =
          map.add();
  for (size_t dim = 0; dim < rank; ++dim)
    map.operands[1][dim] = map.results[0][at + dim] = map.add();
  if (ownRows)
    map.reduced = {map.operands[0][at] = map.add()};
  map.linear = {{0}};
  return map;
}

static OpMap getMap(nn::GatherNdOp op, bool ownRows) {
  OpMap map = getWholeMap(op);
  size_t batch = op.getBatchDims(), lead = map.operands[1].size() - 1;
  size_t parts = shapeOf(op.getIndices()).back();
  for (size_t dim = 0; dim < lead; ++dim) {
    map.operands[1][dim] = map.results[0][dim] = map.add();
    if (dim < batch)
      map.operands[0][dim] = map.operands[1][dim];
  }
  for (size_t dim = batch + parts; dim < map.operands[0].size(); ++dim)
    map.operands[0][dim] = map.results[0][lead + dim - batch - parts] =
        map.add();
  if (ownRows && parts == 1)
    map.reduced = {map.operands[0][batch] = map.add()};
  map.linear = {{0}};
  return map;
}

/// Onto zeros: each index adds its own slice, to the table of its batch.
static OpMap getMap(nn::ScatterAddOp op, bool ownRows) {
  OpMap map = getWholeMap(op);
  size_t at = op.getDim(), batch = op.getBatchDims();
  size_t rank = map.operands[1].size() - batch;
  for (size_t dim = 0; dim < map.operands[0].size(); ++dim)
    if (dim != at) {
      map.operands[0][dim] = map.results[0][dim] =
          map.operands[2][dim < at ? dim : dim - 1 + rank] = map.add();
      if (dim < batch)
        map.operands[1][dim] = map.operands[0][dim];
    }
  if (ownRows)
    map.operands[0][at] = map.results[0][at] = map.add();
  map.linear = {{0, 2}};
  if (!isZero(op.getInit()))
    return map;
  for (size_t dim = 0; dim < rank; ++dim) {
    int index = map.operands[1][batch + dim] = map.operands[2][at + dim] =
        map.add();
    map.reduced.push_back(index);
  }
  return map;
}

/// All but one dimension run along.
static OpMap getMapAlong(Operation *op, size_t whole) {
  OpMap map = getWholeMap(op);
  for (size_t dim = 0; dim < map.results[0].size(); ++dim)
    if (dim != whole)
      map.operands[0][dim] = map.results[0][dim] = map.add();
  if (isa<nn::CumsumOp>(op))
    map.linear = {{0}};
  return map;
}

static OpMap getMap(nn::LayerNormOp op) {
  OpMap map = getWholeMap(op);
  for (size_t dim = 0; dim < op.getDim(); ++dim)
    map.operands[0][dim] = map.results[0][dim] = map.add();
  return map;
}

static OpMap getMap(nn::CrossEntropyOp op) {
  OpMap map = getWholeMap(op);
  for (size_t dim = 0; dim < map.results[0].size(); ++dim)
    map.operands[0][dim] = map.operands[1][dim] = map.results[0][dim] =
        map.add();
  return map;
}

/// Batches and heads run along; of key heads whole groups of query heads do.
template <typename Op> static OpMap getAttentionMap(Op op) {
  OpMap map = getWholeMap(op);
  unsigned mask = op->getNumOperands() - (op.getMask() ? 1 : 0);
  int batch = map.add(), heads = map.add();
  ArrayRef<int64_t> query = shapeOf(op->getOperand(0));
  for (unsigned operand = 0; operand < op->getNumOperands(); ++operand) {
    ArrayRef<int64_t> shape = shapeOf(op->getOperand(operand));
    // A mask repeats where its size is 1.
    if (operand < mask || shape[0] == query[0])
      map.operands[operand][0] = batch;
    if (operand < mask || shape[1] == query[1])
      map.operands[operand][1] = heads;
  }
  for (auto &result : map.results) {
    result[0] = batch;
    result[1] = heads;
  }
  return map;
}

static OpMap getMap(nn::AttentionOp op) {
  enum { Query, Key, Value, Mask };
  OpMap map = getAttentionMap(op);
  int rows = map.operands[Query][2] = map.results[0][2] = map.results[1][2] =
      map.add();
  if (op.getMask() && shapeOf(op.getMask())[2] == shapeOf(op.getQuery())[2])
    map.operands[Mask][2] = rows;
  map.operands[Value][3] = map.results[0][3] = map.add();
  map.shared = {{Key, 1}, {Value, 1}};
  return map; // the result is linear in the values, the log-sum-exp is not
}

static OpMap getMap(nn::AttentionGradOp op) {
  enum { Query, Key, Value, Output, LogSumExp, Gradient, LogSumExpGradient };
  OpMap map = getAttentionMap(op);
  // Each row has its own gradient, and a term of those of keys and values.
  int rows = map.operands[Query][2] = map.results[Query][2] = map.add();
  unsigned mask = op->getNumOperands() - (op.getMask() ? 1 : 0);
  for (unsigned operand = Output; operand < mask; ++operand)
    map.operands[operand][2] = rows;
  if (op.getMask() && shapeOf(op.getMask())[2] == shapeOf(op.getQuery())[2])
    map.operands[mask][2] = rows;
  map.reduced = {rows};
  map.shared = {{Key, 1}, {Value, 1}};
  // Of a group of heads each has a term of its key head's gradients.
  map.sharedResults = {{Key, 1, Key}, {Value, 1, Value}};
  map.linear = {{Gradient}};
  if (op.getLogSumExpGradient())
    map.linear.front().push_back(LogSumExpGradient);
  return map;
}

std::optional<OpMap> accel::equivalence::getOpMap(Operation *op, bool ownRows) {
  if (op->hasTrait<nn::Elementwise>())
    return getElementwiseMap(op);
  return llvm::TypeSwitch<Operation *, std::optional<OpMap>>(op)
      .Case<nn::MatmulOp, nn::ReduceOp, nn::BroadcastOp, nn::TransposeOp,
            nn::SliceOp, nn::ConcatOp, nn::PadOp, nn::LayerNormOp,
            nn::CrossEntropyOp, nn::AttentionOp, nn::AttentionGradOp,
            nn::GroupedMatmulOp, nn::GroupedMatmulGradOp, nn::NewtonSchulzOp,
            nn::TopKOp, nn::ConvOp, nn::ConvInputGradOp, nn::ConvWeightGradOp>(
          [](auto op) { return getMap(op); })
      .Case<nn::GatherOp, nn::GatherNdOp, nn::ScatterAddOp>(
          [&](auto op) { return getMap(op, ownRows); })
      .Case<nn::SoftmaxOp, nn::CumsumOp>(
          [](auto op) { return getMapAlong(op, op.getDim()); })
      .Default([](Operation *) { return std::nullopt; });
}
