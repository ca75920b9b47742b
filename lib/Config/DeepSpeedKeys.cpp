// The top of a DeepSpeed JSON (runtime/config.py and constants.py; documented
// at deepspeed.ai/docs/config-json), without its larger sections.

#include "Schema.h"

using namespace accel::config;

static constexpr auto kDone = Fate::Done;
static constexpr auto kNoted = Fate::Noted;
static constexpr auto kLater = Fate::Later;

static constexpr Key kKeys[] = {
    {"train_batch_size", "count>=1|auto", "from the other two", kDone, "",
     "rows of a step: train_micro_batch_size_per_gpu x "
     "gradient_accumulation_steps x ranks",
     ""},
    {"train_micro_batch_size_per_gpu", "count>=1|auto", "from the other two",
     kDone, "", "rows of a micro-batch on one rank", ""},
    {"gradient_accumulation_steps", "count>=1|auto", "1", kDone, "",
     "micro-batches of a step, as --micro-batches",
     "a value of the script that differs loses with a warning"},
    {"gradient_clipping", "number>=0|auto", "1.0", kDone, "",
     "the largest norm of all gradients together; 0: no clipping; auto: 1.0",
     "0 until DeepSpeed 0.19, then 1.0 where the key is absent"},
    {"zero_optimization", "%zero_optimization|bool", "{}", kDone, "",
     "what dp_shard shards; true, which is deprecated: stage 1",
     "Accelerate refuses a file without it"},
    {"fp16", "%fp16", "{}", kDone, "", "mixed precision", ""},
    {"bf16", "%bf16", "{}", kDone, "", "mixed precision", ""},
    {"bfloat16", "%bf16", "{}", kDone, "",
     "mixed precision (the old spelling of bf16)", ""},
    {"amp", "mapping", "{}", kLater, "{}", "Apex's automatic mixed precision",
     "removed from DeepSpeed"},
    {"torch_autocast", "mapping", "{}", kLater, "{}",
     "casts chosen by torch.autocast, collectives too: say bf16.enabled", ""},
    {"data_types", "%data_types", "{}", kDone, "",
     "types of accumulators and parameters", ""},
    {"optimizer", "%optimizer", "none", kDone, "", "the update", ""},
    {"scheduler", "%scheduler", "none", kDone, "",
     "the learning rate as a function of the step", ""},
    {"communication_data_type", "string|null", "null", kDone, "null|fp32",
     "collectives carry the type of what they carry", ""},
    {"seq_parallel_communication_data_type", "string|null", "fp32", kNoted, "",
     "read where sequence_parallel_size is above 1", ""},
    {"gradient_allreduce_op", "mean,sum", "mean", kDone, "mean",
     "gradients are means over all rows",
     "sum is refused by DeepSpeed itself in stage 3"},
    {"prescale_gradients", "bool", "false", kDone, "false",
     "sums are scaled after the reduction", ""},
    {"gradient_predivide_factor", "number>0", "1.0", kDone, "1",
     "sums are scaled after the reduction", ""},
    {"sparse_gradients", "bool", "false", kNoted, "",
     "gradients of tables are dense and summed as such",
     "removed from DeepSpeed"},
    {"activation_checkpointing", "%activation_checkpointing", "{}", kDone, "",
     "recomputing activations", ""},
    {"pipeline", "%pipeline", "{}", kNoted, "",
     "read where the model is a PipelineModule: it never is here", ""},
    {"tensor_parallel", "%tensor_parallel", "{}", kDone, "",
     "tensor parallelism", ""},
    {"sequence_parallel_size", "count>=1", "1", kLater, "1",
     "sequence parallelism", ""},
    {"expert_parallel", "mapping", "{}", kLater, "{}", "expert parallelism",
     ""},
    {"use_data_before_expert_parallelism", "bool", "false", kNoted, "",
     "read where there are experts", ""},
    {"aio", "%aio", "{}", kNoted, "", "read where states are offloaded to disk",
     ""},
    {"checkpoint", "%checkpoint", "{}", kNoted, "",
     "checkpoints hold logical tensors: any layout loads any layout", ""},
    {"zero_allow_untested_optimizer", "bool|auto", "false", kNoted, "",
     "any optimizer's state can be sharded", ""},
    {"zero_force_ds_cpu_optimizer", "bool", "true", kNoted, "",
     "read where moments are offloaded", ""},
    {"zenflow", "mapping", "{}", kLater, "{}", "ZenFlow", ""},
    {"allgather_size", "count>=0", "500000000", kNoted, "",
     "gathers are bounded by the gather unit",
     "read where zero_optimization is true, which is deprecated"},
    {"disable_allgather", "bool", "false", kNoted, "",
     "collectives are chosen by the planner", ""},
    {"dataloader_drop_last", "bool", "false", kNoted, "",
     "batches are whole: shapes are static", ""},
    {"managed_gradient_accumulation", "bool", "true", kDone, "true",
     "accumulation is part of the compiled step", ""},
    {"seed", "int>=0", "1234", kNoted, "", "--set seed says it", ""},
    {"steps_per_print", "number>=0|null|auto", "10", kNoted, "",
     "acc-run prints a line a second; with --json every step", ""},
    {"wall_clock_breakdown", "bool|auto", "false", kNoted, "",
     "acc-run prints times; with --json those of every step", ""},
    {"memory_breakdown", "bool", "false", kNoted, "",
     "bytes per rank are known when compiling", ""},
    {"dump_state", "bool", "false", kNoted, "", "--print-config shows it", ""},
    {"log_level", "string|null", "null", kNoted, "", "has no meaning here", ""},
    {"disable_python_gc", "bool", "false", kNoted, "", "there is no Python",
     ""},
    {"vocabulary_size", "count>=1|null", "null", kNoted, "",
     "the graph says it", ""},
    {"timers", "mapping", "{}", kNoted, "",
     "acc-run prints times; with --json those of every step", ""},
    {"comms_logger", "mapping", "{}", kNoted, "",
     "--report=collectives shows it", ""},
    {"flops_profiler", "mapping", "{}", kNoted, "",
     "FLOPs are known when compiling", ""},
    {"tensorboard", "mapping", "{}", kNoted, "",
     "acc-run --json prints the metrics of every step", ""},
    {"wandb", "mapping", "{}", kNoted, "",
     "acc-run --json prints the metrics of every step", ""},
    {"comet", "mapping", "{}", kNoted, "",
     "acc-run --json prints the metrics of every step", ""},
    {"csv_monitor", "mapping", "{}", kNoted, "",
     "acc-run --json prints the metrics of every step", ""},
    {"monitor_config", "mapping", "{}", kNoted, "",
     "acc-run --json prints the metrics of every step", ""},
    {"autotuning", "mapping", "{}", kNoted, "",
     "kernels are measured when compiling", ""},
    {"nebula", "mapping", "{}", kNoted, "",
     "checkpoints are written by acc-run", ""},
    {"datastates_ckpt", "mapping", "{}", kNoted, "",
     "checkpoints are written by acc-run", ""},
    {"elasticity", "mapping", "{}", kLater, "{}",
     "batch sizes that change with the ranks", "removed from DeepSpeed"},
    {"compile", "mapping", "{}", kNoted, "",
     "the whole program is compiled ahead of time", ""},
    {"data_efficiency", "mapping", "{}", kLater, "{}",
     "curricula and random layer drops", ""},
    {"curriculum_learning", "mapping", "{}", kLater, "{}", "curricula",
     "removed from DeepSpeed"},
    {"progressive_layer_drop", "mapping", "{}", kLater, "{}",
     "dropping layers at random", "removed from DeepSpeed"},
    {"compression_training", "mapping", "{}", kLater, "{}",
     "compression of weights", "removed from DeepSpeed"},
    {"quantize_training", "mapping", "{}", kLater, "{}", "quantised weights",
     "removed from DeepSpeed"},
    {"weight_quantization", "mapping", "{}", kLater, "{}", "quantised weights",
     ""},
    {"eigenvalue", "mapping", "{}", kLater, "{}", "quantised weights",
     "removed from DeepSpeed"},
    {"sparse_attention", "mapping", "{}", kLater, "{}", "sparse attention",
     "removed from DeepSpeed"},
    {"hybrid_engine", "mapping", "{}", kLater, "{}",
     "generation between steps of training", ""},
    {"graph_harvesting", "bool", "false", kNoted, "",
     "the whole program is compiled ahead of time", "removed from DeepSpeed"},
};

