// Weights of linear layers as numbers of 16 bits with one scale, as MS-AMP
// keeps them. Private to the library.

#ifndef ACCEL_LIB_PRECISION_SCALEDWEIGHTS_H
#define ACCEL_LIB_PRECISION_SCALEDWEIGHTS_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/StringSet.h"

namespace accel::precision {

/// Makes a step leave the parameters of these names as f16s with a scale can
/// say them. What a file holds is read as it is by the first step.
void roundWeights(mlir::func::FuncOp step, const llvm::StringSet<> &names);

} // namespace accel::precision

#endif // ACCEL_LIB_PRECISION_SCALEDWEIGHTS_H
