// Ranks' numbers and what is counted from them; what has no operands.

#include "Follow.h"

#include "dialects/NN/NN.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace accel;
using namespace accel::equivalence;

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
void Follower::followOffset(Operation *op, Known &result) {
  if (auto index = dyn_cast<dist::AxisIndexOp>(op)) {
    result.offset = Offset{maker.dropUnits(index.getAxes().getNames()), 1};
    return;
  }
  if (!isa<nn::CastOp, nn::BroadcastOp, nn::MulOp>(op))
    return;
  result.offset = at(op->getOperand(0)).offset;
  if (!result.offset)
    return;
  if (isa<nn::MulOp>(op)) {
    auto by = dyn_cast_if_present<IntegerAttr>(at(op->getOperand(1)).splat);
    if (!by || by.getType().isUnsignedInteger() ||
        llvm::MulOverflow(result.offset->factor, by.getValue().getSExtValue(),
                          result.offset->factor))
      result.offset.reset();
  }
  if (result.offset &&
      !holds(Premise::TypeHasOffsets,
             hasMultiples(getElementTypeOrSelf(op->getResult(0)),
                          result.offset->factor,
                          maker.countRanks(result.offset->axes))))
    result.offset.reset();
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
        !holds(Premise::CounterBeginsWhereItIs,
               offset->factor == iota.getType().getDimSize(iota.getDim())))
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

/// What has no operands: equal elements, and a counter as the program has it.
void Follower::followSource(Operation *op, Known &result) {
  Value value = op->getResult(0);
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
        holds(Premise::SameSource, agree(whole, op)) &&
        maker.fits(piece, value.getType()))
      insert(result.pieces, piece);
  }
}

/// What does nothing but move equal elements leaves them equal.
void Follower::followEqual(Operation *op, Known &result) {
  if (!result.splat)
    result.splat =
        moveEqual(op, [&](Value operand) { return at(operand).splat; });
}
