// What a DeepSpeed JSON decides.

#include "lib/Autodiff/UpdateRule.h"
#include "lib/Config/ClaimFile.h"
#include "lib/Config/ClaimFp8.h"
#include "lib/Config/ClaimMuon.h"
#include "lib/Config/ClaimOffload.h"
#include "lib/Config/ClaimScaler.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace llvm;
using namespace accel::config;
using accel::autodiff::ScheduleKind;
using Kind = Origin::Kind;

namespace {
/// One JSON against the ledger.
class DeepSpeedClaims {
public:
  DeepSpeedClaims(File &file, Ledger &ledger) : file(file), ledger(ledger) {}

  Error zero();
  Error precision();
  void wires();
  void tensorParallel();
  void clipping();
  Error optimizer();
  Error scheduler();

private:
  /// Whether the scheduler says the rate, which it sets in every step: then
  /// that of the optimizer is not read, as in DeepSpeed.
  bool rateOfScheduler();
  /// Whether the class that the file names is the one that runs.
  bool runsOwnSchedule() const {
    const Setting *type = said("scheduler.type");
    const std::string *set = ledger.findSet("scheduler.type");
    return type && (!set || *set == type->value);
  }
  Error checkSchedule(const Setting &type);
  /// A key that is there and says something itself.
  const Setting *said(StringRef path) const {
    const Setting *setting = file.get(path);
    return setting && setting->value != "auto" ? setting : nullptr;
  }
  bool isAuto(StringRef path) const {
    const Setting *setting = file.get(path);
    return setting && setting->value == "auto";
  }
  /// Refuses settings of another type than `section` has.
  Error refuseForeign(StringRef section, const Setting &type);
  /// Claims the number under `path`, or suggests `fallback`.
  void number(StringRef name, StringRef path, StringRef fallback,
              StringRef why) {
    if (const Setting *setting = said(path))
      ledger.claim(name, *setting);
    else
      ledger.suggest(name, fallback.str(),
                     isAuto(path) ? Kind::Derived : Kind::Default, why.str());
  }

  File &file;
  Ledger &ledger;
};
} // namespace

Error DeepSpeedClaims::refuseForeign(StringRef section, const Setting &type) {
  std::string prefix = (section + ".params.").str();
  for (const Setting &setting : file.settings)
    if (StringRef(setting.path).starts_with(prefix) &&
        setting.key->note.starts_with("read by ") &&
        !setting.key->note.ends_with_insensitive(" " + type.value))
      return failAt(setting.place, "'" + setting.path + "' is " +
                                       setting.key->note + ", found '" +
                                       type.path + ": " + type.value + "'");
  return Error::success();
}

Error DeepSpeedClaims::zero() {
  const Setting *stage = said("zero_optimization.stage");
  const Setting *old = said("zero_optimization");
  if (!stage && old && (old->value == "true" || old->value == "false"))
    ledger.claim("zero_stage", *old, old->value == "true" ? "1" : "0");
  else if (isAuto("zero_optimization.stage"))
    ledger.suggest("zero_stage", "2", Kind::Derived,
                   "what Accelerate fills auto with");
  else
    ledger.suggest("zero_stage", "0", Kind::Default,
                   "DeepSpeed's, where zero_optimization.stage is absent");
  if (const Setting *group = said("zero_optimization.zero_hpz_partition_size"))
    ledger.claim("zero.hpz_partition_size", *group,
                 group->value == "0" ? "1" : group->value);
  const Setting *mics = said("zero_optimization.mics_shard_size");
  if (!mics || mics->value == "-1")
    return Error::success();
  if (!stage || stage->value != "3")
    return failAt(mics->place, "expected 'zero_optimization.stage: 3' with '" +
                                   mics->path + ": " + mics->value + "'");
  if (mics->value == "0")
    return failAt(mics->place, "expected at least 1, or -1 for none, as '" +
                                   mics->path + "', found 0");
  // Ranks that share a copy: those of a sequence are among them.
  const Setting *sequences = said("sequence_parallel_size");
  int64_t sharers = 0, positions = 1;
  (void)StringRef(mics->value).getAsInteger(10, sharers);
  if (sequences)
    (void)StringRef(sequences->value).getAsInteger(10, positions);
  if (sharers % positions != 0)
    return failAt(mics->place,
                  "expected a multiple of 'sequence_parallel_size' = " +
                      Twine(positions) + " as '" + mics->path + "', found " +
                      Twine(sharers));
  ledger.claim("dp_shard", *mics, std::to_string(sharers / positions));
  return Error::success();
}

