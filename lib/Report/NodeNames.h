// The ONNX nodes that an op is of, as messages name them.

#ifndef ACCEL_LIB_REPORT_NODENAMES_H
#define ACCEL_LIB_REPORT_NODENAMES_H

#include "mlir/IR/Operation.h"
#include <string>

namespace accel::report {

/// Each once, with commas; empty of an op that is of none.
std::string describeNode(mlir::Operation *op);

} // namespace accel::report

#endif // ACCEL_LIB_REPORT_NODENAMES_H
