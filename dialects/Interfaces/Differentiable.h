// The Differentiable interface: vector-Jacobian products in nn ops.

#ifndef ACCEL_DIALECTS_INTERFACES_DIFFERENTIABLE_H
#define ACCEL_DIALECTS_INTERFACES_DIFFERENTIABLE_H

#include "mlir/IR/Builders.h"
#include "mlir/IR/OpDefinition.h"

#include "dialects/Interfaces/Differentiable.h.inc"

#endif // ACCEL_DIALECTS_INTERFACES_DIFFERENTIABLE_H
