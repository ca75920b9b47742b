// What files say of states in the host's memory, or in a file.

#ifndef ACCEL_LIB_CONFIG_CLAIMOFFLOAD_H
#define ACCEL_LIB_CONFIG_CLAIMOFFLOAD_H

#include "lib/Config/ClaimFile.h"

namespace accel::config {

/// Claims `offload.optimizer`, `.parameters` and `.activations` of switches of
/// FSDP, Megatron-LM and older versions of DeepSpeed, of those whose paths
/// begin with `section`: what is off claims nothing.
void claimOffload(const File &file, llvm::StringRef section, Ledger &ledger);

/// Claims `offload.ratio` of what says it, where `--set` or the file offloads
/// the optimizer's states; elsewhere it is marked as not read.
void claimOffloadRatio(File &file, Ledger &ledger);

/// Claims `offload.tile` of DeepSpeed's `sub_group_size`, which bounds how many
/// numbers are updated at once, where states are offloaded and it is less than
/// without it; elsewhere it is marked as not read.
void claimTile(File &file, Ledger &ledger);

/// Claims of a file of DeepSpeed's, or of Accelerate's section on it, what says
/// where states lie in a file and how that is moved, if any do; elsewhere it is
/// marked as not read.
void claimStorage(File &file, Ledger &ledger);

} // namespace accel::config

#endif // ACCEL_LIB_CONFIG_CLAIMOFFLOAD_H
