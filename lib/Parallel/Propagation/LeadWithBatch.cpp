// Puts the batch first in dimensions that it shares with others: where rows are
// counted sequence by sequence, no rank has a range of them.

#include "BatchPlaces.h"
#include "dialects/Interfaces/ShardingRule.h"
#include "dialects/NN/NN.h"
#include "lib/Parallel/Passes.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;

namespace accel::parallel {
#define GEN_PASS_DEF_LEADWITHBATCHPASS
#include "lib/Parallel/Passes.h.inc"

namespace {
/// One function. A value whose batch does not lead its dimension is followed as
/// its copy in which it does; what has no use for the copy gets the value back
/// from it.
class BatchLeader {
public:
  explicit BatchLeader(func::FuncOp function) : function(function) {}
  void run();

private:
  void visit(Operation *op);
  bool lead(Operation *op, OpBuilder &builder);
  bool leadReshape(nn::ReshapeOp op, OpBuilder &builder);
  bool leadParts(Operation *op, OpBuilder &builder);
  bool leadByRule(Operation *op, OpBuilder &builder);
  void restore(Operation *op);

  std::optional<Place> placeOf(Value value) const {
    auto found = places.find(value);
    return found == places.end() ? std::nullopt : std::optional(found->second);
  }
  /// The value, or its copy with the batch first.
  Value leading(Value value) const {
    Value copy = copies.lookup(value);
    return copy ? copy : value;
  }
  void give(Value result, Value made, const Place &place);

