// Which switch stands for which states.

#include "lib/Config/ClaimOffload.h"

using namespace llvm;
using namespace accel::config;

static constexpr StringLiteral kOptimizer = "offload.optimizer",
                               kParameters = "offload.parameters";

/// The second word of what `--set` takes: what switches without a device mean.
static StringRef getHost() {
  return findSetting(kOptimizer)->type.split(',').second.split(',').first;
}
static bool isOffload(StringRef device) {
  return device == getHost() || device == "nvme";
}

void accel::config::claimOffload(const File &file, StringRef section,
                                 Ledger &ledger) {
  struct Switch {
    StringLiteral path, setting;
  };
  static constexpr Switch kSwitches[] = {
      {"fsdp_config.fsdp_offload_params", kOptimizer},
      {"fsdp_config.fsdp_offload_params", kParameters},
      {"zero_optimization.cpu_offload", kOptimizer},
      {"zero_optimization.cpu_offload_param", kParameters},
      {"zero_optimization.cpu_offload_params", kParameters},
      {"megatron_lm_config.megatron_lm_optimizer_cpu_offload", kOptimizer},
      {"--optimizer-cpu-offload", kOptimizer}};
  for (auto [path, setting] : kSwitches)
    if (const Setting *said = file.get(path);
        path.starts_with(section) && said && said->value == "true")
      ledger.claim(setting, *said, getHost().str());
}

void accel::config::claimOffloadRatio(File &file, Ledger &ledger) {
  const std::string *set = ledger.findSet(kOptimizer);
  auto find = [&](StringRef path) {
    const Setting *setting = file.get(path);
    return setting ? StringRef(setting->value) : StringRef();
  };
  bool isOffloaded =
      set ? isOffload(*set)
          : isOffload(find("zero_optimization.offload_optimizer.device")) ||
                find("zero_optimization.cpu_offload") == "true" ||
                find("--optimizer-cpu-offload") == "true";
  for (Setting &setting : file.settings)
    if (setting.path == "zero_optimization.offload_optimizer.ratio" ||
        setting.path == "--optimizer-offload-fraction") {
      if (isOffloaded)
        ledger.claim("offload.ratio", setting);
      else
        setting.idle = "the optimizer's states are not offloaded";
    }
}
