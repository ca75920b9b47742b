// Activation functions as ops of nn, for the operators that are one and for the
// recurrent ones, which name theirs. What of each side of a kink has the
// gradient is what PyTorch says of it (docs/Numerics.md). Defined in
// Ops/Activations.cpp.
#ifndef ACCEL_LIB_IMPORT_ACTIVATIONS_H
#define ACCEL_LIB_IMPORT_ACTIVATIONS_H

#include "NodeImporter.h"

namespace accel::import {

mlir::Value leakyRelu(NodeImporter &n, mlir::Value x, double alpha);
/// x above alpha, else 0.
mlir::Value thresholdedRelu(NodeImporter &n, mlir::Value x, double alpha);
/// x where it is positive, else alpha · (e^x - 1).
mlir::Value elu(NodeImporter &n, mlir::Value x, double alpha);
/// alpha · x + beta, within [0, 1].
mlir::Value hardSigmoid(NodeImporter &n, mlir::Value x, double alpha,
                        double beta);
/// log(1 + e^x).
mlir::Value softplus(NodeImporter &n, mlir::Value x);
/// x / (1 + |x|).
mlir::Value softsign(NodeImporter &n, mlir::Value x);

} // namespace accel::import

#endif // ACCEL_LIB_IMPORT_ACTIVATIONS_H
