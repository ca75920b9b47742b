// What Megatron-LM is told, by Accelerate's megatron_lm_config or by its own
// arguments.

#include "lib/Config/ClaimFile.h"
#include "lib/Config/ClaimFp8.h"
#include "lib/Config/ClaimMuon.h"
#include "lib/Config/ClaimOffload.h"
#include "lib/Config/ClaimRecompute.h"
#include "lib/Config/ClaimScaler.h"

#include "llvm/ADT/StringSwitch.h"

#include <cmath>

using namespace llvm;
using namespace accel::config;
using Kind = Origin::Kind;

/// Megatron-LM clips unless it is told not to.
static void claimClipping(const Setting *said, Ledger &ledger) {
  if (said)
    ledger.claim("gradient_clipping", *said,
                 said->value == "0" ? "none" : said->value);
  else
    ledger.suggest("gradient_clipping", "1", Kind::Default, "Megatron-LM's");
}

/// Its two groups of parameters, and the seed that its arguments begin with.
static void suggestOptimizer(Ledger &ledger) {
  ledger.suggest("optimizer.no_decay", "vectors", Kind::Default,
                 "Megatron-LM's");
  ledger.suggest("seed", "1234", Kind::Default, "Megatron-LM's");
}

static void suggestRing(Ledger &ledger) {
  ledger.suggest("cp.strategy", "ring", Origin::Kind::Default,
                 "p2p, which is Megatron-LM's");
}

static std::optional<Setting> copy(const Setting *setting) {
  if (!setting || setting->value == "null")
    return std::nullopt;
  return *setting;
}

void accel::config::claimMegatronPlugin(const File &file, Ledger &ledger,
                                        Layout &layout) {
  auto get = [&](StringRef what) {
    return file.get(("megatron_lm_config.megatron_lm_recompute_" + what).str());
  };
  // Without modules nothing of it can be wrong.
  cantFail(claimRecompute({get("activations"), get("granularity"),
                           get("method"), get("num_layers")},
                          ledger));
  layout.layersOfChunk =
      copy(file.get("megatron_lm_config."
                    "megatron_lm_num_layers_per_virtual_pipeline_stage"));
  if (const Setting *shared =
          file.get("megatron_lm_config.megatron_lm_use_distributed_optimizer"))
    ledger.claim("zero_stage", *shared, shared->value == "true" ? "1" : "0");
  else
    ledger.suggest("zero_stage", "0", Kind::Default,
                   "no distributed optimizer, where nothing says it");
  const Setting *sequences =
      file.get("megatron_lm_config.megatron_lm_context_parallel_size");
  if (sequences && sequences->value != "1" && sequences->value != "null")
    suggestRing(ledger);
  claimClipping(file.get("megatron_lm_config.megatron_lm_gradient_clipping"),
                ledger);
  suggestOptimizer(ledger);
}

namespace {
/// A list of arguments against the ledger.
class ArgumentClaims {
public:
  ArgumentClaims(File &file, Ledger &ledger) : file(file), ledger(ledger) {}

  void sequences();
  void zero();
  void wires();
  void update();
  Error schedule();
  /// Whether the weight decay grows, so that --weight-decay is not read.
  bool decayGrows() const;
  Error decay();

private:
  /// A length that is said in steps, or in samples, which are steps of
  /// --global-batch-size each; none where neither is.
  Expected<std::optional<Setting>> length(StringRef what);
  /// What `--lr-warmup-fraction` of so many steps says.
  Error claimFraction(const Setting &fraction, const Setting *length);
  void claimOr(StringRef name, StringRef argument, StringRef fallback) {
    if (const Setting *said = file.get(argument))
      ledger.claim(name, *said);
    else
      ledger.suggest(name, fallback.str(), Kind::Default, "Megatron-LM's");
  }

  File &file;
  Ledger &ledger;
};
} // namespace

void ArgumentClaims::sequences() {
  const Setting *size = file.get("--context-parallel-size");
  const Setting *type = file.get("--cp-comm-type");
  bool exchanges = type && type->value == "a2a";
  if (size)
    ledger.claim(exchanges ? "sp" : "cp", *size);
  if (!size || size->value == "1" || exchanges)
    return;
  if (type)
    ledger.claim("cp.strategy", *type,
                 type->value == "p2p" ? "ring" : "allgather");
  else
    suggestRing(ledger);
}

