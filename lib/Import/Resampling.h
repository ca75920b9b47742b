// How Resize of ONNX makes a position of one axis from positions of the
// operand: where it lies there, and which elements around it have which
// weights.

#ifndef ACCEL_LIB_IMPORT_RESAMPLING_H
#define ACCEL_LIB_IMPORT_RESAMPLING_H

#include "llvm/ADT/SmallVector.h"
#include <cstdint>
#include <string>

namespace accel::import {

/// How one axis is resized.
struct ResampledAxis {
  int64_t dim, from, to;
  /// The result's size before it was made whole, over the operand's: its
  /// positions times `over` / `of` are the operand's.
  double scale, of, over;
  double begin = 0, end = 1; ///< of the operand, as parts of it
};

/// The positions that one of the result is summed of, and their weights.
struct Taps {
  llvm::SmallVector<int64_t> positions;
  llvm::SmallVector<double> weights;
};

/// What the attributes say.
struct Resampling {
  std::string mode, transformation, nearest;
  double cubic = -0.75, outside = 0;
  bool isAntialiased = false, isOutsideExcluded = false;
};

/// Where position `position` of the result lies among the operand's, by the
/// coordinate transformation of the operator's specification.
double locate(const Resampling &method, const ResampledAxis &axis,
              int64_t position);

/// The elements of which the one at `place` is summed; at least one. Outside,
/// the nearest element of the operand stands; or nothing does, and the weights
/// of the others sum to 1.
Taps findTaps(const Resampling &method, const ResampledAxis &axis,
              double place);

} // namespace accel::import

#endif // ACCEL_LIB_IMPORT_RESAMPLING_H
