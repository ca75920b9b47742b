// What Megatron-LM is told, by Accelerate's megatron_lm_config or by its own
// arguments.

#include "lib/Config/ClaimFile.h"

#include "llvm/ADT/StringSwitch.h"

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
}

namespace {
/// A list of arguments against the ledger.
class Claims {
public:
  Claims(File &file, Ledger &ledger) : file(file), ledger(ledger) {}

  void sequences();
  void zero();
  void update();
  Error schedule();

private:
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

void Claims::sequences() {
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

void Claims::zero() {
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
  if (shared && shared->value == "true")
    ledger.claim("zero_stage", *shared, "1");
  else
    ledger.suggest("zero_stage", "0", Kind::Default,
                   "no distributed optimizer, where nothing says it");
}

void Claims::update() {
  const Setting *type = file.get("--optimizer");
  bool sgd = type && type->value == "sgd";
  if (type)
    ledger.claim("optimizer.type", *type, sgd ? "sgd" : "adamw");
  else
    ledger.suggest("optimizer.type", "adamw", Kind::Default,
                   "adam, which is Megatron-LM's");
  if (!file.get("--weight-decay"))
    ledger.suggest("optimizer.weight_decay", "0.01", Kind::Default,
                   "Megatron-LM's");
  if (sgd)
    return claimOr("optimizer.momentum", "--sgd-momentum", "0.9");
  const Setting *first = file.get("--adam-beta1");
  const Setting *second = file.get("--adam-beta2");
  std::string betas = (first ? StringRef(first->value) : "0.9").str() + "," +
                      (second ? StringRef(second->value) : "0.999").str();
  if (first || second)
    ledger.claim("optimizer.betas", first ? *first : *second, betas);
}

Error Claims::schedule() {
  const Setting *style = file.get("--lr-decay-style");
  const Setting *length = file.get("--lr-decay-iters");
  if (!length)
    length = file.get("--train-iters");
  const Setting *warmup = file.get("--lr-warmup-iters");
  const Setting *any = style ? style : length ? length : warmup;
  if (!any)
    return Error::success(); // nothing is said of the rate's course
  bool constant = style && style->value == "constant";
  if (!constant && !length)
    return failAt(any->place, "expected '--train-iters' or '--lr-decay-iters' "
                              "with a rate that falls linearly" +
                                  Twine(style ? ""
                                              : ", as it does where "
                                                "'--lr-decay-style' says "
                                                "nothing"));
  ledger.claim("scheduler.type", *any, constant ? "constant" : "linear");
  if (!constant)
    ledger.claim("scheduler.total_steps", *length);
  if (warmup && warmup->value != "0")
    ledger.claim("scheduler.warmup_steps", *warmup);
  return Error::success();
}

Error accel::config::claimMegatron(File &file, Ledger &ledger, Layout &layout) {
  claimRows(file, ledger, [](const Setting &) { return true; });
  if (const Setting *bf16 = file.get("--bf16"))
    ledger.claim("mixed_precision", *bf16,
                 bf16->value == "true" ? "bf16" : "no");
  claimClipping(file.get("--clip-grad"), ledger);
  layout.openRanks = Place{file.name, 1};
  layout.virtualStages =
      copy(file.get("--num-virtual-stages-per-pipeline-rank"));
  layout.layersOfChunk =
      copy(file.get("--num-layers-per-virtual-pipeline-stage"));
  layout.layers = copy(file.get("--num-layers"));
  Claims claims(file, ledger);
  claims.sequences();
  claims.zero();
  claims.update();
  return claims.schedule();
}
