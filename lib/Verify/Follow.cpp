// Follows ops: by the map of each, and where one rank's program says a thing in
// other words than the logical one, by what these words mean.

#include "Follow.h"

#include "dialects/NN/NN.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace accel;
using namespace accel::verify;

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

/// A piece of equal elements.
static Piece makeFree(Value logical) {
  Piece piece;
  piece.logical = logical;
  piece.dims.resize(cast<RankedTensorType>(logical.getType()).getRank(),
                    Dim{{}, true});
  return piece;
}

/// Adds what is not there yet.
static void insert(std::vector<Piece> &pieces, const Piece &piece) {
  if (!llvm::is_contained(pieces, piece))
    pieces.push_back(piece);
}

std::vector<Piece> Follower::hold(Value value, Value wanted) {
  const Known &what = known[value];
  std::vector<Piece> held;
  for (const Piece &piece : what.pieces)
    if (piece.logical == wanted)
      held.push_back(piece);
  SplatElementsAttr whole;
  if (held.empty() && what.splat && matchPattern(wanted, m_Constant(&whole)) &&
      whole.getSplatValue<Attribute>() == what.splat)
    held.push_back(makeFree(wanted));
  return held;
}

/// Whether two ops are the same function, sizes aside.
static bool agree(Operation *logical, Operation *local) {
  if (logical->getName() != local->getName() ||
      logical->getNumOperands() != local->getNumOperands())
    return false;
  std::optional<OpMap> map = getOpMap(logical);
  auto filter = [&](Operation *op) {
    return llvm::filter_to_vector(
        op->getAttrs(), [&](NamedAttribute attribute) {
          StringRef name = attribute.getName().getValue();
          // Those of other dialects say where an op comes from.
          return !name.contains('.') &&
                 !(map && llvm::is_contained(map->sizes, name));
        });
  };
  return filter(logical) == filter(local);
}

/// The results, each way, of `whole` on each choice of pieces. Zero is a term
/// of any sum: where `zeros` says so, it takes part in those of its neighbours.
std::vector<std::vector<Piece>> Follower::apply(Operation *whole,
                                                const Operands &operands,
                                                ArrayRef<bool> zeros,
                                                Operation *local) {
  std::optional<OpMap> map = getOpMap(whole);
  std::vector<std::vector<Piece>> choices = {{}};
  for (const std::vector<Piece> &each : operands) {
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
      if (auto pieces = maker.applyOp(whole, reading, local, why);
          succeeded(pieces))
        results.push_back(*pieces);
  }
  return results;
}

void Follower::followOp(Operation *op) {
  // The op must read what each operand holds: the operand with the fewest
  // readers says which it can be.
  std::optional<Logical::Ops> candidates;
  SmallVector<bool> zeros;
  for (Value operand : op->getOperands()) {
    const Known &what = known[operand];
    Logical::Ops readers;
    for (const Piece &piece : what.pieces)
      readers.insert_range(logical.getReaders(piece.logical));
    if (what.splat)
      readers.insert_range(logical.getReaders(what.splat));
    if (!candidates || readers.size() < candidates->size())
      candidates = std::move(readers);
    zeros.push_back(what.isZero());
  }
  if (!candidates)
    return;
  for (Operation *candidate : *candidates) {
    if (!agree(candidate, op))
      continue;
    Operands operands;
    for (auto [number, operand] : llvm::enumerate(op->getOperands()))
      operands.push_back(
          hold(operand, Logical::rootOf(candidate->getOperand(number))));
    for (auto &results : apply(candidate, operands, zeros, op))
      for (auto [piece, result] : llvm::zip_equal(results, op->getResults()))
        insert(known[result].pieces, piece);
  }
}

/// The logical program's scatters of what `updates` may be.
Logical::Ops Follower::findScatters(Value updates) {
  const Known &what = known[updates];
  Logical::Ops found;
  auto add = [&](const Logical::Ops &readers) {
    for (Operation *reader : readers)
      if (isa<nn::ScatterAddOp>(reader))
        found.insert(reader);
  };
  for (const Piece &piece : what.pieces)
    add(logical.getReaders(piece.logical));
  if (what.splat)
    add(logical.getReaders(what.splat));
  return found;
}

