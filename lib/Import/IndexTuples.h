// Index tuples as operands of gathers and scatters: [c…, i…, w], the last
// dimension a tuple of w indices, one for each dimension of the table behind
// the batches c.
#ifndef ACCEL_LIB_IMPORT_INDEXTUPLES_H
#define ACCEL_LIB_IMPORT_INDEXTUPLES_H

#include "NodeImporter.h"

namespace accel::import {

/// `x[arange(batch), place]` picks in each batch by itself: index tuples that
/// begin with the number of their batch become shorter ones, per batch.
void dropCountedColumns(NodeImporter &n, mlir::Value table, mlir::Value &tuples,
                        int64_t &batchDims);

/// An index of a dimension of `size`, in [-size, size), counted from its begin;
/// nothing after an error.
std::optional<int64_t> countFromBegin(NodeImporter &n, int64_t index,
                                      int64_t size);

/// Positions, in row-major order of the tuples' dimensions of the table, as
/// 64-bit numbers [c…, i…] from 0 on. A tuple that points elsewhere is an
/// error, here or where the program runs.
mlir::Value findPlaces(NodeImporter &n, mlir::Value table, mlir::Value tuples,
                       int64_t batchDims);

/// Indices of a dimension that name each of its places in turn, `each` times
/// one after another, and that `rounds` times over.
struct Repeats {
  int64_t rounds, each;
};

/// What integers, or null, say of a dimension of `size`; nothing where they are
/// not that, or name each place once.
std::optional<Repeats> findRepeats(mlir::DenseElementsAttr known, int64_t size);

/// Indices of a dimension that go through it by groups of `size`: of each the
/// places `picked`, in this order.
struct Groups {
  int64_t size;
  llvm::SmallVector<int64_t> picked;
};

/// What indices say of a dimension of `size`, by the least groups; nothing
/// where there is one group, or none that are small.
std::optional<Groups> findGroups(llvm::ArrayRef<int64_t> indices, int64_t size);

} // namespace accel::import

#endif // ACCEL_LIB_IMPORT_INDEXTUPLES_H
