// Evaluates index arithmetic on ranges, and cuts a range where a comparison
// changes its mind within it.

#include "IndexRanges.h"

#include "Follow.h"
#include "dialects/NN/NN.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace accel;
using namespace accel::equivalence;

/// More are more than any lookup has.
static constexpr size_t kRanges = 256;

std::optional<int64_t> IndexRanges::getAt(Line line, int64_t index) {
  int64_t product, sum;
  if (llvm::MulOverflow(line.slope, index, product) ||
      llvm::AddOverflow(product, line.offset, sum))
    return std::nullopt;
  return sum;
}

/// None where it could overflow, in numbers of so many bits.
std::optional<IndexRanges::Line> IndexRanges::add(Line lhs, Line rhs,
                                                  int64_t sign, unsigned bits) {
  Line sum = {lhs.slope + sign * rhs.slope, 0};
  int64_t term;
  if (llvm::MulOverflow(rhs.offset, sign, term) ||
      llvm::AddOverflow(lhs.offset, term, sum.offset) ||
      std::abs(sum.slope) > 1)
    return std::nullopt;
  for (int64_t end : {range.first, range.last})
    if (std::optional<int64_t> number = getAt(sum, end);
        !number || !llvm::isIntN(bits, *number))
      return std::nullopt;
  return sum;
}

std::optional<IndexRanges::Line> IndexRanges::compare(Operation *op) {
  auto lhs = evaluate(op->getOperand(0)), rhs = evaluate(op->getOperand(1));
  if (!lhs || !rhs)
    return std::nullopt;
  // The sign of the difference where the range begins, and where it ends.
  auto signAt = [&](int64_t index) {
    int64_t left = *getAt(*lhs, index), right = *getAt(*rhs, index);
    return left < right ? -1 : left > right;
  };
  int sign = signAt(range.first);
  if (int last = signAt(range.last); sign != last) {
    // The first index of another sign; monotone, so that halving finds it.
    int64_t same = range.first, other = range.last;
    while (other - 1 != same) {
      int64_t middle = (same & other) + ((same ^ other) >> 1);
      (signAt(middle) == sign ? same : other) = middle;
    }
    cut = other;
    return std::nullopt;
  }
  switch (cast<nn::CompareOp>(op).getPredicate()) {
  case nn::ComparePredicate::eq:
    return Line{0, sign == 0};
  case nn::ComparePredicate::ne:
    return Line{0, sign != 0};
  case nn::ComparePredicate::lt:
    return Line{0, sign < 0};
  case nn::ComparePredicate::le:
    return Line{0, sign <= 0};
  case nn::ComparePredicate::gt:
    return Line{0, sign > 0};
  case nn::ComparePredicate::ge:
    return Line{0, sign >= 0};
  }
  return std::nullopt;
}

std::optional<IndexRanges::Line> IndexRanges::evaluateOp(Operation *op) {
  if (isa<nn::CompareOp>(op))
    return compare(op);
  std::optional<Line> first = evaluate(op->getOperand(0));
  if (!first)
    return std::nullopt;
  if (isa<nn::AddOp, nn::SubOp>(op)) {
    std::optional<Line> second = evaluate(op->getOperand(1));
    Type element = getElementTypeOrSelf(op->getResult(0));
    return second && element.isSignlessInteger()
               ? add(*first, *second, isa<nn::AddOp>(op) ? 1 : -1,
                     element.getIntOrFloatBitWidth())
               : std::nullopt;
  }
  if (isa<nn::AndOp>(op))
    return first->offset == 0 ? first : evaluate(op->getOperand(1));
  if (isa<nn::SelectOp>(op))
    return evaluate(op->getOperand(first->offset != 0 ? 1 : 2));
  // What is as wide or wider has the same number.
  auto from = getElementTypeOrSelf(op->getOperand(0)),
       to = getElementTypeOrSelf(op->getResult(0));
  if (isa<nn::CastOp>(op) && from.isSignlessInteger() && !from.isInteger(1) &&
      to.isSignlessInteger() &&
      from.getIntOrFloatBitWidth() <= to.getIntOrFloatBitWidth())
    return first;
  return std::nullopt;
}

std::optional<IndexRanges::Line> IndexRanges::evaluate(Value value) {
  const Known &known = follower.at(value);
  if (auto number = dyn_cast_if_present<IntegerAttr>(known.splat))
    return Line{0, number.getType().isInteger(1)
                       ? int64_t(number.getValue().getZExtValue())
                       : number.getValue().getSExtValue()};
  if (std::optional<Offset> offset = follower.getOffset(value)) {
    if (!axes.empty() && axes != offset->axes)
      return std::nullopt;
    axes = offset->axes;
    return Line{0, rank * offset->factor};
  }
  if (llvm::any_of(known.pieces, [&](const Piece &piece) {
        return piece.logical == indices;
      })) {
    if (base && base != value)
      return std::nullopt;
    base = value;
    return Line{1, 0};
  }
  Operation *op = known.formula ? known.formula.getDefiningOp() : nullptr;
  return op ? evaluateOp(op) : std::nullopt;
}

bool IndexRanges::areOwn(Value row, Value own, int64_t size, int64_t ownSize,
                         bool countsFromEnd) {
  unsigned bits = getElementTypeOrSelf(indices).getIntOrFloatBitWidth();
  int64_t least = llvm::minIntN(bits), most = llvm::maxIntN(bits);
  for (rank = 0; rank * ownSize < size; ++rank) {
    int64_t begin = rank * ownSize, end = begin + ownSize;
    // Where the lookup itself changes from one expression to another.
    std::vector<int64_t> starts = {least, -size, begin - size, end - size,
                                   0,     begin, end,          size};
    llvm::sort(starts);
    starts.erase(std::unique(starts.begin(), starts.end()), starts.end());
    std::vector<Range> ranges;
    for (size_t next = 0; next < starts.size(); ++next)
      ranges.push_back({starts[next], next + 1 < starts.size()
                                          ? starts[next + 1] - 1
                                          : most});
    if (constant) {
      int64_t index = constant.getValue().getSExtValue();
      ranges = {{index, index}};
    }
    for (size_t tried = 0; !ranges.empty(); ++tried) {
      range = ranges.back();
      ranges.pop_back();
      cut.reset();
      auto isOwn = evaluate(own), to = isOwn ? evaluate(row) : std::nullopt;
      if (cut && tried < kRanges) {
        ranges.push_back({range.first, *cut - 1});
        ranges.push_back({*cut, range.last});
        continue;
      }
      if (!isOwn || !to)
        return false;
      bool fromEnd = countsFromEnd && range.first >= -size && range.first < 0;
      int64_t counted = fromEnd ? size : 0,
              logical = range.first + counted, // for its sign and size
          low = std::min(*getAt(*to, range.first), *getAt(*to, range.last)),
              high =
                  std::max(*getAt(*to, range.first), *getAt(*to, range.last));
      if (range.first >= 0 ? logical >= size : !fromEnd) {
        if (low < ownSize && high >= (countsFromEnd ? -ownSize : 0))
          return false;
      } else if (logical >= begin && logical < end) {
        if (!holds(Premise::OwnIndicesPointThere,
                   isOwn->offset != 0 && low == logical - begin &&
                       *getAt(*to, range.last) == range.last + counted - begin))
          return false;
      } else if (!holds(Premise::OthersAreMasked, isOwn->offset == 0) ||
                 low < 0 || high >= ownSize) {
        return false;
      }
    }
  }
  // Each range is some rank's.
  return (base || constant) && !axes.empty() &&
         follower.getMaker().countRanks(axes) >= rank;
}
