// Masks in rings: which columns a rank has of a mask, that are cut out of rows
// of its own, and the levels that its scores are counted from.

#include "Follow.h"

#include "dialects/NN/AttentionDims.h"
#include "dialects/NN/NN.h"

using namespace mlir;
using namespace accel;
using namespace accel::equivalence;

/// What is subtracted; `isGuarded` if it is the most negative number rather
/// than -inf.
Follower::Subtrahend Follower::getSubtrahend(Value value) {
  auto max = value.getDefiningOp<nn::MaxOp>();
  if (!max)
    return {value, false};
  for (auto [of, least] : {std::pair(max.getLhs(), max.getRhs()),
                           std::pair(max.getRhs(), max.getLhs())})
    if (auto number = dyn_cast_if_present<FloatAttr>(at(least).splat))
      if (APFloat lowest = number.getValue();
          lowest.isLargest() && lowest.isNegative())
        return {of, true};
  return {value, false};
}

/// Two tensors side by side along the columns of a mask.
static bool isBeside(nn::ConcatOp op) {
  return op && op.getDim() == nn::kColumnDim && op.getInputs().size() == 2;
}

/// Where a range of columns of all rows begins; none if an op is something
/// else.
static std::optional<int64_t> getColumnsOf(nn::SliceOp op) {
  ArrayRef<int64_t> shape = op ? shapeOf(op.getInput()) : ArrayRef<int64_t>();
  if (shape.size() != nn::kColumnDim + 1)
    return std::nullopt;
  for (size_t dim = 0; dim < shape.size(); ++dim)
    if (op.getSteps()[dim] != 1 ||
        (dim != nn::kColumnDim &&
         (op.getStarts()[dim] != 0 || op.getSizes()[dim] != shape[dim])))
      return std::nullopt;
  return op.getStarts()[nn::kColumnDim];
}

static bool isLargestOfRows(nn::ReduceOp op) {
  return op && op.getKind() == nn::ReductionKind::max &&
         op.getDims() == ArrayRef<int64_t>{nn::kColumnDim};
}

/// A range of a mask's columns, two ranges side by side, a rank's part of them,
/// and rows' levels: they are seen where attention reads them.
bool Follower::isMaskPart(Operation *op) {
  if (auto beside = dyn_cast<nn::ConcatOp>(op))
    return isBeside(beside);
  if (auto largest = dyn_cast<nn::ReduceOp>(op))
    return isLargestOfRows(largest);
  if (auto range = dyn_cast<nn::SliceOp>(op))
    return getColumnsOf(range).has_value();
  if (auto column = dyn_cast<nn::ReshapeOp>(op))
    return isa_and_present<nn::ReduceOp>(getFormulaOp(column.getInput()));
  if (auto level = dyn_cast<nn::MaxOp>(op))
    return getSubtrahend(level).isGuarded;
  auto own = dyn_cast<dist::AllSliceOp>(op);
  return own && own.getDim() == nn::kColumnDim;
}

/// The mask of whose rows a value is the levels: their largest numbers, or the
/// most negative one where these are -inf. Null if it is something else.
Value Follower::getLeveledMask(Value value) {
  auto max = dyn_cast_if_present<nn::MaxOp>(getFormulaOp(value));
  Subtrahend level = max ? getSubtrahend(max) : Subtrahend();
  auto column =
      level.isGuarded
          ? dyn_cast_if_present<nn::ReshapeOp>(getFormulaOp(level.value))
          : nn::ReshapeOp();
  auto largest =
      column
          ? dyn_cast_if_present<nn::ReduceOp>(getFormulaOp(column.getInput()))
          : nn::ReduceOp();
  if (!isLargestOfRows(largest))
    return {};
  SmallVector<int64_t> shape(shapeOf(largest.getInput()));
  shape[nn::kColumnDim] = 1;
  return shapeOf(column) == ArrayRef(shape) ? largest.getInput() : Value();
}

/// Whether two local values are the same piece of a value of the logical
/// program.
bool Follower::areSamePiece(Value lhs, Value rhs) {
  return lhs == rhs || llvm::any_of(at(lhs).pieces, [&](const Piece &piece) {
           return piece.partial.empty() &&
                  llvm::is_contained(at(rhs).pieces, piece) &&
                  llvm::all_of(piece.dims,
                               [](const Dim &dim) { return dim.padding == 0; });
         });
}

/// The columns that a rank has of a mask: its own part of all of them, of which
/// the last ones, of as many ranks as its keys have gone places, may stand
/// before the others.
std::optional<Follower::MaskColumns> Follower::getMaskColumns(Value value) {
  if (auto leveled = dyn_cast_if_present<nn::ConcatOp>(getFormulaOp(value))) {
    Value of = getLeveledMask(leveled.getInputs()[0]);
    auto columns = getMaskColumns(leveled.getInputs()[1]);
    if (!of || !columns || columns->isLeveled ||
        !areSamePiece(of, columns->mask))
      return std::nullopt;
    columns->isLeveled = true;
    return columns;
  }
  auto own = dyn_cast_if_present<dist::AllSliceOp>(getFormulaOp(value));
  Axes axes = own ? maker.dropUnits(own.getAxes().getNames()) : Axes();
  if (axes.size() != 1)
    return std::nullopt;
  MaskColumns columns = {own.getInput(), axes.front(), 0, false};
  auto turned = dyn_cast_if_present<nn::ConcatOp>(getFormulaOp(own.getInput()));
  if (!turned || !at(own.getInput()).pieces.empty())
    return columns; // as the logical program has it
  auto getRange = [&](Value range) {
    return dyn_cast_if_present<nn::SliceOp>(getFormulaOp(range));
  };
  nn::SliceOp last = getRange(turned.getInputs()[0]),
              others = getRange(turned.getInputs()[1]);
  if (!last || !others || last.getInput() != others.getInput())
    return std::nullopt;
  columns.mask = last.getInput();
  int64_t all = shapeOf(columns.mask)[nn::kColumnDim];
  int64_t count = all / maker.getSize(columns.axis),
          moved = last.getSizes()[nn::kColumnDim];
  if (getColumnsOf(last) != all - moved || getColumnsOf(others) != 0 ||
      others.getSizes()[nn::kColumnDim] != all - moved || moved % count != 0)
    return std::nullopt;
  columns.turn = moved / count % maker.getSize(columns.axis);
  return columns;
}
