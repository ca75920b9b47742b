// The ElementSource interface: what code an op is within a generated kernel.

#ifndef ACCEL_DIALECTS_INTERFACES_ELEMENTSOURCE_H
#define ACCEL_DIALECTS_INTERFACES_ELEMENTSOURCE_H

#include "dialects/Interfaces/ElementBuilder.h"
#include "mlir/IR/OpDefinition.h"

#include "dialects/Interfaces/ElementSource.h.inc"

#endif // ACCEL_DIALECTS_INTERFACES_ELEMENTSOURCE_H
