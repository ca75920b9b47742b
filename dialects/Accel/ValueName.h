// What the text of a module calls a value: kept in locations where the text is
// read again.

#ifndef ACCEL_DIALECTS_ACCEL_VALUENAME_H
#define ACCEL_DIALECTS_ACCEL_VALUENAME_H

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/Location.h"

namespace accel {

/// The key of such a name in the metadata of a fused location.
inline constexpr llvm::StringLiteral kValueName = "accel.value";

/// The name in a location, not in those that it is made of; null if there is
/// none.
inline mlir::StringAttr getValueName(mlir::Location location) {
  auto fused = mlir::dyn_cast<mlir::FusedLoc>(location);
  auto known =
      fused ? mlir::dyn_cast_or_null<mlir::DictionaryAttr>(fused.getMetadata())
            : nullptr;
  return known ? known.getAs<mlir::StringAttr>(kValueName) : nullptr;
}

} // namespace accel

#endif // ACCEL_DIALECTS_ACCEL_VALUENAME_H
