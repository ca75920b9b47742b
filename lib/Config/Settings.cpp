// The table of settings. A key of a file says one of them: by its row
// (`.sets(NAME)`), or by a claim where its value stands for another.

#include "Settings.h"

#include "lib/Autodiff/UpdateRule.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

#include <cmath>

using namespace llvm;
using namespace accel::config;
using SettingReader = NamedSetting::Reader;

static constexpr NamedSetting ofLayout(StringLiteral name, StringLiteral type) {
  return {name, SettingReader::Layout, type, ""};
}
static constexpr NamedSetting ofUpdate(StringLiteral name) {
  return {name, SettingReader::Update, "", ""};
}
static constexpr NamedSetting ofPass(StringLiteral name, StringLiteral type,
                                     StringLiteral help) {
  return {name, SettingReader::Pass, type, help};
}

/// The row of all `groups[PATTERN].KEY`.
static constexpr StringLiteral kGroupSetting = "groups[PATTERN].KEY";

/// The row of all `schedulers[I].KEY`.
static constexpr StringLiteral kPartSetting = "schedulers[I].KEY";

static constexpr NamedSetting kSettings[] = {
    ofLayout("num_processes", "int>=1"),
    ofLayout("dp_replicate", "int>=1"),
    ofLayout("dp_shard", "int>=1"),
    ofLayout("pp", "int>=1"),
    ofLayout("ep", "int>=1"),
    ofLayout("cp", "int>=1"),
    ofLayout("sp", "int>=1"),
    ofLayout("tp", "int>=1"),
    ofLayout("etp", "int>=1"),
    ofPass("zero_stage", "0,1,2,3", "how ranks share the states of a step"),
    ofPass(
        "zero.gather_once", "true,false,auto",
        "parameters are gathered once a step; auto: as memory_budget has it"),
    ofPass("zero.hpz_partition_size", "int>=1",
           "ranks that keep a second copy of the parameters between them"),
    ofPass("sequence_parallelism", "bool",
           "tp ranks share the rows that products do not split"),
    ofPass("cp.strategy", "allgather,ring",
           "how cp ranks get at each other's keys and values"),
    ofPass("tp.vocabulary", "bool", "ranks of tp have parts of the vocabulary"),
    ofPass("autocast.lists", "none,cuda,cpu",
           "whose lists of torch.autocast choose the types of all ops with "
           "mixed precision; none: products alone are of 16 bits"),
    ofPass("comm_hook", "no,fp16,bf16,power_sgd",
           "how data-parallel ranks send gradients: in 16 bits, or as factors "
           "of low rank"),
    ofPass("power_sgd.matrix_approximation_rank", "int>=1",
           "rows of the factors"),
    ofPass("power_sgd.start_powerSGD_iter", "int>=0",
           "steps before it, of another run"),
    ofPass("power_sgd.min_compression_rate", "number>=0",
           "how many times smaller factors must be"),
    ofPass("power_sgd.use_error_feedback", "bool",
           "what is left out is added to the next gradient"),
    ofPass("power_sgd.warm_start", "bool",
           "factors begin with those of the step before"),
    ofPass("power_sgd.orthogonalization_epsilon", "number>=0",
           "added to lengths that are divided by"),
    ofPass("power_sgd.random_seed", "int>=0", "of the first factors"),
    ofPass("offload.optimizer", "none,cpu,nvme,auto",
           "where the optimizer's states lie: on the device, in the host's "
           "memory, or in a file"),
    ofPass("offload.parameters", "none,cpu,nvme,auto",
           "where the parameters lie: on the device, in the host's memory, or "
           "in a file"),
    ofPass("offload.activations", "none,cpu,nvme,auto",
           "where what the forward keeps for the backward lies: on the "
           "device, in the host's memory, or in a file"),
    ofPass("offload.nvme_path", "name",
           "the folder of that file on the machine that runs, from '/' on"),
    ofPass("offload.max_in_cpu", "int>=0",
           "numbers of a rank's parameters that the host keeps of those that "
           "lie in the file"),
    ofPass("aio.block_size", "int>=1",
           "bytes that are read from it or written to it at once: a multiple "
           "of 4096"),
    ofPass("aio.queue_depth", "int>=1",
           "how many such blocks are under way at once"),
    ofPass("offload.ratio", "number>=0",
           "the part of the optimizer's states that is offloaded, in bytes"),
    ofPass("offload.buffer_count", "int>=1",
           "offloaded states that the device holds at once"),
    ofPass("offload.tile", "int>=0",
           "elements of an offloaded state that are updated at once; 0: all"),
    ofPass("offload.host_budget", "name",
           "what a rank may have of the host's memory, as --memory-budget "
           "says it, which does not count it then"),
    ofPass("offload.nvme_budget", "name",
           "what a rank may have of a file, as --memory-budget says it"),
    ofPass("sharding.strict", "bool",
           "an axis that splits nothing, or a size that its ranks do not "
           "divide, is an error"),
    ofLayout("train_batch_size", "int>=1"),
    ofLayout("train_micro_batch_size_per_gpu", "int>=1"),
    ofLayout("gradient_accumulation_steps", "int>=1"),
    ofPass("schedule", "name",
           "how micro-batches follow each other, as --schedule says"),
    ofPass("recompute", "name",
           "what the backward computes again, as --recompute says"),
    ofPass("memory_budget", "name",
           "what the arenas of a rank may have, as --memory-budget says"),
    ofPass("loss_chunks", "name",
           "auto, none, or how many chunks the rows of a loss are taken in, so "
           "that logits are never there at once"),
    ofLayout("mixed_precision", "no,bf16,fp16,fp8"),
    ofPass("batch_norm.scope", "micro_batch,rank,batch",
           "what batch norms take statistics of: a micro-batch on all ranks, "
           "as SyncBatchNorm, a rank's piece of one, as "
           "DistributedDataParallel, or the whole batch"),
    ofPass("batch_norm.parts", "int>=1",
           "equal parts of a batch that have statistics of their own, in place "
           "of a scope: what no layout changes"),
    ofPass("fp8.recipe",
           "delayed,current,block,mxfp8,nvfp4,tensorwise,rowwise,"
           "rowwise_with_gw_hp,msamp_o1,msamp_o2",
           "where the scales of fp8 come from, and what shares one: "
           "Transformer Engine's recipes delayed, current, block, mxfp8 and "
           "nvfp4 (numbers of four bits), or torchao's tensorwise and rowwise, "
           "or MS-AMP's levels O1 and O2"),
    ofPass("fp8.format", "hybrid,e4m3",
           "the format of gradients: f8E5M2, or that of all else"),
    ofPass("fp8.margin", "int",
           "delayed scales are 2^margin smaller than they could be"),
    ofPass("fp8.amax_history_len", "int>=1",
           "steps that a delayed scale looks back"),
    ofPass("fp8.amax_compute_algo", "max,most_recent",
           "the largest magnitude of these steps, or that of the last"),
    ofPass("fp8.interval", "int>=1",
           "steps from one delayed scale to the next"),
    ofPass("fp8.override_linear_precision", "name",
           "true or false for each of fprop, dgrad and wgrad: whether these "
           "products stay in bfloat16"),
    ofPass("fp8.blocks", "int>=1",
           "equal parts of a batch that have current scales of their own; as "
           "many as ranks share the batch, times micro-batches, unless given"),
    ofPass("fp8.gradient_parts", "int>=1",
           "equal parts of a batch whose gradients of weights MS-AMP's recipes "
           "round before they are added up; as many as ranks share the batch, "
           "unless given"),
    ofPass("fp8.power_2_scale", "bool",
           "scales are powers of two: true of block, rowwise and "
           "rowwise_with_gw_hp, false of current and tensorwise unless given"),
    ofPass("fp8.random_hadamard_transform", "bool",
           "nvfp4 rotates what a weight's gradient is made of, 16 numbers at a "
           "time; true unless given"),
    ofPass("fp8.stochastic_rounding", "bool",
           "nvfp4 rounds gradients up or down by chance, the same in every "
           "layout; true unless given"),
    ofPass("fp8.fp4_2d_quantization", "bool",
           "nvfp4 gives blocks of 16 x 16 of weights a scale, not of 1 x 16; "
           "true unless given"),
    ofPass("fp8.only", "name",
           "glob patterns, separated by ',': weights of the linear layers that "
           "are computed in fp8"),
    ofPass("fp8.skip", "name", "weights of those that are not"),
    ofPass("fp8.skip_first_last", "bool",
           "the first and the last linear layer stay in bfloat16: true of "
           "torchao's recipes, as Accelerate has it"),
    ofPass("fp8.use_autocast_during_eval", "bool",
           "the entries eval and forward compute in fp8, too"),
    ofUpdate("gradient_clipping"),
    ofUpdate("optimizer.type"),
    ofUpdate("optimizer.lr"),
    ofUpdate("optimizer.betas"),
    ofUpdate("optimizer.eps"),
    ofUpdate("optimizer.weight_decay"),
    ofUpdate("optimizer.no_decay"),
    ofUpdate("optimizer.decay"),
    ofUpdate("optimizer.momentum"),
    ofUpdate("optimizer.dampening"),
    ofUpdate("optimizer.nesterov"),
    ofUpdate("optimizer.amsgrad"),
    ofUpdate("optimizer.momentum_decay"),
    ofUpdate("optimizer.decoupled_weight_decay"),
    ofUpdate("optimizer.lr_decay"),
    ofUpdate("optimizer.initial_accumulator_value"),
    ofUpdate("optimizer.rho"),
    ofUpdate("optimizer.alpha"),
    ofUpdate("optimizer.centered"),
    ofUpdate("optimizer.trust_coefficient"),
    ofUpdate("optimizer.beta2_decay"),
    ofUpdate("optimizer.eps1"),
    ofUpdate("optimizer.eps2"),
    ofUpdate("optimizer.d"),
    ofUpdate("optimizer.ns_steps"),
    ofUpdate("optimizer.adjust_lr_fn"),
    ofUpdate("optimizer.adam_lr"),
    ofUpdate("optimizer.min_8bit_size"),
    ofUpdate("optimizer.warmup_steps"),
    ofUpdate("optimizer.r"),
    ofUpdate("optimizer.weight_lr_power"),
    ofUpdate(kGroupSetting),
    ofUpdate("scheduler.type"),
    ofUpdate("scheduler.warmup"),
    ofUpdate("scheduler.warmup_steps"),
    ofUpdate("scheduler.total_steps"),
    ofUpdate("scheduler.warmup_min_lr"),
    ofUpdate("scheduler.min_lr"),
    ofUpdate("scheduler.warmup_min_ratio"),
    ofUpdate("scheduler.cos_min_ratio"),
    ofUpdate("scheduler.num_cycles"),
    ofUpdate("scheduler.lr_end"),
    ofUpdate("scheduler.power"),
    ofUpdate("scheduler.timescale"),
    ofUpdate("scheduler.min_lr_rate"),
    ofUpdate("scheduler.warmup_lr_rate"),
    ofUpdate("scheduler.decay_steps"),
    ofUpdate("scheduler.stable_steps"),
    ofUpdate("scheduler.warmup_type"),
    ofUpdate("scheduler.decay_type"),
    ofUpdate("scheduler.min_lr_ratio"),
    ofUpdate("scheduler.step_size"),
    ofUpdate("scheduler.gamma"),
    ofUpdate("scheduler.milestones"),
    ofUpdate("scheduler.factor"),
    ofUpdate("scheduler.total_iters"),
    ofUpdate("scheduler.start_factor"),
    ofUpdate("scheduler.end_factor"),
    ofUpdate("scheduler.T_max"),
    ofUpdate("scheduler.eta_min"),
    ofUpdate("scheduler.T_0"),
    ofUpdate("scheduler.T_mult"),
    ofUpdate("scheduler.base_lr"),
    ofUpdate("scheduler.max_lr"),
    ofUpdate("scheduler.step_size_up"),
    ofUpdate("scheduler.step_size_down"),
    ofUpdate("scheduler.mode"),
    ofUpdate("scheduler.cycle_momentum"),
    ofUpdate("scheduler.base_momentum"),
    ofUpdate("scheduler.max_momentum"),
    ofUpdate("scheduler.pct_start"),
    ofUpdate("scheduler.anneal_strategy"),
    ofUpdate("scheduler.div_factor"),
    ofUpdate("scheduler.final_div_factor"),
    ofUpdate("scheduler.three_phase"),
    ofUpdate("scheduler.lr_range_test_min_lr"),
    ofUpdate("scheduler.lr_range_test_step_size"),
    ofUpdate("scheduler.lr_range_test_step_rate"),
    ofUpdate("scheduler.lr_range_test_staircase"),
    ofUpdate("scheduler.cycle_min_lr"),
    ofUpdate("scheduler.cycle_max_lr"),
    ofUpdate("scheduler.decay_lr_rate"),
    ofUpdate("scheduler.cycle_first_step_size"),
    ofUpdate("scheduler.cycle_second_step_size"),
    ofUpdate("scheduler.cycle_first_stair_count"),
    ofUpdate("scheduler.cycle_second_stair_count"),
    ofUpdate("scheduler.decay_step_size"),
    ofUpdate("scheduler.cycle_min_mom"),
    ofUpdate("scheduler.cycle_max_mom"),
    ofUpdate("scheduler.decay_mom_rate"),
    ofUpdate("scheduler.wsd_decay_steps"),
    ofUpdate("scheduler.lr_wsd_decay_style"),
    ofUpdate("scheduler.start_weight_decay"),
    ofUpdate("scheduler.end_weight_decay"),
    ofUpdate("scheduler.weight_decay_incr_style"),
    ofUpdate("scheduler.weight_decay_incr_steps"),
    ofUpdate(kPartSetting),
    ofUpdate("scaler.type"),
    ofUpdate("scaler.init_scale"),
    ofUpdate("scaler.growth_factor"),
    ofUpdate("scaler.backoff_factor"),
    ofUpdate("scaler.growth_interval"),
    ofUpdate("scaler.hysteresis"),
    ofUpdate("scaler.consecutive_hysteresis"),
    ofUpdate("scaler.min_scale"),
    ofUpdate("ema.decay"),
    ofUpdate("ema.evaluate"),
    ofUpdate("seed"),
};

