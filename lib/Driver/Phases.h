// The phases of a compilation: what each needs to know, and adds to a pass
// manager. docs/Tour.md follows one model through them.

#ifndef ACCEL_LIB_DRIVER_PHASES_H
#define ACCEL_LIB_DRIVER_PHASES_H

#include "dialects/Accel/Accel.h"
#include "lib/Autodiff/Passes.h"
#include "lib/Equivalence/Passes.h"
#include "lib/Parallel/Passes.h"
#include "lib/Plan/Pipeline.h"
#include "lib/Precision/Passes.h"
#include "lib/Search/Passes.h"
#include "lib/Stages/Passes.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/PassManager.h"
#include <optional>

namespace accel::driver {

using accel::Phase;

/// What `fp8.*` says, which `mixedPrecision` fp8 reads.
struct Fp8Options {
  precision::TagProductsPassOptions tag;
  /// Its blocks and parts of gradients: 0 for as many as the layout has.
  precision::QuantizeProductsPassOptions quantize;
  /// Whether the first and last layers stay; none: as the recipe has it.
  std::optional<bool> skipsOuter;

  Fp8Options() { quantize.blocks = quantize.gradientParts = 0; }
  bool isMsAmp() const {
    return llvm::StringRef(quantize.recipe).starts_with("msamp_");
  }
};

/// What the phases after import need to know. Its members are what their
/// pipelines take, and in the end the options that TableGen makes of each pass:
/// nothing is copied from one to the next.
struct PhaseOptions {
  autodiff::TrainOptions train;
  /// How many chunks there are, mesh and schedule say.
  stages::CutForwardPassOptions cut;
  precision::DeclareWirePassOptions wire;
  /// Its lists: what `mixedPrecision` casts beside products.
  precision::AutocastPassOptions autocast;
  Fp8Options fp8;
  /// What batch norms take statistics of: `micro_batch`, `rank` or `batch`.
  std::string batchNormScope = "micro_batch";
  int64_t batchNormParts = 0;    ///< as many parts instead, if above 0
  bool measuresRounding = false; ///< `--metrics=precision`
  parallel::PlaceOptions place;
  parallel::MarkRecomputedPassOptions recompute;
  parallel::MarkLossChunksPassOptions lossChunks;
  search::DecidePassOptions decide;
  search::FitMemoryPassOptions fitMemory;
  plan::PlanOptions plan;
  /// The program as `train` left it, for the proof in `local`: the same for all
  /// phases of one compilation, and of its context.
  std::shared_ptr<equivalence::KeptProgram> logical;
  /// And the same one with its dimensions padded, if they were.
  std::shared_ptr<equivalence::KeptProgram> padded;
};

/// Adds the passes that lead from the phase before `phase` to `phase`, the last
/// of which verifies it and marks the module.
void buildPhase(Phase phase, mlir::OpPassManager &pm,
                const PhaseOptions &options);

} // namespace accel::driver

#endif // ACCEL_LIB_DRIVER_PHASES_H