Error DeepSpeedClaims::precision() {
  const Setting *bf16 = said("bf16.enabled");
  const Setting *old = said("bfloat16.enabled");
  if (bf16 && old && bf16->value != old->value)
    return failAt(old->place, "'bfloat16' is another spelling of 'bf16' at " +
                                  bf16->place.str() +
                                  ", and they contradict each other");
  const Setting *msamp = said("msamp.enabled");
  bool isFp8 = msamp && msamp->value == "true"; // with bf16 for the rest
  if (const Setting *setting = bf16 ? bf16 : old; setting && !isFp8)
    ledger.claim("mixed_precision", *setting,
                 setting->value == "true" ? "bf16" : "no");
  if (const Setting *fp16 = said("fp16.enabled"); fp16 && fp16->value == "true")
    ledger.claim("mixed_precision", *fp16, "fp16");
  if (const Setting *autocast = said("torch_autocast.enabled");
      autocast && autocast->value == "true") {
    for (const Setting *other :
         {bf16 ? bf16 : old, said("fp16.enabled"), msamp})
      if (other && other->value == "true")
        return failAt(other->place, "'" + other->path + "' beside '" +
                                        autocast->path + "' at " +
                                        autocast->place.str() +
                                        ", which DeepSpeed refuses");
    const Setting *type = said("torch_autocast.dtype");
    bool isHalf = type && (type->value == "float16" || type->value == "fp16");
    ledger.claim("mixed_precision", type ? *type : *autocast,
                 isHalf ? "fp16" : "bf16");
    ledger.claim("autocast.lists", *autocast, "cuda");
  }
  claimScalerOfDeepSpeed(file, ledger);
  return claimFp8OfDeepSpeed(file, ledger);
}

/// DeepSpeed reduces in the one type or, where ranks share sequences, in the
/// other.
void DeepSpeedClaims::wires() {
  constexpr StringLiteral kTypes[] = {"communication_data_type",
                                      "seq_parallel_communication_data_type"};
  const Setting *size = said("sequence_parallel_size");
  bool sharesSequences = size && size->value != "1";
  const Setting *read = said(kTypes[sharesSequences]);
  if (read && read->value != "null" && read->value != "fp32")
    ledger.claim("comm_hook", *read);
  for (Setting &setting : file.settings)
    if (setting.path == kTypes[!sharesSequences])
      setting.idle =
          sharesSequences
              ? "it is not read where sequence_parallel_size is " + size->value
              : "it is read where sequence_parallel_size is above 1";
}

void DeepSpeedClaims::tensorParallel() {
  if (const Setting *size = said("tensor_parallel.autotp_size"))
    ledger.claim("tp", *size, size->value == "0" ? "1" : size->value);
}

void DeepSpeedClaims::clipping() {
  if (const Setting *setting = said("gradient_clipping"))
    ledger.claim("gradient_clipping", *setting,
                 setting->value == "0" ? "none" : setting->value);
  else if (isAuto("gradient_clipping"))
    ledger.suggest("gradient_clipping", "1", Kind::Derived,
                   "what Accelerate fills auto with");
  else
    ledger.suggest("gradient_clipping", "1", Kind::Default,
                   "DeepSpeed's, where gradient_clipping is absent");
}

