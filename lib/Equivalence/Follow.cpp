// Follows ops: by the map of each, and where one rank's program says a thing in
// other words than the logical one, by what these words mean.

#include "Follow.h"

#include "dialects/NN/NN.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace accel;
using namespace accel::equivalence;

bool Known::isZero() const {
  if (auto number = dyn_cast_if_present<FloatAttr>(splat))
    return number.getValue().isZero();
  auto number = dyn_cast_if_present<IntegerAttr>(splat);
  return number && number.getValue().isZero();
}

bool Known::isIdentityOf(dist::Reduction kind) const {
  if (kind == dist::Reduction::sum)
    return isZero();
  bool least = kind == dist::Reduction::max;
  if (auto number = dyn_cast_if_present<FloatAttr>(splat))
    return number.getValue().isInfinity() &&
           number.getValue().isNegative() == least;
  auto number = dyn_cast_if_present<IntegerAttr>(splat);
  return number && (least ? number.getValue().isMinSignedValue()
                          : number.getValue().isMaxSignedValue());
}

/// Adds what is not there yet.
void equivalence::insert(std::vector<Piece> &pieces, const Piece &piece) {
  if (!llvm::is_contained(pieces, piece))
    pieces.push_back(piece);
}

std::vector<Piece> Follower::hold(Value value, Value wanted) {
  const Known &what = at(value);
  std::vector<Piece> held;
  for (const Piece &piece : what.pieces)
    if (piece.logical == wanted)
      held.push_back(piece);
  // Of one rank: the dimensions of an op on it say which they are by number.
  if (what.splat && logical.getSplat(wanted) == what.splat &&
      shapeOf(wanted).size() == shapeOf(value).size())
    held.push_back(makeFree(wanted));
  // What has no elements is any other such tensor.
  if (!hasElements(value) && !hasElements(wanted) &&
      shapeOf(wanted).size() == shapeOf(value).size())
    held.push_back(makeFree(wanted));
  return held;
}

/// Where its rows are is seen with the pieces.
template <typename AttentionLike>
static bool isSameAttention(AttentionLike lhs, AttentionLike rhs) {
  return lhs.getScale() == rhs.getScale() &&
         lhs.getCausal() == rhs.getCausal() &&
         lhs.getZeroMaskedRows() == rhs.getZeroMaskedRows() &&
         lhs.getRowOffset() == rhs.getRowOffset() &&
         lhs.getColumnOffset() == rhs.getColumnOffset();
}

/// Whether two ops are the same function, sizes aside.
bool equivalence::agree(Operation *logical, Operation *local) {
  if (logical->getName() != local->getName() ||
      logical->getNumOperands() != local->getNumOperands())
    return false;
  if (auto slice = dyn_cast<nn::SliceOp>(logical)) {
    auto other = cast<nn::SliceOp>(local);
    return slice.getStarts() == other.getStarts() &&
           slice.getSteps() == other.getSteps();
  }
  if (auto attention = dyn_cast<nn::AttentionOp>(logical))
    return isSameAttention(attention, cast<nn::AttentionOp>(local));
  if (auto grad = dyn_cast<nn::AttentionGradOp>(logical))
    return isSameAttention(grad, cast<nn::AttentionGradOp>(local));
  return haveSameAttributes(logical, local);
}

/// How many ways to read all operands of an op are tried.
static constexpr size_t kChoices = size_t(1) << 14;

/// Whether what is the one piece is the other one, too: of equal elements any
/// part is as good, in any order.
static bool implies(const Piece &piece, const Piece &other) {
  return piece.logical == other.logical && piece.partial == other.partial &&
         (piece.partial.empty() || piece.reduction == other.reduction) &&
         llvm::all_of_zip(piece.dims, other.dims,
                          [](const Dim &dim, const Dim &as) {
                            return dim == as || (dim.free && as.padding == 0);
                          });
}

/// Leaves out what others say as well: few ways to read all are left then.
static void dropImplied(std::vector<Piece> &pieces) {
  std::vector<Piece> kept;
  for (const Piece &piece : pieces) {
    auto says = [&](const Piece &each) { return implies(each, piece); };
    if (llvm::any_of(kept, says))
      continue;
    llvm::erase_if(kept,
                   [&](const Piece &each) { return implies(piece, each); });
    kept.push_back(piece);
  }
  pieces = std::move(kept);
}

