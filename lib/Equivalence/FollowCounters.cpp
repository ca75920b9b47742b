// Formulas, of which nothing is concluded before they are used, ranks' numbers
// among them; what is counted from these; what has no operands.

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

/// Its number along axes, times a size, in a type that has these numbers of all
/// ranks.
std::optional<Offset> Follower::getOffset(Value value) {
  Operation *op = getFormulaOp(value);
  if (auto index = dyn_cast_if_present<dist::AxisIndexOp>(op))
    return Offset{maker.dropUnits(index.getAxes().getNames()), 1};
  if (!isa_and_present<nn::CastOp, nn::BroadcastOp, nn::MulOp>(op))
    return std::nullopt;
  std::optional<Offset> offset = getOffset(op->getOperand(0));
  if (offset && isa<nn::MulOp>(op)) {
    auto by = dyn_cast_if_present<IntegerAttr>(at(op->getOperand(1)).splat);
    if (!by || by.getType().isUnsignedInteger() ||
        llvm::MulOverflow(offset->factor, by.getValue().getSExtValue(),
                          offset->factor))
      return std::nullopt;
  }
  if (offset &&
      !holds(Premise::TypeHasOffsets,
             hasMultiples(getElementTypeOrSelf(op->getResult(0)),
                          offset->factor, maker.countRanks(offset->axes))))
    return std::nullopt;
  return offset;
}

/// Whether an op is arithmetic on indices or ranks' numbers, or on what is
/// known to be such.
bool Follower::isArithmetic(Operation *op) {
  auto isPart = [&](Value value) { return bool(at(value).formula); };
  auto isInteger = [](Value value) {
    return getElementTypeOrSelf(value).isIntOrIndex();
  };
  if (isa<dist::AxisIndexOp>(op))
    return true;
  if (isa<nn::GatherOp, nn::GatherNdOp>(op))
    return isPart(op->getOperand(1));
  if (auto select = dyn_cast<nn::SelectOp>(op);
      select && isPart(op->getOperand(0)))
    return !isPart(op->getOperand(1)) ||
           !at(op->getOperand(1)).pieces.empty() || isInteger(select);
  // Numbers of ranks may be counted in floats.
  if (isa<nn::CastOp, nn::BroadcastOp, nn::MulOp>(op) &&
      getOffset(op->getOperand(0)))
    return true;
  return isa<nn::CastOp, nn::BroadcastOp, nn::ReshapeOp, nn::AddOp, nn::SubOp,
             nn::CompareOp, nn::AndOp>(op) &&
         isInteger(op->getResult(0)) &&
         llvm::all_of(op->getOperands(), [&](Value operand) {
           return isInteger(operand) && !at(operand).isNothing();
         });
}

void Follower::followFormula(Operation *op, Known &result) {
  if (isArithmetic(op) || isGuard(op) || isMaskPart(op) ||
      isPartOfDealing(op) || (!isFollowed(op) && isPartOfRing(op)))
    result.formula = op->getResult(0);
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
    std::optional<Offset> offset = getOffset(by);
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
