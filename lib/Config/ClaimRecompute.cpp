// Translates Megatron-LM's options of recomputation into a policy.

#include "lib/Config/ClaimRecompute.h"

#include "lib/Names/RecomputePolicy.h"

using namespace llvm;
using namespace accel::config;

/// What is said; empty where nothing is.
static StringRef textOf(const Setting *setting) {
  return setting && setting->value != "null" ? StringRef(setting->value)
                                             : StringRef();
}

Error accel::config::claimRecompute(const RecomputeOptions &options,
                                    Ledger &ledger) {
  StringRef granularity = textOf(options.granularity);
  bool isFull = granularity == "full";
  if (!isFull && granularity != "selective" &&
      textOf(options.activations) != "true")
    return Error::success();
  StringRef method = textOf(options.method), layers = textOf(options.layers),
            modules = textOf(options.modules);
  const Setting *said =
      granularity.empty() ? options.activations : options.granularity;
  if (isFull) {
    ledger.claim("recompute", *said,
                 ("full:" + (method.empty() ? "uniform" : method) + ":" +
                  (layers.empty() ? "1" : layers))
                     .str());
    return Error::success();
  }
  std::string policy = "selective";
  if (!modules.empty())
    policy += ":" + modules.str();
  Expected<RecomputePolicy> parsed = RecomputePolicy::parse(policy);
  if (!parsed)
    return failAt(options.modules->place,
                  toString(parsed.takeError()) + " (--set recompute=…)");
  ledger.claim("recompute", *said, policy);
  return Error::success();
}

Error accel::config::claimRecomputeOfMegatron(File &file, Ledger &ledger) {
  RecomputeOptions options{
      file.get("--recompute-activations"), file.get("--recompute-granularity"),
      file.get("--recompute-method"), file.get("--recompute-num-layers"),
      file.get("--recompute-modules")};
  StringRef granularity = textOf(options.granularity);
  for (Setting &setting : file.settings) {
    StringRef path = setting.path;
    if (path == "--recompute-method" || path == "--recompute-num-layers") {
      if (granularity != "full")
        return failAt(setting.place,
                      "expected '--recompute-granularity: full' with '" + path +
                          "', found " +
                          (granularity.empty() ? "none" : granularity));
    } else if (path == "--recompute-modules" && granularity == "full") {
      setting.idle = "read with --recompute-granularity selective";
    } else if (path == "--recompute-modules" && granularity.empty() &&
               textOf(options.activations) != "true") {
      setting.idle = "nothing is recomputed";
    } else if ((path == "--checkpoint-activations" ||
                path == "--deepspeed-activation-checkpointing") &&
               setting.value == "true") {
      ledger.claim("recompute", setting, "full:uniform:1");
    } else if (path == "--moe-layer-recompute" && setting.value == "true") {
      ledger.claim("recompute", setting, "selective:moe");
    }
  }
  return claimRecompute(options, ledger);
}
