// What files say of activations that the backward computes again.

#ifndef ACCEL_LIB_CONFIG_CLAIMRECOMPUTE_H
#define ACCEL_LIB_CONFIG_CLAIMRECOMPUTE_H

#include "lib/Config/ClaimFile.h"

namespace accel::config {

/// Megatron-LM's options, each null where nothing says it.
struct RecomputeOptions {
  const Setting *activations = nullptr; ///< --recompute-activations
  const Setting *granularity = nullptr;
  const Setting *method = nullptr;
  const Setting *layers = nullptr;
  const Setting *modules = nullptr;
};

/// Claims `recompute` of what Megatron-LM would do: `full` as its method says
/// (uniform, 1, where nothing does), or `selective`, of its modules. Fails
/// where a module is none of those that are known by what they do.
llvm::Error claimRecompute(const RecomputeOptions &options, Ledger &ledger);

/// The same of its arguments, and of those of its older versions and of
/// DeepSpeed's; what is read with another argument alone is marked or refused.
llvm::Error claimRecomputeOfMegatron(File &file, Ledger &ledger);

} // namespace accel::config

#endif // ACCEL_LIB_CONFIG_CLAIMRECOMPUTE_H
