// The top of a DeepSpeed JSON (runtime/config.py and constants.py; documented
// at deepspeed.ai/docs/config-json), without its larger sections.

#include "Schema.h"

using namespace accel::config;

static constexpr Key kDeepSpeedKeys[] = {
    done("train_batch_size", "count>=1|auto", "from the other two",
         "rows of a step: train_micro_batch_size_per_gpu x "
         "gradient_accumulation_steps x ranks")
        .sets("train_batch_size"),
    done("train_micro_batch_size_per_gpu", "count>=1|auto",
         "from the other two", "rows of a micro-batch on one rank")
        .sets("train_micro_batch_size_per_gpu"),
    done("gradient_accumulation_steps", "count>=1|auto", "1",
         "micro-batches of a step, as --micro-batches")
        .sets("gradient_accumulation_steps")
        .beware("a value of the script that differs loses with a warning"),
    done(
        "gradient_clipping", "number>=0|auto", "1.0",
        "the largest norm of all gradients together; 0: no clipping; auto: 1.0")
        .beware("0 until DeepSpeed 0.19, then 1.0 where the key is absent"),
    done("zero_optimization", "%zero_optimization|bool", "{}",
         "what ranks share of the states; true, which is deprecated: stage 1")
        .beware("Accelerate refuses a file without it"),
    done("fp16", "%fp16", "{}", "mixed precision"),
    done("bf16", "%bf16", "{}", "mixed precision"),
    done("bfloat16", "%bf16", "{}",
         "mixed precision (the old spelling of bf16)"),
    done("msamp", "%msamp", "{}",
         "linear layers, gradients and moments in 8 bits, as MS-AMP has them"),
    later("amp", "mapping", "{}", "Apex's automatic mixed precision")
        .unless("{}")
        .beware("removed from DeepSpeed"),
    done("torch_autocast", "%torch_autocast", "{}",
         "mixed precision by torch.autocast's lists"),
    done("data_types", "%data_types", "{}",
         "types of accumulators and parameters"),
    done("optimizer", "%optimizer", "none", "the update"),
    done("scheduler", "%scheduler", "none",
         "the learning rate as a function of the step"),
    done("communication_data_type", "~fp32,fp16,bf16|null", "null",
         "comm_hook: fp16 or bf16, to which each rank rounds its terms of "
         "gradients; their sums are float32. null: float32")
        .orSet("comm_hook")
        .beware("without it gradients are sent in the type of the weights, "
                "bf16 or fp16, and added up in it; not read where "
                "sequence_parallel_size is above 1"),
    done("seq_parallel_communication_data_type", "~fp32,fp16,bf16|null", "fp32",
         "the same, where sequence_parallel_size is above 1")
        .orSet("comm_hook"),
    done("gradient_allreduce_op", "mean,sum", "mean",
         "gradients are means over all rows")
        .only("mean")
        .beware("sum is refused by DeepSpeed itself in stage 3"),
    done("prescale_gradients", "bool", "false",
         "sums are scaled after the reduction")
        .only("false"),
    done("gradient_predivide_factor", "number>0", "1.0",
         "sums are scaled after the reduction")
        .only("1"),
    noted("sparse_gradients", "bool", "false",
          "gradients of tables are dense and summed as such")
        .beware("removed from DeepSpeed"),
    done("activation_checkpointing", "%activation_checkpointing", "{}",
         "how what is computed again is kept: --recompute says what"),
    done("pipeline", "%pipeline", "{}", "stages, see there"),
    done("tensor_parallel", "%tensor_parallel", "{}", "tensor parallelism"),
    done("sequence_parallel_size", "count>=1", "1",
         "axis sp of the mesh, which splits sequences, heads in attention, and "
         "states, together with dp_shard")
        .sets("sp"),
    later("expert_parallel", "mapping", "{}", "expert parallelism")
        .unless("{}"),
    noted("use_data_before_expert_parallelism", "bool", "false",
          "read where there are experts"),
    done("aio", "%aio", "{}", "how the file of offloaded states is moved"),
    noted("checkpoint", "%checkpoint", "{}",
          "checkpoints hold logical tensors: any layout loads any layout"),
    noted("zero_allow_untested_optimizer", "bool|auto", "false",
          "any optimizer's state can be sharded"),
    noted("zero_force_ds_cpu_optimizer", "bool", "true",
          "updates are computed on the device"),
    later("zenflow", "mapping", "{}", "ZenFlow").unless("{}"),
    noted("allgather_size", "count>=0", "500000000",
          "gathers are bounded by the gather unit")
        .beware("read where zero_optimization is true, which is deprecated"),
    noted("disable_allgather", "bool", "false",
          "collectives are chosen by the planner"),
    noted("dataloader_drop_last", "bool", "false",
          "batches are whole: shapes are static"),
    done("managed_gradient_accumulation", "bool", "true",
         "accumulation is part of the compiled step")
        .only("true"),
    noted("seed", "int>=0", "1234", "--set seed says it"),
    noted("steps_per_print", "number>=0|null|auto", "10",
          "acc-run prints a line a second; with --json every step"),
    noted("wall_clock_breakdown", "bool|auto", "false",
          "acc-run prints times; with --json those of every step"),
    noted("memory_breakdown", "bool", "false",
          "bytes per rank are known when compiling"),
    noted("dump_state", "bool", "false", "--print-config shows it"),
    noted("log_level", "string|null", "null", "has no meaning here"),
    noted("disable_python_gc", "bool", "false", "there is no Python"),
    noted("vocabulary_size", "count>=1|null", "null", "the graph says it"),
    noted("timers", "mapping", "{}",
          "acc-run prints times; with --json those of every step"),
    noted("comms_logger", "mapping", "{}", "--report=collectives shows it"),
    noted("flops_profiler", "mapping", "{}", "FLOPs are known when compiling"),
    noted("tensorboard", "mapping", "{}",
          "acc-run --json prints the metrics of every step"),
    noted("wandb", "mapping", "{}",
          "acc-run --json prints the metrics of every step"),
    noted("comet", "mapping", "{}",
          "acc-run --json prints the metrics of every step"),
    noted("csv_monitor", "mapping", "{}",
          "acc-run --json prints the metrics of every step"),
    noted("monitor_config", "mapping", "{}",
          "acc-run --json prints the metrics of every step"),
    noted("autotuning", "mapping", "{}", "kernels are measured when compiling"),
    noted("nebula", "mapping", "{}", "checkpoints are written by acc-run"),
    noted("datastates_ckpt", "mapping", "{}",
          "checkpoints are written by acc-run"),
    later("elasticity", "mapping", "{}",
          "batch sizes that change with the ranks")
        .unless("{}")
        .beware("removed from DeepSpeed"),
    noted("compile", "mapping", "{}",
          "the whole program is compiled ahead of time"),
    later("data_efficiency", "mapping", "{}",
          "curricula and random layer drops")
        .unless("{}"),
    later("curriculum_learning", "mapping", "{}", "curricula")
        .unless("{}")
        .beware("removed from DeepSpeed"),
    later("progressive_layer_drop", "mapping", "{}",
          "dropping layers at random")
        .unless("{}")
        .beware("removed from DeepSpeed"),
    later("compression_training", "mapping", "{}", "compression of weights")
        .unless("{}")
        .beware("removed from DeepSpeed"),
    later("quantize_training", "mapping", "{}", "quantised weights")
        .unless("{}")
        .beware("removed from DeepSpeed"),
    later("weight_quantization", "mapping", "{}", "quantised weights")
        .unless("{}"),
    later("eigenvalue", "mapping", "{}", "quantised weights")
        .unless("{}")
        .beware("removed from DeepSpeed"),
    later("sparse_attention", "mapping", "{}", "sparse attention")
        .unless("{}")
        .beware("removed from DeepSpeed"),
    later("hybrid_engine", "mapping", "{}",
          "generation between steps of training")
        .unless("{}"),
    noted("graph_harvesting", "bool", "false",
          "the whole program is compiled ahead of time")
        .beware("removed from DeepSpeed"),
};