  func::FuncOp function;
  llvm::DenseMap<Value, Place> places;
  llvm::DenseMap<Value, Value> copies, restored;
  llvm::SmallSetVector<Operation *, 16> replaced;
};
} // namespace

void BatchLeader::run() {
  for (Operation &op : llvm::make_early_inc_range(function.front()))
    visit(&op);
  // Users come later: nothing reads the last one.
  for (Operation *op : llvm::reverse(replaced))
    op->erase();
  for (Operation &op :
       llvm::make_early_inc_range(llvm::reverse(function.front())))
    if (isOpTriviallyDead(&op))
      op.erase();
}

void BatchLeader::visit(Operation *op) {
  if (auto constraint = dyn_cast<dist::ConstraintOp>(op)) {
    restore(op);
    auto dims = constraint.getSharding().getDims();
    auto isSplit = [](dist::AxesAttr axes) { return !axes.empty(); };
    if (llvm::count_if(dims, isSplit) != 1)
      return; // no batch, or placed by hand
    size_t dim = llvm::find_if(dims, isSplit) - dims.begin();
    places[constraint.getResult()] = {dim, 1,
                                      constraint.getType().getDimSize(dim), 1};
    return;
  }
  if (llvm::none_of(op->getOperands(),
                    [&](Value operand) { return placeOf(operand); }))
    return;
  OpBuilder builder(op);
  if (!lead(op, builder))
    restore(op);
}

bool BatchLeader::lead(Operation *op, OpBuilder &builder) {
  if (auto reshape = dyn_cast<nn::ReshapeOp>(op))
    return leadReshape(reshape, builder);
  // Two transposes that have come to stand together are one, or none.
  if (auto second = dyn_cast<nn::TransposeOp>(op))
    if (Value input = second.getInput();
        !copies.lookup(input) && input.getDefiningOp<nn::TransposeOp>()) {
      ArrayRef<int64_t> order = second.getPermutation();
      Place place = *placeOf(input);
      place.dim =
          llvm::find(order, static_cast<int64_t>(place.dim)) - order.begin();
      give(second.getResult(), transpose(builder, op->getLoc(), input, order),
           place);
      return true;
    }
  return leadParts(op, builder) || leadByRule(op, builder);
}

/// What `made` is of a result: itself, or its copy with the batch first.
void BatchLeader::give(Value result, Value made, const Place &place) {
  replaced.insert(result.getDefiningOp());
  if (!place.isLeading()) {
    places[result] = place;
    copies[result] = made;
    return;
  }
  result.replaceAllUsesWith(made);
  places[made] = place;
}

bool BatchLeader::leadReshape(nn::ReshapeOp op, OpBuilder &builder) {
  Place from = *placeOf(op.getInput());
  ArrayRef<int64_t> in = shapeOf(op.getInput()), out = shapeOf(op.getResult());
  std::optional<Place> to = findPlace(in, from, out);
  if (!to)
    return false;
  if (from.isLeading() && to->isLeading()) {
    places[op.getResult()] = *to;
    return true;
  }
  // Row-major, the copies are (before, batch, between, after), with more or
  // less before the batch.
  Location loc = op.getLoc();
  Value value = leading(op.getInput());
  int64_t before = product(in.take_front(from.dim)),
          target = product(out.take_front(to->dim));
  auto findDim = [](ArrayRef<int64_t> shape, size_t end, int64_t wanted) {
    for (size_t dim = 0; dim <= end; ++dim)
      if (product(shape.take_front(dim)) == wanted)
        return std::optional<size_t>(dim);
    return std::optional<size_t>();
  };
  if (before != target) {
    // Dimensions that are there already are moved, so that transposes cancel.
    auto there = findDim(in, from.dim, target);
    auto wanted = findDim(out, to->dim, before);
    if (from.isLeading() && from.inner == 1 && there) {
      value = moveDim(builder, loc, value, from.dim, *there);
    } else if (to->isLeading() && to->inner == 1 && wanted) {
      Shape moved(out);
      moved.erase(moved.begin() + to->dim);
      moved.insert(moved.begin() + *wanted, to->batch);
      value = moveDim(builder, loc, reshape(builder, loc, value, moved),
                      *wanted, to->dim);
    } else if (before % target == 0) {
      value = reshape(builder, loc, value,
                      {target, before / target, from.batch,
                       product(in) / (before * from.batch)});
      value = moveDim(builder, loc, value, 2, 1);
    } else if (target % before == 0) {
      value = reshape(builder, loc, value,
                      {before, from.batch, target / before,
                       product(in) / (target * from.batch)});
      value = moveDim(builder, loc, value, 1, 2);
    } else {
      return false;
    }
  }
  give(op.getResult(), reshape(builder, loc, value, out), *to);
  return true;
}

/// Batches joined, cut or padded as a whole: how many there are is a dimension
/// of its own, behind that of one batch.
bool BatchLeader::leadParts(Operation *op, OpBuilder &builder) {
  if (!isa<nn::ConcatOp, nn::SliceOp, nn::PadOp>(op))
    return false;
  std::optional<Place> place = placeOf(op->getOperand(0));
  if (!place)
    return false;
  size_t dim = place->dim;
  int64_t unit = place->batch * place->inner;
  Location loc = op->getLoc();
  auto apart = [&](Value value) {
    return reshape(builder, loc, leading(value),
                   withDim(shapeOf(value), dim, placeOf(value)->getSizes()));
  };
  // A list with entries for (batch, parts, inner) in place of the dimension's.
  auto spread = [&](ArrayRef<int64_t> each, ArrayRef<int64_t> here) {
    return withDim(each, dim, here.take_front(place->getSizes().size()));
  };
  Value made;
  if (auto concat = dyn_cast<nn::ConcatOp>(op)) {
    if (concat.getDim() != dim)
      return false;
    SmallVector<Value> parts;
    for (Value operand : concat.getInputs()) {
      std::optional<Place> other = placeOf(operand);
      if (!other || other->dim != dim || other->batch != place->batch ||
          other->inner != place->inner)
        return false;
      parts.push_back(apart(operand));
    }
    made = nn::ConcatOp::create(builder, loc, parts, dim + 1);
  } else if (auto slice = dyn_cast<nn::SliceOp>(op)) {
    int64_t start = slice.getStarts()[dim], size = slice.getSizes()[dim];
    bool isWhole = size == shapeOf(slice.getInput())[dim];
    if (isWhole || slice.getSteps()[dim] != 1 || start % unit != 0 ||
        size % unit != 0)
      return false;
    made = nn::SliceOp::create(
        builder, loc, apart(slice.getInput()),
        spread(slice.getStarts(), {0, start / unit, 0}),
        spread(slice.getSizes(), {place->batch, size / unit, place->inner}),
        spread(slice.getSteps(), {1, 1, 1}));
  } else {
    auto pad = cast<nn::PadOp>(op);
    int64_t low = pad.getLow()[dim], high = pad.getHigh()[dim];
    if (low + high == 0 || low % unit != 0 || high % unit != 0)
      return false;
    made =
        nn::PadOp::create(builder, loc, apart(pad.getInput()), pad.getValue(),
                          spread(pad.getLow(), {0, low / unit, 0}),
                          spread(pad.getHigh(), {0, high / unit, 0}));
  }
  Value result = op->getResult(0);
  place->outer = shapeOf(result)[dim] / unit;
  give(result, reshape(builder, loc, made, shapeOf(result)), *place);
  return true;
}

/// An op whose pieces are the same op does not care in which order they come.
bool BatchLeader::leadByRule(Operation *op, OpBuilder &builder) {
  auto shardable = dyn_cast<ShardingRuleOpInterface>(op);
  if (!shardable)
    return false;
  ShardingRule rule = shardable.getShardingRule();
  std::optional<Place> place;
  unsigned factor = 0;
  bool hasCopies = false;
  for (auto [operand, dims] :
       llvm::zip_equal(op->getOperands(), rule.operands)) {
    std::optional<Place> own = placeOf(operand);
    if (!own)
      continue;
    hasCopies |= !own->isLeading();
    ArrayRef<unsigned> factors = dims[own->dim];
    if (factors.size() != 1 ||
        (place && (factors[0] != factor || !own->isMixedLike(*place))))
      return false;
    place = own;
    factor = factors[0];
  }
  auto isAlong = [&](const ShardingRule::Dim &dim) {
    return dim.size() == 1 && dim[0] == factor;
  };
  auto findAlong = [&](const ShardingRule::Tensor &dims) {
    const auto *found = llvm::find_if(dims, isAlong);
    return found == dims.end() ? std::optional<size_t>()
                               : std::optional<size_t>(found - dims.begin());
  };
  if (!hasCopies) {
    for (auto [result, dims] : llvm::zip_equal(op->getResults(), rule.results))
      if (std::optional<size_t> dim = findAlong(dims))
        places[result] = {*dim, place->outer, place->batch, place->inner};
    return true;
  }
  IRMapping mapping;
  for (auto [operand, dims] :
       llvm::zip_equal(op->getOperands(), rule.operands)) {
    std::optional<size_t> dim = findAlong(dims);
    Value copy = leading(operand);
    if (dim && copy == operand && !isEqualAlong(operand, *dim)) {
      // Of no batch, and counted like one that is mixed.
      Shape sizes = place->getSizes();
      std::swap(sizes[0], sizes[1]);
      copy = reshape(builder, op->getLoc(), operand,
                     withDim(shapeOf(operand), *dim, sizes));
      copy = moveDim(builder, op->getLoc(), copy, *dim + 1, *dim);
      copy = reshape(builder, op->getLoc(), copy, shapeOf(operand));
    }
    mapping.map(operand, copy);
  }
  Operation *made = builder.clone(*op, mapping);
  for (auto [result, own, dims] :
       llvm::zip_equal(op->getResults(), made->getResults(), rule.results)) {
    replaced.insert(op);
    if (std::optional<size_t> dim = findAlong(dims))
      give(result, own, {*dim, place->outer, place->batch, place->inner});
    else
      result.replaceAllUsesWith(own);
  }
  return true;
}

/// For what needs the order of the program: operands as they were.
void BatchLeader::restore(Operation *op) {
  for (OpOperand &operand : op->getOpOperands()) {
    Value value = operand.get(), copy = copies.lookup(value);
    if (!copy)
      continue;
    Value &known = restored[value];
    if (!known) {
      Place place = places.lookup(value);
      OpBuilder builder(op->getContext());
      builder.setInsertionPointAfterValue(copy);
      Location loc = value.getLoc();
      known = reshape(builder, loc, copy,
                      withDim(shapeOf(value), place.dim, place.getSizes()));
      known = moveDim(builder, loc, known, place.dim, place.dim + 1);
      known = reshape(builder, loc, known, shapeOf(value));
    }
    operand.set(known);
  }
}

namespace {
struct LeadWithBatchPass : impl::LeadWithBatchPassBase<LeadWithBatchPass> {
  using Base::Base;

  void runOnOperation() override {
    for (auto function : getOperation().getOps<func::FuncOp>())
      if (!function.isExternal())
        BatchLeader(function).run();
  }
};
} // namespace
} // namespace accel::parallel
