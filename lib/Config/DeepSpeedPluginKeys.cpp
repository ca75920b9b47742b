// Accelerate's deepspeed_config: what DeepSpeedPlugin reads beside, or instead
// of, a DeepSpeed JSON.

#include "Schema.h"

using namespace accel::config;

static constexpr auto kDone = Fate::Done;
static constexpr auto kNoted = Fate::Noted;
static constexpr auto kLater = Fate::Later;

static constexpr Key kKeys[] = {
    {"deepspeed_config_file", "string|mapping|null", "none", kDone, "",
     "a DeepSpeed JSON: its path, its text, its text in base64, or a mapping",
     "the keys below must not stand beside it"},
    {"zero_stage", "0,1,2,3|null", "2", kDone, "",
     "what dp_shard shards: 1 moments, 2 and gradients, 3 and parameters", ""},
    {"offload_optimizer_device", "none,cpu,nvme|null", "none", kLater,
     "none|null", "moments in host memory or on disk", ""},
    {"offload_param_device", "none,cpu,nvme|null", "none", kLater, "none|null",
     "parameters in host memory or on disk", ""},
    {"offload_optimizer_nvme_path", "string|null", "none", kLater, "none|null",
     "moments on disk",
     "never exported by the launch: DeepSpeed gets the path 'none'"},
    {"offload_param_nvme_path", "string|null", "none", kLater, "none|null",
     "parameters on disk",
     "never exported by the launch: DeepSpeed gets the path 'none'"},
    {"gradient_accumulation_steps", "int>=1|auto|null", "auto", kDone, "",
     "micro-batches of a step, as --micro-batches", ""},
    {"gradient_clipping", "number>=0|auto|null", "auto", kDone, "",
     "the largest norm of all gradients together; 0: no clipping; auto: 1.0",
     "where it is absent Accelerate clips at 1.0; 0 is dropped, and "
     "DeepSpeed's "
     "own default of 1.0 clips"},
    {"zero3_init_flag", "flag|null", "true in stage 3", kNoted, "",
     "each rank reads the byte ranges of its shard", ""},
    {"zero3_save_16bit_model", "flag|null", "false", kNoted, "",
     "checkpoints hold logical tensors, in the type they train in", ""},
    {"deepspeed_moe_layer_cls_names", "string|list|null", "null", kLater,
     "null|", "mixtures of experts", ""},
    {"deepspeed_hostfile", "string|null", "null", kNoted, "",
     "one executable serves every rank; where it runs, acc-run is told", ""},
    {"deepspeed_exclusion_filter", "string|null", "null", kNoted, "",
     "one executable serves every rank; where it runs, acc-run is told", ""},
    {"deepspeed_inclusion_filter", "string|null", "null", kNoted, "",
     "one executable serves every rank; where it runs, acc-run is told", ""},
    {"deepspeed_multinode_launcher",
     "pdsh,standard,openmpi,mvapich,mpich,nossh,slurm|null", "pdsh", kNoted, "",
     "one executable serves every rank; where it runs, acc-run is told", ""},
};

const Section accel::config::kPluginSection = {
    "deepspeed_config", "Accelerate: deepspeed_config", "", kKeys};
