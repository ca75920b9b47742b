// Whether ops of different layers are alike.

#ifndef ACCEL_DIALECTS_ACCEL_ALIKEOPS_H
#define ACCEL_DIALECTS_ACCEL_ALIKEOPS_H

#include "mlir/IR/Operation.h"
#include "llvm/ADT/Hashing.h"

namespace accel {

/// The same of ops that are alike but for numbers and symbols: the site of a
/// dropout, a weight's name. An attribute `except` is left out as well.
llvm::hash_code hashAlike(mlir::Operation *op, llvm::StringRef except = {});

} // namespace accel

#endif // ACCEL_DIALECTS_ACCEL_ALIKEOPS_H
