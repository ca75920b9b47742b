// The heads of attention in what the operators of opset 23 read.
#ifndef ACCEL_LIB_IMPORT_HEADS_H
#define ACCEL_LIB_IMPORT_HEADS_H

#include "NodeImporter.h"

namespace accel::import {

/// [B, S, H·D] to [B, H, S, D], H being the attribute called `attribute`;
/// tensors of rank 4 stay. An error of the node, and null, for any other.
mlir::Value splitHeads(NodeImporter &n, mlir::Value value, int64_t heads,
                       llvm::StringRef attribute);

} // namespace accel::import

#endif // ACCEL_LIB_IMPORT_HEADS_H
