// What handlers decide together.

#include "lib/Config/ClaimFp8.h"
#include "lib/Config/ClaimScaler.h"

using namespace llvm;
using namespace accel::config;

Error accel::config::claimHandlers(File &file, Ledger &ledger) {
  claimScalerOfHandlers(file, ledger);
  if (Error error = claimFp8OfHandlers(file, ledger))
    return error;
  const Setting *hook = file.get("DistributedDataParallelKwargs.comm_hook");
  // Another hook has no state.
  bool hasState = hook && hook->value == "power_sgd";
  claimRows(file, ledger, [&](const Setting &setting) {
    return hasState || !StringRef(setting.path).contains(".comm_state_option.");
  });
  const Setting *wrapper =
      file.get("DistributedDataParallelKwargs.comm_wrapper");
  // Accelerate wraps a hook, and nothing where there is none.
  if (!hook || !wrapper || hook->value == "no" || wrapper->value == "no" ||
      hook->value == wrapper->value)
    return Error::success();
  return failAt(wrapper->place,
                "'" + wrapper->path + ": " + wrapper->value +
                    "' is not supported yet around 'comm_hook: " + hook->value +
                    "': " +
                    (hasState ? "factors that are rounded"
                              : "gradients that are rounded to two types") +
                    " on their way between ranks");
}