bool DeepSpeedClaims::rateOfScheduler() {
  constexpr StringLiteral kPeak = "scheduler.params.warmup_max_lr";
  const Setting *type = said("scheduler.type"), *peak = said(kPeak);
  if (type && runsOwnSchedule() &&
      accel::autodiff::findSchedule(type->value)->setsRate)
    peak = type;
  bool byDefault =
      !file.get(kPeak) && runsOwnSchedule() && type->value == "WarmupDecayLR";
  if (!type || (!peak && !byDefault))
    return false;
  if (!peak)
    ledger.suggest("optimizer.lr", "0.001", Kind::Default,
                   "WarmupDecayLR's, where warmup_max_lr is absent");
  const Setting *by = peak ? peak : type;
  for (Setting &setting : file.settings)
    if (setting.path == "optimizer.params.lr" ||
        setting.path == "optimizer.params.muon_lr" ||
        setting.path == "optimizer.params.adam_lr")
      setting.idle = "DeepSpeed's scheduler sets the rate: '" + by->path +
                     "' at " + by->place.str();
  return true;
}

Error DeepSpeedClaims::optimizer() {
  const Setting *type = said("optimizer.type");
  if (!type) {
    if (const Setting *any = file.firstBelow("optimizer"))
      return failAt(any->place, "expected 'optimizer.type' with 'optimizer'");
    return Error::success();
  }
  if (Error error = refuseForeign("optimizer", *type))
    return error;
  if (Error error = refuseOfMuon(file, *type))
    return error;
  const std::string *set = ledger.findSet("optimizer.type");
  bool sgd = type->value == "SGD";
  const Setting *mode = said("optimizer.params.adam_w_mode");
  bool decoupled = type->value == "AdamW" ||
                   (type->value == "Adam" && !(mode && mode->value == "false"));
  ledger.claim("optimizer.type", *type,
               sgd                     ? "sgd"
               : decoupled             ? "adamw"
               : type->value == "Adam" ? "adam"
               : type->value == "Lion" ? "lion"
               : type->value == "Muon" ? "muon"
                                       : type->value);
  bool muon = set ? *set == "muon" : type->value == "Muon";
  bool ownRate = rateOfScheduler();
  if (muon)
    claimMuonOfDeepSpeed(file, ledger, ownRate);
  if (!ownRate && !(muon && said("optimizer.params.muon_lr")))
    number("optimizer.lr", "optimizer.params.lr", "0.001",
           isAuto("optimizer.params.lr")
               ? "auto: no --set, DummyOptim's default"
               : "DeepSpeed's");
  const Setting *torch = said("optimizer.params.torch_adam");
  bool ofTorch =
      torch && torch->value == "true" && (set ? *set == "adamw" : decoupled);
  if (isAuto("optimizer.params.weight_decay"))
    number("optimizer.weight_decay", "optimizer.params.weight_decay", "0",
           "auto: no --set, DummyOptim's default");
  else
    number("optimizer.weight_decay", "optimizer.params.weight_decay",
           ofTorch ? "0.01" : "0",
           ofTorch ? "PyTorch's, with torch_adam"
                   : "DeepSpeed's, for AdamW too");
  return Error::success();
}

