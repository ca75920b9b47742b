// Lookups in a rank's own range of a table: it picks what it has, and zeros for
// the rest, a term of the lookup; or it adds to the rows that it has.

#include "Follow.h"

#include "IndexRanges.h"
#include "dialects/NN/NN.h"

using namespace mlir;
using namespace accel;
using namespace accel::equivalence;

/// `value` and a mask if it is the one where the other holds, and zeros
/// elsewhere. The mask has the indices' shape, `shape`, which stands in the
/// value's from `from` on, behind the `batch` first.
std::optional<Follower::Masked> Follower::getMasked(Value value,
                                                    ArrayRef<int64_t> shape,
                                                    size_t batch, size_t from) {
  auto select = dyn_cast_if_present<nn::SelectOp>(getFormulaOp(value));
  if (!select)
    select = value.getDefiningOp<nn::SelectOp>();
  if (!select ||
      !holds(Premise::OthersAreZeros, at(select.getOnFalse()).isZero()))
    return std::nullopt;
  SmallVector<int64_t> units(shape.take_front(batch));
  units.append(from - batch, 1);
  llvm::append_range(units, shape.drop_front(batch));
  units.resize(shapeOf(value).size(), 1);
  Value mask = select.getCondition();
  // Repeated along the other dimensions, where it has but one element.
  if (ArrayRef(units) != shapeOf(mask)) {
    auto spread = dyn_cast_if_present<nn::BroadcastOp>(getFormulaOp(mask));
    if (!spread)
      return std::nullopt;
    mask = spread.getInput();
    ArrayRef<int64_t> given = shapeOf(mask);
    if (given.size() > units.size() ||
        given != ArrayRef(units).take_back(given.size()) ||
        llvm::any_of(ArrayRef(units).drop_back(given.size()),
                     [](int64_t size) { return size != 1; }))
      return std::nullopt;
  }
  // Dimensions of one element come and go without moving any other.
  if (shapeOf(mask) != shape) {
    auto view = dyn_cast_if_present<nn::ReshapeOp>(getFormulaOp(mask));
    if (!view || shapeOf(view.getInput()) != shape)
      return std::nullopt;
    mask = view.getInput();
  }
  return Masked{select.getOnTrue(), mask};
}

/// What `local` computes of `whole`, a gather or a scatter, if its indices are
/// the rank's own by `mask`; `values` are its table and what it adds.
std::vector<Piece> Follower::applyOwn(Operation *whole, Operation *local,
                                      Value mask, Operands values,
                                      bool startsAsZeros) {
  unsigned dim;
  bool countsFromEnd = true;
  if (auto gather = dyn_cast<nn::GatherOp>(whole)) {
    dim = gather.getDim();
    countsFromEnd = !gather.getNonNegative();
  } else if (auto gather = dyn_cast<nn::GatherNdOp>(whole)) {
    if (shapeOf(gather.getIndices()).back() != 1)
      return {};
    dim = gather.getBatchDims();
  } else {
    dim = cast<nn::ScatterAddOp>(whole).getDim();
  }
  int64_t size = shapeOf(whole->getOperand(0))[dim],
          own = shapeOf(local->getOperand(0))[dim];
  Value indices = logical.rootOf(whole->getOperand(1));
  IndexRanges ranges(indices, logical.getSplat(indices), *this);
  std::vector<Piece> results;
  if (own == 0 ||
      !ranges.areOwn(local->getOperand(1), mask, size, own, countsFromEnd)) {
    why = "indices, or their mask, are not those of the rank's own range of "
          "dimension " +
          std::to_string(dim);
    return results;
  }
  Dim split;
  split.axes = ranges.axes;
  for (Piece &table : values[0])
    if (table.dims[dim].free)
      table.dims[dim] = split;
  llvm::erase_if(values[0], [&](const Piece &table) {
    return !holds(Premise::TableIsOwnRange, table.dims[dim] == split);
  });
  values.insert(values.begin() + 1,
                ranges.base ? hold(ranges.base, indices)
                            : std::vector<Piece>{makeFree(indices)});
  SmallVector<bool> zeros(values.size(), false);
  zeros[0] = startsAsZeros;
  for (auto &made :
       apply(whole, std::move(values), zeros, local, /*ownRows=*/true))
    insert(results, made.front());
  return results;
}

bool equivalence::isSameLookup(Operation *whole, Operation *local) {
  auto gather = dyn_cast<nn::GatherOp>(whole),
       other = dyn_cast<nn::GatherOp>(local);
  if (gather && other)
    return gather.getDim() == other.getDim() &&
           gather.getNonNegative() == other.getNonNegative();
  return isa<nn::GatherNdOp>(whole) && agree(whole, local);
}

/// A lookup, where others' rows are masked.
void Follower::followLookup(Operation *op, Known &result) {
  auto select = dyn_cast<nn::SelectOp>(op);
  Operation *gather = select ? getFormulaOp(select.getOnTrue()) : nullptr;
  if (!isa_and_nonnull<nn::GatherOp, nn::GatherNdOp>(gather))
    return;
  // The picks of tuples lead.
  auto one = dyn_cast<nn::GatherOp>(gather);
  auto masked = getMasked(op->getResult(0), shapeOf(gather->getOperand(1)), 0,
                          one ? one.getDim() : 0);
  if (!masked) {
    why = "rows of other ranks are not masked";
    return;
  }
  Logical::Ops candidates;
  for (const Piece &table : at(gather->getOperand(0)).pieces)
    for (Operation *reader : logical.getReaders(table.logical))
      if (isSameLookup(reader, gather) &&
          logical.rootOf(reader->getOperand(0)) == table.logical)
        candidates.insert(reader);
  for (Operation *whole : candidates)
    for (const Piece &piece :
         applyOwn(whole, gather, masked->mask,
                  {hold(gather->getOperand(0),
                        logical.rootOf(whole->getOperand(0)))}))
      insert(result.pieces, piece);
}

/// What a scatter by the rank's own indices makes of a table, read as
/// `whole`'s.
std::vector<Piece> Follower::applyOwnScatter(Operation *whole, Operation *local,
                                             std::vector<Piece> table,
                                             bool startsAsZeros) {
  auto scatter = cast<nn::ScatterAddOp>(local);
  auto masked = getMasked(scatter.getUpdates(), shapeOf(scatter.getIndices()),
                          scatter.getBatchDims(), scatter.getDim());
  if (!masked)
    return {};
  Value added = logical.rootOf(cast<nn::ScatterAddOp>(whole).getUpdates());
  return applyOwn(whole, local, masked->mask,
                  {std::move(table), hold(masked->value, added)},
                  startsAsZeros);
}

void Follower::followOwnScatter(Operation *op, Known &result) {
  auto scatter = dyn_cast<nn::ScatterAddOp>(op);
  if (!scatter || !at(scatter.getUpdates()).formula)
    return;
  for (Operation *reader : findScatters(scatter)) {
    auto whole = cast<nn::ScatterAddOp>(reader);
    if (whole.getDim() != scatter.getDim() ||
        whole.getBatchDims() != scatter.getBatchDims())
      continue;
    for (const Piece &piece : applyOwnScatter(
             whole, scatter,
             hold(scatter.getInit(), logical.rootOf(whole.getInit())),
             at(scatter.getInit()).isZero()))
      insertSum(result.pieces, piece);
  }
}
