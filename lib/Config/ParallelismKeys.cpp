// Accelerate's parallelism_config (ParallelismConfig, and the flags
// --parallelism_config_* of accelerate launch): the axes of the mesh.

#include "Schema.h"

using namespace accel::config;

static constexpr Key kParallelismKeys[] = {
    done("parallelism_config_dp_replicate_size", "int>=1|null", "1",
         "axis dp_replicate of the mesh"),
    done("parallelism_config_dp_shard_size", "int>=1|null", "1",
         "axis dp_shard of the mesh"),
    done("parallelism_config_tp_size", "int>=1|null", "1",
         "axis tp of the mesh")
        .sets("tp")
        .beware("refused beside dp_replicate without dp_shard"),
    done("parallelism_config_cp_size", "int>=1|null", "1",
         "axis cp of the mesh, which splits sequences, and states, together "
         "with dp_shard")
        .sets("cp")
        .beware("refused beside dp_replicate without dp_shard; any mask "
                "becomes a causal one"),
    noted("parallelism_config_cp_backend", "torch|null", "torch",
          "exchanges are our own"),
    done("parallelism_config_cp_comm_strategy", "allgather,alltoall|null",
         "allgather",
         "cp.strategy: allgather, or (alltoall) ring: keys and values go from "
         "rank to rank"),
    done("parallelism_config_sp_size", "int>=1|null", "1",
         "axis sp of the mesh, which splits sequences, heads in attention, and "
         "states, together with dp_shard")
        .sets("sp")
        .beware("refused beside cp"),
    noted("parallelism_config_sp_backend", "deepspeed|null", "deepspeed",
          "exchanges are our own"),
    noted("parallelism_config_sp_seq_length", "int>=1|null", "null",
          "the model says it"),
    noted("parallelism_config_sp_seq_length_is_variable", "flag|null", "true",
          "shapes are static"),
    noted("parallelism_config_sp_attn_implementation", "string|null", "sdpa",
          "kernels are our own"),
};

// Accelerate puts no prefix before these: a name without it is one that it does
// not read.
const Section accel::config::kParallelismSection = {
    "parallelism_config", "Accelerate: parallelism_config", "",
    kParallelismKeys};
