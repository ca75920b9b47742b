// optimizer and scheduler of a DeepSpeed JSON (runtime/engine.py and
// runtime/lr_schedules.py).

#include "Schema.h"

using namespace accel::config;

static constexpr auto kDone = Fate::Done;
static constexpr auto kNoted = Fate::Noted;
static constexpr auto kLater = Fate::Later;

static constexpr Key kOptimizer[] = {
    {"type",
     "~Adam,AdamW,SGD,Adagrad,Lamb,Lion,OneBitAdam,OneBitLamb,ZeroOneAdam,"
     "Muon,MuAdam,MuAdamW,MuSGD,FusedAdam,CPUAdam",
     "required", kDone, "Adam|AdamW|SGD", "the update, as --optimizer",
     "Adam is AdamW unless params.adam_w_mode is false"},
    {"params", "%optimizer.params", "{}", kDone, "", "the update's settings",
     ""},
    {"legacy_fusion", "bool", "false", kNoted, "",
     "updates are fused by the compiler", ""},
};

#define ACCEL_OTHER(NAME, READER)                                              \
  {                                                                            \
    NAME, "number|bool|string|list|auto|null", "", kNoted, "",                 \
        "read by " READER, ""                                                  \
  }

static constexpr Key kOptimizerParams[] = {
    {"lr", "number>=0|auto", "0.001", kDone, "",
     "optimizer.lr; auto: --set, else 0.001, which is DummyOptim's",
     "not read beside a scheduler's warmup_max_lr"},
    {"betas", "list|auto", "0.9,0.999", kDone, "", "optimizer.betas", ""},
    {"eps", "number>=0|auto", "1e-08", kDone, "", "optimizer.eps", ""},
    {"weight_decay", "number>=0|auto", "0", kDone, "",
     "optimizer.weight_decay; auto: --set, else 0, which is DummyOptim's",
     "0 for AdamW too, where PyTorch's AdamW has 0.01"},
    {"momentum", "number>=0", "0", kDone, "", "optimizer.momentum", ""},
    {"nesterov", "bool", "false", kLater, "false", "Nesterov's momentum", ""},
    {"dampening", "number>=0", "0", kLater, "0", "dampened momentum", ""},
    {"amsgrad", "bool", "false", kLater, "false", "AMSGrad", ""},
    {"bias_correction", "bool", "true", kLater, "true",
     "Adam without bias correction", ""},
    {"torch_adam", "bool", "false", kDone, "",
     "true: PyTorch's defaults, so weight_decay 0.01 for AdamW", ""},
    {"adam_w_mode", "bool", "true", kDone, "",
     "false: Adam, whose decay is part of the gradient", ""},
    {"fused", "bool", "false", kNoted, "", "updates are fused by the compiler",
     ""},
    {"fp32_optimizer_states", "bool", "true", kLater, "true",
     "moments in less than float32", ""},
    {"max_grad_norm", "number>=0", "none", kLater, "",
     "say gradient_clipping instead: clipping per optimizer",
     "refused by DeepSpeed"},
    ACCEL_OTHER("freeze_step", "OneBitAdam"),
    ACCEL_OTHER("var_freeze_step", "ZeroOneAdam"),
    ACCEL_OTHER("var_update_scaler", "ZeroOneAdam"),
    ACCEL_OTHER("local_step_scaler", "ZeroOneAdam"),
    ACCEL_OTHER("local_step_clipper", "ZeroOneAdam"),
    ACCEL_OTHER("cuda_aware", "OneBitAdam"),
    ACCEL_OTHER("comm_backend_name", "OneBitAdam"),
    ACCEL_OTHER("coeff_beta", "OneBitLamb"),
    ACCEL_OTHER("factor_max", "OneBitLamb"),
    ACCEL_OTHER("factor_min", "OneBitLamb"),
    ACCEL_OTHER("factor_threshold", "OneBitLamb"),
    ACCEL_OTHER("max_coeff", "Lamb"),
    ACCEL_OTHER("min_coeff", "Lamb"),
    ACCEL_OTHER("eps_inside_sqrt", "Lamb"),
    ACCEL_OTHER("muon_lr", "Muon"),
    ACCEL_OTHER("adam_lr", "Muon"),
    ACCEL_OTHER("ns_method", "Muon"),
    ACCEL_OTHER("per_head_muon", "Muon"),
};

