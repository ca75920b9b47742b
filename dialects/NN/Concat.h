// Concatenations of many values, which no kernel should make at once.

#ifndef ACCEL_DIALECTS_NN_CONCAT_H
#define ACCEL_DIALECTS_NN_CONCAT_H

#include "mlir/IR/Value.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/STLFunctionalExtras.h"

namespace accel::nn {

/// What one concatenation joins at most: the code for each of its elements asks
/// every operand whether it is there.
inline constexpr size_t kMostJoined = 64;

/// Joins values by `join`, which makes a concatenation: of more than
/// kMostJoined, neighbours are joined first, to as many pieces as that at most.
mlir::Value
joinInParts(llvm::ArrayRef<mlir::Value> values,
            llvm::function_ref<mlir::Value(llvm::ArrayRef<mlir::Value>)> join);

} // namespace accel::nn

#endif // ACCEL_DIALECTS_NN_CONCAT_H
