// Where a row of ops is best divided into chunks.

#ifndef ACCEL_LIB_STAGES_BALANCE_H
#define ACCEL_LIB_STAGES_BALANCE_H

#include "llvm/ADT/ArrayRef.h"
#include <optional>
#include <vector>

namespace accel::stages {

/// A row of ops. Sums are of all ops before one: each has one number more than
/// there are ops, and begins with 0.
struct Row {
  std::vector<double> work;   ///< what they take
  std::vector<double> states; ///< bytes that lie there always
  std::vector<double> kept;   ///< bytes that one copy of what is kept takes
  struct Place {
    size_t at;   ///< between op at - 1 and op at; neither end
    double sent; ///< what crossing it takes of either side, as work
  };
  std::vector<Place> places; ///< where it may be cut, in order
};

/// Chunks whose work differs by less than that part of it are as long as each
/// other: no measure that is taken before there is a kernel knows better.
inline constexpr double kAsLong = 0.01;

/// The ends of all chunks but the last, of which chunk c has `copies[c]` of
/// what it keeps: so that the longest is as short as can be, but for kAsLong;
/// of those, that the largest takes as few bytes as can be; of those, that all
/// are of the most even lengths. Nothing if there are fewer places than ends.
std::optional<std::vector<size_t>> balance(const Row &row,
                                           llvm::ArrayRef<double> copies);

} // namespace accel::stages

#endif // ACCEL_LIB_STAGES_BALANCE_H
