// What a file says about the names of the ledger.

#ifndef ACCEL_LIB_CONFIG_CLAIMFILE_H
#define ACCEL_LIB_CONFIG_CLAIMFILE_H

#include "lib/Config/Ledger.h"
#include "lib/Config/ReadFile.h"
#include "llvm/ADT/STLFunctionalExtras.h"

namespace accel::config {

/// What is asked for beside values: how ranks divide between the two axes.
struct Layout {
  /// FSDP's HYBRID strategies: shard inside a machine, replicate over them.
  std::optional<Setting> hybrid;
  int64_t machines = 1;
  Place machinesPlace;
  /// Who has 'num_processes: -1'.
  std::optional<Place> openRanks;
  /// Megatron-LM's virtual stages: how many chunks each rank has, or how many
  /// layers each chunk; and how many layers there are.
  std::optional<Setting> virtualStages, layersOfChunk, layers;
};

/// The setting of a path; null where the file says nothing there, or leaves it
/// open (`auto`, `null`).
inline const Setting *said(const File &file, const llvm::Twine &path) {
  const Setting *setting = file.get(path.str());
  return setting && setting->value != "auto" && setting->value != "null"
             ? setting
             : nullptr;
}

/// Claims what rows say by themselves (`Key::setting`), of the settings that
/// `isRead` takes: neither null nor `auto` says anything.
void claimRows(const File &file, Ledger &ledger,
               llvm::function_ref<bool(const Setting &)> isRead);

/// Requires a file without contradictions (`checkAgreement`).
void claimAccelerate(File &file, bool hasDeepSpeedFile, Ledger &ledger,
                     Layout &layout);

/// Marks the keys that others keep from being read. Fails where keys that are
/// well each do not make sense together.
llvm::Error claimDeepSpeed(File &file, Ledger &ledger);

/// Requires a file whose distributed_type is MEGATRON_LM.
void claimMegatronPlugin(const File &file, Ledger &ledger, Layout &layout);

/// Of handlers. Fails where one asks of another what is not done.
llvm::Error claimHandlers(File &file, Ledger &ledger);

/// Of Megatron-LM's own arguments. Fails as `claimDeepSpeed` does.
llvm::Error claimMegatron(File &file, Ledger &ledger, Layout &layout);

} // namespace accel::config

#endif // ACCEL_LIB_CONFIG_CLAIMFILE_H
