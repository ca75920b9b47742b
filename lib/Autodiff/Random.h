// Random numbers that are functions of (seed, site, call, coordinates), so that
// every layout draws the same. Private to the library.

#ifndef ACCEL_LIB_AUTODIFF_RANDOM_H
#define ACCEL_LIB_AUTODIFF_RANDOM_H

#include "NNBuilder.h"

namespace accel::autodiff {

/// A site's number where a name is what it has: Fowler, Noll and Vo's hash,
/// FNV-1a.
uint64_t hashName(llvm::StringRef name);

/// The key of what one site draws in one step; `calls` is the number of those
/// before it, skipped ones among them.
mlir::Value buildRandomKey(const NNBuilder &build, mlir::Value calls,
                           int64_t seed, uint64_t site);

/// Numbers in [0, 1) of a shape, at the coordinates of a tensor of that shape
/// that comes after `drawn` others.
mlir::Value buildUniform(const NNBuilder &build, mlir::Value key,
                         llvm::ArrayRef<int64_t> shape, int64_t drawn = 0);

/// Numbers of the standard normal distribution, as many and at the same
/// coordinates (Box and Muller, A note on the generation of random normal
/// deviates, 1958).
mlir::Value buildNormal(const NNBuilder &build, mlir::Value key,
                        mlir::RankedTensorType type);

} // namespace accel::autodiff

#endif // ACCEL_LIB_AUTODIFF_RANDOM_H
