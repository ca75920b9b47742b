// Reshapes and transposes, however they are put together: where the order of
// rows is another than in the logical program, its views are others too.

#include "Follow.h"

#include "dialects/NN/NN.h"

using namespace mlir;
using namespace accel;
using namespace accel::equivalence;

/// A value as views of what the logical program's reshapes and transposes begin
/// with.
std::vector<View> Follower::getViews(Value value) {
  const Known &what = at(value);
  std::vector<View> views = what.views;
  for (const Piece &piece : what.pieces) {
    View whole = logical.getView(piece.logical);
    if (auto view = getView(whole, piece, shapeOf(value), maker))
      views.push_back(std::move(*view));
  }
  for (size_t number = 0, count = views.size(); number < count; ++number) {
    for (View &split : readAsSplit(views[number], maker))
      views.push_back(std::move(split));
    if (std::optional<View> digits = readAsDigits(views[number]))
      views.push_back(std::move(*digits));
  }
  return views;
}

bool Follower::holdsSeveralWays(Value value) {
  return llvm::any_of(at(value).pieces, [&](const Piece &piece) {
    for (auto [dim, part, whole] :
         llvm::zip_equal(piece.dims, shapeOf(value), shapeOf(piece.logical)))
      if ((dim.free && part != whole) || !dim.order.empty())
        return true;
    return false;
  });
}

/// What it may be as a piece of any of the views that the logical program has.
static std::vector<Piece> getPieces(const Logical &logical, const View &view,
                                    Type local, PieceMaker &maker) {
  std::vector<Piece> pieces;
  ArrayRef<Value> views = logical.getViews(view.root);
  for (Value value : views.empty() ? ArrayRef(view.root) : views) {
    auto piece = getPiece(view, value, logical.getView(value));
    if (!piece || !maker.fits(*piece, local))
      continue;
    for (Dim &dim : piece->dims)
      maker.sortAxes(dim);
    insert(pieces, *piece);
  }
  return pieces;
}

/// What the logical program reads as a view of the operands may be read as
/// these themselves; false if there is none.
bool Follower::addViews(Operation *op) {
  bool found = false;
  for (Value operand : op->getOperands())
    for (const View &view : getViews(operand))
      for (const Piece &piece :
           getPieces(logical, view, operand.getType(), maker)) {
        std::vector<Piece> &pieces = at(operand).pieces;
        found |= !llvm::is_contained(pieces, piece);
        insert(pieces, piece);
      }
  return found;
}

void Follower::addPieces(const View &view, Value value, Known &result) {
  for (const Piece &piece : getPieces(logical, view, value.getType(), maker))
    insert(result.pieces, piece);
}

void Follower::followView(Operation *op, Known &result) {
  // A reshape that is followed has taken equal elements for split in one way.
  if (!isa<nn::ReshapeOp, nn::TransposeOp>(op) ||
      (isFollowed(op) &&
       (isa<nn::TransposeOp>(op) || !holdsSeveralWays(op->getOperand(0)))))
    return;
  for (View view : getViews(op->getOperand(0))) {
    if (auto transpose = dyn_cast<nn::TransposeOp>(op))
      view.transpose(transpose.getPermutation());
    else if (!view.reshape(shapeOf(op->getResult(0)))) {
      view.orderEqual();
      if (!view.reshape(shapeOf(op->getResult(0))))
        continue;
    }
    addPieces(view, op->getResult(0), result);
    result.views.push_back(std::move(view));
  }
}
