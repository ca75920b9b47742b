// Which elements are read as unsigned numbers: booleans, too.

#ifndef ACCEL_LIB_TARGET_ELEMENT_MODELS_UNSIGNED_H
#define ACCEL_LIB_TARGET_ELEMENT_MODELS_UNSIGNED_H

#include "mlir/IR/Types.h"

namespace accel {

inline bool isUnsigned(mlir::Type element) {
  return element.isUnsignedInteger() || element.isInteger(1);
}

} // namespace accel

#endif // ACCEL_LIB_TARGET_ELEMENT_MODELS_UNSIGNED_H