/// The results, each way, of `whole` on each choice of pieces. Zero is a term
/// of any sum: where `zeros` says so, it takes part in those of its neighbours.
std::vector<std::vector<Piece>>
Follower::apply(Operation *whole, Operands operands, ArrayRef<bool> zeros,
                Operation *local, bool ownRows) {
  std::optional<OpMap> map = getOpMap(whole, ownRows);
  size_t ways = 1;
  for (const std::vector<Piece> &each : operands)
    ways = std::min(ways * each.size(), kChoices + 1);
  if (ways > kChoices)
    for (std::vector<Piece> &each : operands)
      dropImplied(each);
  std::vector<std::vector<Piece>> choices = {{}};
  for (const std::vector<Piece> &each : operands) {
    if (each.size() == 1) { // as of most: nothing multiplies
      for (std::vector<Piece> &choice : choices)
        choice.push_back(each.front());
      continue;
    }
    if (choices.size() * each.size() > kChoices)
      return {};
    std::vector<std::vector<Piece>> longer;
    for (const std::vector<Piece> &choice : choices)
      for (const Piece &piece : each) {
        longer.push_back(choice);
        longer.back().push_back(piece);
      }
    choices = std::move(longer);
  }
  std::vector<std::vector<Piece>> results;
  for (std::vector<Piece> &choice : choices) {
    for (size_t number = 0; map && number < choice.size(); ++number)
      for (ArrayRef<unsigned> together : map->linear)
        if (zeros[number] && choice[number].partial.empty() &&
            llvm::is_contained(together, number))
          for (unsigned other : together)
            if (!choice[other].partial.empty())
              choice[number].partial = choice[other].partial;
    for (auto &reading : maker.getReadings(whole, choice, local))
      if (auto pieces = maker.applyOp(whole, reading, local, why, ownRows);
          succeeded(pieces)) {
        for (Piece &piece : *pieces)
          piece.logical = logical.rootOf(piece.logical);
        results.push_back(std::move(*pieces));
      }
  }
  return results;
}

void Follower::applyMaps(Operation *op) {
  // The op must read what each operand holds: the operand with the fewest
  // readers says which it can be.
  SmallVector<const Logical::Ops *> fewest;
  size_t fewestReaders = std::numeric_limits<size_t>::max();
  SmallVector<bool> zeros;
  for (Value operand : op->getOperands()) {
    const Known &what = at(operand);
    zeros.push_back(what.isZero() || !hasElements(operand));
    if (!hasElements(operand))
      continue; // it says nothing of the op
    SmallVector<const Logical::Ops *> readers;
    for (const Piece &piece : what.pieces)
      readers.push_back(&logical.getReaders(piece.logical, op));
    if (what.splat)
      readers.push_back(&logical.getReaders(what.splat));
    size_t count = 0;
    for (const Logical::Ops *each : readers)
      count += each->size();

    if (count < fewestReaders) {
      fewest = std::move(readers);
      fewestReaders = count;
    }
  }
  Logical::Ops candidates;
  for (const Logical::Ops *readers : fewest)
    for (Operation *reader : *readers)
      if (holds(Premise::SameFunction, agree(reader, op)) &&
          reader->getName() == op->getName() &&
          reader->getNumOperands() == op->getNumOperands())
        candidates.insert(reader);
  for (Operation *candidate : candidates) {
    Operands operands;
    for (auto [number, operand] : llvm::enumerate(op->getOperands()))
      operands.push_back(
          hold(operand, logical.rootOf(candidate->getOperand(number))));
    for (auto &results : apply(candidate, std::move(operands), zeros, op))
      for (auto [piece, result] : llvm::zip_equal(results, op->getResults()))
        insertSum(at(result).pieces, piece);
  }
}

/// The op of the program that it is, of pieces of that op's operands.
void Follower::followMap(Operation *op, Known &result) {
  piecesBeforeMap = result.pieces.size();
  applyMaps(op);
}

