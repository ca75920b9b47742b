// Accelerate's fsdp_config (FullyShardedDataParallelPlugin, and the flags
// --fsdp_* of accelerate launch), for FSDP 1 and 2.

#include "Schema.h"

using namespace accel::config;

static constexpr auto kDone = Fate::Done;
static constexpr auto kNoted = Fate::Noted;
static constexpr auto kLater = Fate::Later;

#define ACCEL_STRATEGIES                                                       \
  "~FULL_SHARD,SHARD_GRAD_OP,NO_SHARD,HYBRID_SHARD,HYBRID_SHARD_ZERO2,1,2,3,"  \
  "4,5"

static constexpr Key kKeys[] = {
    {"fsdp_version", "1,2|null", "1", kDone, "",
     "which meaning the other keys have; the sharding is the same one",
     "the questionnaire writes 2 where the launch's own default is 1"},
    {"fsdp_sharding_strategy", ACCEL_STRATEGIES "|null", "FULL_SHARD", kDone,
     "",
     "FULL_SHARD: zero_stage 3; SHARD_GRAD_OP: 3, gathered once a step; "
     "NO_SHARD: 0; HYBRID_*: the same inside a machine, replicated over "
     "machines",
     "ignored where fsdp_version is 2"},
    {"fsdp_reshard_after_forward", "flag|" ACCEL_STRATEGIES "|null",
     "true (2), FULL_SHARD (1)", kDone, "",
     "true: zero_stage 3; false: 3, gathered once a step; with fsdp_version 1 "
     "a strategy",
     "with fsdp_version 1 it is what the questionnaire writes, and the launch "
     "runs FULL_SHARD whatever it says"},
    {"fsdp_offload_params", "flag|null", "false", kLater, "false|null",
     "parameters, gradients and moments in host memory", ""},
    {"fsdp_cpu_offload", "flag|null", "false", kLater, "false|null",
     "parameters, gradients and moments in host memory",
     "printed in the guide of transformers; nothing reads it: the key is "
     "fsdp_offload_params"},
    {"fsdp_auto_wrap_policy",
     "~TRANSFORMER_BASED_WRAP,SIZE_BASED_WRAP,NO_WRAP|null", "NO_WRAP", kNoted,
     "", "gather units are found as the repeated blocks of the graph", ""},
    {"fsdp_wrap_policy", "~TRANSFORMER_BASED_WRAP,SIZE_BASED_WRAP,NO_WRAP|null",
     "NO_WRAP", kNoted, "",
     "gather units are found as the repeated blocks of the graph",
     "printed in the guide of transformers; nothing reads it: the key is "
     "fsdp_auto_wrap_policy"},
    {"fsdp_transformer_layer_cls_to_wrap", "string|list|null", "null", kNoted,
     "", "gather units are found as the repeated blocks of the graph",
     "an unknown class name fails when the model is wrapped"},
    {"fsdp_min_num_params", "int>=0|null", "100000000", kNoted, "",
     "gather units are found as the repeated blocks of the graph",
     "1e8 is a string in YAML 1.1, and the launch dies on it"},
    {"fsdp_backward_prefetch",
     "~BACKWARD_PRE,BACKWARD_POST,NO_PREFETCH,1,2|null", "null", kNoted, "",
     "gathers run one unit ahead, in both directions",
     "ignored where fsdp_version is 2"},
    {"fsdp_backward_prefetch_policy",
     "~BACKWARD_PRE,BACKWARD_POST,NO_PREFETCH,1,2|null", "null", kNoted, "",
     "gathers run one unit ahead, in both directions",
     "documented, but nothing reads it: the key is fsdp_backward_prefetch"},
    {"fsdp_forward_prefetch", "flag|null", "false", kNoted, "",
     "gathers run one unit ahead, in both directions",
     "ignored where fsdp_version is 2"},
    {"fsdp_limit_all_gathers", "flag|null", "true", kNoted, "",
     "the bytes in flight are bounded by the schedule",
     "no flag of the launch has this name: nothing reads it"},
    {"fsdp_state_dict_type",
     "~FULL_STATE_DICT,LOCAL_STATE_DICT,SHARDED_STATE_DICT,1,2,3|null",
     "FULL_STATE_DICT (1), SHARDED_STATE_DICT (2)", kNoted, "",
     "checkpoints hold logical tensors: any layout loads any layout",
     "LOCAL_STATE_DICT is refused where fsdp_version is 2"},
    {"fsdp_use_orig_params", "flag|null", "true", kNoted, "",
     "parameters are sharded one by one, never flattened", ""},
    {"fsdp_cpu_ram_efficient_loading", "flag|null", "true", kNoted, "",
     "each rank reads the byte ranges of its shard", ""},
    {"fsdp_sync_module_states", "flag|null", "true", kNoted, "",
     "all ranks read the same file",
     "must not be false beside fsdp_cpu_ram_efficient_loading"},
    {"fsdp_activation_checkpointing", "flag|null", "false", kLater,
     "false|null", "recomputing activations", ""},
    {"fsdp_activation_checkpointing_offload", "flag|null", "false", kLater,
     "false|null", "activations in host memory", ""},
    {"fsdp_ignored_modules", "string|list|null", "null", kLater, "null|",
     "leaving some parameters replicated", ""},
};

const Section accel::config::kFsdpSection = {
    "fsdp_config", "Accelerate: fsdp_config", "fsdp_", kKeys};
