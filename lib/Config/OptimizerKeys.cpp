// optimizer and scheduler of a DeepSpeed JSON (runtime/engine.py and
// runtime/lr_schedules.py).

#include "Schema.h"

using namespace accel::config;
using llvm::StringLiteral;

static constexpr Key kOptimizerKeys[] = {
    done("type",
         "~Adam,AdamW,SGD,Adagrad,Lamb,Lion,OneBitAdam,OneBitLamb,ZeroOneAdam,"
         "Muon,MuAdam,MuAdamW,MuSGD,FusedAdam,CPUAdam",
         "required", "the update, as --optimizer")
        .only("Adam|AdamW|SGD|Lion|Muon")
        .orSet("optimizer.type")
        .beware("Adam is AdamW unless params.adam_w_mode is false; of Muon a "
                "table of lookups or a head is Adam's if its name has embed or "
                "lm_head, here always"),
    done("params", "%optimizer.params", "{}", "the update's settings"),
    noted("legacy_fusion", "bool", "false",
          "updates are fused by the compiler"),
};

/// A setting of an optimizer or scheduler that is refused itself.
static constexpr Key other(StringLiteral name, StringLiteral reader) {
  return noted(name, "number|bool|string|list|auto|null", "", reader);
}

static constexpr Key kOptimizerParams[] = {
    done("lr", "number>=0|auto", "0.001",
         "optimizer.lr; auto: --set, else 0.001, which is DummyOptim's")
        .beware("not read beside a scheduler's warmup_max_lr"),
    done("betas", "list|auto", "0.9,0.999", "optimizer.betas")
        .sets("optimizer.betas"),
    done("eps", "number>=0|auto", "1e-08", "optimizer.eps")
        .sets("optimizer.eps"),
    done("weight_decay", "number>=0|auto", "0",
         "optimizer.weight_decay; auto: --set, else 0, which is DummyOptim's")
        .beware("0 for AdamW too, where PyTorch's AdamW has 0.01"),
    done("momentum", "number>=0", "0", "optimizer.momentum")
        .sets("optimizer.momentum"),
    done("nesterov", "bool", "false", "optimizer.nesterov")
        .sets("optimizer.nesterov"),
    done("dampening", "number>=0", "0", "optimizer.dampening")
        .sets("optimizer.dampening"),
    later("amsgrad", "bool", "false", "AMSGrad").unless("false"),
    later("bias_correction", "bool", "true", "Adam without bias correction")
        .unless("true"),
    done("torch_adam", "bool", "false",
         "true: PyTorch's defaults, so weight_decay 0.01 for AdamW"),
    done("adam_w_mode", "bool", "true",
         "false: Adam, whose decay is part of the gradient"),
    noted("fused", "bool", "false", "updates are fused by the compiler"),
    later("fp32_optimizer_states", "bool", "true",
          "moments in less than float32")
        .unless("true"),
    later("max_grad_norm", "number>=0", "none",
          "say gradient_clipping instead: clipping per optimizer")
        .beware("refused by DeepSpeed"),
    other("freeze_step", "read by OneBitAdam"),
    other("var_freeze_step", "read by ZeroOneAdam"),
    other("var_update_scaler", "read by ZeroOneAdam"),
    other("local_step_scaler", "read by ZeroOneAdam"),
    other("local_step_clipper", "read by ZeroOneAdam"),
    other("cuda_aware", "read by OneBitAdam"),
    other("comm_backend_name", "read by OneBitAdam"),
    other("coeff_beta", "read by OneBitLamb"),
    other("factor_max", "read by OneBitLamb"),
    other("factor_min", "read by OneBitLamb"),
    other("factor_threshold", "read by OneBitLamb"),
    other("max_coeff", "read by Lamb"),
    other("min_coeff", "read by Lamb"),
    other("eps_inside_sqrt", "read by Lamb"),
    done("muon_lr", "number>=0", "lr, else 0.02",
         "optimizer.lr of Muon, before params.lr"),
    done("adam_lr", "number>=0", "lr, else 0.0003",
         "optimizer.adam_lr of Muon, before params.lr: the rate of what is no "
         "matrix of a hidden layer"),
    noted("ns_method", "gram,standard", "gram",
          "both are the same iterations, of Muon"),
    later("per_head_muon", "bool", "false",
          "heads that are made orthogonal one by one")
        .unless("false"),
};

static constexpr Key kScheduler[] = {
    done("type", "LRRangeTest,OneCycle,WarmupLR,WarmupDecayLR,WarmupCosineLR",
         "required",
         "scheduler.type: the rate rises, then stays (WarmupLR), falls on a "
         "line (WarmupDecayLR) or on half a wave (WarmupCosineLR), goes up and "
         "down (OneCycle, with the betas), or up alone (LRRangeTest)")
        .orSet("scheduler.type")
        .beware("of the three with a warmup the rate of step k is that of "
                "number k - 2, and the least one in the first two"),
    done("params", "%scheduler.params", "{}", "the schedule's settings"),
};

