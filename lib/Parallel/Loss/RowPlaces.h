// Where the rows that a loss is taken of stand in a tensor, from op to op.

#ifndef ACCEL_LIB_PARALLEL_LOSS_ROWPLACES_H
#define ACCEL_LIB_PARALLEL_LOSS_ROWPLACES_H

#include "mlir/IR/Operation.h"
#include "mlir/IR/Value.h"
#include <optional>

namespace accel::parallel {

/// A range of positions in a dimension, as a digit of it: the dimension has
/// `outer` times all of it, and `inner` elements for each position. The rows of
/// [8, 512] that a reshape to [4096] has made one dimension are a digit with
/// `outer` 1 and `inner` 512 of it, the columns one with `outer` 8, `inner` 1.
struct RowPlace {
  unsigned dim;
  int64_t outer = 1, inner = 1;

  bool operator==(const RowPlace &other) const {
    return dim == other.dim && outer == other.outer && inner == other.inner;
  }
};

/// What an op does with rows of an operand: puts them into its result, adds
/// over them, or something else.
struct RowsMade {
  enum Kind { Placed, Summed, Other } kind = Other;
  RowPlace place = {0}; ///< in the result, if they are `Placed`
};

/// What an op of one result makes of the rows of operand `number` (of
/// elements, where `isAlong`: of what the op works along, as the classes of a
/// softmax).
RowsMade followRows(mlir::Operation *op, unsigned number, RowPlace place,
                    bool isAlong = false);

/// Where an operand has the rows that stand at `place` in an op's result; none
/// if they are the same for all of them. Fails where that is neither.
mlir::FailureOr<std::optional<RowPlace>>
findRows(mlir::Operation *op, unsigned number, RowPlace place);

/// Where operand `other` has the rows that operand `number` has at `place`:
/// they run along; likewise.
mlir::FailureOr<std::optional<RowPlace>> findRowsBeside(mlir::Operation *op,
                                                        unsigned number,
                                                        RowPlace place,
                                                        unsigned other);

/// Whether ops of this kind can be done to some of their rows.
bool worksByRows(mlir::Operation *op);

} // namespace accel::parallel

#endif // ACCEL_LIB_PARALLEL_LOSS_ROWPLACES_H
