// The columns of masks that ranks need in each turn of a ring of keys.

#ifndef ACCEL_LIB_PARALLEL_SPLIT_TURNEDMASK_H
#define ACCEL_LIB_PARALLEL_SPLIT_TURNEDMASK_H

#include "dialects/Dist/Dist.h"
#include "mlir/IR/Builders.h"

namespace accel::parallel {

/// The dimension of a mask that keys run along.
inline constexpr unsigned kMaskColumns = 3;

/// The most negative number of a type, as often as `type` has elements.
mlir::Value createLowest(mlir::OpBuilder &builder, mlir::Location loc,
                         mlir::RankedTensorType type);

/// Masks of rings. What all turns of all attention with a mask need is made
/// once, where the mask is.
class TurnedMasks {
public:
  /// The columns of the keys of the rank `turn` places before each of `ranks`
  /// along the axis of `keys`, of a mask of all keys. A mask of floats gets
  /// levels.
  mlir::Value getColumns(mlir::Value mask, dist::AllGatherOp keys,
                         int64_t ranks, int64_t turn, mlir::OpBuilder &builder);

private:
  llvm::DenseMap<std::pair<mlir::Value, int64_t>, mlir::Value> turned;
  llvm::DenseMap<mlir::Value, mlir::Value> levels;
};

} // namespace accel::parallel

#endif // ACCEL_LIB_PARALLEL_SPLIT_TURNEDMASK_H
