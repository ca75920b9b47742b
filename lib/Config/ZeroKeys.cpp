// zero_optimization of a DeepSpeed JSON (runtime/zero/config.py and
// offload_config.py), and the sections of mixed precision.

#include "Schema.h"

using namespace accel::config;

static constexpr Key kZero[] = {
    done("stage", "0,1,2,3|auto", "0",
         "what dp_shard, cp and sp share: 1 moments, 2 and gradients, 3 and "
         "parameters")
        .sets("zero_stage")
        .beware("Accelerate fills auto with its own zero_stage, 2"),
    noted("contiguous_gradients", "bool", "true",
          "every byte's address is planned"),
    noted("reduce_scatter", "bool", "true",
          "sums of which a rank keeps a shard are reduce_scattered"),
    noted("reduce_bucket_size", "count>=1|auto", "500000000",
          "gradients are reduced in buckets of 25 MiB; auto: the same")
        .beware("Accelerate fills auto with hidden_size squared, and fails "
                "without one"),
    noted("use_multi_rank_bucket_allreduce", "bool", "true",
          "gradients are reduced in buckets of 25 MiB"),
    noted("allgather_partitions", "bool", "true",
          "parameters are gathered by all_gather"),
    noted("allgather_bucket_size", "count>=0|auto", "500000000",
          "gathers are bounded by the gather unit"),
    noted("overlap_comm", "bool|null|auto", "true in stage 3",
          "the schedule overlaps what it can"),
    noted("compute_grad_norm", "bool", "true",
          "the norm is computed where clipping needs it"),
    noted("load_from_fp32_weights", "bool", "true", "weights are float32"),
    noted("elastic_checkpoint", "bool", "false", "any layout loads any layout"),
    done("offload_param", "%offload_param|null", "null",
         "parameters in the host's memory"),
    done("offload_optimizer", "%offload_optimizer|null", "null",
         "the optimizer's states in the host's memory"),
    later("zenflow", "mapping|null", "null", "ZenFlow").unless("{}|null"),
    noted("aio", "%aio", "{}", "DeepSpeed reads it outside of this section")
        .beware("printed here in the guide of transformers"),
    done("sub_group_size", "count>=0", "1000000000",
         "offload.tile, where less are updated at once than without it")
        .orSet("offload.tile"),
    done("cpu_offload", "bool|null", "null", "true: offload.optimizer cpu")
        .beware("deprecated: offload_optimizer"),
    done("cpu_offload_param", "bool|null", "null",
         "true: offload.parameters cpu")
        .beware("deprecated: offload_param"),
    done("cpu_offload_params", "bool|null", "null",
         "true: offload.parameters cpu")
        .beware("deprecated: offload_param"),
    noted("cpu_offload_use_pin_memory", "bool|null", "null",
          "the target says what memory is copied from")
        .beware("deprecated"),
    noted(
        "stage3_prefetch_bucket_size", "count>=0|auto", "50000000",
        "one gather unit is in flight ahead of the one in use; auto: the same")
        .beware("Accelerate fills auto with 0.9 hidden_size squared"),
    noted("prefetch_bucket_size", "count>=0|auto", "50000000",
          "one gather unit is in flight ahead of the one in use"),
    noted("stage3_param_persistence_threshold", "count>=0|auto", "100000",
          "every parameter is sharded, small ones too; auto: the same")
        .beware("Accelerate fills auto with 10 hidden_size"),
    noted("param_persistence_threshold", "count>=0|auto", "100000",
          "every parameter is sharded, small ones too"),
    noted("stage3_model_persistence_threshold", "count>=0|auto",
          "9223372036854775807", "every parameter is sharded, small ones too"),
    noted("stage3_max_live_parameters", "count>=0|auto", "1000000000",
          "at most two gather units are live"),
    noted("max_live_parameters", "count>=0|auto", "1000000000",
          "at most two gather units are live"),
    noted("stage3_max_reuse_distance", "count>=0|auto", "1000000000",
          "the schedule says when a gathered parameter is freed"),
    noted("max_reuse_distance", "count>=0|auto", "1000000000",
          "the schedule says when a gathered parameter is freed"),
    noted("stage3_gather_16bit_weights_on_model_save", "bool|auto", "false",
          "acc-run --save-weights F --save-dtype=bf16|fp16 writes such a file"),
    noted("stage3_gather_fp16_weights_on_model_save", "bool|auto", "false",
          "acc-run --save-weights F --save-dtype=fp16 writes such a file")
        .beware("deprecated"),
    noted("gather_16bit_weights_on_model_save", "bool|auto", "false",
          "acc-run --save-weights F --save-dtype=bf16|fp16 writes such a file"),
    noted("stage3_module_granularity_threshold", "count>=0", "0",
          "gather units are found as the repeated blocks of the graph"),
    noted("stage3_use_all_reduce_for_fetch_params", "bool", "false",
          "parameters are gathered by all_gather"),
    noted("stage3_allgather_sequential", "bool", "false",
          "the schedule says in which order parameters are gathered"),
    noted("ignore_unused_parameters", "bool", "true",
          "unused parameters are known when compiling"),
    noted("legacy_stage1", "bool", "false", "there is one stage 1"),
    noted("round_robin_gradients", "bool", "false",
          "the schedule says in which order gradients are reduced"),
    noted("parameter_alignment", "bool", "false",
          "every byte's address is planned"),
    done("zero_hpz_partition_size", "count>=0", "1",
         "in stage 3, ranks that keep a second copy of the parameters between "
         "them from forward to backward (ZeRO++); up to 1: none"),
    later("zero_quantized_weights", "bool", "false",
          "quantised gathers (ZeRO++)")
        .unless("false"),
    later("zero_quantized_nontrainable_weights", "bool", "false",
          "quantised frozen weights (ZeRO++)")
        .unless("false"),
    later("zero_quantized_gradients", "bool", "false",
          "quantised reductions (ZeRO++)")
        .unless("false"),
    later("zeropp_loco_param", "mapping|null", "null",
          "quantised reductions (ZeRO++)")
        .unless("null|{}")
        .beware("removed from DeepSpeed"),
    done("mics_shard_size", "int>=-1", "-1",
         "axes dp_shard and sp of the mesh together, in stage 3; dp_replicate "
         "is "
         "what remains")
        .beware("removed from DeepSpeed"),
    noted("mics_hierarchical_params_gather", "bool", "false",
          "the planner chooses how parameters are gathered")
        .beware("removed from DeepSpeed"),
    noted("memory_efficient_linear", "bool", "true",
          "gathered parameters are freed after use always"),
    noted("pipeline_loading_checkpoint", "bool", "false",
          "each rank reads the byte ranges of its shard"),
    noted("override_module_apply", "bool", "true",
          "there are no modules at run time"),
    noted("log_trace_cache_warnings", "bool", "false",
          "the order of gathers is static"),
    noted("enable_sanity_checks", "bool", "false",
          "every compile proves the program"),
    later("save_muon_momentum_buffer_in_memory", "bool", "false",
          "momentum in memory beside moments in a file")
        .unless("false"),
    noted("leaf_module", "%leaf_module", "{}",
          "gather units are found as the repeated blocks of the graph"),
};

