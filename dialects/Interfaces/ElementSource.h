// The ElementSource interface: what code an op is within a generated kernel.

#ifndef ACCEL_DIALECTS_INTERFACES_ELEMENTSOURCE_H
#define ACCEL_DIALECTS_INTERFACES_ELEMENTSOURCE_H

#include "mlir/IR/OpDefinition.h"

namespace accel {
/// Builds a kernel; declared in lib/Target/CPU/RowEmitter.h.
class RowEmitter;
} // namespace accel

#include "dialects/Interfaces/ElementSource.h.inc"

#endif // ACCEL_DIALECTS_INTERFACES_ELEMENTSOURCE_H
