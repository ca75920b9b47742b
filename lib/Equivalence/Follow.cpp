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

/// The results, each way, of `whole` on each choice of pieces. Zero is a term
/// of any sum: where `zeros` says so, it takes part in those of its neighbours.
std::vector<std::vector<Piece>>
Follower::apply(Operation *whole, const Operands &operands,
                ArrayRef<bool> zeros, Operation *local, bool ownRows) {
  std::optional<OpMap> map = getOpMap(whole, ownRows);
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

void Follower::followOp(Operation *op) {
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
      if (agree(reader, op))
        candidates.insert(reader);
  for (Operation *candidate : candidates) {
    Operands operands;
    for (auto [number, operand] : llvm::enumerate(op->getOperands()))
      operands.push_back(
          hold(operand, logical.rootOf(candidate->getOperand(number))));
    for (auto &results : apply(candidate, operands, zeros, op))
      for (auto [piece, result] : llvm::zip_equal(results, op->getResults()))
        insertSum(at(result).pieces, piece);
  }
}

/// Whether a type has each of 0, factor, 2 factor, …, (ranks - 1) factor.
static bool hasMultiples(Type element, int64_t factor, int64_t ranks) {
  int64_t largest;
  if (factor < 1 || llvm::MulOverflow(factor, ranks - 1, largest))
    return false;
  if (auto integer = dyn_cast<IntegerType>(element))
    return integer.isSignless() && llvm::isIntN(integer.getWidth(), largest);
  auto number = dyn_cast<FloatType>(element);
  if (!number)
    return false;
  // Zeros at the end of the factor need no digits.
  const llvm::fltSemantics &format = number.getFloatSemantics();
  llvm::APFloat rounded(llvm::APFloat::IEEEquad(), std::to_string(largest));
  bool isRounded = false;
  rounded.convert(format, llvm::APFloat::rmNearestTiesToEven, &isRounded);
  unsigned digits = llvm::APFloat::semanticsPrecision(format);
  return !isRounded &&
         (largest >> llvm::countr_zero(uint64_t(factor))) >> digits == 0;
}

/// Where a rank's piece begins: its number along axes, times a size, in a type
/// that has these numbers of all ranks.
bool Follower::followOffset(Operation *op, Known &result) {
  if (auto index = dyn_cast<dist::AxisIndexOp>(op)) {
    result.offset = Offset{maker.dropUnits(index.getAxes().getNames()), 1};
    return true;
  }
  if (!isa<nn::CastOp, nn::BroadcastOp, nn::MulOp>(op))
    return false;
  result.offset = at(op->getOperand(0)).offset;
  if (!result.offset)
    return false;
  if (isa<nn::MulOp>(op)) {
    auto by = dyn_cast_if_present<IntegerAttr>(at(op->getOperand(1)).splat);
    if (!by || by.getType().isUnsignedInteger() ||
        llvm::MulOverflow(result.offset->factor, by.getValue().getSExtValue(),
                          result.offset->factor))
      result.offset.reset();
  }
  if (result.offset && !hasMultiples(getElementTypeOrSelf(op->getResult(0)),
                                     result.offset->factor,
                                     maker.countRanks(result.offset->axes)))
    result.offset.reset();
  return result.offset.has_value();
}

/// A counter from where the rank's piece begins is a piece of the whole
/// counter.
void Follower::followCounter(Operation *op, Known &result) {
  auto add = dyn_cast<nn::AddOp>(op);
  if (!add)
    return;
  for (auto [count, by] : {std::pair(add.getLhs(), add.getRhs()),
                           std::pair(add.getRhs(), add.getLhs())}) {
    auto iota = count.getDefiningOp<nn::IotaOp>();
    const std::optional<Offset> &offset = at(by).offset;
    if (!iota || !offset ||
        offset->factor != iota.getType().getDimSize(iota.getDim()))
      continue;
    for (Operation *whole : logical.getSources(iota->getName())) {
      Piece piece = makeFree(whole->getResult(0));
      if (iota.getDim() >= piece.dims.size())
        continue;
      piece.dims[iota.getDim()] = {offset->axes, false};
      if (agree(whole, iota) && maker.fits(piece, iota.getType()))
        insert(result.pieces, piece);
    }
  }
}

void Follower::followSource(Operation *op) {
  Value value = op->getResult(0);
  Known &result = at(value);
  SplatElementsAttr splat;
  if (matchPattern(op, m_Constant(&splat))) {
    // Of any value whose elements are that.
    result.splat = splat.getSplatValue<Attribute>();
    return;
  }
  for (Operation *whole : logical.getSources(op->getName())) {
    Piece piece;
    piece.logical = whole->getResult(0);
    piece.dims.resize(cast<RankedTensorType>(value.getType()).getRank());
    if (auto iota = dyn_cast<nn::IotaOp>(op))
      for (unsigned dim = 0; dim < piece.dims.size(); ++dim)
        piece.dims[dim].free = dim != iota.getDim();
    // What is counted beyond the logical numbers is padding.
    if (auto iota = dyn_cast<nn::IotaOp>(op);
        iota && piece.dims.size() == shapeOf(piece.logical).size())
      piece.dims[iota.getDim()].padding =
          std::max<int64_t>(0, shapeOf(value)[iota.getDim()] -
                                   shapeOf(piece.logical)[iota.getDim()]);
    if (piece.dims.size() ==
            static_cast<size_t>(
                cast<RankedTensorType>(piece.logical.getType()).getRank()) &&
        agree(whole, op) && maker.fits(piece, value.getType()))
      insert(result.pieces, piece);
  }
}

LogicalResult Follower::followCollective(dist::CollectiveOpInterface op) {
  for (StringAttr axis : op.getAxes().getNames())
    if (axis == dist::MeshOp::kMicroBatchAxis &&
        mesh.findAxisSize(axis).value_or(1) > 1 && op.communicates())
      return op.emitError() << "works over micro-batches, which run one after "
                               "another";
  if (auto fetch = dyn_cast<dist::FetchRowsOp>(op.getOperation()))
    return followFetch(fetch);
  const Known from = at(op->getOperand(0));
  Known &result = at(op->getResult(0));
  why = "what it gets is nothing of it";
  // Equal elements stay what they are wherever they are sent.
  if (!isa<dist::AllReduceOp, dist::ReduceScatterOp>(op))
    result.splat = from.splat;
  auto apply = [&](const std::vector<Piece> &pieces) {
    std::vector<Piece> results;
    for (const Piece &piece : pieces)
      if (auto made = maker.applyCollective(op, piece, why); succeeded(made))
        insert(results, *made);
    return results;
  };
  result.pieces = apply(from.pieces);
  for (const std::vector<Piece> &term : from.terms)
    result.terms.push_back(apply(term));
  // What is done to a sum is done to each term. The largest of sums is no sum
  // of the largest.
  auto kind = op->getAttrOfType<dist::ReductionAttr>("kind");
  bool isSum = !kind || kind.getValue() == dist::Reduction::sum;
  if ((!isSum && result.terms.size() > 1) ||
      llvm::any_of(result.terms, [](const auto &term) { return term.empty(); }))
    result.terms.clear();
  // Where axes that stand between others come or go, it is a view of the whole.
  for (View view :
       result.pieces.empty() ? getViews(op->getOperand(0)) : from.views)
    if (moveView(view, op, maker))
      result.views.push_back(std::move(view));
  moveTurned(op, result);
  // The groups of all ranks' rows are seen where these are dealt.
  bool isDealt = llvm::any_of(op->getUsers(), [](Operation *user) {
    return isa<nn::DealRowsOp>(user);
  });
  if (isMaskPart(op) || isDealt)
    result.formula = op->getResult(0);
  if (result.isNothing() && hasElements(op->getResult(0)))
    return op.emitError() << "does not follow from the logical program: "
                          << why;
  return checkWire(op, result);
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
      followOp(op);
  }
  followParts(op, what);
  return isMore || what.pieces.size() > before;
}