static constexpr Key kOffloadParam[] = {
    done("device", "none,cpu,nvme|auto|null", "none",
         "offload.parameters: where the parameters lie")
        .sets("offload.parameters"),
    done("nvme_path", "string|null", "null",
         "offload.nvme_path: the folder of the file, read with nvme")
        .orSet("offload.nvme_path")
        .beware("Accelerate never fills auto from its own file"),
    noted("buffer_count", "count>=0", "5",
          "what is staged follows the plan: offload.buffer_count bounds it"),
    noted("buffer_size", "count>=0|auto", "100000000",
          "what is staged has the size of the state"),
    done("max_in_cpu", "count>=0", "1000000000",
         "offload.max_in_cpu: numbers of a rank's parameters that the host "
         "keeps, read with nvme")
        .orSet("offload.max_in_cpu"),
    noted("pin_memory", "bool", "true",
          "the target says what memory is copied from"),
};

static constexpr Key kOffloadOptimizer[] = {
    done("device", "none,cpu,nvme|auto|null", "none",
         "offload.optimizer: where the optimizer's states lie")
        .sets("offload.optimizer"),
    done("nvme_path", "string|null", "null",
         "offload.nvme_path: the folder of the file, read with nvme")
        .orSet("offload.nvme_path")
        .beware("Accelerate never fills auto from its own file"),
    noted("buffer_count", "count>=0", "4",
          "what is staged follows the plan: offload.buffer_count bounds it")
        .beware("of states on the CPU nothing reads it"),
    noted("pin_memory", "bool", "true",
          "the target says what memory is copied from"),
    noted("pipeline", "bool", "false",
          "copies go on beside the computation always"),
    noted("pipeline_read", "bool", "false",
          "copies go on beside the computation always"),
    noted("pipeline_write", "bool", "false",
          "copies go on beside the computation always"),
    noted("fast_init", "bool", "false",
          "states are made where they lie always"),
    done("ratio", "number>=0", "1.0",
         "offload.ratio: the part of the states' bytes that is offloaded")
        .orSet("offload.ratio")
        .beware("DeepSpeed counts in groups of sub_group_size numbers: of a "
                "smaller model any ratio above 0 means all"),
    noted("super_offload", "bool", "false",
          "updates are computed on the device"),
    noted("cpuadam_cores_perc", "number>=0", "0.8",
          "updates are computed on the device"),
};

