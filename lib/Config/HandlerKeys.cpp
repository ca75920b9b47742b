// What scripts give Accelerate as `kwargs_handlers`, written down by the names
// of its classes: no file of Accelerate's has a place for them.

#include "Schema.h"

using namespace accel::config;

static constexpr Key kHandlers[] = {
    noted("DistributedDataParallelKwargs", "%DistributedDataParallelKwargs",
          "{}", "how gradients are reduced"),
    noted("GradScalerKwargs", "%GradScalerKwargs", "{}",
          "how the loss is scaled with mixed_precision fp16"),
    noted("AutocastKwargs", "%AutocastKwargs", "{}",
          "whether operators are computed in 16 bits: which, autocast.lists "
          "says"),
    noted("TERecipeKwargs", "%TERecipeKwargs", "{}",
          "fp8 as Transformer Engine has it, with mixed_precision fp8"),
    noted("AORecipeKwargs", "%AORecipeKwargs", "{}",
          "fp8 as torchao has it, with mixed_precision fp8"),
    noted("MSAMPRecipeKwargs", "%MSAMPRecipeKwargs", "{}",
          "fp8 as MS-AMP has it"),
    noted("InitProcessGroupKwargs", "%InitProcessGroupKwargs", "{}",
          "how ranks find each other"),
};

/// What torch.amp.GradScaler takes.
static constexpr Key kGradScaler[] = {
    done("init_scale", "number>0", "65536", "scaler.init_scale"),
    done("growth_factor", "number>0", "2", "scaler.growth_factor"),
    done("backoff_factor", "number>0", "0.5", "scaler.backoff_factor"),
    done("growth_interval", "int>=1", "2000", "scaler.growth_interval"),
    done("enabled", "bool", "true",
         "scaler.type torch, or none, with mixed_precision fp16"),
};

static constexpr Key kAutocast[] = {
    later("enabled", "bool", "true",
          "regions without mixed precision: --mixed-precision=no has none")
        .unless("true"),
    noted("cache_enabled", "bool|null", "null",
          "a weight is cast once a step, for all that read it"),
};

/// What init_process_group takes; `timeout` in seconds.
static constexpr Key kInitGroup[] = {
    noted("backend", "string|null", "nccl",
          "collectives are our own: in shared memory, and over machines with "
          "acc-run --comm=mpi"),
    noted("init_method", "string|null", "null",
          "ranks meet in shared memory, and by MPI over machines"),
    noted("timeout", "number>=0|null", "null",
          "acc-run --hang-after gives up after so many seconds without "
          "progress (60)")
        .beware("null is 600 s of nccl and 1800 s of others; under DeepSpeed "
                "often not honoured"),
};

static constexpr Key kDdp[] = {
    later("dim", "int>=0", "0", "another batch dimension: --batch-dim says it")
        .unless("0"),
    noted("broadcast_buffers", "bool", "true",
          "buffers are the same on all ranks: none is trained batch norm's"),
    noted("bucket_cap_mb", "number>0", "25",
          "gradients are reduced in buckets of 25 MiB"),
    noted("find_unused_parameters", "bool", "false",
          "unused parameters are known when compiling"),
    noted("check_reduction", "bool", "false",
          "which ranks reduce what is proved when compiling")
        .beware("deprecated: nothing reads it"),
    noted("gradient_as_bucket_view", "bool", "false",
          "a bucket's gradients lie in one buffer where that spares a copy"),
    noted("static_graph", "bool", "false", "the graph is static always"),
    done("comm_hook", "~no,fp16,bf16,power_sgd,batched_power_sgd", "no",
         "comm_hook: how data-parallel ranks send gradients")
        .only("no|fp16|bf16|power_sgd")
        .sets("comm_hook"),
    done("comm_wrapper", "~no,fp16,bf16", "no",
         "rounds once more: to the type of comm_hook, or, without a hook, not "
         "at all"),
    noted("comm_state_option", "%comm_state_option", "{}",
          "what PowerSGD does; other hooks read nothing of it"),
};

/// What torch's PowerSGDState takes.
static constexpr Key kPowerSGD[] = {
    done("matrix_approximation_rank", "int>=1", "1",
         "power_sgd.matrix_approximation_rank")
        .sets("power_sgd.matrix_approximation_rank"),
    done("start_powerSGD_iter", "int>=0", "1000",
         "power_sgd.start_powerSGD_iter: 0 alone, or a run of its own before")
        .sets("power_sgd.start_powerSGD_iter"),
    done("min_compression_rate", "number>=0", "2",
         "power_sgd.min_compression_rate")
        .sets("power_sgd.min_compression_rate"),
    done("use_error_feedback", "bool", "true", "power_sgd.use_error_feedback")
        .sets("power_sgd.use_error_feedback"),
    done("warm_start", "bool", "true", "power_sgd.warm_start")
        .sets("power_sgd.warm_start"),
    done("orthogonalization_epsilon", "number>=0", "0",
         "power_sgd.orthogonalization_epsilon")
        .sets("power_sgd.orthogonalization_epsilon"),
    done("random_seed", "int>=0", "0", "power_sgd.random_seed")
        .sets("power_sgd.random_seed"),
    noted("compression_stats_logging_frequency", "int", "10000",
          "--explain=collectives says what is sent"),
    noted("batch_tensors_with_same_shape", "bool", "false",
          "each gradient has its factors either way"),
};

const Section accel::config::kHandlersSection = {
    "kwargs_handlers", "Accelerate: kwargs_handlers of a script", "",
    kHandlers};
const Section accel::config::kGradScalerSection = {
    "GradScalerKwargs", "Accelerate: GradScalerKwargs", "", kGradScaler};
const Section accel::config::kAutocastSection = {
    "AutocastKwargs", "Accelerate: AutocastKwargs", "", kAutocast};
const Section accel::config::kDdpSection = {
    "DistributedDataParallelKwargs",
    "Accelerate: DistributedDataParallelKwargs", "", kDdp};
const Section accel::config::kInitGroupSection = {
    "InitProcessGroupKwargs", "Accelerate: InitProcessGroupKwargs", "",
    kInitGroup};
const Section accel::config::kPowerSGDSection = {
    "comm_state_option",
    "Accelerate: comm_state_option of DistributedDataParallelKwargs", "",
    kPowerSGD};