/// In which type gradients are reduced: Megatron-LM reads the one with --bf16
/// alone, whatever --accumulate-allreduce-grads-in-fp32 says.
void ArgumentClaims::wires() {
  const Setting *bf16 = file.get("--bf16");
  for (Setting &setting : file.settings)
    if (setting.path == "--grad-reduce-in-bf16" && setting.value == "true") {
      if (bf16 && bf16->value == "true")
        ledger.claim("comm_hook", setting, "bf16");
      else
        setting.idle = "read with --bf16";
    }
  const Setting *sent = file.get("--megatron-fsdp-grad-comm-dtype");
  if (sent && sent->value != "auto" && sent->value != "fp32")
    ledger.claim("comm_hook", *sent);
}

void ArgumentClaims::zero() {
  const Setting *shared = file.get("--use-distributed-optimizer");
  const Setting *sharded = file.get("--data-parallel-sharding-strategy");
  if (sharded && sharded->value != "no_shard") {
    ledger.claim("zero_stage", *sharded,
                 StringSwitch<StringRef>(sharded->value)
                     .Case("optim", "1")
                     .Case("optim_grads", "2")
                     .Default("3")
                     .str());
    return;
  }
  const Setting *engine = file.get("--deepspeed");
  if (shared && shared->value == "true")
    ledger.claim("zero_stage", *shared, "1");
  else if (!engine || engine->value != "true")
    ledger.suggest("zero_stage", "0", Kind::Default,
                   "no distributed optimizer, where nothing says it");
}

void ArgumentClaims::update() {
  const Setting *type = file.get("--optimizer");
  const std::string *set = ledger.findSet("optimizer.type");
  bool sgd = set ? *set == "sgd" : type && type->value == "sgd";
  if (type)
    ledger.claim("optimizer.type", *type,
                 type->value == "adam" ? "adamw" : type->value);
  else
    ledger.suggest("optimizer.type", "adamw", Kind::Default,
                   "adam, which is Megatron-LM's");
  suggestOptimizer(ledger);
  const Setting *weight = file.get("--weight-decay");
  if (weight && !decayGrows())
    ledger.claim("optimizer.weight_decay", *weight);
  else if (!decayGrows())
    ledger.suggest("optimizer.weight_decay", "0.01", Kind::Default,
                   "Megatron-LM's");
  const Setting *decays = file.get("--apply-wd-to-qk-layernorm");
  if (!decays || decays->value != "true")
    decays = file.get("--no-weight-decay-cond-type");
  if (decays)
    ledger.claim("optimizer.decay", *decays, "qk_norms");
  if (sgd)
    return claimOr("optimizer.momentum", "--sgd-momentum", "0.9");
  const Setting *first = file.get("--adam-beta1");
  const Setting *second = file.get("--adam-beta2");
  std::string betas = (first ? StringRef(first->value) : "0.9").str() + "," +
                      (second ? StringRef(second->value) : "0.999").str();
  if (first || second)
    ledger.claim("optimizer.betas", first ? *first : *second, betas);
}

bool ArgumentClaims::decayGrows() const {
  const Setting *style = file.get("--weight-decay-incr-style");
  const std::string *set = ledger.findSet("scheduler.weight_decay_incr_style");
  return set ? *set != "constant" : style && style->value != "constant";
}

Error ArgumentClaims::decay() {
  const Setting *style = file.get("--weight-decay-incr-style");
  const Setting *first = file.get("--start-weight-decay");
  const Setting *last = file.get("--end-weight-decay");
  if (!decayGrows()) {
    bool bySet = ledger.findSet("scheduler.weight_decay_incr_style") != nullptr;
    for (Setting &setting : file.settings)
      if (&setting == first || &setting == last ||
          (bySet && &setting == style)) {
        if (!bySet)
          return failAt(setting.place,
                        "expected '--weight-decay-incr-style' linear or cosine "
                        "with '" +
                            setting.path + "', found " +
                            (style ? style->value : "none"));
        setting.idle =
            "--set scheduler.weight_decay_incr_style=constant beats it";
      }
    return Error::success();
  }
  struct Bound {
    const Setting *said;
    StringLiteral setting, argument;
  };
  for (auto [said, setting, argument] :
       {Bound{first, "scheduler.start_weight_decay", "--start-weight-decay"},
        Bound{last, "scheduler.end_weight_decay", "--end-weight-decay"}})
    if (said)
      ledger.claim(setting, *said);
    else if (style && !ledger.findSet(setting))
      return failAt(style->place, "expected '" + argument + "' with '" +
                                      style->path + ": " + style->value + "'");
  if (style)
    ledger.claim("scheduler.weight_decay_incr_style", *style);
  const std::string *set = ledger.findSet("scheduler.end_weight_decay");
  if (set || last)
    ledger.suggest("optimizer.weight_decay", set ? *set : last->value,
                   Kind::Derived, "scheduler.end_weight_decay");
  for (Setting &setting : file.settings)
    if (setting.path == "--weight-decay")
      setting.idle = "the decay grows from --start-weight-decay to "
                     "--end-weight-decay";
  // Its length is that of training, whatever the rate's is.
  Expected<std::optional<Setting>> training = length("--train");
  if (!training)
    return training.takeError();
  if (*training)
    ledger.claim("scheduler.weight_decay_incr_steps", **training);
  else if (style && !ledger.findSet("scheduler.weight_decay_incr_steps"))
    return failAt(style->place, "expected '--train-iters', or the same in "
                                "samples, with '" +
                                    style->path + ": " + style->value + "'");
  return Error::success();
}

