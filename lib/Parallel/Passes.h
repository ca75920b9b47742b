// The passes that place tensors on a mesh and split a program into one rank's,
// and the pipelines they form.

#ifndef ACCEL_LIB_PARALLEL_PASSES_H
#define ACCEL_LIB_PARALLEL_PASSES_H

#include "Order.h"
#include "dialects/Dist/Dist.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassManager.h"
#include <functional>

namespace accel::parallel {
#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "lib/Parallel/Passes.h.inc"

/// What phase `dist` needs to know: its passes' own options.
struct PlaceOptions {
  AnnotatePassOptions annotate;
  SplitWeightsPassOptions splitWeights;
  /// How data-parallel ranks share the states of a step: what ZeRO stages and
  /// FSDP's strategies come down to.
  ShardStatesPassOptions shardStates;
  /// What the user has placed by name.
  PlaceNamedPassOptions placeNamed;
  /// An axis that splits nothing, or a size that its ranks do not divide, is an
  /// error: of both passes that drop one.
  bool strict = false;
  /// Sequence parallelism.
  ScatterSumsPassOptions scatterSums;
  /// What keeps the program whose dimensions are padded, if somebody wants it:
  /// proofs go from the program to it, and from it to each rank's.
  std::function<std::unique_ptr<mlir::Pass>()> keepPadded;
  /// Context parallelism by a ring.
  MarkRingsPassOptions markRings;
  /// Keep where every axis comes from (`Explain/Origins.h`).
  bool explain = false;
};

/// Adds the passes from `train` to `dist`: mesh and constraints, propagation,
/// types with shardings and reshards between them, verification.
void buildPlacePipeline(mlir::OpPassManager &pm, const PlaceOptions &options);

/// Adds the passes from `decided` to one rank's program: gathers and scatters
/// get their places, reshards become collectives, types one rank's. What
/// follows is `local-split-tasks`, and `local-verify`. Who tries a copy need
/// not have it verified: the program itself is.
void buildSplitPipeline(mlir::OpPassManager &pm, bool isVerified = true);

} // namespace accel::parallel

#endif // ACCEL_LIB_PARALLEL_PASSES_H
