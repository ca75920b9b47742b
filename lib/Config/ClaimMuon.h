// What a file says of Muon, by the names of DeepSpeed and of Megatron-LM.

#ifndef ACCEL_LIB_CONFIG_CLAIMMUON_H
#define ACCEL_LIB_CONFIG_CLAIMMUON_H

#include "lib/Config/Ledger.h"
#include "lib/Config/ReadFile.h"

namespace accel::config {

/// Fails where a JSON of DeepSpeed whose optimizer is `type` has a setting of
/// Muon's, if that is another.
llvm::Error refuseOfMuon(const File &file, const Setting &type);

/// Whether DeepSpeed's Muon, if the file names it, does not read a setting that
/// another optimizer reads.
bool isLeftOutByMuon(const File &file, const Setting &setting);

/// Claims the rates of DeepSpeed's Muon, unless a scheduler says them, and what
/// it takes where the file says nothing. Marks what it does not read.
void claimMuonOfDeepSpeed(File &file, Ledger &ledger, bool rateOfScheduler);

/// Claims the `--muon-*` of Megatron-LM, or marks them if no `--optimizer muon`
/// runs. Fails where they ask for another method than ours: other coefficients,
/// parts of queries, keys and values, parts of ranks, more digits.
llvm::Error claimMuonOfMegatron(File &file, Ledger &ledger);

} // namespace accel::config

#endif // ACCEL_LIB_CONFIG_CLAIMMUON_H