/// What a local scatter onto anything adds to it, read as `whole`'s, onto
/// zeros.
std::vector<Piece> Follower::applyScatter(Operation *whole, Operation *local) {
  auto scatter = cast<nn::ScatterAddOp>(local);
  auto onto = cast<nn::ScatterAddOp>(whole);
  std::vector<Piece> terms;
  if (scatter.getDim() != onto.getDim() ||
      scatter.getBatchDims() != onto.getBatchDims() ||
      (!matchPattern(onto.getInit(), m_AnyZeroFloat()) &&
       !matchPattern(onto.getInit(), m_Zero())))
    return terms;
  Operands operands = {
      {makeFree(Logical::rootOf(onto.getInit()))},
      hold(scatter.getIndices(), Logical::rootOf(onto.getIndices())),
      hold(scatter.getUpdates(), Logical::rootOf(onto.getUpdates()))};
  for (auto &results : apply(whole, operands, {true, false, false}, local))
    insert(terms, results.front());
  return terms;
}

/// The dimensions of two pieces that are added element by element: where one's
/// elements are equal, those of the other. None if they are split differently.
static std::optional<std::vector<Dim>> joinDims(ArrayRef<Dim> lhs,
                                                ArrayRef<Dim> rhs) {
  std::vector<Dim> joined;
  for (auto [a, b] : llvm::zip_equal(lhs, rhs)) {
    if (!a.free && !b.free && !(a == b))
      return std::nullopt;
    joined.push_back(a.free ? b : a);
  }
  return joined;
}

/// Sums that the logical program makes of two values.
std::vector<Piece> Follower::addTerms(ArrayRef<Piece> lhs,
                                      ArrayRef<Piece> rhs) {
  std::vector<Piece> sums;
  for (const Piece &a : lhs)
    for (Operation *reader : logical.getReaders(a.logical)) {
      auto add = dyn_cast<nn::AddOp>(reader);
      if (!add)
        continue;
      Value left = Logical::rootOf(add.getLhs()),
            right = Logical::rootOf(add.getRhs());
      for (const Piece &b : rhs) {
        bool adds = (left == a.logical && right == b.logical) ||
                    (left == b.logical && right == a.logical);
        if (!adds || a.partial != b.partial)
          continue;
        std::optional<std::vector<Dim>> dims = joinDims(a.dims, b.dims);
        if (!dims)
          continue;
        Piece sum = a;
        sum.logical = add;
        sum.dims = *dims;
        insert(sums, sum);
      }
    }
  return sums;
}

/// x + scatter_add(0, i, u) is scatter_add(x, i, u) in one rank's program.
void Follower::followMerged(Operation *op, Known &result) {
  auto scatter = dyn_cast<nn::ScatterAddOp>(op);
  if (!scatter)
    return;
  for (Operation *whole : findScatters(scatter.getUpdates())) {
    std::vector<Piece> terms = applyScatter(whole, op),
                       onto = known[scatter.getInit()].pieces;
    // What is all equal is any of the values that the logical program adds.
    for (Operation *sum : logical.getReaders(whole->getResult(0)))
      for (Value term : sum->getOperands())
        for (const Piece &piece :
             hold(scatter.getInit(), Logical::rootOf(term)))
          insert(onto, piece);
    for (const Piece &sum : addTerms(onto, terms))
      insert(result.pieces, sum);
  }
}

/// A sum over micro-batches, and one more term.
bool Follower::followSum(Operation *op, Known &result) {
  auto sum = llvm::find_if(op->getOperands(),
                           [&](Value each) { return known[each].sum; });
  if (sum == op->operand_end())
    return false;
  const Known before = known[*sum];
  std::vector<Piece> term;
  unsigned number = std::distance(op->operand_begin(), sum);
  auto kind = isa<nn::MaxOp>(op)   ? dist::Reduction::max
              : isa<nn::MinOp>(op) ? dist::Reduction::min
                                   : dist::Reduction::sum;
  if (isa<nn::AddOp, nn::MaxOp, nn::MinOp>(op)) {
    term = known[op->getOperand(1 - number)].pieces;
  } else if (auto scatter = dyn_cast<nn::ScatterAddOp>(op);
             scatter && number == 0) {
    for (Operation *whole : findScatters(scatter.getUpdates()))
      for (const Piece &piece : applyScatter(whole, op))
        insert(term, piece);
  }
  if (term.empty() || (!before.terms.empty() && before.combines != kind))
    return false;
  result.sum = before.sum;
  result.terms = before.terms;
  result.combines = kind;
  // Two terms are one if the logical program adds them.
  if (!result.terms.empty() && kind == dist::Reduction::sum)
    if (auto both = addTerms(result.terms.back(), term); !both.empty()) {
      result.terms.back() = both;
      return true;
    }
  result.terms.push_back(term);
  return true;
}