static constexpr Key kActivation[] = {
    later("partition_activations", "bool", "false",
          "sharding activations kept for the backward")
        .unless("false"),
    done("cpu_checkpointing", "bool", "false",
         "true: offload.activations cpu, of all that the forward keeps")
        .orSet("offload.activations"),
    noted("contiguous_memory_optimization", "bool", "false",
          "every byte's address is planned"),
    noted("number_checkpoints", "count>=0|null", "null",
          "the model, or --recompute, says what is computed again"),
    noted("synchronize_checkpoint_boundary", "bool", "false",
          "order is proved when compiling"),
    noted("profile", "bool", "false",
          "acc-run prints times; with --json those of every step"),
};

static constexpr Key kAio[] = {
    done("block_size", "count>=1", "1048576",
         "bytes that are read or written at once, a multiple of 4096; read "
         "with nvme")
        .orSet("aio.block_size"),
    done("queue_depth", "count>=1", "8",
         "blocks that are under way at once; read with nvme")
        .orSet("aio.queue_depth"),
    noted("thread_count", "count>=1", "1",
          "one stream moves them: queue_depth says how many are under way"),
    noted("intra_op_parallelism", "count>=1", "1",
          "one stream moves them: queue_depth says how many are under way"),
    noted("single_submit", "bool", "false",
          "a block is submitted when one before it is done"),
    noted("overlap_events", "bool", "true",
          "blocks are submitted while others are under way always"),
    noted("use_gds", "bool", "false", "blocks go by way of the host's memory"),
};

