// Tensors whose dimension is longer than the logical one's, on one rank: what
// fills the rest before it is combined, and lookups that never reach it.

#include "Follow.h"

#include "dialects/NN/NN.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace accel;
using namespace accel::equivalence;

namespace {
/// That an index in a dimension is less than a number.
struct Bound {
  unsigned dim;
  int64_t size;
};
} // namespace

static std::optional<Bound> getBound(Operation *op) {
  auto compare = dyn_cast_if_present<nn::CompareOp>(op);
  if (!compare || compare.getPredicate() != nn::ComparePredicate::lt)
    return std::nullopt;
  auto count = compare.getLhs().getDefiningOp<nn::IotaOp>();
  SplatElementsAttr size;
  if (!count || count.getStart() != 0 ||
      !matchPattern(compare.getRhs(), m_Constant(&size)) ||
      !size.getElementType().isInteger(64))
    return std::nullopt;
  return Bound{unsigned(count.getDim()),
               size.getSplatValue<APInt>().getSExtValue()};
}

/// How many indices a lookup lets through as they are; none if it is another.
static std::optional<int64_t> getChecked(Operation *op) {
  auto gather = dyn_cast_if_present<nn::GatherOp>(op);
  auto count =
      gather ? gather.getTable().getDefiningOp<nn::IotaOp>() : nn::IotaOp();
  if (!count || count.getStart() != 0 || count.getType().getRank() != 1)
    return std::nullopt;
  return count.getType().getDimSize(0);
}

bool equivalence::isGuard(Operation *op) {
  return getBound(op) || getChecked(op);
}

/// Whether one rank holds all of it.
static bool isAll(const Piece &piece) {
  return piece.partial.empty() && llvm::all_of(piece.dims, [](const Dim &dim) {
           return dim.axes.empty() && dim.order.empty() && dim.parts.empty();
         });
}

/// Whether it is all of a value, and nothing else: of equal elements as many.
static bool isUnpadded(const Piece &piece, Value held) {
  return isAll(piece) && shapeOf(piece.logical) == shapeOf(held) &&
         llvm::all_of(piece.dims,
                      [](const Dim &dim) { return dim.padding == 0; });
}

/// The one padded dimension of what a rank holds all of.
static std::optional<unsigned> getPadded(const Piece &piece,
                                         std::optional<Premise> all = {}) {
  std::optional<unsigned> padded;
  for (auto [number, dim] : llvm::enumerate(piece.dims))
    if (dim.padding) {
      if (padded)
        return std::nullopt;
      padded = number;
    }
  bool isKnown = isAll(piece) || (all && isLeftOut(*all));
  return isKnown ? padded : std::nullopt;
}

/// All of a value that nothing is known to be equal in.
static Piece makeAll(Value logical) {
  Piece piece;
  piece.logical = logical;
  piece.dims.resize(shapeOf(logical).size());
  return piece;
}

/// A piece whose one padded dimension a bound ends where the logical one does.
/// Equal elements are of any size, up to the bound too.
static std::optional<Piece> boundPiece(Piece piece, const Bound &bound,
                                       ArrayRef<int64_t> held) {
  if (piece.dims.size() != held.size() ||
      shapeOf(piece.logical).size() != held.size() ||
      !holds(Premise::FilledFromSize,
             held[bound.dim] > bound.size &&
                 shapeOf(piece.logical)[bound.dim] == bound.size))
    return std::nullopt;
  if (piece.dims[bound.dim].free) {
    piece.dims[bound.dim] = Dim();
    piece.dims[bound.dim].padding = held[bound.dim] - bound.size;
  }
  if (!holds(Premise::FilledPadding, getPadded(piece) == bound.dim))
    return std::nullopt;
  return piece;
}

/// A value up to the logical size, and behind it a number.
void Follower::followFilled(Operation *select, Known &result) {
  auto op = dyn_cast<nn::SelectOp>(select);
  std::optional<Bound> bound =
      op ? getBound(op.getCondition().getDefiningOp()) : std::nullopt;
  if (!bound)
    return;
  const Known &number = at(op.getOnFalse());
  for (const Piece &from : at(op.getOnTrue()).pieces) {
    std::optional<Piece> piece =
        boundPiece(from, *bound, shapeOf(op.getOnTrue()));
    if (!piece)
      continue;
    Dim &dim = piece->dims[bound->dim];
    dim.zeros = number.isZero();
    dim.extreme.reset();
    for (auto kind : {dist::Reduction::max, dist::Reduction::min})
      if (number.isIdentityOf(kind))
        dim.extreme = kind;
    insert(result.pieces, *piece);
  }
}

static int64_t countElements(ArrayRef<int64_t> shape) {
  int64_t count = 1;
  for (int64_t size : shape)
    count *= size;
  return count;
}

