// Accelerate's megatron_lm_config. distributed_type: MEGATRON_LM is refused, so
// these are read for their spelling only.

#include "Schema.h"

using namespace accel::config;

static constexpr auto kNoted = Fate::Noted;

#define ACCEL_ROW(NAME, TYPE, DEFAULT, TRAP)                                   \
  {                                                                            \
    "megatron_lm_" NAME, TYPE "|null", DEFAULT, kNoted, "",                    \
        "read where distributed_type is MEGATRON_LM", TRAP                     \
  }

static constexpr Key kKeys[] = {
    ACCEL_ROW("tp_degree", "int>=1", "1", ""),
    ACCEL_ROW("pp_degree", "int>=1", "1", ""),
    ACCEL_ROW("num_micro_batches", "int>=1", "1", ""),
    ACCEL_ROW("gradient_clipping", "number>=0", "1.0", ""),
    ACCEL_ROW("sequence_parallelism", "flag", "false", ""),
    ACCEL_ROW("recompute_activations", "flag", "false",
              "parsed, never forwarded: recompute_granularity full is sent"),
    ACCEL_ROW("use_distributed_optimizer", "flag", "false", ""),
    ACCEL_ROW("use_custom_fsdp", "flag", "false",
              "\"false\" is parsed as true"),
    ACCEL_ROW("no_load_optim", "flag", "false", "\"false\" is parsed as true"),
    ACCEL_ROW("no_save_optim", "flag", "false", "\"false\" is parsed as true"),
    ACCEL_ROW("eod_mask_loss", "flag", "false", "\"false\" is parsed as true"),
    ACCEL_ROW("optimizer_cpu_offload", "flag", "false", ""),
    ACCEL_ROW("overlap_cpu_optimizer_d2h_h2d", "flag", "false", ""),
    ACCEL_ROW("use_precision_aware_optimizer", "flag", "false", ""),
    ACCEL_ROW("decoder_last_pipeline_num_layers", "int>=1", "null", ""),
    ACCEL_ROW("recompute_granularity", "full,selective", "full", ""),
    ACCEL_ROW("recompute_method", "uniform,block", "uniform", ""),
    ACCEL_ROW("recompute_num_layers", "int>=1", "1", ""),
    ACCEL_ROW("attention_backend", "string", "null", ""),
    ACCEL_ROW("expert_model_parallel_size", "int>=1", "1", ""),
    ACCEL_ROW("expert_tensor_parallel_size", "int>=1", "1", ""),
    ACCEL_ROW("context_parallel_size", "int>=1", "2",
              "its default is 2 and is sent, so that tp 2 x pp 2 needs a "
              "multiple of 8 ranks"),
    ACCEL_ROW("attention_dropout", "number>=0", "null", ""),
    ACCEL_ROW("hidden_dropout", "number>=0", "null", ""),
    ACCEL_ROW("attention_softmax_in_fp32", "flag", "false", ""),
    ACCEL_ROW("calculate_per_token_loss", "flag", "false", ""),
    ACCEL_ROW("use_rotary_position_embeddings", "flag", "false", ""),
};

const Section accel::config::kMegatronSection = {
    "megatron_lm_config", "Accelerate: megatron_lm_config", "", kKeys};
