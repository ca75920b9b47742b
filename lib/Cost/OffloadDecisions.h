// Where a program keeps what the device need not hold, as a memory budget has
// decided it: from phase `decided` to the passes that place it in the plan.

#ifndef ACCEL_LIB_COST_OFFLOADDECISIONS_H
#define ACCEL_LIB_COST_OFFLOADDECISIONS_H

#include "dialects/Accel/Accel.h"

namespace accel {

/// Decisions (`accel.decisions`): the space (`host` or `nvme`) of the
/// optimizer's states, of the parameters, and of what the forward keeps for the
/// backward; the device, where nothing is said.
inline constexpr llvm::StringLiteral kOffloadOptimizer = "offload_optimizer",
                                     kOffloadParameters = "offload_parameters",
                                     kOffloadActivations =
                                         "offload_activations",
                                     kOffloadDecisions[] = {
                                         kOffloadOptimizer, kOffloadParameters,
                                         kOffloadActivations};

/// Where what `key` is about lies, as a pass's option `said` has it: `auto` is
/// what was decided, `none` where nothing was.
inline llvm::StringRef resolveOffload(mlir::ModuleOp module,
                                      llvm::StringRef key,
                                      llvm::StringRef said) {
  if (said != "auto")
    return said;
  auto decisions = module->getAttrOfType<mlir::DictionaryAttr>(kDecisionsAttr);
  auto space = decisions ? decisions.getAs<mlir::StringAttr>(key) : nullptr;
  return space ? space.getValue() : llvm::StringRef("none");
}

} // namespace accel

#endif // ACCEL_LIB_COST_OFFLOADDECISIONS_H
