// The top of Accelerate's default_config.yaml (fields of ClusterConfig and
// SageMakerConfig, commands/config/config_args.py), and its small sections.

#include "Schema.h"

using namespace accel::config;

static constexpr auto kDone = Fate::Done;
static constexpr auto kNoted = Fate::Noted;
static constexpr auto kLater = Fate::Later;

static constexpr Key kCluster[] = {
    {"compute_environment", "LOCAL_MACHINE,AMAZON_SAGEMAKER|null",
     "LOCAL_MACHINE", kLater, "LOCAL_MACHINE|null",
     "programs run where acc-run is started", ""},
    {"distributed_type",
     "NO,MULTI_CPU,MULTI_GPU,MULTI_NPU,MULTI_MLU,MULTI_SDAA,MULTI_MUSA,"
     "MULTI_XPU,MULTI_HPU,MULTI_NEURON,DEEPSPEED,FSDP,XLA,TPU,MEGATRON_LM",
     "required", kDone, "NO|MULTI_CPU|MULTI_GPU|DEEPSPEED|FSDP",
     "which section says how states are sharded: none (replicated), "
     "'fsdp_config' or 'deepspeed_config'; the device is that of --target",
     "unquoted NO is the bool false in YAML 1.1"},
    {"mixed_precision", "~no,fp16,bf16,fp8|null", "no", kDone, "no|bf16|null",
     "the types of matrix products, as --mixed-precision",
     "unquoted no is the bool false in YAML 1.1, and the launch dies on it"},
    {"fp16", "bool|null", "false", kLater, "false|null",
     "mixed precision in fp16 (the spelling of Accelerate before 0.12)", ""},
    {"use_cpu", "bool|null", "false", kNoted, "",
     "--target says what the program is compiled for", ""},
    {"debug", "bool|null", "false", kNoted, "",
     "shapes and orders of collectives are proved when compiling", ""},
    {"num_processes", "int>=-1|null", "-1", kDone, "",
     "the number of ranks; -1: --mesh or --set num_processes says it",
     "0 and below run nothing"},
    {"machine_rank", "int>=0|null", "0", kNoted, "",
     "one executable serves every rank; where it runs, acc-run is told", ""},
    {"num_machines", "int>=1|null", "1", kDone, "",
     "HYBRID_SHARD shards inside a machine and replicates over machines", ""},
    {"gpu_ids", "string|null", "all", kNoted, "",
     "devices are chosen where acc-run is started",
     "an unquoted single id is an integer, which the launch cannot split"},
    {"main_process_ip", "string|null", "null", kNoted, "",
     "ranks of one machine meet in shared memory", ""},
    {"main_process_port", "int>=0|string|null", "29500", kNoted, "",
     "ranks of one machine meet in shared memory", ""},
    {"rdzv_backend", "string|null", "static", kNoted, "",
     "ranks of one machine meet in shared memory",
     "never read from the file: the flag's own default wins"},
    {"same_network", "bool|null", "false", kNoted, "",
     "ranks of one machine meet in shared memory",
     "never read from the file: the flag's own default wins"},
    {"main_training_function", "string|null", "main", kNoted, "",
     "the program is the compiled step, no Python function", ""},
    {"enable_cpu_affinity", "bool|null", "false", kNoted, "",
     "acc-run places the threads of its ranks itself",
     "never read from the file: the flag's own default wins"},
    {"fp8_config", "%fp8_config|null", "{}", kNoted, "",
     "read where mixed_precision is fp8", ""},
    {"deepspeed_config", "%deepspeed_config|null", "{}", kDone, "",
     "read where distributed_type is DEEPSPEED", ""},
    {"fsdp_config", "%fsdp_config|null", "{}", kDone, "",
     "read where distributed_type is FSDP", ""},
    {"parallelism_config", "%parallelism_config|null", "{}", kDone, "",
     "the axes of the mesh", ""},
    {"megatron_lm_config", "%megatron_lm_config|null", "{}", kNoted, "",
     "read where distributed_type is MEGATRON_LM", ""},
    {"mpirun_config", "%mpirun_config|null", "{}", kNoted, "",
     "acc-run starts the ranks of one machine itself", ""},
    {"downcast_bf16", "flag|null", "no", kNoted, "", "concerns TPUs only", ""},
    {"tpu_name", "string|null", "null", kNoted, "", "concerns TPUs only", ""},
    {"tpu_zone", "string|null", "null", kNoted, "", "concerns TPUs only", ""},
    {"tpu_use_cluster", "bool|null", "false", kNoted, "", "concerns TPUs only",
     ""},
    {"tpu_use_sudo", "bool|null", "false", kNoted, "", "concerns TPUs only",
     ""},
    {"command_file", "string|null", "null", kNoted, "", "concerns TPUs only",
     ""},
    {"commands", "list|string|null", "null", kNoted, "", "concerns TPUs only",
     ""},
    {"tpu_vm", "list|null", "null", kNoted, "", "concerns TPUs only", ""},
    {"tpu_env", "list|null", "null", kNoted, "", "concerns TPUs only", ""},
    {"ipex_config", "mapping|null", "{}", kNoted, "", "kernels are our own",
     "no longer read since Accelerate 1.8"},
    {"use_xpu", "bool|null", "false", kLater, "false|null", "XPUs",
     "no longer read since Accelerate 1.8"},
    {"dynamo_config", "%dynamo_config|null", "{}", kNoted, "",
     "the whole program is compiled ahead of time", ""},
    {"dynamo_backend", "string|null", "NO", kNoted, "",
     "the whole program is compiled ahead of time", ""},
};

