// Puts the batch first in dimensions that it shares with others: where rows are
// counted sequence by sequence, no rank has a range of them. Then, where ranks
// share sequences too, their parts of these next: rows that are counted sample
// by sample are as little a range of them.

#include "BatchPlaces.h"
#include "dialects/Interfaces/ShardingRule.h"
#include "dialects/NN/NN.h"
#include "lib/Parallel/Passes.h"
#include "lib/Parallel/Strategy/TensorAxes.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;

namespace accel::parallel {
#define GEN_PASS_DEF_LEADWITHBATCHPASS
#include "lib/Parallel/Passes.h.inc"

namespace {
/// What constraints say of the dimension that is to lead: where it begins.
using FindStart = llvm::function_ref<std::optional<Place>(dist::ConstraintOp)>;

/// One function. A value whose batch does not lead its dimension is followed as
/// its copy in which it does; what has no use for the copy gets the value back
/// from it. `leads` parts of a first dimension lead already.
class BatchLeader {
public:
  BatchLeader(func::FuncOp function, FindStart findStart, int64_t leads)
      : function(function), findStart(findStart), leads(leads) {}
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
  FindStart findStart;
  int64_t leads;
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
    if (std::optional<Place> start = findStart(constraint))
      places[constraint.getResult()] = *start;
    return;
  }
  if (llvm::none_of(op->getOperands(),
                    [&](Value operand) { return placeOf(operand); }))
    return;
  // A state keeps its rows in the program's order, and its update takes them
  // so.
  OpBuilder builder(op);
  if (isa<nn::GradientOp>(op) || !lead(op, builder))
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
  std::optional<Place> to = findPlace(in, from, out, leads);
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
  int64_t before = product(in.take_front(from.dim)) * from.before,
          target = product(out.take_front(to->dim)) * to->before;
  // What follows the batch in its dimension; other dimensions stay as they are,
  // for they may be split as well.
  int64_t behind = from.outer * from.inner;
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
    if (from.isLeading() && from.isAlone() && there) {
      value = moveDim(builder, loc, value, from.dim, *there);
    } else if (to->isLeading() && to->isAlone() && wanted) {
      Shape moved(out);
      moved.erase(moved.begin() + to->dim);
      moved.insert(moved.begin() + *wanted, to->batch);
      value = moveDim(builder, loc, reshape(builder, loc, value, moved),
                      *wanted, to->dim);
    } else if (before % target == 0) {
      Shape moved = {target, before / target, from.batch, behind};
      llvm::append_range(moved, in.drop_front(from.dim + 1));
      value = moveDim(builder, loc, reshape(builder, loc, value, moved), 2, 1);
    } else if (int64_t more = target / before;
               target % before == 0 && behind % more == 0) {
      Shape moved = {before, from.batch, more, behind / more};
      llvm::append_range(moved, in.drop_front(from.dim + 1));
      value = moveDim(builder, loc, reshape(builder, loc, value, moved), 1, 2);
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
  if (place->before != 1)
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

/// An op does not care in which order pieces come whose places nothing tells
/// apart.
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
    ArrayRef<unsigned> factors = dims[own->dim];
    // What is wanted whole says nothing of the others.
    if (factors.empty() && own->isLeading())
      continue;
    hasCopies |= !own->isLeading();
    if (factors.size() != 1 ||
        (place && (factors[0] != factor || !own->isMixedLike(*place))))
      return false;
    place = own;
    factor = factors[0];
  }
  if (!place)
    return true;
  if (hasCopies && llvm::is_contained(rule.numbered, factor))
    return false;
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
        (places[result] = *place).dim = *dim;
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
      size_t at = place->getBatchAt();
      std::swap(sizes[at], sizes[at + 1]);
      copy = reshape(builder, op->getLoc(), operand,
                     withDim(shapeOf(operand), *dim, sizes));
      copy = moveDim(builder, op->getLoc(), copy, *dim + at + 1, *dim + at);
      copy = reshape(builder, op->getLoc(), copy, shapeOf(operand));
    }
    mapping.map(operand, copy);
  }
  Operation *made = builder.clone(*op, mapping);
  for (auto [result, own, dims] :
       llvm::zip_equal(op->getResults(), made->getResults(), rule.results)) {
    replaced.insert(op);
    if (std::optional<size_t> dim = findAlong(dims)) {
      Place here = *place;
      here.dim = *dim;
      give(result, own, here);
    } else
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
      size_t at = place.dim + place.getBatchAt();
      known = moveDim(builder, loc, known, at, at + 1);
      known = reshape(builder, loc, known, shapeOf(value));
    }
    operand.set(known);
  }
}

/// The one dimension that a constraint splits over other axes than sequences or
/// weights are split over: all of it is the batch.
static std::optional<Place> findBatch(dist::ConstraintOp constraint) {
  auto dims = constraint.getSharding().getDims();
  dist::MeshOp mesh =
      dist::MeshOp::lookup(constraint, constraint.getSharding().getMesh());
  SmallVector<StringRef, 2> tensorAxes = getTensorAxes(mesh);
  auto isBatch = [&](dist::AxesAttr axes) {
    return !axes.empty() && !dist::MeshOp::splitsSequences(axes) &&
           llvm::none_of(axes.getNames(), [&](StringAttr axis) {
             return llvm::is_contained(tensorAxes, axis.getValue());
           });
  };
  if (llvm::count_if(dims, isBatch) != 1)
    return std::nullopt; // no batch, or placed by hand
  size_t dim = llvm::find_if(dims, isBatch) - dims.begin();
  return Place{dim, 1, constraint.getType().getDimSize(dim), 1};
}

/// The dimension that ranks share along sequences: as many parts as they are.
static std::optional<Place> findSequence(dist::MeshOp mesh,
                                         dist::ConstraintOp constraint) {
  auto dims = constraint.getSharding().getDims();
  const auto *found = llvm::find_if(dims, dist::MeshOp::splitsSequences);
  if (found == dims.end())
    return std::nullopt;
  size_t dim = found - dims.begin();
  int64_t parts = mesh.getGroupSize(*found);
  return Place{dim, 1, parts, constraint.getType().getDimSize(dim) / parts};
}

/// Into how many parts the batch of a function is split.
static int64_t countBatchParts(dist::MeshOp mesh, func::FuncOp function) {
  int64_t parts = 1;
  function.walk([&](dist::ConstraintOp constraint) {
    if (std::optional<Place> batch = findBatch(constraint))
      parts = std::max(
          parts,
          mesh.getGroupSize(constraint.getSharding().getDims()[batch->dim]));
  });
  return parts;
}

namespace {
struct LeadWithBatchPass : impl::LeadWithBatchPassBase<LeadWithBatchPass> {
  using Base::Base;

  void runInOrder() override {
    dist::MeshOp mesh = dist::MeshOp::of(getOperation());
    for (auto function : getOperation().getOps<func::FuncOp>()) {
      if (function.isExternal())
        continue;
      BatchLeader(function, findBatch, /*leads=*/1).run();
      auto find = [&](dist::ConstraintOp constraint) {
        return findSequence(mesh, constraint);
      };
      if (mesh)
        BatchLeader(function, find, countBatchParts(mesh, function)).run();
    }
  }
};
} // namespace
} // namespace accel::parallel
