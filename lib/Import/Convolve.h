// The convolution that operators are made of.
#ifndef ACCEL_LIB_IMPORT_CONVOLVE_H
#define ACCEL_LIB_IMPORT_CONVOLVE_H

#include "NodeImporter.h"

namespace accel::import {

/// The convolution of an input [N, C, S…] with a weight [M, C / group, K…], as
/// the node's attributes say, without a bias. Null after an error. Defined in
/// Ops/Convolution.cpp.
mlir::Value convolve(NodeImporter &n, mlir::Value x, mlir::Value weight);

} // namespace accel::import

#endif // ACCEL_LIB_IMPORT_CONVOLVE_H
