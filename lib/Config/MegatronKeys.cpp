// Accelerate's megatron_lm_config. distributed_type: MEGATRON_LM is refused, so
// these are read for their spelling only.

#include "Schema.h"

using namespace accel::config;
using llvm::StringLiteral;

static constexpr Key megatron(StringLiteral name, StringLiteral type,
                              StringLiteral fallback) {
  return noted(name, type, fallback,
               "read where distributed_type is MEGATRON_LM");
}

static constexpr Key kKeys[] = {
    megatron("megatron_lm_tp_degree", "int>=1|null", "1"),
    megatron("megatron_lm_pp_degree", "int>=1|null", "1"),
    megatron("megatron_lm_num_micro_batches", "int>=1|null", "1"),
    megatron("megatron_lm_gradient_clipping", "number>=0|null", "1.0"),
    megatron("megatron_lm_sequence_parallelism", "flag|null", "false"),
    megatron("megatron_lm_recompute_activations", "flag|null", "false")
        .beware("parsed, never forwarded: recompute_granularity full is sent"),
    megatron("megatron_lm_use_distributed_optimizer", "flag|null", "false"),
    megatron("megatron_lm_use_custom_fsdp", "flag|null", "false")
        .beware("\"false\" is parsed as true"),
    megatron("megatron_lm_no_load_optim", "flag|null", "false")
        .beware("\"false\" is parsed as true"),
    megatron("megatron_lm_no_save_optim", "flag|null", "false")
        .beware("\"false\" is parsed as true"),
    megatron("megatron_lm_eod_mask_loss", "flag|null", "false")
        .beware("\"false\" is parsed as true"),
    megatron("megatron_lm_optimizer_cpu_offload", "flag|null", "false"),
    megatron("megatron_lm_overlap_cpu_optimizer_d2h_h2d", "flag|null", "false"),
    megatron("megatron_lm_use_precision_aware_optimizer", "flag|null", "false"),
    megatron("megatron_lm_decoder_last_pipeline_num_layers", "int>=1|null",
             "null"),
    megatron("megatron_lm_recompute_granularity", "full,selective|null",
             "full"),
    megatron("megatron_lm_recompute_method", "uniform,block|null", "uniform"),
    megatron("megatron_lm_recompute_num_layers", "int>=1|null", "1"),
    megatron("megatron_lm_attention_backend", "string|null", "null"),
    megatron("megatron_lm_expert_model_parallel_size", "int>=1|null", "1"),
    megatron("megatron_lm_expert_tensor_parallel_size", "int>=1|null", "1"),
    megatron("megatron_lm_context_parallel_size", "int>=1|null", "2")
        .beware("its default is 2 and is sent, so that tp 2 x pp 2 needs a "
                "multiple of 8 ranks"),
    megatron("megatron_lm_attention_dropout", "number>=0|null", "null"),
    megatron("megatron_lm_hidden_dropout", "number>=0|null", "null"),
    megatron("megatron_lm_attention_softmax_in_fp32", "flag|null", "false"),
    megatron("megatron_lm_calculate_per_token_loss", "flag|null", "false"),
    megatron("megatron_lm_use_rotary_position_embeddings", "flag|null",
             "false"),
};

const Section accel::config::kMegatronSection = {
    "megatron_lm_config", "Accelerate: megatron_lm_config", "", kKeys};