static constexpr Key kLeafModule[] = {
    noted("classes", "list", "",
          "gather units are found as the repeated blocks of the graph"),
    noted("names", "list", "",
          "gather units are found as the repeated blocks of the graph"),
    noted("name_suffixes", "list", "",
          "gather units are found as the repeated blocks of the graph"),
};

static constexpr Key kFp16[] = {
    done(
        "enabled", "bool|auto", "false",
        "mixed_precision fp16: matrix products in float16, weights and moments "
        "stay float32; gradients are divided by the scale that the loss was "
        "multiplied with")
        .orSet("mixed_precision")
        .beware("DeepSpeed divides by the scale of the next step, so that a "
                "step at which it grows is half as long (DeepSpeed#8588)"),
    noted("auto_cast", "bool|auto", "false",
          "inputs are cast where a product reads them"),
    done("loss_scale", "number>=0", "0",
         "scaler.type static, with this scaler.init_scale, where it is not 0")
        .beware("0 is dynamic"),
    done("initial_scale_power", "count>=0", "16",
         "scaler.init_scale 2^N where the scale is dynamic"),
    done("loss_scale_window", "count>=1", "1000", "scaler.growth_interval")
        .beware("it grows after one step more, the first time"),
    done("hysteresis", "count>=0", "2", "scaler.hysteresis")
        .beware("spent, it is refilled only when the scale grows"),
    done("consecutive_hysteresis", "bool", "false",
         "scaler.consecutive_hysteresis"),
    done("min_loss_scale", "number>=0", "1", "scaler.min_scale")
        .beware("an overflow at this scale ends the run, as in DeepSpeed"),
    noted("fp16_master_weights_and_grads", "bool", "false",
          "master weights are float32; true is refused where fp16 is on"),
    noted("opt_level", "string", "O1", "read by apex alone"),
};

static constexpr Key kBf16[] = {
    done("enabled", "bool|auto", "false",
         "matrix products in bf16; weights, gradients and moments stay float32")
        .beware("DeepSpeed keeps bf16 weights beside float32 ones"),
    noted("auto_cast", "bool|auto", "false",
          "inputs are cast where a product reads them"),
    noted("immediate_grad_update", "bool", "false",
          "gradients are accumulated as they are computed"),
    later("check_grad_overflow", "bool", "true",
          "skipping steps whose gradients are not finite")
        .unless("false"),
    later("bf16_master_weights_and_grads", "bool", "false", "weights in bf16")
        .unless("false"),
    later("bf16_optimizer_states", "bool", "false", "moments in bf16")
        .unless("false"),
    noted("loss_scale", "number>=0", "1", "bf16 needs no scaling of the loss")
        .beware("nothing reads it"),
};

/// DeepSpeed runs the forward under torch.autocast, and sends gradients of the
/// modules that are safe in that type.
static constexpr Key kTorchAutocast[] = {
    done("enabled", "bool", "false",
         "autocast.lists cuda, with mixed_precision as dtype says")
        .orSet("autocast.lists"),
    done("dtype", "~bfloat16,float16,bf16,fp16", "bfloat16",
         "mixed_precision bf16 or fp16")
        .beware("fp16 has torch's scaler in the step, of torch's defaults"),
    later("lower_precision_safe_modules", "list|null", "null",
          "modules whose gradients are sent in 16 bits: comm_hook says it of "
          "all")
        .unless("null")
        .beware("absent, DeepSpeed sends those of Linear and of convolutions "
                "in 16 bits"),
};

const Section accel::config::kZeroSection = {
    "zero_optimization", "DeepSpeed: zero_optimization", "", kZero};
const Section accel::config::kOffloadParamSection = {
    "offload_param", "DeepSpeed: zero_optimization.offload_param", "",
    kOffloadParam};
const Section accel::config::kOffloadOptimizerSection = {
    "offload_optimizer", "DeepSpeed: zero_optimization.offload_optimizer", "",
    kOffloadOptimizer};
const Section accel::config::kLeafModuleSection = {
    "leaf_module", "DeepSpeed: zero_optimization.leaf_module", "", kLeafModule};
const Section accel::config::kFp16Section = {"fp16", "DeepSpeed: fp16", "",
                                             kFp16};
const Section accel::config::kTorchAutocastSection = {
    "torch_autocast", "DeepSpeed: torch_autocast", "", kTorchAutocast};
const Section accel::config::kBf16Section = {"bf16", "DeepSpeed: bf16", "",
                                             kBf16};
