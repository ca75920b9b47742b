// Accelerate's megatron_lm_config (MegatronLMPlugin, and the flags
// --megatron_lm_* of accelerate launch), read where distributed_type is
// MEGATRON_LM.

#include "Schema.h"

using namespace accel::config;

static constexpr Key kMegatronKeys[] = {
    done("megatron_lm_tp_degree", "int>=1|null", "1", "axis tp of the mesh")
        .sets("tp"),
    done("megatron_lm_pp_degree", "int>=1|null", "1",
         "axis pp of the mesh: stages, which run 1F1B")
        .sets("pp")
        .beware("stages have as many layers each; here as much work"),
    done("megatron_lm_num_layers_per_virtual_pipeline_stage", "int>=1|null",
         "null",
         "says that a stage is several chunks; how many says "
         "--schedule=interleaved:V")
        .beware("a field of MegatronLMPlugin: from a file it is dropped"),
    done("megatron_lm_num_micro_batches", "int>=1|null", "1",
         "micro-batches of a step, as --micro-batches")
        .sets("gradient_accumulation_steps"),
    done("megatron_lm_gradient_clipping", "number>=0|null", "1.0",
         "the largest norm of all gradients together; 0: no clipping"),
    done("megatron_lm_sequence_parallelism", "flag|null", "false",
         "sequence_parallelism, which is over tp")
        .sets("sequence_parallelism"),
    done("megatron_lm_recompute_activations", "flag|null", "false",
         "recompute selective, where no granularity is said")
        .orSet("recompute")
        .beware("parsed, never forwarded: recompute_granularity full is sent"),
    done("megatron_lm_use_distributed_optimizer", "flag|null", "false",
         "true: zero_stage 1, over dp_shard and cp; false: 0"),
    later("megatron_lm_use_custom_fsdp", "flag|null", "false",
          "Megatron's own FSDP: say distributed_type FSDP")
        .unless("false|null")
        .beware("\"false\" is parsed as true"),
    noted("megatron_lm_no_load_optim", "flag|null", "false",
          "acc-run is told what to load: --resume all, --weights the weights")
        .beware("\"false\" is parsed as true"),
    noted("megatron_lm_no_save_optim", "flag|null", "false",
          "acc-run is told what to save: --checkpoint all, --save-weights the "
          "weights")
        .beware("\"false\" is parsed as true"),
    later("megatron_lm_eod_mask_loss", "flag|null", "false",
          "masking the loss at the ends of documents: labels of -100 say it")
        .unless("false|null")
        .beware("\"false\" is parsed as true"),
    done("megatron_lm_optimizer_cpu_offload", "flag|null", "false",
         "true: offload.optimizer cpu"),
    noted("megatron_lm_overlap_cpu_optimizer_d2h_h2d", "flag|null", "false",
          "copies go on beside the computation always"),
    later("megatron_lm_use_precision_aware_optimizer", "flag|null", "false",
          "moments in narrower types")
        .unless("false|null"),
    later("megatron_lm_decoder_last_pipeline_num_layers", "int>=1|null", "null",
          "a last stage of so many layers: say --cut NODE for each stage")
        .unless("null"),
    done("megatron_lm_recompute_granularity", "full,selective|null", "full",
         "recompute, of full with the method")
        .orSet("recompute")
        .beware("its default is sent, whatever recompute_activations says"),
    done("megatron_lm_recompute_method", "uniform,block|null", "uniform",
         "recompute full: all layers, so many together, or the first ones"),
    done("megatron_lm_recompute_num_layers", "int>=1|null", "1",
         "recompute full: how many layers"),
    noted("megatron_lm_attention_backend", "string|null", "null",
          "kernels are our own"),
    done("megatron_lm_expert_model_parallel_size", "int>=1|null", "1",
         "axis ep of the mesh: ranks have different experts, and different "
         "samples")
        .sets("ep"),
    done("megatron_lm_expert_tensor_parallel_size", "int>=1|null", "1",
         "experts are split over tp, as everything else is")
        .sets("etp")
        .beware("1, its default, beside tp leaves experts whole; here tp "
                "splits them, with the same result"),
    done("megatron_lm_context_parallel_size", "int>=1|null", "2",
         "axis cp of the mesh, which splits sequences")
        .sets("cp")
        .beware("its default is 2 and is sent, so that tp 2 x pp 2 needs a "
                "multiple of 8 ranks; here absence asks for nothing"),
    noted("megatron_lm_attention_dropout", "number>=0|null", "null",
          "the graph says it"),
    noted("megatron_lm_hidden_dropout", "number>=0|null", "null",
          "the graph says it"),
    noted("megatron_lm_attention_softmax_in_fp32", "flag|null", "false",
          "the exponentials of attention are in float32 always"),
    noted("megatron_lm_calculate_per_token_loss", "flag|null", "false",
          "the loss of a step is that of all its rows at once always")
        .beware("false: a mean of the micro-batches' means, whatever tokens "
                "each has"),
    noted("megatron_lm_use_rotary_position_embeddings", "flag|null", "false",
          "the graph says it"),
};

const Section accel::config::kMegatronSection = {
    "megatron_lm_config", "Accelerate: megatron_lm_config", "", kMegatronKeys};
