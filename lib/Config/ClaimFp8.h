// What files say of fp8.

#ifndef ACCEL_LIB_CONFIG_CLAIMFP8_H
#define ACCEL_LIB_CONFIG_CLAIMFP8_H

#include "lib/Config/ClaimFile.h"

namespace accel::config {

/// Claims `fp8.*` of Accelerate's fp8_config, of its handlers (TERecipeKwargs,
/// AORecipeKwargs, MSAMPRecipeKwargs), of MS-AMP's section of a DeepSpeed JSON
/// and of Megatron-LM's arguments. All of it is read with `mixed_precision` fp8
/// (`Resolver`), which the last two say themselves. Fails for a backend or a
/// recipe that is not done.
llvm::Error claimFp8OfAccelerate(File &file, Ledger &ledger);
llvm::Error claimFp8OfHandlers(File &file, Ledger &ledger);
llvm::Error claimFp8OfDeepSpeed(File &file, Ledger &ledger);
llvm::Error claimFp8OfMegatron(File &file, Ledger &ledger);

} // namespace accel::config

#endif // ACCEL_LIB_CONFIG_CLAIMFP8_H