static constexpr Key kActivation[] = {
    {"partition_activations", "bool", "false", kLater, "false",
     "sharding activations kept for the backward", ""},
    {"cpu_checkpointing", "bool", "false", kLater, "false",
     "activations in host memory", ""},
    {"contiguous_memory_optimization", "bool", "false", kNoted, "",
     "every byte's address is planned", ""},
    {"number_checkpoints", "count>=0|null", "null", kNoted, "",
     "read where activations are recomputed", ""},
    {"synchronize_checkpoint_boundary", "bool", "false", kNoted, "",
     "order is proved when compiling", ""},
    {"profile", "bool", "false", kNoted, "",
     "acc-run prints times; with --json those of every step", ""},
};

static constexpr Key kAio[] = {
    {"block_size", "count>=1", "1048576", kNoted, "",
     "read where states are offloaded to disk", ""},
    {"queue_depth", "count>=1", "8", kNoted, "",
     "read where states are offloaded to disk", ""},
    {"thread_count", "count>=1", "1", kNoted, "",
     "read where states are offloaded to disk", ""},
    {"intra_op_parallelism", "count>=1", "1", kNoted, "",
     "read where states are offloaded to disk", ""},
    {"single_submit", "bool", "false", kNoted, "",
     "read where states are offloaded to disk", ""},
    {"overlap_events", "bool", "true", kNoted, "",
     "read where states are offloaded to disk", ""},
    {"use_gds", "bool", "false", kNoted, "",
     "read where states are offloaded to disk", ""},
};