/// What follows from what else the operands are: other views, moved term by
/// term.
void Follower::followFurther(Operation *op, Known &) {
  if (isFollowed(op))
    return;
  bool isMore = false;
  for (Value operand : op->getOperands())
    isMore |= readFurther(operand);
  isMore |= addViews(op);
  if (isMore) {
    distribute(op);
    applyMaps(op);
  }
}

/// Whether an operand holds pieces of more than one value.
bool Follower::readsSeveral(Operation *op) {
  return llvm::any_of(op->getOperands(), [&](Value operand) {
    const std::vector<Piece> &pieces = at(operand).pieces;
    return llvm::any_of(pieces, [&](const Piece &piece) {
      return piece.logical != pieces.front().logical;
    });
  });
}

/// What else a value is. What it is cut out of before it is reshaped may be cut
/// behind, too, and what has only been moved on its way may have been moved as
/// a term of a sum. Asked where it matters, once: of each there may be very
/// many.
bool Follower::readFurther(Value value) {
  Operation *op = value.getDefiningOp();
  if (!op || op->getNumResults() != 1 || !furtherRead.insert(op).second)
    return false;
  Known &what = at(value);
  size_t before = what.pieces.size();
  bool isMore = false;
  if (auto collective = dyn_cast<dist::CollectiveOpInterface>(op);
      collective && op->getNumOperands() == 1) {
    if (readFurther(op->getOperand(0)))
      for (const Piece &piece : at(op->getOperand(0)).pieces)
        if (auto made = maker.applyCollective(collective, piece, why);
            succeeded(made))
          insert(what.pieces, *made);
  } else if (isa<nn::ReshapeOp, nn::TransposeOp, nn::BroadcastOp, nn::SliceOp>(
                 op)) {
    isMore = readFurther(op->getOperand(0));
    isMore |= distribute(op);
    if (isMore)
      applyMaps(op);
  }
  followParts(op, what);
  return isMore || what.pieces.size() > before;
}

void Follower::apply(Stage stage, Operation *op) {
  for (const Rule &rule : getRules())
    if (rule.stage == stage && (!rule.isLast || !isFollowed(op)))
      apply(rule, op);
}

LogicalResult Follower::follow(Operation *op) {
  why = "no op of it computes this from what the operands hold";
  auto refuse = [&] {
    return op->emitError() << "does not follow from the logical program: "
                           << why;
  };
  if (op->getNumOperands() == 0 && !isa<dist::AxisIndexOp>(op)) {
    apply(Stage::Source, op);
    // Nothing yet: a constant or a counter may become part of something.
    return success();
  }
  if (auto collective = dyn_cast<dist::CollectiveOpInterface>(op);
      collective && !isa<dist::AxisIndexOp>(op))
    return followCollective(collective);
  if (isa<nn::DealRowsOp>(op)) {
    apply(Stage::Deal, op);
    return isFollowed(op) ? success() : refuse();
  }
  Value same = isa<nn::GradientOp, nn::CompleteOp, nn::CutOp>(op)
                   ? op->getOperand(0)
                   : getOnlyJoined(op);
  if (same) {
    Known what = at(same);
    at(op->getResult(0)) = std::move(what);
    return success();
  }
  if (followValue(op) || llvm::none_of(op->getResults(), hasElements))
    return success();
  return refuse();
}

bool Follower::isFollowed(Operation *op) {
  return llvm::any_of(op->getResults(),
                      [&](Value result) { return !at(result).isNothing(); });
}

bool Follower::followValue(Operation *op) {
  if (op->getNumResults() == 0)
    return false;
  bool isOne = op->getNumResults() == 1;
  if (isOne) {
    at(op->getResult(0)) = Known();
    apply(Stage::Alone, op);
    if (!isFollowed(op))
      apply(Stage::Words, op);
  }
  apply(Stage::Map, op);
  if (isOne) {
    bool isSaid = isFollowed(op);
    apply(Stage::View, op);
    if (!isSaid)
      apply(Stage::Parts, op);
  }
  apply(Stage::Dealt, op);
  if (isOne)
    apply(Stage::Portion, op);
  if (!isFollowed(op))
    apply(Stage::Ring, op);
  if (isOne)
    apply(Stage::Formula, op);
  return isFollowed(op);
}
