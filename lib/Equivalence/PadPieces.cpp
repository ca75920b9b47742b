// Pieces of tensors that ranks hold with padding behind them, so that all have
// the same number of elements. What it holds is another matter: the program
// must give the same numbers whatever is there, unless it is known to be 0.

#include "Follow.h"
#include "dialects/NN/Casts.h"
#include "dialects/NN/NN.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace accel;
using namespace accel::equivalence;

/// The number that all elements of a value are; none if they are not.
static std::optional<APFloat> getNumber(Value value) {
  SplatElementsAttr splat;
  if (!matchPattern(skipPlacement(value), m_Constant(&splat)) ||
      !isa<FloatType>(splat.getElementType()))
    return std::nullopt;
  return splat.getSplatValue<APFloat>();
}

/// Whether an op makes 0 of padding: `zeros` says of which operands it is 0.
static bool makesZeros(Operation *op, ArrayRef<bool> zeros) {
  auto isFinite = [&](unsigned operand) {
    std::optional<APFloat> number = getNumber(op->getOperand(operand));
    return zeros[operand] || (number && number->isFinite());
  };
  if (isa<nn::MulOp>(op))
    return (zeros[0] && isFinite(1)) || (zeros[1] && isFinite(0));
  if (isa<nn::DivOp>(op)) {
    std::optional<APFloat> by = getNumber(op->getOperand(1));
    return zeros[0] && by && by->isFiniteNonZero();
  }
  if (isa<nn::SelectOp>(op))
    return zeros[1] && zeros[2];
  if (auto cast = dyn_cast<nn::CastOp>(op); cast && !keepsZero(cast))
    return false;
  return isa<nn::AddOp, nn::SubOp, nn::NegOp, nn::AbsOp, nn::SqrtOp,
             nn::CastOp>(op) &&
         llvm::all_of(zeros, [](bool zero) { return zero; });
}

/// Whether an op that combines elements gets the same from those and padding.
static bool ignoresPadding(Operation *op, const Dim &dim) {
  auto reduce = dyn_cast<nn::ReduceOp>(op);
  if (isa<nn::MatmulOp>(op) ||
      (reduce && reduce.getKind() == nn::ReductionKind::sum))
    return dim.zeros;
  if (!reduce)
    return false;
  return (reduce.getKind() == nn::ReductionKind::max &&
          dim.extreme == dist::Reduction::max) ||
         (reduce.getKind() == nn::ReductionKind::min &&
          dim.extreme == dist::Reduction::min);
}

/// Padding goes along with what is computed element by element, in rows and
/// columns of products, and where other dimensions are cut; a sum takes it in
/// only where it is 0.
LogicalResult PieceMaker::passPadding(Operation *logical, const OpMap &map,
                                      ArrayRef<Piece> operands,
                                      std::vector<std::optional<Dim>> &splits,
                                      std::string &why) {
  bool isElementwise = logical->hasTrait<nn::Elementwise>();
  auto reduce = dyn_cast<nn::ReduceOp>(logical);
  for (int index = 0; index < map.indices; ++index) {
    if (!splits[index] || splits[index]->padding == 0)
      continue;
    if (llvm::is_contained(map.reduced, index)) {
      if (holds(Premise::ReducedPaddingIsNeutral,
                ignoresPadding(logical, *splits[index])))
        continue;
      bool isExtreme = reduce && reduce.getKind() != nn::ReductionKind::sum;
      why = std::string("takes in padding that is not known to ") +
            (isExtreme ? "change nothing" : "be 0");
      return failure();
    }
    if (!holds(Premise::PaddingStays,
               isElementwise || reduce ||
                   isa<nn::BroadcastOp, nn::TransposeOp, nn::MatmulOp,
                       nn::SliceOp, nn::PadOp>(logical))) {
      why = "does not leave padding where it is";
      return failure();
    }
    // The other operand's elements may be anything, and so may what is put
    // behind those of another dimension.
    if (isa<nn::MatmulOp, nn::PadOp>(logical) &&
        !isLeftOut(Premise::OthersMeetNoZeros)) {
      splits[index]->zeros = false;
      splits[index]->extreme.reset();
    }
    if (!isElementwise)
      continue;
    splits[index]->extreme.reset();
    SmallVector<bool> zeros;
    for (auto [operand, piece] : llvm::enumerate(operands))
      for (auto [of, dim] : llvm::zip(map.operands[operand], piece.dims))
        if (of == index) {
          std::optional<APFloat> number = getNumber(piece.logical);
          zeros.push_back(dim.free ? number && number->isZero() : dim.zeros);
        }
    splits[index]->zeros =
        holds(Premise::ZerosMakeZeros, makesZeros(logical, zeros));
  }
  return success();
}

/// Whether a local slice keeps what a piece has of the logical value: all but
/// the padding.
static bool cutsPadding(nn::SliceOp slice, const Piece &piece) {
  for (auto [dim, size] : llvm::enumerate(shapeOf(slice.getInput()))) {
    const Dim &held = piece.dims[dim];
    int64_t kept = size - held.padding;
    if (!holds(Premise::CutKeepsTheRest, slice.getStarts()[dim] == 0 &&
                                             slice.getSteps()[dim] == 1 &&
                                             slice.getSizes()[dim] == kept) ||
        !holds(Premise::CutOnOneRank, !held.padding || held.axes.empty()))
      return false;
  }
  return true;
}

/// A piece of a value, with zeros behind it.
static std::optional<Piece> pad(nn::PadOp op, Piece piece) {
  for (auto [dim, size] : llvm::enumerate(op.getHigh())) {
    Dim &held = piece.dims[dim];
    if (!holds(Premise::PutBehind, op.getLow()[dim] == 0))
      return std::nullopt;
    if (size == 0)
      continue;
    bool isAll = shapeOf(op.getInput())[dim] == shapeOf(piece.logical)[dim];
    if (!holds(Premise::PutBehindAll,
               (!held.free || isAll) && held.axes.empty()) ||
        !holds(Premise::PutBehindInOrder, held.isPlain()))
      return std::nullopt;
    held.free = false; // what follows is something else
    held.padding = size;
    held.zeros = true;
  }
  return piece;
}

/// What takes off padding, and nothing else, leaves the value.
void Follower::followPaddingCut(Operation *op, Known &result) {
  auto slice = dyn_cast<nn::SliceOp>(op);
  if (!slice)
    return;
  for (Piece piece : at(slice.getInput()).pieces) {
    if (llvm::all_of(piece.dims,
                     [](const Dim &dim) { return dim.padding == 0; }) ||
        !cutsPadding(slice, piece))
      continue;
    for (Dim &dim : piece.dims)
      if (dim.padding)
        dim = Dim();
    insert(result.pieces, piece);
  }
}

/// What puts zeros behind a value that one rank has all of leaves it the value,
/// padded.
void Follower::followPaddingPut(Operation *op, Known &result) {
  auto padding = dyn_cast<nn::PadOp>(op);
  if (!padding || !holds(Premise::PutZeros, at(padding.getValue()).isZero()))
    return;
  const Known &from = at(padding.getInput());
  if (from.isZero())
    result.splat = from.splat;
  std::vector<Piece> pieces = from.pieces;
  if (from.splat)
    for (Operation *constant : logical.getSources(OperationName(
             nn::ConstantOp::getOperationName(), op->getContext())))
      for (const Piece &piece :
           hold(padding.getInput(), constant->getResult(0)))
        insert(pieces, piece);
  for (const Piece &piece : pieces)
    if (std::optional<Piece> padded = pad(padding, piece))
      insert(result.pieces, *padded);
}
