// The top of Accelerate's default_config.yaml (fields of ClusterConfig and
// SageMakerConfig, commands/config/config_args.py), and its small sections.

#include "Schema.h"

using namespace accel::config;

static constexpr Key kCluster[] = {
    later("compute_environment", "LOCAL_MACHINE,AMAZON_SAGEMAKER|null",
          "LOCAL_MACHINE", "programs run where acc-run is started")
        .unless("LOCAL_MACHINE|null"),
    done(
        "distributed_type",
        "NO,MULTI_CPU,MULTI_GPU,MULTI_NPU,MULTI_MLU,MULTI_SDAA,MULTI_MUSA,"
        "MULTI_XPU,MULTI_HPU,MULTI_NEURON,DEEPSPEED,FSDP,XLA,TPU,MEGATRON_LM",
        "required",
        "which section says how states are sharded: none (replicated), "
        "'fsdp_config', 'deepspeed_config' or 'megatron_lm_config'; the device "
        "is that of --target")
        .only("NO|MULTI_CPU|MULTI_GPU|DEEPSPEED|FSDP|MEGATRON_LM")
        .beware("unquoted NO is the bool false in YAML 1.1"),
    done("mixed_precision", "~no,fp16,bf16,fp8|null", "no",
         "the types of matrix products, as --mixed-precision; of all else with "
         "autocast.lists")
        .sets("mixed_precision")
        .beware("unquoted no is the bool false in YAML 1.1, and the launch "
                "dies on it"),
    done("fp16", "bool|null", "false",
         "mixed_precision fp16 (the spelling of Accelerate before 0.12)")
        .orSet("mixed_precision"),
    noted("use_cpu", "bool|null", "false",
          "--target says what the program is compiled for"),
    noted("debug", "bool|null", "false",
          "shapes and orders of collectives are proved when compiling"),
    done("num_processes", "int>=-1|null", "-1",
         "the number of ranks; -1: --mesh or --set num_processes says it")
        .beware("0 and below run nothing"),
    noted("machine_rank", "int>=0|null", "0",
          "one executable serves every rank; where it runs, mpirun is told"),
    done("num_machines", "int>=1|null", "1",
         "HYBRID_SHARD shards inside a machine and replicates over machines"),
    noted("gpu_ids", "string|null", "all",
          "devices are chosen where acc-run is started")
        .beware("an unquoted single id is an integer, which the launch cannot "
                "split"),
    noted("main_process_ip", "string|null", "null",
          "ranks meet in shared memory, and by MPI over machines"),
    noted("main_process_port", "int>=0|string|null", "29500",
          "ranks meet in shared memory, and by MPI over machines"),
    noted("rdzv_backend", "string|null", "static",
          "ranks meet in shared memory, and by MPI over machines")
        .beware("never read from the file: the flag's own default wins"),
    noted("same_network", "bool|null", "false",
          "ranks meet in shared memory, and by MPI over machines")
        .beware("never read from the file: the flag's own default wins"),
    noted("main_training_function", "string|null", "main",
          "the program is the compiled step, no Python function"),
    noted("enable_cpu_affinity", "bool|null", "false",
          "acc-run places the threads of its ranks itself")
        .beware("never read from the file: the flag's own default wins"),
    done("fp8_config", "%fp8_config|null", "{}",
         "read where mixed_precision is fp8"),
    done("deepspeed_config", "%deepspeed_config|null", "{}",
         "read where distributed_type is DEEPSPEED"),
    done("fsdp_config", "%fsdp_config|null", "{}",
         "read where distributed_type is FSDP"),
    done("parallelism_config", "%parallelism_config|null", "{}",
         "the axes of the mesh"),
    done("megatron_lm_config", "%megatron_lm_config|null", "{}",
         "read where distributed_type is MEGATRON_LM"),
    noted("mpirun_config", "%mpirun_config|null", "{}",
          "acc-run --comm=mpi is started by mpirun or srun"),
    noted("downcast_bf16", "flag|null", "no", "concerns TPUs only"),
    noted("tpu_name", "string|null", "null", "concerns TPUs only"),
    noted("tpu_zone", "string|null", "null", "concerns TPUs only"),
    noted("tpu_use_cluster", "bool|null", "false", "concerns TPUs only"),
    noted("tpu_use_sudo", "bool|null", "false", "concerns TPUs only"),
    noted("command_file", "string|null", "null", "concerns TPUs only"),
    noted("commands", "list|string|null", "null", "concerns TPUs only"),
    noted("tpu_vm", "list|null", "null", "concerns TPUs only"),
    noted("tpu_env", "list|null", "null", "concerns TPUs only"),
    noted("ipex_config", "mapping|null", "{}", "kernels are our own")
        .beware("no longer read since Accelerate 1.8"),
    later("use_xpu", "bool|null", "false", "XPUs")
        .unless("false|null")
        .beware("no longer read since Accelerate 1.8"),
    noted("dynamo_config", "%dynamo_config|null", "{}",
          "the whole program is compiled ahead of time"),
    noted("dynamo_backend", "string|null", "NO",
          "the whole program is compiled ahead of time"),
};

static constexpr Key kDynamo[] = {
    noted("dynamo_backend", "string|null", "no",
          "the whole program is compiled ahead of time"),
    noted("dynamo_mode", "default,reduce-overhead,max-autotune|null", "default",
          "kernels are measured when compiling"),
    noted("dynamo_use_fullgraph", "flag|null", "false",
          "a program is one graph always"),
    noted("dynamo_use_dynamic", "flag|null", "false",
          "dimensions are bound when compiling, by --dim"),
    noted("dynamo_use_regional_compilation", "flag|null", "false",
          "equal blocks share their kernels always"),
};

static constexpr Key kMpirun[] = {
    noted(
        "mpirun_hostfile", "string|null", "null",
        "it is given where the run is started: mpirun --hostfile FILE acc-run "
        "--comm=mpi"),
    noted("mpirun_ccl", "int>=0|string|null", "1", "collectives are our own")
        .beware("no longer read since Accelerate 1.0"),
};

// Known so that a message can say what is wrong: the environment is refused.
static constexpr Key kSageMaker[] = {
    later("ec2_instance_type", "string|null", "required", "SageMaker"),
    later("iam_role_name", "string|null", "required", "SageMaker"),
    later("image_uri", "string|null", "null", "SageMaker"),
    later("profile", "string|null", "null", "SageMaker"),
    later("region", "string|null", "us-east-1", "SageMaker"),
    later("base_job_name", "string|null", "accelerate-sagemaker-1",
          "SageMaker"),
    later("pytorch_version", "string|null", "1.10.2", "SageMaker"),
    later("transformers_version", "string|null", "4.17.0", "SageMaker"),
    later("py_version", "string|null", "py38", "SageMaker"),
    later("sagemaker_inputs_file", "string|null", "null", "SageMaker"),
    later("sagemaker_metrics_file", "string|null", "null", "SageMaker"),
    later("additional_args", "mapping|null", "null", "SageMaker"),
};

const Section accel::config::kAccelerateSection = {
    "accelerate", "Accelerate: default_config.yaml", "", kCluster};
const Section accel::config::kDynamoSection = {
    "dynamo_config", "Accelerate: dynamo_config", "dynamo_", kDynamo};
const Section accel::config::kMpirunSection = {
    "mpirun_config", "Accelerate: mpirun_config", "", kMpirun};
const Section accel::config::kSageMakerSection = {
    "sagemaker", "Accelerate: SageMaker", "", kSageMaker};