#define ACCEL_PIPELINE                                                         \
  kNoted, "", "read where the model is a PipelineModule: it never is here", ""

static constexpr Key kPipeline[] = {
    {"stages", "count>=1|auto", "auto", ACCEL_PIPELINE},
    {"partition", "string", "best", ACCEL_PIPELINE},
    {"seed_layers", "bool", "false", ACCEL_PIPELINE},
    {"activation_checkpoint_interval", "count>=0", "0", ACCEL_PIPELINE},
    {"pipe_partitioned", "bool", "true", ACCEL_PIPELINE},
    {"grad_partitioned", "bool", "true", ACCEL_PIPELINE},
    {"use_reentrant", "bool", "true", ACCEL_PIPELINE},
};

static constexpr Key kTensorParallel[] = {
    {"autotp_size", "count>=0", "0", kLater, "0|1", "tensor parallelism", ""},
    {"tp_size", "count>=1", "1", kLater, "1", "tensor parallelism", ""},
    {"tp", "mapping", "{}", kLater, "{}", "tensor parallelism", ""},
    {"tp_overlap_comm", "bool", "false", kNoted, "",
     "read where autotp_size is above 1", ""},
    {"tp_grain_size", "count>=1", "1", kNoted, "",
     "read where autotp_size is above 1", ""},
    {"dtype", "string", "fp16", kNoted, "", "read where autotp_size is above 1",
     ""},
    {"partition_config", "mapping|null", "null", kNoted, "",
     "read where autotp_size is above 1", ""},
    {"preset_model", "string|null", "null", kNoted, "",
     "read where autotp_size is above 1", ""},
};

static constexpr Key kDataTypes[] = {
    {"grad_accum_dtype", "string|null", "null", kDone, "null|fp32",
     "gradients are accumulated in float32", ""},
    {"param_dtype", "string|null", "null", kDone, "null|fp32",
     "parameters are kept in float32", ""},
    {"buffer_dtype", "string|null", "null", kDone, "null|fp32",
     "buffers are kept as the model has them", ""},
    {"keep_in_fp32_modules", "string|list|null", "auto", kNoted, "",
     "parameters are kept in float32", ""},
};

static constexpr Key kCheckpoint[] = {
    {"tag_validation", "~ignore,warn,fail", "Warn", kNoted, "",
     "a checkpoint is complete or it is none", ""},
    {"load_universal", "bool", "false", kNoted, "",
     "any layout loads any layout", ""},
    {"use_node_local_storage", "bool", "false", kNoted, "",
     "acc-run --checkpoint says where", ""},
    {"parallel_write", "mapping", "{}", kNoted, "",
     "every rank writes its own shard", ""},
    {"checkpoint_serialization", "bool", "true", kNoted, "",
     "checkpoints are safetensors", ""},
    {"writer", "mapping|null", "null", kNoted, "",
     "every rank writes its own shard", ""},
};

const Section accel::config::kDeepSpeedSection = {
    "deepspeed", "DeepSpeed: the JSON", "", kKeys};
const Section accel::config::kActivationSection = {
    "activation_checkpointing", "DeepSpeed: activation_checkpointing", "",
    kActivation};
const Section accel::config::kAioSection = {"aio", "DeepSpeed: aio", "", kAio};
const Section accel::config::kPipelineSection = {
    "pipeline", "DeepSpeed: pipeline", "", kPipeline};
const Section accel::config::kTensorParallelSection = {
    "tensor_parallel", "DeepSpeed: tensor_parallel", "", kTensorParallel};
const Section accel::config::kDataTypesSection = {
    "data_types", "DeepSpeed: data_types", "", kDataTypes};
const Section accel::config::kCheckpointSection = {
    "checkpoint", "DeepSpeed: checkpoint", "", kCheckpoint};
