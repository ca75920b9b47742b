// What stands between the elements of a picture, at places that the run
// computes: what GridSample, RoiAlign and DeformConv have in common.
#ifndef ACCEL_LIB_IMPORT_SAMPLING_H
#define ACCEL_LIB_IMPORT_SAMPLING_H

#include "NodeImporter.h"

namespace accel::import {

/// One of the elements that a place lies between, along one dimension of
/// `size` elements: its whole place, which may be beyond them, and what of it
/// counts; floats of one shape. What is beyond counts nothing.
struct Tap {
  mlir::Value place, weight;
  int64_t size;
};

/// The two elements that places of elements lie between, or one of them, and
/// what of each counts.
llvm::SmallVector<Tap> linearTaps(NodeImporter &n, mlir::Value place,
                                  int64_t size);

/// For P places in each of B pictures of `table`, which has them as rows
/// [pictures · space, C], what stands there: [B, P, C]. `picture` is the number
/// of each one, i64 [B]; `taps` has those of each dimension of space, the
/// slowest first, [B, P] each.
mlir::Value sample(NodeImporter &n, mlir::Value table, mlir::Value picture,
                   llvm::ArrayRef<llvm::SmallVector<Tap>> taps);

/// A picture [N, C, S…] as the rows of `sample`.
mlir::Value tableOf(NodeImporter &n, mlir::Value picture);

} // namespace accel::import

#endif // ACCEL_LIB_IMPORT_SAMPLING_H