static constexpr Key kScheduler[] = {
    {"type", "LRRangeTest,OneCycle,WarmupLR,WarmupDecayLR,WarmupCosineLR",
     "required", kDone, "WarmupLR|WarmupDecayLR",
     "WarmupLR: the rate rises, then stays; WarmupDecayLR: then falls to 0",
     ""},
    {"params", "%scheduler.params", "{}", kDone, "", "the schedule's settings",
     ""},
};

static constexpr Key kSchedulerParams[] = {
    {"warmup_min_lr", "number>=0|auto", "0", kDone, "0|auto",
     "the rate rises from 0", ""},
    {"warmup_max_lr", "number>=0|auto", "the optimizer's lr", kDone, "",
     "optimizer.lr, before optimizer.params.lr: the rate that the warmup ends "
     "at",
     "0.001 for WarmupDecayLR, whatever the optimizer's lr is"},
    {"warmup_num_steps", "count>=0|auto", "1000", kDone, "",
     "scheduler.warmup_steps; auto: --set, else 0, which is DummyScheduler's",
     "DeepSpeed makes it 2 at least"},
    {"warmup_type", "log,linear", "log", kDone, "",
     "how the rate rises: linearly, or by the logarithm of the step",
     "log where it is absent; any other word is log too, with a warning"},
    {"total_num_steps", "count>=1|auto", "required", kDone, "",
     "scheduler.total_steps; auto: --set says it",
     "Accelerate divides the script's total by the number of ranks"},
    {"last_batch_iteration", "int>=-1", "-1", kLater, "-1",
     "starting in the middle of a schedule", ""},
    ACCEL_OTHER("warmup_min_ratio", "WarmupCosineLR"),
    ACCEL_OTHER("cos_min_ratio", "WarmupCosineLR"),
    ACCEL_OTHER("lr_range_test_min_lr", "LRRangeTest"),
    ACCEL_OTHER("lr_range_test_step_size", "LRRangeTest"),
    ACCEL_OTHER("lr_range_test_step_rate", "LRRangeTest"),
    ACCEL_OTHER("lr_range_test_staircase", "LRRangeTest"),
    ACCEL_OTHER("cycle_min_lr", "OneCycle"),
    ACCEL_OTHER("cycle_max_lr", "OneCycle"),
    ACCEL_OTHER("decay_lr_rate", "OneCycle"),
    ACCEL_OTHER("cycle_first_step_size", "OneCycle"),
    ACCEL_OTHER("cycle_second_step_size", "OneCycle"),
    ACCEL_OTHER("cycle_first_stair_count", "OneCycle"),
    ACCEL_OTHER("cycle_second_stair_count", "OneCycle"),
    ACCEL_OTHER("decay_step_size", "OneCycle"),
    ACCEL_OTHER("cycle_momentum", "OneCycle"),
    ACCEL_OTHER("cycle_min_mom", "OneCycle"),
    ACCEL_OTHER("cycle_max_mom", "OneCycle"),
    ACCEL_OTHER("decay_mom_rate", "OneCycle"),
};

const Section accel::config::kOptimizerSection = {
    "optimizer", "DeepSpeed: optimizer", "", kOptimizer};
const Section accel::config::kOptimizerParamsSection = {
    "optimizer.params", "DeepSpeed: optimizer.params", "", kOptimizerParams};
const Section accel::config::kSchedulerSection = {
    "scheduler", "DeepSpeed: scheduler", "", kScheduler};
const Section accel::config::kSchedulerParamsSection = {
    "scheduler.params", "DeepSpeed: scheduler.params", "", kSchedulerParams};
