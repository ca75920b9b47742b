// What files say of a scaled loss: DeepSpeed's `fp16`, Megatron-LM's arguments
// and Accelerate's GradScalerKwargs.

#include "lib/Config/ClaimScaler.h"

#include <cmath>

using namespace llvm;
using namespace accel::config;
using Kind = Origin::Kind;

static double realOf(const Setting &setting) {
  double number = 0;
  (void)StringRef(setting.value).getAsDouble(number);
  return number;
}

/// Claims the settings that keys of the file say, of those that stand there.
static void claimAll(const File &file, Ledger &ledger,
                     ArrayRef<std::pair<StringRef, StringRef>> keys) {
  for (auto [path, name] : keys)
    if (const Setting *setting = said(file, path))
      ledger.claim(name, *setting);
}

static void setIdle(File &file, ArrayRef<StringRef> paths, StringRef why) {
  for (Setting &setting : file.settings)
    if (is_contained(paths, StringRef(setting.path)) && setting.idle.empty())
      setting.idle = why.str();
}

void accel::config::claimScalerOfDeepSpeed(File &file, Ledger &ledger) {
  const Setting *autocast = said(file, "torch_autocast.enabled");
  if (autocast && autocast->value == "true") {
    ledger.suggest("scaler.type", "torch", Kind::Default,
                   "torch.amp.GradScaler, as DeepSpeed has it with "
                   "torch_autocast");
    setIdle(file,
            {"fp16.loss_scale", "fp16.initial_scale_power",
             "fp16.loss_scale_window", "fp16.hysteresis",
             "fp16.consecutive_hysteresis", "fp16.min_loss_scale"},
            "the scaler is torch's with torch_autocast");
    return;
  }
  ledger.suggest("scaler.type", "deepspeed", Kind::Default,
                 "DeepSpeed's dynamic scaler");
  const Setting *constant = said(file, "fp16.loss_scale");
  if (constant && realOf(*constant) > 0) {
    ledger.claim("scaler.type", *constant, "static");
    ledger.claim("scaler.init_scale", *constant);
    setIdle(file,
            {"fp16.initial_scale_power", "fp16.loss_scale_window",
             "fp16.hysteresis", "fp16.consecutive_hysteresis",
             "fp16.min_loss_scale"},
            "the scale is that of loss_scale");
    return;
  }
  if (const Setting *power = said(file, "fp16.initial_scale_power"))
    ledger.claim(
        "scaler.init_scale", *power,
        formatv("{0}", uint64_t(std::exp2(std::min(realOf(*power), 63.0))))
            .str());
  claimAll(file, ledger,
           {{"fp16.loss_scale_window", "scaler.growth_interval"},
            {"fp16.hysteresis", "scaler.hysteresis"},
            {"fp16.consecutive_hysteresis", "scaler.consecutive_hysteresis"},
            {"fp16.min_loss_scale", "scaler.min_scale"}});
}

void accel::config::claimScalerOfMegatron(File &file, Ledger &ledger) {
  ledger.suggest("scaler.type", "megatron", Kind::Default,
                 "Megatron-LM's dynamic scaler");
  const Setting *constant = said(file, "--loss-scale");
  if (constant && realOf(*constant) != 0) {
    ledger.claim("scaler.type", *constant, "static");
    ledger.claim("scaler.init_scale", *constant);
    setIdle(file,
            {"--initial-loss-scale", "--min-loss-scale", "--loss-scale-window",
             "--hysteresis"},
            "the scale is that of --loss-scale");
    return;
  }
  claimAll(file, ledger,
           {{"--initial-loss-scale", "scaler.init_scale"},
            {"--min-loss-scale", "scaler.min_scale"},
            {"--loss-scale-window", "scaler.growth_interval"},
            {"--hysteresis", "scaler.hysteresis"}});
}

void accel::config::claimScalerOfHandlers(File &file, Ledger &ledger) {
  constexpr StringLiteral kSection = "GradScalerKwargs.";
  if (!file.firstBelow("GradScalerKwargs"))
    return;
  const Setting *enabled = said(file, "GradScalerKwargs.enabled");
  if (enabled && enabled->value == "false") {
    ledger.claim("scaler.type", *enabled, "none");
    for (Setting &setting : file.settings)
      if (StringRef(setting.path).starts_with(kSection) && &setting != enabled)
        setting.idle = "enabled is false";
    return;
  }
  claimAll(file, ledger,
           {{"GradScalerKwargs.init_scale", "scaler.init_scale"},
            {"GradScalerKwargs.growth_factor", "scaler.growth_factor"},
            {"GradScalerKwargs.backoff_factor", "scaler.backoff_factor"},
            {"GradScalerKwargs.growth_interval", "scaler.growth_interval"}});
}