static constexpr Key kDynamo[] = {
    {"dynamo_backend", "string|null", "no", kNoted, "",
     "the whole program is compiled ahead of time", ""},
    {"dynamo_mode", "default,reduce-overhead,max-autotune|null", "default",
     kNoted, "", "kernels are measured when compiling", ""},
    {"dynamo_use_fullgraph", "flag|null", "false", kNoted, "",
     "a program is one graph always", ""},
    {"dynamo_use_dynamic", "flag|null", "false", kNoted, "",
     "dimensions are bound when compiling, by --dim", ""},
    {"dynamo_use_regional_compilation", "flag|null", "false", kNoted, "",
     "equal blocks share their kernels always", ""},
};

static constexpr Key kMpirun[] = {
    {"mpirun_hostfile", "string|null", "null", kNoted, "",
     "acc-run starts the ranks of one machine itself", ""},
    {"mpirun_ccl", "int>=0|string|null", "1", kNoted, "",
     "collectives are our own", "no longer read since Accelerate 1.0"},
};

// Known so that a message can say what is wrong: the environment is refused.
static constexpr Key kSageMaker[] = {
    {"ec2_instance_type", "string|null", "required", kLater, "", "SageMaker",
     ""},
    {"iam_role_name", "string|null", "required", kLater, "", "SageMaker", ""},
    {"image_uri", "string|null", "null", kLater, "", "SageMaker", ""},
    {"profile", "string|null", "null", kLater, "", "SageMaker", ""},
    {"region", "string|null", "us-east-1", kLater, "", "SageMaker", ""},
    {"base_job_name", "string|null", "accelerate-sagemaker-1", kLater, "",
     "SageMaker", ""},
    {"pytorch_version", "string|null", "1.10.2", kLater, "", "SageMaker", ""},
    {"transformers_version", "string|null", "4.17.0", kLater, "", "SageMaker",
     ""},
    {"py_version", "string|null", "py38", kLater, "", "SageMaker", ""},
    {"sagemaker_inputs_file", "string|null", "null", kLater, "", "SageMaker",
     ""},
    {"sagemaker_metrics_file", "string|null", "null", kLater, "", "SageMaker",
     ""},
    {"additional_args", "mapping|null", "null", kLater, "", "SageMaker", ""},
};

const Section accel::config::kAccelerateSection = {
    "accelerate", "Accelerate: default_config.yaml", "", kCluster};
const Section accel::config::kDynamoSection = {
    "dynamo_config", "Accelerate: dynamo_config", "dynamo_", kDynamo};
const Section accel::config::kMpirunSection = {
    "mpirun_config", "Accelerate: mpirun_config", "", kMpirun};
const Section accel::config::kSageMakerSection = {
    "sagemaker", "Accelerate: SageMaker", "", kSageMaker};
