// Which element of a value stands where: views, transposes, slices, broadcasts
// and one rank's own piece are all the same arithmetic on positions.

#ifndef ACCEL_LIB_EQUIVALENCE_PLAN_INDEXMAP_H
#define ACCEL_LIB_EQUIVALENCE_PLAN_INDEXMAP_H

#include "mlir/IR/BuiltinAttributes.h"
#include "llvm/ADT/SmallVector.h"
#include <optional>

namespace accel::equivalence {

/// A digit of a position, and how far apart neighbours lie.
struct Step {
  int64_t size, stride;
  bool operator==(const Step &other) const {
    return size == other.size && stride == other.stride;
  }
};

/// The rank's number along an axis of the mesh, and how far apart neighbours
/// lie: it is a symbol, as one text serves all ranks.
struct Coordinate {
  mlir::StringAttr axis;
  int64_t size, stride;
  /// Of a micro-batch, not a rank: its number, or how far it is behind the turn
  /// that `axis` names. As a symbol it can become another one's, as a place in
  /// an offset it could not.
  std::optional<int64_t> microBatch = std::nullopt;

  bool isOf(const Coordinate &other) const {
    return axis == other.axis && microBatch == other.microBatch;
  }
  bool operator==(const Coordinate &other) const {
    return isOf(other) && stride == other.stride;
  }
};

/// A function from positions 0, 1, … count-1 to positions of something else:
/// the position in digits, the first one major, times strides. It knows no
/// shape: a reshape changes nothing.
struct IndexMap {
  int64_t offset = 0;
  llvm::SmallVector<Step, 4> steps;
  llvm::SmallVector<Coordinate, 1> coordinates;

  /// 0 … count-1 to themselves.
  static IndexMap dense(int64_t count);
  /// The elements of a tensor of a shape, in row-major order.
  static IndexMap strided(int64_t offset, llvm::ArrayRef<int64_t> shape,
                          llvm::ArrayRef<int64_t> strides);

  bool operator==(const IndexMap &other) const {
    return offset == other.offset && steps == other.steps &&
           coordinates == other.coordinates;
  }
  int64_t count() const;
  /// The range of positions that it may reach, coordinates included.
  std::pair<int64_t, int64_t> range() const;
  /// Adds a coordinate; those of one symbol are one.
  void add(Coordinate coordinate);
  /// The same function on the ranks whose number along an axis is `number`.
  IndexMap at(mlir::StringAttr axis, int64_t number) const;
  /// The same function without the symbols for micro-batches that are numbers
  /// along an axis.
  IndexMap atNumbers(mlir::StringAttr axis) const;
  /// Drops digits of size 1 and joins digits that count on, so that equal
  /// functions are equal maps.
  void normalize();
  /// The same function with a digit boundary after the first `rows` positions'
  /// worth of digits: (major digits, minor digits); none if a digit would have
  /// to be cut unevenly.
  std::optional<
      std::pair<llvm::SmallVector<Step, 4>, llvm::SmallVector<Step, 4>>>
  splitAt(int64_t rows) const;
};

/// position -> outer(inner(position)); none if no digits can say it.
std::optional<IndexMap> compose(const IndexMap &outer, const IndexMap &inner);

/// Strides of a tensor without gaps.
llvm::SmallVector<int64_t> denseStrides(llvm::ArrayRef<int64_t> shape);

} // namespace accel::equivalence

#endif // ACCEL_LIB_EQUIVALENCE_PLAN_INDEXMAP_H
