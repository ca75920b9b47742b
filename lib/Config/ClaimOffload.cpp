// Which switch stands for which states, or for activations.

#include "lib/Config/ClaimOffload.h"

using namespace llvm;
using namespace accel::config;

static constexpr StringLiteral kOptimizer = "offload.optimizer",
                               kParameters = "offload.parameters",
                               kActivations = "offload.activations",
                               kFile = "nvme",
                               kMost =
                                   "zero_optimization.offload_param.max_in_cpu";

/// The second word of what `--set` takes: what switches without a device mean.
static StringRef getHost() {
  return findSetting(kOptimizer)->type.split(',').second.split(',').first;
}
static bool isOffload(StringRef device) {
  return device == getHost() || device == kFile;
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
      {"--optimizer-cpu-offload", kOptimizer},
      {"fsdp_config.fsdp_activation_checkpointing_offload", kActivations},
      {"activation_checkpointing.cpu_checkpointing", kActivations},
      {"--fine-grained-activation-offloading", kActivations}};
  for (auto [path, setting] : kSwitches)
    if (const Setting *said = file.get(path);
        path.starts_with(section) && said && said->value == "true")
      ledger.claim(setting, *said, getHost().str());
  // Megatron-LM's other way: of so many layers.
  int64_t layers = 0;
  if (const Setting *said = file.get("--cpu-offloading-num-layers");
      section == "--" && said &&
      !StringRef(said->value).getAsInteger(10, layers) && layers > 0)
    ledger.claim(kActivations, *said, getHost().str());
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

void accel::config::claimTile(File &file, Ledger &ledger) {
  // What passes take without it (lib/Plan/Passes.td).
  constexpr double kDefault = 4194304;
  auto isOffloaded = [&](StringRef name, StringRef device, StringRef old) {
    if (const std::string *set = ledger.findSet(name))
      return isOffload(*set);
    const Setting *said = file.get(device), *legacy = file.get(old);
    return (said && isOffload(said->value)) ||
           (legacy && legacy->value == "true");
  };
  bool isAny =
      isOffloaded(kOptimizer, "zero_optimization.offload_optimizer.device",
                  "zero_optimization.cpu_offload") ||
      isOffloaded(kParameters, "zero_optimization.offload_param.device",
                  "zero_optimization.cpu_offload_param") ||
      isOffloaded(kParameters, "zero_optimization.offload_param.device",
                  "zero_optimization.cpu_offload_params");
  for (Setting &setting : file.settings) {
    if (setting.path != "zero_optimization.sub_group_size")
      continue;
    double most = 0;
    bool isNumber = !StringRef(setting.value).getAsDouble(most);
    if (!isAny)
      setting.idle = "no states are offloaded";
    else if (isNumber && most > 0 && most < kDefault)
      ledger.claim("offload.tile", setting);
    else
      setting.idle = "no more than 4194304 elements of a state are updated at "
                     "once (offload.tile)";
  }
}

void accel::config::claimStorage(File &file, Ledger &ledger) {
  struct Side {
    StringLiteral setting, device, path, devicePlugin, pathPlugin;
  };
  static constexpr Side kSides[] = {
      {kOptimizer, "zero_optimization.offload_optimizer.device",
       "zero_optimization.offload_optimizer.nvme_path",
       "deepspeed_config.offload_optimizer_device",
       "deepspeed_config.offload_optimizer_nvme_path"},
      {kParameters, "zero_optimization.offload_param.device",
       "zero_optimization.offload_param.nvme_path",
       "deepspeed_config.offload_param_device",
       "deepspeed_config.offload_param_nvme_path"}};
  auto isStored = [&](const Side &side) {
    if (const std::string *set = ledger.findSet(side.setting))
      return *set == kFile;
    const Setting *device = file.get(side.device);
    if (!device)
      device = file.get(side.devicePlugin);
    return device && device->value == kFile;
  };
  bool isAny = any_of(kSides, isStored), hasWeights = isStored(kSides[1]);
  for (Setting &setting : file.settings) {
    auto read = [&](bool isRead, StringRef name, StringRef what) {
      if (!isRead)
        setting.idle = (what + " no file").str();
      else if (setting.value != "null" && setting.value != "none" &&
               setting.value != "auto")
        ledger.claim(name, setting);
    };
    for (const Side &side : kSides)
      if (setting.path == side.path || setting.path == side.pathPlugin)
        read(isStored(side), "offload.nvme_path", "these states lie in");
    if (setting.path == "aio.block_size" || setting.path == "aio.queue_depth")
      read(isAny, setting.path, "states lie in");
    if (StringRef(setting.path).starts_with("zero_optimization.aio."))
      setting.idle = "DeepSpeed reads 'aio' outside of zero_optimization";
    if (setting.path == kMost)
      read(hasWeights, "offload.max_in_cpu", "parameters lie in");
  }
  // Where a file of theirs says that they lie on disk, by its own default.
  bool isSaid = file.get(kSides[1].device) || file.get(kSides[1].devicePlugin);
  if (hasWeights && isSaid)
    ledger.suggest("offload.max_in_cpu", "1000000000", Origin::Kind::Default,
                   "DeepSpeed's, where max_in_cpu is absent");
}