ArrayRef<NamedSetting> accel::config::namedSettings() { return kSettings; }

const NamedSetting *accel::config::findSetting(StringRef name) {
  if (accel::autodiff::isGroupKey(name))
    name = kGroupSetting;
  else if (accel::autodiff::splitPartKey(name))
    name = kPartSetting;
  const NamedSetting *found = find_if(
      kSettings, [&](const NamedSetting &one) { return one.name == name; });
  return found == std::end(kSettings) ? nullptr : found;
}

std::string accel::config::describeMismatch(const NamedSetting &setting,
                                            StringRef value) {
  StringRef type = setting.type;
  if (type.empty() || type == "name")
    return "";
  if (type == "bool")
    return value == "true" || value == "false" ? "" : "true or false";
  if (type == "int") {
    int64_t number = 0;
    return value.getAsInteger(10, number) ? "an integer" : "";
  }
  if (type.consume_front("int>=")) {
    int64_t least = 0, number = 0;
    (void)type.getAsInteger(10, least);
    return !value.getAsInteger(10, number) && number >= least
               ? ""
               : ("an integer of at least " + type).str();
  }
  if (type == "number>=0") {
    double number = 0;
    return !value.getAsDouble(number) && std::isfinite(number) && number >= 0
               ? ""
               : "a number of at least 0";
  }
  SmallVector<StringRef> words;
  type.split(words, ',');
  if (is_contained(words, value))
    return "";
  return join(drop_end(words), ", ") + " or " + words.back().str();
}

std::string accel::config::describePassSettings() {
  std::string text;
  for (const NamedSetting &one : kSettings)
    if (one.reader == SettingReader::Pass)
      text += (text.empty() ? "" : "\n") + one.name.str() + "=" +
              (one.type == "bool" ? "true,false" : one.type.str()) + ": " +
              one.help.str();
  return text;
}

std::string accel::config::describeOptimizers() {
  return autodiff::joinOptimizers();
}