Error ArgumentClaims::claimFraction(const Setting &fraction,
                                    const Setting *length) {
  for (StringRef other : {"--lr-warmup-iters", "--lr-warmup-samples"})
    if (const Setting *steps = file.get(other))
      if (steps->value != "0")
        return failAt(fraction.place, "'--lr-warmup-fraction' cannot stand "
                                      "beside '" +
                                          other + "'");
  if (!length)
    return failAt(fraction.place, "expected '--train-iters', "
                                  "'--lr-decay-iters' or the same in samples "
                                  "with '--lr-warmup-fraction'");
  double part = 0, whole = 0;
  (void)StringRef(fraction.value).getAsDouble(part);
  (void)StringRef(length->value).getAsDouble(whole);
  double steps = std::round(part * whole);
  if (part > 1 || std::abs(part * whole - steps) > 1e-9 * whole)
    return failAt(fraction.place, "expected a part of the " + length->value +
                                      " of '" + length->path +
                                      "' that is a whole number of steps as "
                                      "'--lr-warmup-fraction', found " +
                                      fraction.value +
                                      ": say --lr-warmup-iters");
  if (steps > 0)
    ledger.claim("scheduler.warmup_steps", fraction,
                 std::to_string(int64_t(steps)));
  return Error::success();
}

Expected<std::optional<Setting>> ArgumentClaims::length(StringRef what) {
  auto get = [&](StringRef unit) { return file.get((what + unit).str()); };
  const Setting *steps = get("-iters"), *samples = get("-samples");
  if (!samples || samples->value == "0")
    return copy(steps);
  if (steps && steps->value != "0")
    return failAt(samples->place, "'" + samples->path +
                                      "' cannot stand beside '" + steps->path +
                                      "'");
  // Megatron-LM counts all lengths in one unit.
  for (StringRef other : {"--train-iters", "--lr-decay-iters"})
    if (const Setting *foreign = file.get(other))
      return failAt(samples->place, "'" + samples->path +
                                        "' cannot stand beside '" + other +
                                        "', whose unit is another");
  const Setting *rows = file.get("--global-batch-size");
  if (!rows)
    return failAt(samples->place, "expected '--global-batch-size' with '" +
                                      samples->path + "'");
  int64_t all = 0, each = 1;
  (void)StringRef(samples->value).getAsInteger(10, all);
  (void)StringRef(rows->value).getAsInteger(10, each);
  StringRef setting = what == "--lr-warmup"      ? "scheduler.warmup_steps"
                      : what == "--lr-wsd-decay" ? "scheduler.wsd_decay_steps"
                                                 : "scheduler.total_steps";
  if (all % each != 0 && !ledger.findSet(setting))
    return failAt(
        samples->place,
        "expected a multiple of '--global-batch-size' = " + Twine(each) +
            " as '" + samples->path + "', found " + Twine(all) + ": --set " +
            setting + "=" + Twine(std::max<int64_t>(all / each, 1)) +
            " says a whole number of steps");
  Setting result = *samples;
  result.value = std::to_string(std::max<int64_t>(all / each, 1));
  return result;
}