static constexpr Key kSchedulerParams[] = {
    done("warmup_min_lr", "number>=0|auto", "0",
         "scheduler.warmup_min_lr: the rate that the warmup begins at, and "
         "that WarmupDecayLR falls to; auto: 0")
        .sets("scheduler.warmup_min_lr"),
    done("warmup_max_lr", "number>=0|auto", "the optimizer's lr",
         "optimizer.lr, before optimizer.params.lr: the rate that the warmup "
         "ends at; auto: the optimizer's lr")
        .beware("0.001 for WarmupDecayLR, whatever the optimizer's lr is"),
    done("warmup_num_steps", "int>=1|auto", "1000",
         "scheduler.warmup_steps, which is 2 at least; auto: --set, else 1, "
         "which Accelerate makes of DummyScheduler's 0"),
    done("warmup_type", "log,linear", "log",
         "how the rate rises: linearly, or by the logarithm of the step")
        .beware("log where it is absent; any other word is log too, with a "
                "warning"),
    done("total_num_steps", "count>=1|auto", "required",
         "scheduler.total_steps; auto: --set says it")
        .beware("Accelerate divides the script's total by the number of ranks"),
    later("last_batch_iteration", "int>=-1", "-1",
          "starting in the middle of a schedule")
        .unless("-1"),
    done("warmup_min_ratio", "number>=0", "0",
         "scheduler.warmup_min_ratio: the part of the rate that the warmup of "
         "WarmupCosineLR begins at")
        .sets("scheduler.warmup_min_ratio")
        .beware("the first step's rate is 0 all the same"),
    done("cos_min_ratio", "number>=0", "0.0001",
         "scheduler.cos_min_ratio: the part of the rate that WarmupCosineLR "
         "falls to")
        .sets("scheduler.cos_min_ratio"),
    done("lr_range_test_min_lr", "number>=0", "0.001",
         "scheduler.lr_range_test_min_lr: the first rate")
        .sets("scheduler.lr_range_test_min_lr"),
    done("lr_range_test_step_size", "count>=1", "2000",
         "scheduler.lr_range_test_step_size: steps of an interval")
        .sets("scheduler.lr_range_test_step_size"),
    done("lr_range_test_step_rate", "number>=0", "1.0",
         "scheduler.lr_range_test_step_rate: what an interval adds, in first "
         "rates")
        .sets("scheduler.lr_range_test_step_rate"),
    done("lr_range_test_staircase", "bool", "false",
         "scheduler.lr_range_test_staircase: whole intervals count")
        .sets("scheduler.lr_range_test_staircase"),
    done("cycle_min_lr", "number>=0", "required",
         "scheduler.cycle_min_lr: the rate that the cycle begins and ends at")
        .sets("scheduler.cycle_min_lr"),
    done("cycle_max_lr", "number>=0", "required",
         "scheduler.cycle_max_lr: the greatest rate")
        .sets("scheduler.cycle_max_lr"),
    done("decay_lr_rate", "number>=0", "0",
         "scheduler.decay_lr_rate: how fast the rate falls after the cycle")
        .sets("scheduler.decay_lr_rate"),
    done("cycle_first_step_size", "count>=1", "2000",
         "scheduler.cycle_first_step_size: steps of the rise")
        .sets("scheduler.cycle_first_step_size"),
    done("cycle_second_step_size", "count>=0", "cycle_first_step_size",
         "scheduler.cycle_second_step_size: steps of the fall")
        .sets("scheduler.cycle_second_step_size"),
    done("cycle_first_stair_count", "count>=0", "0",
         "scheduler.cycle_first_stair_count: stairs of the rise; 0: a line")
        .sets("scheduler.cycle_first_stair_count"),
    done("cycle_second_stair_count", "count>=0", "cycle_first_stair_count",
         "scheduler.cycle_second_stair_count: stairs of the fall")
        .sets("scheduler.cycle_second_stair_count"),
    done("decay_step_size", "count>=0", "0",
         "scheduler.decay_step_size: steps of an interval after the cycle; 0: "
         "nothing falls")
        .sets("scheduler.decay_step_size"),
    done("cycle_momentum", "bool", "true",
         "scheduler.cycle_momentum: the first beta falls as the rate rises")
        .sets("scheduler.cycle_momentum")
        .beware("disabled with a warning where the optimizer has no betas; the "
                "second beta becomes 0.99"),
    done("cycle_min_mom", "number>=0", "0.8",
         "scheduler.cycle_min_mom: the first beta at the greatest rate")
        .sets("scheduler.cycle_min_mom")
        .beware("that of the first step too"),
    done("cycle_max_mom", "number>=0", "0.9",
         "scheduler.cycle_max_mom: the first beta at the least rate")
        .sets("scheduler.cycle_max_mom"),
    done("decay_mom_rate", "number", "0",
         "scheduler.decay_mom_rate: how fast the first beta grows after the "
         "cycle")
        .sets("scheduler.decay_mom_rate")
        .beware("grows, past 1 in the end"),
};

const Section accel::config::kOptimizerSection = {
    "optimizer", "DeepSpeed: optimizer", "", kOptimizerKeys};
const Section accel::config::kOptimizerParamsSection = {
    "optimizer.params", "DeepSpeed: optimizer.params", "", kOptimizerParams};
const Section accel::config::kSchedulerSection = {
    "scheduler", "DeepSpeed: scheduler", "", kScheduler};
const Section accel::config::kSchedulerParamsSection = {
    "scheduler.params", "DeepSpeed: scheduler.params", "", kSchedulerParams};
