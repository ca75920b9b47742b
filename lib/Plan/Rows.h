// Rows: how tensors are cut into the units of work of a kernel.

#ifndef ACCEL_LIB_PLAN_ROWS_H
#define ACCEL_LIB_PLAN_ROWS_H

#include "llvm/ADT/ArrayRef.h"
#include <cstdint>
#include <optional>

namespace accel::plan {

/// How many leading dimensions count `rows` rows: the least k with
/// shape[0] · … · shape[k-1] = rows. None if there is no such k.
inline std::optional<unsigned> countRowDims(llvm::ArrayRef<int64_t> shape,
                                            int64_t rows) {
  int64_t product = 1;
  for (unsigned dim = 0;; ++dim) {
    if (product == rows)
      return dim;
    if (dim == shape.size())
      return std::nullopt;
    product *= shape[dim];
  }
}

} // namespace accel::plan

#endif // ACCEL_LIB_PLAN_ROWS_H