LogicalResult Follower::follow(Operation *op) {
  why = "no op of it computes this from what the operands hold";
  if (op->getNumOperands() == 0 && !isa<dist::AxisIndexOp>(op)) {
    followSource(op);
    // Nothing yet: a constant or a counter may become part of something.
    return success();
  }
  if (auto collective = dyn_cast<dist::CollectiveOpInterface>(op);
      collective && !isa<dist::AxisIndexOp>(op))
    return followCollective(collective);
  if (auto deal = dyn_cast<nn::DealRowsOp>(op))
    return followDeal(deal);
  Value same = isa<nn::GradientOp, nn::CutOp>(op) ? op->getOperand(0)
                                                  : getOnlyJoined(op);
  if (same) {
    Known what = at(same);
    at(op->getResult(0)) = std::move(what);
    return success();
  }
  if (followValue(op) || isGuard(op) ||
      llvm::none_of(op->getResults(), hasElements))
    return success();
  return op->emitError() << "does not follow from the logical program: " << why;
}

bool Follower::followValue(Operation *op) {
  if (op->getNumResults() == 1) {
    Known result;
    if (!followOffset(op, result) && !followSum(op, result)) {
      followCounter(op, result);
      followMerged(op, result);
      followPadding(op, result);
      followLookup(op, result);
      followOwnScatter(op, result);
      // What does nothing but move equal elements leaves them equal.
      if (!result.splat)
        result.splat =
            moveEqual(op, [&](Value operand) { return at(operand).splat; });
    }
    at(op->getResult(0)) = std::move(result);
  }
  size_t known = op->getNumResults() ? at(op->getResult(0)).pieces.size() : 0;
  followOp(op);
  auto isFollowed = [&] {
    return llvm::any_of(op->getResults(),
                        [&](Value result) { return !at(result).isNothing(); });
  };
  // Otherwise it is said in other words. What puts zeros behind elements, or
  // takes them off, may be done to each term of a sum as well; so may anything
  // that is done to what is two values of the program.
  bool isOfProgram =
      op->getNumResults() && at(op->getResult(0)).pieces.size() > known;
  if ((!isFollowed() || isa<nn::PadOp>(op) ||
       (isa<nn::SliceOp>(op) && !isOfProgram) || readsSeveral(op)) &&
      distribute(op))
    followOp(op);
  if (!isFollowed()) {
    bool isMore = false;
    for (Value operand : op->getOperands())
      isMore |= readFurther(operand);
    isMore |= addViews(op);
    if (isMore) {
      distribute(op);
      followOp(op);
    }
  }
  if (!isFollowed() && op->getNumResults() == 1) {
    Known result;
    followView(op, result);
    followParts(op, result);
    if (result.isNothing() && distributeViews(op))
      followParts(op, result);
    followShares(op, result);
    followTerms(op, result);
    if (result.isNothing())
      followEachTerm(op, result);
    at(op->getResult(0)) = std::move(result);
  }
  // A reshape that is followed has taken equal elements for split in one way.
  else if (isa<nn::ReshapeOp>(op) && holdsSeveralWays(op->getOperand(0)))
    followView(op, at(op->getResult(0)));
  followDealt(op);
  if (!isFollowed())
    followRing(op);
  if (op->getNumResults() == 1 && (isFormula(op) || isMaskPart(op)))
    at(op->getResult(0)).formula = op->getResult(0);
  return isFollowed();
}
