// The Castable interface: which operands may be in a narrower type.

#ifndef ACCEL_DIALECTS_INTERFACES_CASTABLE_H
#define ACCEL_DIALECTS_INTERFACES_CASTABLE_H

#include "mlir/IR/OpDefinition.h"

#include "dialects/Interfaces/Castable.h.inc"

#endif // ACCEL_DIALECTS_INTERFACES_CASTABLE_H