/// Refuses numbers that the file's own class does not take, or lacks.
Error DeepSpeedClaims::checkSchedule(const Setting &type) {
  if (Error error = refuseForeign("scheduler", type))
    return error;
  struct Reader {
    StringLiteral key, classes;
  };
  constexpr Reader readers[] = {
      {"warmup_max_lr", "WarmupLR,WarmupDecayLR"},
      {"warmup_num_steps", "WarmupLR,WarmupDecayLR,WarmupCosineLR"},
      {"warmup_type", "WarmupLR,WarmupDecayLR,WarmupCosineLR"},
      {"total_num_steps", "WarmupDecayLR,WarmupCosineLR"}};
  for (auto [key, names] : readers) {
    const Setting *setting = file.get(("scheduler.params." + key).str());
    SmallVector<StringRef> classes;
    names.split(classes, ',');
    if (setting && !is_contained(classes, type.value))
      return failAt(setting->place, "'" + setting->path + "' is read by " +
                                        join(classes, " and ") + ", found '" +
                                        type.path + ": " + type.value + "'");
  }
  // Of the others the names are those of settings.
  const ScheduleKind &own = *accel::autodiff::findSchedule(type.value);
  for (const Setting &setting : file.settings) {
    StringRef name = setting.key->setting;
    if (!StringRef(setting.path).starts_with("scheduler.params.") ||
        !name.consume_front("scheduler.") || own.find(name))
      continue;
    SmallVector<StringRef> classes;
    for (const ScheduleKind &kind : accel::autodiff::scheduleKinds())
      if (kind.whose == own.whose && kind.find(name))
        classes.push_back(kind.name);
    return failAt(setting.place, "'" + setting.path + "' is read by " +
                                     join(classes, " and ") + ", found '" +
                                     type.path + ": " + type.value + "'");
  }
  struct Required {
    StringLiteral key, setting;
  };
  constexpr Required requireds[] = {
      {"total_num_steps", "total_steps"},
      {"cycle_min_lr", "cycle_min_lr"},
      {"cycle_max_lr", "cycle_max_lr"},
  };
  for (auto [key, setting] : requireds)
    if (own.find(setting) && !file.get(("scheduler.params." + key).str()) &&
        !ledger.findSet(("scheduler." + setting).str()))
      return failAt(type.place, "expected 'scheduler.params." + key +
                                    "' with " + type.value);
  return Error::success();
}

Error DeepSpeedClaims::scheduler() {
  const Setting *type = said("scheduler.type");
  if (!type) {
    if (const Setting *any = file.firstBelow("scheduler"))
      return failAt(any->place, "expected 'scheduler.type' with 'scheduler'");
    return Error::success();
  }
  if (runsOwnSchedule())
    if (Error error = checkSchedule(*type))
      return error;
  ledger.claim("scheduler.type", *type);
  // What the file says holds for any schedule; its silence is DeepSpeed's.
  const std::string *set = ledger.findSet("scheduler.type");
  const ScheduleKind *schedule =
      accel::autodiff::findSchedule(set ? *set : type->value);
  bool ofDeepSpeed =
      schedule && schedule->clock == accel::autodiff::Clock::Late;
  auto claim = [&](StringRef name, StringRef path, StringRef fallback,
                   StringRef why) {
    if (ofDeepSpeed || said(path))
      number(name, path, fallback, why);
  };
  bool isAutomatic = isAuto("scheduler.params.warmup_num_steps");
  claim("scheduler.warmup_steps", "scheduler.params.warmup_num_steps",
        isAutomatic ? "1" : "1000",
        isAutomatic ? "auto: no --set, which Accelerate makes 1"
                    : "DeepSpeed's");
  claim("scheduler.warmup", "scheduler.params.warmup_type", "log",
        "DeepSpeed's, where warmup_type is absent");
  const Setting *total = file.get("scheduler.params.total_num_steps");
  if (const Setting *peak = said("scheduler.params.warmup_max_lr"))
    ledger.claim("optimizer.lr", *peak);
  if (total && total->value != "auto")
    ledger.claim("scheduler.total_steps", *total);
  else if (total)
    ledger.suggest("scheduler.total_steps", "?", Kind::Derived,
                   "auto: --set scheduler.total_steps says it");
  return Error::success();
}

Error accel::config::claimDeepSpeed(File &file, Ledger &ledger) {
  claimRows(file, ledger, [&](const Setting &setting) {
    return !isLeftOutByMuon(file, setting);
  });
  if (const Setting *layers =
          file.get("pipeline.activation_checkpoint_interval");
      layers && layers->value != "0")
    ledger.claim("recompute", *layers, "full:uniform:" + layers->value);
  claimOffload(file, "zero_optimization.", ledger);
  claimOffload(file, "activation_checkpointing.", ledger);
  claimOffloadRatio(file, ledger);
  claimTile(file, ledger);
  claimStorage(file, ledger);
  DeepSpeedClaims claims(file, ledger);
  Error errors = joinErrors(claims.zero(), claims.precision());
  claims.wires();
  claims.tensorParallel();
  claims.clipping();
  errors = joinErrors(std::move(errors), claims.optimizer());
  return joinErrors(std::move(errors), claims.scheduler());
}
