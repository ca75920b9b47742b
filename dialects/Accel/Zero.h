// How data-parallel ranks share the states of a step (ZeRO), as a module says
// it from the pass that places states to those that place what moves them.

#ifndef ACCEL_DIALECTS_ACCEL_ZERO_H
#define ACCEL_DIALECTS_ACCEL_ZERO_H

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinOps.h"

namespace accel {

inline constexpr llvm::StringLiteral kZeroStageAttr = "accel.zero_stage";

/// Decisions (`accel.decisions`) about weights of which ranks have pieces:
/// `gathers = "once"`, where they are whole for all of a step; by unit, in the
/// forward and in the backward, where nothing is said.
inline constexpr llvm::StringLiteral kGathersDecision = "gathers",
                                     kGathersOnce = "once";

/// The ZeRO stage that states were placed by, 1 to 3; 0 where ranks share none.
inline int64_t getZeroStage(mlir::ModuleOp module) {
  auto stage = module->getAttrOfType<mlir::IntegerAttr>(kZeroStageAttr);
  return stage ? stage.getInt() : 0;
}

} // namespace accel

#endif // ACCEL_DIALECTS_ACCEL_ZERO_H
