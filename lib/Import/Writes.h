// Writes by index: what a table is after updates were put at places of it, as
// selections and reductions over the updates. What is computed is the same in
// whatever order, and on however many ranks.
#ifndef ACCEL_LIB_IMPORT_WRITES_H
#define ACCEL_LIB_IMPORT_WRITES_H

#include "NodeImporter.h"

namespace accel::import {

/// updates[c…, m, s…] go to [c…, places[c…, m], s…] of a table. Each batch c
/// has places of its own, numbers from 0 on, at least one.
struct Writes {
  mlir::Value table, places, updates;
  /// Of each update whether it is one; null if all are.
  mlir::Value chosen = nullptr;
  /// Whether updates of one place may as well be added where they are written.
  bool isSum = false;
};

/// The table with the updates in place of what was there; of several updates of
/// one place the last, which ONNX leaves open and its reference does.
mlir::Value writeLast(NodeImporter &n, const Writes &writes);

/// The table with all updates added.
mlir::Value writeSums(NodeImporter &n, const Writes &writes);

/// The table's elements and all updates of a place combined. An extreme that
/// several attain shares its gradient among them, as PyTorch's scatter_reduce.
mlir::Value writeReduced(NodeImporter &n, const Writes &writes,
                         nn::ReductionKind kind);

} // namespace accel::import

#endif // ACCEL_LIB_IMPORT_WRITES_H
