// Accelerate's fsdp_config (FullyShardedDataParallelPlugin, and the flags
// --fsdp_* of accelerate launch), for FSDP 1 and 2.

#include "lib/Config/ReadFile.h"

#include "llvm/ADT/StringSwitch.h"

using namespace accel::config;

#define ACCEL_STRATEGIES                                                       \
  "~FULL_SHARD,SHARD_GRAD_OP,NO_SHARD,HYBRID_SHARD,HYBRID_SHARD_ZERO2,1,2,3,"  \
  "4,5"

static constexpr Key kFsdpKeys[] = {
    done("fsdp_version", "1,2|null", "1",
         "which meaning the other keys have; the sharding is the same one")
        .beware(
            "the questionnaire writes 2 where the launch's own default is 1"),
    done("fsdp_sharding_strategy", ACCEL_STRATEGIES "|null", "FULL_SHARD",
         "FULL_SHARD: zero_stage 3; SHARD_GRAD_OP: 3, gathered once a step; "
         "NO_SHARD: 0; HYBRID_*: the same inside a machine, replicated over "
         "machines")
        .beware("ignored where fsdp_version is 2"),
    done("fsdp_reshard_after_forward", "flag|" ACCEL_STRATEGIES "|null",
         "true (2), FULL_SHARD (1)",
         "true: zero_stage 3; false: 3, gathered once a step; with "
         "fsdp_version 1 a strategy")
        .beware("with fsdp_version 1 it is what the questionnaire writes, and "
                "the launch runs FULL_SHARD whatever it says"),
    done("fsdp_offload_params", "flag|null", "false",
         "true: offload.parameters and offload.optimizer cpu; gradients stay "
         "on the device"),
    noted("fsdp_cpu_offload", "flag|null", "false",
          "fsdp_offload_params says it")
        .beware("printed in the guide of transformers; nothing reads it: the "
                "key is fsdp_offload_params"),
    noted("fsdp_auto_wrap_policy",
          "~TRANSFORMER_BASED_WRAP,SIZE_BASED_WRAP,NO_WRAP|null", "NO_WRAP",
          "gather units are found as the repeated blocks of the graph"),
    noted("fsdp_wrap_policy",
          "~TRANSFORMER_BASED_WRAP,SIZE_BASED_WRAP,NO_WRAP|null", "NO_WRAP",
          "gather units are found as the repeated blocks of the graph")
        .beware("printed in the guide of transformers; nothing reads it: the "
                "key is fsdp_auto_wrap_policy"),
    noted("fsdp_transformer_layer_cls_to_wrap", "string|list|null", "null",
          "gather units are found as the repeated blocks of the graph")
        .beware("an unknown class name fails when the model is wrapped"),
    noted("fsdp_min_num_params", "int>=0|null", "100000000",
          "gather units are found as the repeated blocks of the graph")
        .beware("1e8 is a string in YAML 1.1, and the launch dies on it"),
    noted("fsdp_backward_prefetch",
          "~BACKWARD_PRE,BACKWARD_POST,NO_PREFETCH,1,2|null", "null",
          "gathers run one unit ahead, in both directions")
        .beware("ignored where fsdp_version is 2"),
    noted("fsdp_backward_prefetch_policy",
          "~BACKWARD_PRE,BACKWARD_POST,NO_PREFETCH,1,2|null", "null",
          "gathers run one unit ahead, in both directions")
        .beware("documented, but nothing reads it: the key is "
                "fsdp_backward_prefetch"),
    noted("fsdp_forward_prefetch", "flag|null", "false",
          "gathers run one unit ahead, in both directions")
        .beware("ignored where fsdp_version is 2"),
    noted("fsdp_limit_all_gathers", "flag|null", "true",
          "the bytes in flight are bounded by the schedule")
        .beware("no flag of the launch has this name: nothing reads it"),
    noted("fsdp_state_dict_type",
          "~FULL_STATE_DICT,LOCAL_STATE_DICT,SHARDED_STATE_DICT,1,2,3|null",
          "FULL_STATE_DICT (1), SHARDED_STATE_DICT (2)",
          "checkpoints hold logical tensors: any layout loads any layout")
        .beware("LOCAL_STATE_DICT is refused where fsdp_version is 2"),
    noted("fsdp_use_orig_params", "flag|null", "true",
          "parameters are sharded one by one, never flattened"),
    noted("fsdp_cpu_ram_efficient_loading", "flag|null", "true",
          "each rank reads the byte ranges of its shard"),
    noted("fsdp_sync_module_states", "flag|null", "true",
          "all ranks read the same file")
        .beware("must not be false beside fsdp_cpu_ram_efficient_loading"),
    done("fsdp_activation_checkpointing", "flag|null", "false",
         "recompute full: each layer is computed again in the backward")
        .orSet("recompute"),
    done("fsdp_activation_checkpointing_offload", "flag|null", "false",
         "true: offload.activations cpu, of all that the forward keeps")
        .orSet("offload.activations"),
    later("fsdp_ignored_modules", "string|list|null", "null",
          "leaving some parameters replicated")
        .unless("null|"),
};

const Section accel::config::kFsdpSection = {
    "fsdp_config", "Accelerate: fsdp_config", "fsdp_", kFsdpKeys};

llvm::StringRef accel::config::nameStrategy(llvm::StringRef value) {
  return llvm::StringSwitch<llvm::StringRef>(value)
      .Case("1", "FULL_SHARD")
      .Case("2", "SHARD_GRAD_OP")
      .Case("3", "NO_SHARD")
      .Case("4", "HYBRID_SHARD")
      .Case("5", "HYBRID_SHARD_ZERO2")
      .Default(value);
}