Error ArgumentClaims::schedule() {
  const Setting *style = file.get("--lr-decay-style");
  Expected<std::optional<Setting>> decay = this->length("--lr-decay");
  if (!decay)
    return decay.takeError();
  Expected<std::optional<Setting>> training = this->length("--train");
  if (!training)
    return training.takeError();
  Expected<std::optional<Setting>> rise = this->length("--lr-warmup");
  if (!rise)
    return rise.takeError();
  const Setting *length = *decay ? &**decay : *training ? &**training : nullptr;
  const Setting *warmup = *rise ? &**rise : nullptr;
  const Setting *least = file.get("--min-lr");
  const Setting *fraction = file.get("--lr-warmup-fraction");
  const Setting *any = style      ? style
                       : length   ? length
                       : warmup   ? warmup
                       : fraction ? fraction
                                  : least;
  if (!any)
    return Error::success(); // nothing is said of the rate's course
  const std::string *set = ledger.findSet("scheduler.type");
  bool constant =
      set ? *set == "constant" : style && style->value == "constant";
  if (!constant && !length && !ledger.findSet("scheduler.total_steps"))
    return failAt(any->place, "expected '--train-iters' or '--lr-decay-iters', "
                              "or the same in samples, with a rate that "
                              "falls" +
                                  Twine(style ? ""
                                              : " linearly, as it does where "
                                                "'--lr-decay-style' says "
                                                "nothing"));
  if (style)
    ledger.claim("scheduler.type", *style);
  else
    ledger.claim("scheduler.type", *any, "linear");
  if (!constant && length)
    ledger.claim("scheduler.total_steps", *length);
  if (fraction)
    if (Error error = claimFraction(*fraction, length))
      return error;
  if (warmup && warmup->value != "0")
    ledger.claim("scheduler.warmup_steps", *warmup);
  bool rises = ledger.isClaimed("scheduler.warmup_steps");
  bool isWsd = style && style->value == "WSD";
  if (isWsd) {
    Expected<std::optional<Setting>> end = this->length("--lr-wsd-decay");
    if (!end)
      return end.takeError();
    if (*end)
      ledger.claim("scheduler.wsd_decay_steps", **end);
    else if (!ledger.findSet("scheduler.wsd_decay_steps") &&
             !(set && *set != "WSD"))
      return failAt(style->place, "expected '--lr-wsd-decay-iters', or the "
                                  "same in samples, with "
                                  "'--lr-decay-style: WSD'");
  }
  for (Setting &setting : file.settings) {
    if (StringRef(setting.path).starts_with("--lr-wsd-decay-") && !isWsd)
      setting.idle = "read with --lr-decay-style WSD";
    else if (setting.path == "--lr-wsd-decay-style")
      ledger.claim("scheduler.lr_wsd_decay_style", setting);
    else if (setting.path == "--min-lr" && constant)
      setting.idle = "the rate is constant";
    else if (setting.path == "--min-lr")
      ledger.claim("scheduler.min_lr", setting);
    else if (setting.path == "--lr-warmup-init" && !rises)
      setting.idle = "there is no warmup";
    else if (setting.path == "--lr-warmup-init")
      ledger.claim("scheduler.warmup_min_lr", setting);
  }
  return Error::success();
}

Error accel::config::claimMegatron(File &file, Ledger &ledger, Layout &layout) {
  claimRows(file, ledger, [](const Setting &) { return true; });
  // Which computes in bfloat16 where it does not in fp8.
  bool isFp8 = file.get("--fp8-format") || file.get("--fp4-format");
  if (Error error = claimFp8OfMegatron(file, ledger))
    return error;
  if (const Setting *bf16 = file.get("--bf16"); bf16 && !isFp8)
    ledger.claim("mixed_precision", *bf16,
                 bf16->value == "true" ? "bf16" : "no");
  if (const Setting *fp16 = file.get("--fp16"); fp16 && fp16->value == "true")
    ledger.claim("mixed_precision", *fp16, "fp16");
  claimScalerOfMegatron(file, ledger);
  const Setting *engine = file.get("--deepspeed");
  bool byDeepSpeed = engine && engine->value == "true" &&
                     file.get("--deepspeed_config") != nullptr;
  for (Setting &setting : file.settings)
    if (byDeepSpeed && setting.path == "--clip-grad")
      setting.idle = "DeepSpeed clips, by its gradient_clipping";
  if (!byDeepSpeed)
    claimClipping(file.get("--clip-grad"), ledger);
  layout.openRanks = Place{file.name, 1};
  int64_t ranks = 0, machines = 1;
  const Setting *started = file.get("nproc_per_node");
  const Setting *over = file.get("nnodes");
  if (started && !StringRef(started->value).getAsInteger(10, ranks) &&
      (!over || !StringRef(over->value).getAsInteger(10, machines)) &&
      machines < (1 << 20) && ranks < (1 << 20))
    ledger.claim("num_processes", *started, std::to_string(ranks * machines));
  layout.virtualStages =
      copy(file.get("--num-virtual-stages-per-pipeline-rank"));
  layout.layersOfChunk =
      copy(file.get("--num-layers-per-virtual-pipeline-stage"));
  layout.layers = copy(file.get("--num-layers"));
  claimOffload(file, "--", ledger);
  claimOffloadRatio(file, ledger);
  ArgumentClaims claims(file, ledger);
  claims.sequences();
  claims.zero();
  claims.update();
  claims.wires();
  Error errors = joinErrors(claims.schedule(), claims.decay());
  errors =
      joinErrors(std::move(errors), claimRecomputeOfMegatron(file, ledger));
  return joinErrors(std::move(errors), claimMuonOfMegatron(file, ledger));
}
