// The accel dialect for C++: the names of what a module says of itself, and the
// phases that it goes through. AccelDialect.td says what each means.

#ifndef ACCEL_DIALECTS_ACCEL_ACCEL_H
#define ACCEL_DIALECTS_ACCEL_ACCEL_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Dialect.h"
#include <optional>

#include "dialects/Accel/AccelDialect.h.inc"

namespace accel {

inline constexpr llvm::StringLiteral kPhaseAttr = "accel.phase";
inline constexpr llvm::StringLiteral kDecisionsAttr = "accel.decisions";
inline constexpr llvm::StringLiteral kConfigAttr = "accel.config";
inline constexpr llvm::StringLiteral kSeedAttr = "accel.seed";
inline constexpr llvm::StringLiteral kFoldedParametersAttr =
    "accel.folded_parameters";
inline constexpr llvm::StringLiteral kUnshiftedLabelsAttr =
    "accel.unshifted_labels";
inline constexpr llvm::StringLiteral kBatchDimsAttr = "accel.batch_dims";
inline constexpr llvm::StringLiteral kUntrainableAttr = "accel.untrainable";
inline constexpr llvm::StringLiteral kGradientWireAttr = "accel.gradient_wire";

/// The phases in their order.
enum class Phase { NN, Train, Dist, Decided, Local, Plan };

/// "nn", "train", "dist", "decided", "local" or "plan".
llvm::StringRef stringifyPhase(Phase phase);
std::optional<Phase> symbolizePhase(llvm::StringRef name);

/// The phase a module says it has reached; none if it says nothing (then the
/// module is plain IR, for single passes).
std::optional<Phase> getPhase(mlir::ModuleOp module);
void setPhase(mlir::ModuleOp module, Phase phase);

} // namespace accel

#endif // ACCEL_DIALECTS_ACCEL_ACCEL_H