/// Where a rank's piece begins: its number along axes, times a size.
bool Follower::followOffset(Operation *op, Known &result) {
  if (auto index = dyn_cast<dist::AxisIndexOp>(op)) {
    result.offset = Offset{maker.dropUnits(index.getAxes().getNames()), 1};
    return true;
  }
  if (!isa<nn::CastOp, nn::BroadcastOp, nn::MulOp>(op))
    return false;
  result.offset = known[op->getOperand(0)].offset;
  if (!result.offset || !isa<nn::MulOp>(op))
    return result.offset.has_value();
  auto factor =
      dyn_cast_if_present<IntegerAttr>(known[op->getOperand(1)].splat);
  if (factor)
    result.offset->factor *= factor.getInt();
  else
    result.offset.reset();
  return factor != nullptr;
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
    const std::optional<Offset> &offset = known[by].offset;
    if (!iota || !offset ||
        offset->factor != iota.getType().getDimSize(iota.getDim()))
      continue;
    for (Operation *whole : logical.getSources(iota->getName())) {
      Piece piece = makeFree(whole->getResult(0));
      piece.dims[iota.getDim()] = {offset->axes, false};
      if (agree(whole, iota) && maker.fits(piece, iota.getType()))
        insert(result.pieces, piece);
    }
  }
}

void Follower::followSource(Operation *op) {
  Value value = op->getResult(0);
  Known &result = known[value];
  for (Operation *whole : logical.getSources(op->getName())) {
    Piece piece;
    piece.logical = whole->getResult(0);
    piece.dims.resize(cast<RankedTensorType>(value.getType()).getRank());
    if (auto iota = dyn_cast<nn::IotaOp>(op))
      for (unsigned dim = 0; dim < piece.dims.size(); ++dim)
        piece.dims[dim].free = dim != iota.getDim();
    if (piece.dims.size() ==
            static_cast<size_t>(
                cast<RankedTensorType>(piece.logical.getType()).getRank()) &&
        agree(whole, op) && maker.fits(piece, value.getType()))
      insert(result.pieces, piece);
  }
  SplatElementsAttr splat;
  if (matchPattern(op, m_Constant(&splat)))
    result.splat = splat.getSplatValue<Attribute>();
}

LogicalResult Follower::followCollective(dist::CollectiveOpInterface op) {
  for (StringAttr axis : op.getAxes().getNames())
    if (axis == dist::MeshOp::kMicroBatchAxis &&
        mesh.findAxisSize(axis).value_or(1) > 1 && op.communicates())
      return op.emitError() << "works over micro-batches, which run one after "
                               "another";
  const Known from = known[op->getOperand(0)];
  Known &result = known[op->getResult(0)];
  why = "what it gets is nothing of it";
  // Equal elements stay what they are wherever they are sent.
  if (!isa<dist::AllReduceOp, dist::ReduceScatterOp>(op))
    result.splat = from.splat;
  for (const Piece &piece : from.pieces)
    if (auto made = maker.applyCollective(op, piece, why); succeeded(made))
      insert(result.pieces, *made);
  if (result.isNothing())
    return op.emitError() << "does not follow from the logical program: "
                          << why;
  return success();
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
  if (isa<nn::GradientOp>(op)) {
    Known what = known[op->getOperand(0)];
    known[op->getResult(0)] = std::move(what);
    return success();
  }
  if (op->getNumResults() == 1) {
    Known result;
    if (!followOffset(op, result) && !followSum(op, result)) {
      followCounter(op, result);
      followMerged(op, result);
      // What does nothing but move equal elements leaves them equal.
      if (isa<nn::BroadcastOp, nn::ReshapeOp, nn::TransposeOp, nn::SliceOp>(op))
        result.splat = known[op->getOperand(0)].splat;
    }
    known[op->getResult(0)] = std::move(result);
  }
  followOp(op);
  for (Value result : op->getResults())
    if (!known[result].isNothing())
      return success();
  return op->emitError() << "does not follow from the logical program: " << why;
}
