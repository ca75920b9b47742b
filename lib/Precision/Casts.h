// Values in other element types: each is cast once, for all that read it.

#ifndef ACCEL_LIB_PRECISION_CASTS_H
#define ACCEL_LIB_PRECISION_CASTS_H

#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Value.h"
#include "llvm/ADT/DenseMap.h"

namespace accel::precision {

/// The type of the value, of other elements.
mlir::RankedTensorType withElement(mlir::Value value, mlir::Type element);

/// The casts that a pass puts into a function.
class Casts {
public:
  /// The value in the type; itself where it has it. What is rounded is rounded
  /// above the ops that only view it, and a constant of one number now. Stands
  /// where the value does; who asks first says why (`nn.reason`), and where.
  mlir::Value get(mlir::Value value, mlir::FloatType element,
                  mlir::StringAttr reason, mlir::Location loc);

private:
  mlir::Value make(mlir::Value value, mlir::FloatType element,
                   mlir::StringAttr reason, mlir::Location loc);

  llvm::DenseMap<std::pair<mlir::Value, mlir::Type>, mlir::Value> made;
};

} // namespace accel::precision

#endif // ACCEL_LIB_PRECISION_CASTS_H
