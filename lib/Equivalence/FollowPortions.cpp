// What a rank makes of equal parts one after another, so that not all of it is
// there at once: part by part it does what ranks do one beside another. So
// parts are pieces along one more axis, at a place of it that is a number;
// whatever holds of pieces at all places holds at that one.

#include "Follow.h"

#include "dialects/Dist/LossChunks.h"
#include "dialects/NN/NN.h"

using namespace mlir;
using namespace accel;
using namespace accel::equivalence;

/// Whether a piece depends on the place along an axis.
static bool isAlong(const Piece &piece, StringAttr axis) {
  return llvm::is_contained(piece.partial, axis) ||
         llvm::any_of(piece.dims, [&](const Dim &dim) {
           return llvm::is_contained(dim.axes, axis);
         });
}

/// Adds what is known of a place; what is the same at all of them is known.
void Follower::insertPortion(Known &result, Portion portion) {
  if (!isAlong(portion.piece, portion.axis))
    insertSum(result.pieces, portion.piece);
  else if (!llvm::is_contained(result.portions, portion))
    result.portions.push_back(std::move(portion));
}

/// An equal part of what a rank holds. Slices that the program has are no parts
/// unless somebody says so: to follow them twice would be for nothing.
void Follower::followCutPortion(Operation *op, Known &result) {
  auto slice = dyn_cast<nn::SliceOp>(op);
  if (!slice || (isFollowed(op) && !op->hasAttr(dist::kLossChunkAttr)))
    return;
  std::optional<unsigned> cut;
  ArrayRef<int64_t> whole = shapeOf(slice.getInput());
  for (auto [dim, size] : llvm::enumerate(slice.getSizes())) {
    if (slice.getSteps()[dim] != 1 || (size != whole[dim] && cut))
      return;
    if (size != whole[dim])
      cut = dim;
  }
  if (!cut)
    return;
  int64_t size = slice.getSizes()[*cut], start = slice.getStarts()[*cut];
  if (size == 0 || whole[*cut] / size < 2 ||
      !holds(Premise::CutsEqualParts,
             whole[*cut] % size == 0 && start % size == 0))
    return;
  StringAttr axis = maker.getPlaces(whole[*cut] / size);
  for (const Piece &piece : std::vector<Piece>(at(slice.getInput()).pieces)) {
    Piece part = piece;
    Dim &dim = part.dims[*cut];
    // What is padded, or comes interleaved, nobody cuts.
    if (isAlong(part, axis) || dim.padding != 0 || !dim.parts.empty())
      continue;
    if (!dim.free)
      dim.axes.push_back(axis);
    if (maker.fits(part, slice.getType()))
      insertPortion(result, {part, axis, {start / size}});
  }
}

/// Each operand as what it is at one place.
void Follower::followOfPortion(Operation *op, Known &result) {
  llvm::SetVector<std::pair<StringAttr, int64_t>> places;
  for (Value operand : op->getOperands())
    for (const Portion &each : at(operand).portions)
      if (each.which.size() == 1)
        places.insert({each.axis, each.which.front()});
  for (auto [axis, place] : places) {
    std::vector<std::pair<Value, Known>> whole;
    for (Value operand :
         llvm::SetVector<Value>(op->operand_begin(), op->operand_end())) {
      Known &what = at(operand);
      if (what.portions.empty())
        continue;
      whole.push_back({operand, what});
      std::vector<Portion> portions = std::move(what.portions);
      what.portions.clear();
      for (const Portion &each : portions)
        if (each.axis == axis && holds(Premise::PortionsOfOnePlace,
                                       each.which == ArrayRef<int64_t>(place)))
          insert(what.pieces, each.piece);
    }
    Known before = std::move(result);
    result = Known();
    followValue(op);
    std::vector<Piece> made = std::move(result.pieces);
    result = std::move(before);
    for (auto &[operand, what] : whole)
      at(operand) = std::move(what);
    for (const Piece &piece : made)
      insertPortion(result, {piece, axis, {place}});
  }
}

/// The parts of all places, one after another.
void Follower::followJoinedPortions(Operation *op, Known &result) {
  auto concat = dyn_cast<nn::ConcatOp>(op);
  if (!concat)
    return;
  unsigned along = concat.getDim();
  for (const Portion &first :
       std::vector<Portion>(at(op->getOperand(0)).portions)) {
    bool areParts = int64_t(op->getNumOperands()) == maker.getSize(first.axis);
    for (unsigned place = 0; place < op->getNumOperands(); ++place)
      areParts &= llvm::any_of(
          at(op->getOperand(place)).portions, [&](const Portion &each) {
            return each.isLike(first) && each.which.size() == 1 &&
                   holds(Premise::JoinsPortionsInOrder,
                         each.which.front() == int64_t(place));
          });
    if (!areParts)
      continue;
    Piece all = first.piece;
    Dim &dim = all.dims[along];
    if (dim.axes.empty() || dim.axes.back() != first.axis)
      continue;
    dim.axes.pop_back();
    if (!isAlong(all, first.axis) &&
        maker.fits(all, concat.getResult().getType()))
      insertSum(result.pieces, all);
  }
}

/// The terms of more places; of all of them, the sum.
void Follower::followAddedPortions(Operation *op, Known &result) {
  if (!isa<nn::AddOp>(op))
    return;
  for (const Portion &lhs :
       std::vector<Portion>(at(op->getOperand(0)).portions))
    for (const Portion &rhs :
         std::vector<Portion>(at(op->getOperand(1)).portions)) {
      bool areTerms =
          llvm::is_contained(lhs.piece.partial, lhs.axis) && lhs.piece.isSum();
      if (!lhs.isLike(rhs) || !holds(Premise::AddsPortionsOfSums, areTerms))
        continue;
      Portion sum = lhs;
      llvm::append_range(sum.which, rhs.which);
      llvm::sort(sum.which);
      bool isTwice = llvm::adjacent_find(sum.which) != sum.which.end();
      if (!holds(Premise::AddsPortionsOnce, !isTwice))
        continue;
      if (holds(Premise::AddsAllPortions,
                int64_t(sum.which.size()) == maker.getSize(sum.axis))) {
        llvm::erase(sum.piece.partial, sum.axis);
        insertPortion(result, std::move(sum));
      } else {
        result.portions.push_back(std::move(sum));
      }
    }
}