static constexpr Key kPipeline[] = {
    done("stages", "count>=1|auto", "auto",
         "axis pp of the mesh: stages, which run 1F1B; auto: as --mesh says")
        .sets("pp")
        .beware("ignored: PipelineModule is told num_stages"),
    later("partition", "string", "best",
          "cuts by another measure than work: say --cut NODE for each stage")
        .unless("best")
        .beware("ignored: PipelineModule is told partition_method"),
    noted("seed_layers", "bool", "false", "the model's file has its weights"),
    done("activation_checkpoint_interval", "count>=0", "0",
         "recompute full:uniform: so many layers together; 0: none")
        .orSet("recompute"),
    noted("pipe_partitioned", "bool", "true",
          "what crosses between stages lies there as ranks of tp have it"),
    noted("grad_partitioned", "bool", "true",
          "what crosses between stages lies there as ranks of tp have it"),
    noted("use_reentrant", "bool", "true",
          "the backward is compiled with what it computes again"),
};

static constexpr Key kTensorParallel[] = {
    done("autotp_size", "count>=0", "0", "axis tp of the mesh; 0: none")
        .beware("refused beside stage 3"),
    done("tp_size", "count>=1", "1", "axis tp of the mesh").sets("tp"),
    done("tp", "%tensor_parallel.tp", "{}", "another way to say tp_size"),
    noted("tp_overlap_comm", "bool", "false",
          "the schedule overlaps what it can"),
    noted("tp_grain_size", "count>=1", "1",
          "dimensions that tp divides are split evenly"),
    noted("dtype", "string", "fp16", "bf16.enabled says it"),
    noted("partition_config", "mapping|null", "null",
          "which weights are split is found from the graph"),
    noted("preset_model", "string|null", "null",
          "which weights are split is found from the graph"),
};

static constexpr Key kTensorParallelSize[] = {
    done("tp_size", "count>=1", "1", "axis tp of the mesh").sets("tp"),
    noted("tp_grain_size", "count>=1", "1",
          "dimensions that tp divides are split evenly"),
};

static constexpr Key kDataTypes[] = {
    done("grad_accum_dtype", "string|null", "null",
         "gradients are accumulated in float32")
        .only("null|fp32"),
    done("param_dtype", "string|null", "null", "parameters are kept in float32")
        .only("null|fp32"),
    done("buffer_dtype", "string|null", "null",
         "buffers are kept as the model has them")
        .only("null|fp32"),
    noted("keep_in_fp32_modules", "string|list|null", "auto",
          "parameters are kept in float32"),
};

static constexpr Key kCheckpoint[] = {
    noted("tag_validation", "~ignore,warn,fail", "Warn",
          "a checkpoint is complete or it is none"),
    noted("load_universal", "bool", "false", "any layout loads any layout"),
    noted("use_node_local_storage", "bool", "false",
          "acc-run --checkpoint says where"),
    noted("parallel_write", "mapping", "{}", "every rank writes its own shard"),
    noted("checkpoint_serialization", "bool", "true",
          "checkpoints are safetensors"),
    noted("writer", "mapping|null", "null", "every rank writes its own shard"),
};

const Section accel::config::kDeepSpeedSection = {
    "deepspeed", "DeepSpeed: the JSON", "", kDeepSpeedKeys};
const Section accel::config::kActivationSection = {
    "activation_checkpointing", "DeepSpeed: activation_checkpointing", "",
    kActivation};
const Section accel::config::kAioSection = {"aio", "DeepSpeed: aio", "", kAio};
const Section accel::config::kPipelineSection = {
    "pipeline", "DeepSpeed: pipeline", "", kPipeline};
const Section accel::config::kTensorParallelSection = {
    "tensor_parallel", "DeepSpeed: tensor_parallel", "", kTensorParallel};
const Section accel::config::kTensorParallelSizeSection = {
    "tensor_parallel.tp", "DeepSpeed: tensor_parallel.tp", "",
    kTensorParallelSize};
const Section accel::config::kDataTypesSection = {
    "data_types", "DeepSpeed: data_types", "", kDataTypes};
const Section accel::config::kCheckpointSection = {
    "checkpoint", "DeepSpeed: checkpoint", "", kCheckpoint};