/// A reshape of the other dimensions, on either side of the padded one.
void Follower::followPaddedReshape(Operation *reshape, Known &result) {
  auto op = dyn_cast<nn::ReshapeOp>(reshape);
  if (!op)
    return;
  for (const Piece &piece : at(op.getInput()).pieces) {
    std::optional<unsigned> from = getPadded(piece, Premise::ReshapesAll);
    if (!from || !maker.fits(piece, op.getInput().getType()))
      continue;
    for (Operation *whole : logical.getReaders(piece.logical)) {
      if (!isa<nn::ReshapeOp>(whole))
        continue;
      ArrayRef<int64_t> in = shapeOf(piece.logical),
                        out = shapeOf(whole->getResult(0)),
                        held = shapeOf(op.getInput());
      bool isHeld = true;
      for (size_t dim = 0; dim < in.size(); ++dim)
        isHeld &= dim == *from || in[dim] == held[dim];
      for (size_t to = 0; isHeld && to < out.size(); ++to) {
        if (out[to] != in[*from] ||
            !holds(Premise::ReshapesInPlace,
                   countElements(out.take_front(to)) ==
                       countElements(in.take_front(*from))))
          continue;
        Piece made = makeAll(logical.rootOf(whole->getResult(0)));
        made.dims[to] = piece.dims[*from];
        if (maker.fits(made, op.getType()))
          insert(result.pieces, made);
      }
    }
  }
}

/// The indices that are checked against the logical size, or none.
static Value getIndices(Value checked, int64_t size, bool nonNegative,
                        Premise premise) {
  Operation *op = checked.getDefiningOp();
  if (!holds(premise,
             getChecked(op) == size &&
                 cast<nn::GatherOp>(op).getNonNegative() == nonNegative))
    return nullptr;
  return getChecked(op) ? op->getOperand(1) : checked;
}

/// A lookup in a table with more rows, none of which an index points to.
void Follower::followPaddedLookup(Operation *op, Known &result) {
  auto gather = dyn_cast<nn::GatherOp>(op);
  auto tuple = dyn_cast<nn::GatherNdOp>(op);
  if (!gather && !tuple)
    return;
  int64_t dim = gather ? gather.getDim() : tuple.getBatchDims();
  if (tuple && shapeOf(tuple.getIndices()).back() != 1)
    return;
  for (const Piece &table : at(op->getOperand(0)).pieces) {
    if (getPadded(table, Premise::LooksUpInAll) != unsigned(dim))
      continue;
    Value indices =
        getIndices(op->getOperand(1), shapeOf(table.logical)[dim],
                   gather && gather.getNonNegative(), Premise::LooksUpChecked);
    if (!indices) {
      why = "expected indices that are checked against the logical size";
      continue;
    }
    for (Operation *whole : logical.getReaders(table.logical)) {
      if (!isSameLookup(whole, op) ||
          logical.rootOf(whole->getOperand(0)) != table.logical)
        continue;
      Piece made = makeAll(whole->getResult(0));
      for (const Piece &each :
           hold(indices, logical.rootOf(whole->getOperand(1))))
        if (holds(Premise::LooksUpAll, isUnpadded(each, indices)) &&
            maker.fits(made, op->getResult(0).getType()))
          insert(result.pieces, made);
    }
  }
}

/// What is added to rows of zeros leaves those that no index points to.
void Follower::followPaddedScatter(Operation *scatter, Known &result) {
  auto op = dyn_cast<nn::ScatterAddOp>(scatter);
  if (!op || !holds(Premise::ScattersOntoNothing, at(op.getInit()).isZero()))
    return;
  for (Operation *reader : findScatters(op)) {
    auto whole = cast<nn::ScatterAddOp>(reader);
    Value init = logical.rootOf(whole.getInit());
    int64_t dim = op.getDim(), size = shapeOf(init)[dim];
    Value indices = getIndices(op.getIndices(), size, /*nonNegative=*/false,
                               Premise::ScattersChecked);
    if (!agree(whole, op) || !indices ||
        !holds(Premise::ScattersOntoNothing,
               matchPattern(init, m_AnyZeroFloat())))
      continue;
    Piece made = makeAll(whole->getResult(0));
    made.dims[dim].padding = shapeOf(op.getResult())[dim] - size;
    made.dims[dim].zeros = true;
    auto isHeld = [&](Value value, Value wanted) {
      return llvm::any_of(
          hold(value, logical.rootOf(wanted)), [&](const Piece &piece) {
            return holds(Premise::ScattersAll, isUnpadded(piece, value));
          });
    };
    if (isHeld(indices, whole.getIndices()) &&
        isHeld(op.getUpdates(), whole.getUpdates()) &&
        maker.fits(made, op.getType()))
      insert(result.pieces, made);
  }
}
