// Muon, as DeepSpeed's engine (runtime/engine.py, zero/muon) and Megatron-LM
// (core/optimizer/emerging_optimizers.py) call its parts.

#include "lib/Config/ClaimMuon.h"

#include "lib/Config/ClaimFile.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringSwitch.h"

using namespace llvm;
using namespace accel::config;
using Kind = Origin::Kind;

static constexpr StringLiteral kParams = "optimizer.params.";

Error accel::config::refuseOfMuon(const File &file, const Setting &type) {
  for (StringRef key : {"muon_lr", "adam_lr", "ns_method", "per_head_muon"})
    if (const Setting *setting = file.get((kParams + key).str());
        setting && type.value != "Muon")
      return failAt(setting->place, "'" + setting->path +
                                        "' is read by Muon, found '" +
                                        type.path + ": " + type.value + "'");
  return Error::success();
}

bool accel::config::isLeftOutByMuon(const File &file, const Setting &setting) {
  const Setting *type = file.get("optimizer.type");
  return type && type->value == "Muon" &&
         (setting.path == kParams.str() + "nesterov" ||
          setting.path == kParams.str() + "dampening");
}

void accel::config::claimMuonOfDeepSpeed(File &file, Ledger &ledger,
                                         bool rateOfScheduler) {
  auto suggest = [&](StringRef name, StringRef value) {
    ledger.suggest(name, value.str(), Kind::Default, "DeepSpeed's, of Muon");
  };
  suggest("optimizer.momentum", "0.95");
  suggest("optimizer.betas", "0.9,0.95");
  suggest("optimizer.eps", "1e-10");
  for (Setting &setting : file.settings)
    if (isLeftOutByMuon(file, setting))
      setting.idle = "DeepSpeed's Muon has Nesterov's momentum always";
  if (rateOfScheduler)
    return;
  const Setting *all = said(file, kParams + "lr");
  const Setting *own = said(file, kParams + "muon_lr");
  const Setting *others = said(file, kParams + "adam_lr");
  if (own)
    ledger.claim("optimizer.lr", *own);
  else if (!file.get(kParams.str() + "lr"))
    suggest("optimizer.lr", "0.02");
  // One that is said of all is that of others where they have none.
  if (others)
    ledger.claim("optimizer.adam_lr", *others);
  else if (own && all)
    ledger.claim("optimizer.adam_lr", *all);
  else if (!file.get(kParams.str() + "lr"))
    suggest("optimizer.adam_lr", "0.0003");
}

/// What Megatron-LM's scale mode, times its further factor, is called here;
/// empty if it is none.
static StringRef findAdjustment(StringRef mode, double factor) {
  if (factor == 0.2 && mode == "spectral")
    return "match_rms_adamw";
  return factor != 1 ? "" : mode == "shape_scaling" ? "original" : mode;
}

Error accel::config::claimMuonOfMegatron(File &file, Ledger &ledger) {
  const Setting *type = file.get("--optimizer");
  const std::string *set = ledger.findSet("optimizer.type");
  if (!type || type->value != "muon" || (set && *set != "muon")) {
    for (Setting &setting : file.settings)
      if (StringRef(setting.path).starts_with("--muon-"))
        setting.idle = "it is read with --optimizer muon";
    return Error::success();
  }
  // What is there and what ours does are one value of an argument: that which
  // it has where nobody says it may be another.
  auto require = [&](StringRef argument, StringRef absent,
                     ArrayRef<StringRef> taken, const Twine &why) -> Error {
    const Setting *setting = file.get(argument);
    StringRef value = setting ? StringRef(setting->value) : absent;
    if (is_contained(taken, value))
      return Error::success();
    bool isSwitch = taken.front() == "true";
    std::string found = "found none";
    if (setting)
      found = "found '" + value.str() + "'";
    else if (!isSwitch)
      found += ", which is '" + value.str() + "'";
    return failAt(setting ? setting->place : type->place,
                  "expected '" + argument +
                      (isSwitch ? "" : " " + taken.front()) +
                      "' with '--optimizer muon', " + found + ": " + why);
  };
  Error errors = joinErrors(
      require("--muon-coefficient-type", "quintic", {"simple"},
              "the coefficients of all iterations are 3.4445, -4.775 and "
              "2.0315"),
      require("--muon-no-split-qkv", "false", {"true"},
              "a matrix is made orthogonal as a whole, queries, keys and "
              "values that share one too"));
  errors = joinErrors(
      std::move(errors),
      require("--muon-tp-mode", "duplicated", {"duplicated", "distributed"},
              "a matrix is made orthogonal as a whole, whatever its ranks "
              "have of it"));
  errors =
      joinErrors(std::move(errors),
                 require("--muon-fp32-matmul-prec", "medium", {"medium", "low"},
                         "products of the iterations are in bfloat16"));
  errors =
      joinErrors(std::move(errors),
                 require("--muon-scalar-optimizer", "adam", {"adam"},
                         "what is no matrix of a hidden layer is AdamW's"));
  const Setting *mode = file.get("--muon-scale-mode");
  const Setting *extra = file.get("--muon-extra-scale-factor");
  double factor = 1;
  if (extra)
    (void)StringRef(extra->value).getAsDouble(factor);
  StringRef adjustment =
      findAdjustment(mode ? StringRef(mode->value) : "spectral", factor);
  if (adjustment.empty())
    errors = joinErrors(
        std::move(errors),
        failAt(extra->place,
               "expected 1 as '--muon-extra-scale-factor', or 0.2 with "
               "'--muon-scale-mode spectral', found " +
                   extra->value +
                   ": say --set optimizer.adjust_lr_fn=VALUE and a rate with "
                   "the factor, or leave it out"));
  else if (mode || extra)
    ledger.claim("optimizer.adjust_lr_fn", mode ? *mode : *extra,
                 adjustment.str());
  else
    ledger.suggest("optimizer.adjust_lr_fn", adjustment.str(), Kind::Default,
                   "Megatron-LM's");
  if (const Setting *momentum = file.get("--muon-momentum"))
    ledger.claim("optimizer.momentum", *momentum);
  else
    ledger.suggest("optimizer.momentum", "0.9", Kind::Default, "Megatron-LM's");
  if (const Setting *steps = file.get("--muon-num-ns-steps"))
    ledger.claim("optimizer.ns_steps", *steps);
  for (StringRef argument : {"--muon-nesterov", "--muon-use-nesterov"})
    if (const Setting *nesterov = file.get(argument))
      ledger.claim("optimizer.nesterov", *nesterov);
  ledger.suggest("optimizer.nesterov", "false", Kind::Default, "Megatron-LM's");
  return errors;
}
