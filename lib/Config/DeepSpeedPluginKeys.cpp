// Accelerate's deepspeed_config: what DeepSpeedPlugin reads beside, or instead
// of, a DeepSpeed JSON.

#include "Schema.h"

using namespace accel::config;

static constexpr Key kDeepSpeedPluginKeys[] = {
    done("deepspeed_config_file", "string|mapping|null", "none",
         "a DeepSpeed JSON: its path, its text, its text in base64, or a "
         "mapping")
        .beware("the keys below must not stand beside it"),
    done("zero_stage", "0,1,2,3|null", "2",
         "what dp_shard, cp and sp share: 1 moments, 2 and gradients, 3 and "
         "parameters")
        .sets("zero_stage"),
    done("offload_optimizer_device", "none,cpu,nvme|null", "none",
         "offload.optimizer: where the optimizer's states lie")
        .sets("offload.optimizer"),
    done("offload_param_device", "none,cpu,nvme|null", "none",
         "offload.parameters: where the parameters lie")
        .sets("offload.parameters"),
    done("offload_optimizer_nvme_path", "string|null", "none",
         "offload.nvme_path: the folder of the file, read with nvme")
        .orSet("offload.nvme_path")
        .beware("never exported by the launch: DeepSpeed gets the path 'none'"),
    done("offload_param_nvme_path", "string|null", "none",
         "offload.nvme_path: the folder of the file, read with nvme")
        .orSet("offload.nvme_path")
        .beware("never exported by the launch: DeepSpeed gets the path 'none'"),
    done("gradient_accumulation_steps", "int>=1|auto|null", "auto",
         "micro-batches of a step, as --micro-batches")
        .sets("gradient_accumulation_steps"),
    done(
        "gradient_clipping", "number>=0|auto|null", "auto",
        "the largest norm of all gradients together; 0: no clipping; auto: 1.0")
        .beware("where it is absent Accelerate clips at 1.0; 0 is dropped, and "
                "DeepSpeed's own default of 1.0 clips"),
    noted("zero3_init_flag", "flag|null", "true in stage 3",
          "each rank reads the byte ranges of its shard"),
    noted("zero3_save_16bit_model", "flag|null", "false",
          "acc-run --save-weights F --save-dtype=bf16|fp16 writes such a file"),
    noted("deepspeed_moe_layer_cls_names", "string|list|null", "null",
          "gather units are the repeated blocks of the graph, experts and all: "
          "what ranks exchange never depends on the routing"),
    noted("deepspeed_hostfile", "string|null", "null",
          "mpirun reads files of this form: mpirun --hostfile FILE acc-run "
          "--comm=mpi"),
    noted("deepspeed_exclusion_filter", "string|null", "null",
          "one executable serves every rank; where it runs, mpirun is told"),
    noted("deepspeed_inclusion_filter", "string|null", "null",
          "one executable serves every rank; where it runs, mpirun is told"),
    noted("deepspeed_multinode_launcher",
          "pdsh,standard,openmpi,mvapich,mpich,nossh,slurm|null", "pdsh",
          "one executable serves every rank; where it runs, mpirun is told"),
};

const Section accel::config::kPluginSection = {"deepspeed_config",
                                               "Accelerate: deepspeed_config",
                                               "", kDeepSpeedPluginKeys};
