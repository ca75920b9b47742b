// Pieces of a reshape: a position in row-major order is a number whose digits
// are the axes that split dimensions and what a rank holds of them. The
// result's dimensions are other groupings of the same digits.

#include "Pieces.h"

using namespace mlir;
using namespace accel;
using namespace accel::equivalence;

namespace {
struct RankDigit {
  int64_t size;
  StringAttr axis;   ///< null: a rank holds all of it
  bool free = false; ///< elements along it are equal
  int64_t part = 0;  ///< of which a rank holds this many, if it is not 0
};
} // namespace

static std::vector<RankDigit> getDigits(dist::MeshOp mesh, const Piece &piece,
                                        ArrayRef<int64_t> whole,
                                        ArrayRef<int64_t> part) {
  std::vector<RankDigit> digits;
  for (auto [size, held, dim] : llvm::zip_equal(whole, part, piece.dims)) {
    int64_t rest = size;
    for (StringAttr axis : dim.axes) {
      digits.push_back({*mesh.findAxisSize(axis), axis});
      rest /= digits.back().size;
    }
    if (rest > 1)
      digits.push_back(
          {rest, {}, dim.free, dim.free && held != size ? held : 0});
  }
  return digits;
}

FailureOr<std::vector<Piece>> PieceMaker::applyReshape(Operation *logical,
                                                       const Piece &operand,
                                                       Operation *local,
                                                       std::string &why) {
  auto fail = [&] {
    why = "expected dimensions that keep what ranks hold in one place, found " +
          describe(operand);
    return failure();
  };
  // Equal elements say nothing of the shape that they are given.
  if (shapeOf(local->getResult(0)).size() !=
          shapeOf(logical->getResult(0)).size() ||
      !llvm::all_of(operand.dims, [](const Dim &dim) { return dim.isPlain(); }))
    return fail();
  std::vector<RankDigit> digits =
      getDigits(mesh, operand, shapeOf(logical->getOperand(0)),
                shapeOf(local->getOperand(0)));
  ArrayRef<int64_t> made = shapeOf(local->getResult(0));
  Piece result;
  result.logical = logical->getResult(0);
  result.partial = operand.partial;
  result.reduction = operand.reduction;
  auto next = digits.begin();
  for (auto [number, size] : llvm::enumerate(shapeOf(result.logical))) {
    Dim dim;
    dim.free = size > 1;
    bool isHeld = false;
    for (int64_t left = size; left > 1;) {
      if (next == digits.end())
        return fail();
      // What is not all there is another dimension as it is, or none.
      if (next->part && (next->size != size || made[number] != next->part))
        return fail();
      int64_t taken = std::min(left, next->size);
      if (left % taken || next->size % taken) {
        // No boundary here: what is held of the next digit belongs to it.
        auto after = next + 1;
        if (next->axis || after == digits.end() || after->axis || after->part)
          return fail();
        after->size *= next->size;
        after->free &= next->free;
        next = after;
        continue;
      }
      if (taken < next->size && next->axis)
        return fail();
      if (next->axis && isHeld)
        return fail(); // a rank's elements would be scattered
      if (next->axis)
        dim.axes.push_back(next->axis);
      else
        isHeld = true;
      dim.free &= next->free;
      left /= taken;
      next->size /= taken;
      if (next->size == 1)
        ++next;
    }
    result.dims.push_back(dim);
  }
  if (!fits(result, local->getResult(0).getType()))
    return fail();
  return std::vector<Piece>{result};
}
