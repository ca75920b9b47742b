// What convolutions and poolings say alike: how windows lie over space. Private
// to the library.
#ifndef ACCEL_LIB_IMPORT_WINDOWS_H
#define ACCEL_LIB_IMPORT_WINDOWS_H

#include "NodeImporter.h"

namespace accel::import {

/// Windows over the dimensions of space, the last ones of an operand. `low` and
/// `high` elements are outside before and behind what there is.
struct Windows {
  llvm::SmallVector<int64_t, 3> kernel, strides, dilations, low, high;

  size_t space() const { return kernel.size(); }
  /// Elements from a window's first to its last.
  int64_t extent(size_t dim) const {
    return (kernel[dim] - 1) * dilations[dim] + 1;
  }
};

/// The node's attributes kernel_shape (else `kernel`, which it must not
/// contradict), strides, dilations, pads and auto_pad, for an operand of these
/// sizes. None after an error.
std::optional<Windows>
readWindows(NodeImporter &n, llvm::ArrayRef<int64_t> sizes,
            std::optional<llvm::ArrayRef<int64_t>> kernel);

/// How many windows there are along each dimension, at least one; with
/// `roundUp` also those that begin inside, or in the low padding, and end
/// behind the high one. None after an error.
std::optional<llvm::SmallVector<int64_t>>
countWindows(NodeImporter &n, llvm::ArrayRef<int64_t> sizes,
             const Windows &windows, bool roundUp = false);

/// The value with as much of `outside`, a scalar, before and behind its
/// dimensions of space as windows see.
mlir::Value padForWindows(NodeImporter &n, mlir::Value value,
                          const Windows &windows,
                          llvm::ArrayRef<int64_t> counts, mlir::Value outside);

/// The elements of each window: of [n, c, s…] windows [n, c, p…, k…]. What is
/// outside is `outside`, a scalar.
mlir::Value gatherWindows(NodeImporter &n, mlir::Value value,
                          const Windows &windows,
                          llvm::ArrayRef<int64_t> counts, mlir::Value outside);

/// Adds windows up where they lie: of [n, c, p…, k…] what has `sizes` in space,
/// [n, c, s…]. The transpose of gatherWindows.
mlir::Value scatterWindows(NodeImporter &n, mlir::Value value,
                           const Windows &windows,
                           llvm::ArrayRef<int64_t> sizes);

} // namespace accel::import

#endif // ACCEL_LIB_IMPORT_WINDOWS_H
