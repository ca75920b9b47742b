// Accelerate's parallelism_config (ParallelismConfig, and the flags
// --parallelism_config_* of accelerate launch): the axes of the mesh.

#include "Schema.h"

using namespace accel::config;

static constexpr Key kKeys[] = {
    done("parallelism_config_dp_replicate_size", "int>=1|null", "1",
         "axis dp_replicate of the mesh"),
    done("parallelism_config_dp_shard_size", "int>=1|null", "1",
         "axis dp_shard of the mesh"),
    done("parallelism_config_tp_size", "int>=1|null", "1",
         "axis tp of the mesh")
        .sets("tp")
        .beware("refused beside dp_replicate without dp_shard"),
    later("parallelism_config_cp_size", "int>=1|null", "1",
          "context parallelism")
        .unless("1|null"),
    noted("parallelism_config_cp_backend", "torch|null", "torch",
          "read where parallelism_config_cp_size is above 1"),
    noted("parallelism_config_cp_comm_strategy", "allgather,alltoall|null",
          "allgather", "read where parallelism_config_cp_size is above 1"),
    later("parallelism_config_sp_size", "int>=1|null", "1",
          "sequence parallelism")
        .unless("1|null"),
    noted("parallelism_config_sp_backend", "deepspeed|null", "deepspeed",
          "read where parallelism_config_sp_size is above 1"),
    noted("parallelism_config_sp_seq_length", "int>=1|null", "null",
          "read where parallelism_config_sp_size is above 1"),
    noted("parallelism_config_sp_seq_length_is_variable", "flag|null", "true",
          "read where parallelism_config_sp_size is above 1"),
    noted("parallelism_config_sp_attn_implementation", "string|null", "sdpa",
          "read where parallelism_config_sp_size is above 1"),
};

// Accelerate puts no prefix before these: a name without it is one that it does
// not read.
const Section accel::config::kParallelismSection = {
    "parallelism_config", "Accelerate: parallelism_config", "", kKeys};
