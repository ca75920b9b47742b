// What files say of a scaled loss.

#ifndef ACCEL_LIB_CONFIG_CLAIMSCALER_H
#define ACCEL_LIB_CONFIG_CLAIMSCALER_H

#include "lib/Config/ClaimFile.h"

namespace accel::config {

/// Claims `scaler.*` of a DeepSpeed JSON, of Megatron-LM's arguments, and of
/// Accelerate's GradScalerKwargs, and suggests whose scaler it is. All of it is
/// read with `mixed_precision` fp16 (`Resolver`); what a constant scale keeps
/// from being read is marked.
void claimScalerOfDeepSpeed(File &file, Ledger &ledger);
void claimScalerOfMegatron(File &file, Ledger &ledger);
void claimScalerOfHandlers(File &file, Ledger &ledger);

} // namespace accel::config

#endif // ACCEL_LIB_CONFIG_CLAIMSCALER_H
