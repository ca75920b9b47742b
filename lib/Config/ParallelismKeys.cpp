// Accelerate's parallelism_config (ParallelismConfig, and the flags
// --parallelism_config_* of accelerate launch): the axes of the mesh.

#include "Schema.h"

using namespace accel::config;

static constexpr auto kDone = Fate::Done;
static constexpr auto kNoted = Fate::Noted;
static constexpr auto kLater = Fate::Later;

static constexpr Key kKeys[] = {
    {"parallelism_config_dp_replicate_size", "int>=1|null", "1", kDone, "",
     "axis dp_replicate of the mesh", ""},
    {"parallelism_config_dp_shard_size", "int>=1|null", "1", kDone, "",
     "axis dp_shard of the mesh", ""},
    {"parallelism_config_tp_size", "int>=1|null", "1", kLater, "1|null",
     "tensor parallelism", ""},
    {"parallelism_config_cp_size", "int>=1|null", "1", kLater, "1|null",
     "context parallelism", ""},
    {"parallelism_config_cp_backend", "torch|null", "torch", kNoted, "",
     "read where parallelism_config_cp_size is above 1", ""},
    {"parallelism_config_cp_comm_strategy", "allgather,alltoall|null",
     "allgather", kNoted, "",
     "read where parallelism_config_cp_size is above 1", ""},
    {"parallelism_config_sp_size", "int>=1|null", "1", kLater, "1|null",
     "sequence parallelism", ""},
    {"parallelism_config_sp_backend", "deepspeed|null", "deepspeed", kNoted, "",
     "read where parallelism_config_sp_size is above 1", ""},
    {"parallelism_config_sp_seq_length", "int>=1|null", "null", kNoted, "",
     "read where parallelism_config_sp_size is above 1", ""},
    {"parallelism_config_sp_seq_length_is_variable", "flag|null", "true",
     kNoted, "", "read where parallelism_config_sp_size is above 1", ""},
    {"parallelism_config_sp_attn_implementation", "string|null", "sdpa", kNoted,
     "", "read where parallelism_config_sp_size is above 1", ""},
};

// Accelerate puts no prefix before these: a name without it is one that it does
// not read.
const Section accel::config::kParallelismSection = {
    "parallelism_config", "Accelerate: parallelism_config", "", kKeys};
