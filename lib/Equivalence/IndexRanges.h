// What integer arithmetic makes of an index, for all indices there are.

#ifndef ACCEL_LIB_EQUIVALENCE_INDEXRANGES_H
#define ACCEL_LIB_EQUIVALENCE_INDEXRANGES_H

#include "Pieces.h"

namespace accel::equivalence {

class Follower;

/// Values that are computed of one index each and of the rank's number, element
/// by element, by sums, comparisons and choices. Indices are cut into ranges on
/// which each value is one expression: few, however many indices there are.
class IndexRanges {
public:
  /// `indices` are of the logical program, each of them `splat` where that is
  /// not null; `follower` says what is known of the values.
  IndexRanges(mlir::Value indices, mlir::Attribute splat, Follower &follower)
      : indices(indices),
        constant(llvm::dyn_cast_if_present<mlir::IntegerAttr>(splat)),
        follower(follower) {}

  /// Whether, on each rank, `own` holds for exactly the indices that point into
  /// its range of `size` rows, and `row` is for these the row in the range;
  /// for indices of other ranges a row that is there; and for those that point
  /// nowhere one that is not there, so that the run stops as it did.
  bool areOwn(mlir::Value row, mlir::Value own, int64_t size, int64_t ownSize,
              bool countsFromEnd);

  /// What holds the indices that the values are computed of, null where they
  /// all are equal to a constant, and the axes along which the rank has its
  /// number.
  mlir::Value base;
  Axes axes;

private:
  /// slope · index + offset
  struct Line {
    int64_t slope, offset;
  };
  struct Range {
    int64_t first, last;
  };
  std::optional<Line> evaluate(mlir::Value value);
  std::optional<Line> evaluateOp(mlir::Operation *op);
  std::optional<Line> compare(mlir::Operation *op);
  std::optional<Line> add(Line lhs, Line rhs, int64_t sign, unsigned bits);
  std::optional<int64_t> getAt(Line line, int64_t index);

  mlir::Value indices;
  mlir::IntegerAttr constant; ///< That all are equal to; null: they are not.
  Follower &follower;
  int64_t rank = 0;
  Range range = {0, 0};
  std::optional<int64_t> cut; ///< where a second range must begin
};

} // namespace accel::equivalence

#endif // ACCEL_LIB_EQUIVALENCE_INDEXRANGES_H
