// Accelerate's fp8_config, in both of its dialects: that of the launch and the
// documentation, and that which the questionnaire writes; and the handlers that
// say the same in scripts. They are read with mixed_precision fp8.

#include "Schema.h"

using namespace accel::config;

static constexpr Key kFp8Keys[] = {
    done("fp8_backend", "~TE,MSAMP,AO|null", "TE",
         "fp8.recipe: delayed of TE, tensorwise of AO, msamp_o1 or msamp_o2 of "
         "MSAMP")
        .orSet("fp8.recipe")
        .beware("absent, Accelerate takes AO where it is installed, then TE, "
                "then MSAMP"),
    done("fp8_format", "~HYBRID,E4M3,E5M2|null", "HYBRID", "fp8.format")
        .only("HYBRID|E4M3|null")
        .orSet("fp8.format")
        .beware("E5M2 is refused by Transformer Engine"),
    done("fp8_margin", "int>=0|null", "0", "fp8.margin"),
    done("fp8_interval", "int>=1|null", "1", "fp8.interval")
        .beware("Transformer Engine has dropped the field and ignores it"),
    done("fp8_amax_history_len", "int>=1|null", "1024", "fp8.amax_history_len"),
    done("fp8_amax_history_length", "int>=1|null", "1024",
         "fp8.amax_history_len")
        .beware("the questionnaire's spelling: nothing reads it"),
    done("fp8_amax_compute_algo", "~max,most_recent|null", "max",
         "fp8.amax_compute_algo")
        .beware("most_recent is dropped as a default, and Transformer Engine "
                "takes max"),
    done("fp8_amax_compute_algorithm", "~max,most_recent|null", "max",
         "fp8.amax_compute_algo")
        .beware("the questionnaire's spelling: nothing reads it"),
    done("fp8_override_linear_precision", "list|string|bool|null",
         "false,false,false", "fp8.override_linear_precision")
        .beware("(false, false, false) is a string in YAML, and the launch "
                "dies on it; Transformer Engine has dropped the field and "
                "ignores it"),
    done("fp8_use_autocast_during_eval", "flag|null", "false",
         "fp8.use_autocast_during_eval"),
    done("fp8_opt_level", "O1,O2,O3|null", "O2",
         "fp8.recipe msamp_o1 or msamp_o2, with fp8_backend MSAMP (O3 keeps "
         "weights in f8E4M3FN beside masters in float16)")
        .only("O1|O2|null")
        .orSet("fp8.recipe"),
    done("fp8_optimization_level", "O1,O2,O3|null", "O2",
         "fp8.recipe msamp_o1 or msamp_o2, with fp8_backend MSAMP (O3 keeps "
         "weights in f8E4M3FN beside masters in float16)")
        .only("O1|O2|null")
        .orSet("fp8.recipe")
        .beware("the questionnaire's spelling: nothing reads it"),
    noted("fp8_enable_fsdp_float8_all_gather", "flag|null", "true",
          "a weight is quantized before it is gathered where that is less to "
          "send"),
    noted("fp8_pad_inner_dim", "flag|null", "true",
          "layers with a side that is no multiple of 16 stay in bfloat16"),
};

/// What Accelerate's TERecipeKwargs takes.
static constexpr Key kTransformerEngine[] = {
    done("fp8_format", "~HYBRID,E4M3,E5M2|null", "HYBRID", "fp8.format")
        .only("HYBRID|E4M3|null")
        .orSet("fp8.format"),
    done("margin", "int>=0|null", "0", "fp8.margin"),
    done("interval", "int>=1|null", "1", "fp8.interval"),
    done("amax_history_len", "int>=1|null", "1024", "fp8.amax_history_len"),
    done("amax_compute_algo", "~max,most_recent|null", "max",
         "fp8.amax_compute_algo"),
    done("override_linear_precision", "list|string|null", "false,false,false",
         "fp8.override_linear_precision"),
    done("use_autocast_during_eval", "flag|null", "false",
         "fp8.use_autocast_during_eval"),
    done("use_mxfp8_block_scaling", "flag|null", "false", "fp8.recipe mxfp8"),
};

/// What Accelerate's AORecipeKwargs takes. A config is an object: of
/// Float8LinearConfig.from_recipe_name the name.
static constexpr Key kTorchao[] = {
    done("config", "tensorwise,rowwise,rowwise_with_gw_hp|null", "tensorwise",
         "fp8.recipe")
        .orSet("fp8.recipe"),
    later("module_filter_func", "string|null", "null",
          "a Python function that chooses layers: --set fp8.only and fp8.skip "
          "name their weights")
        .unless("null"),
    noted("enable_fsdp_float8_all_gather", "flag|null", "true",
          "a weight is quantized before it is gathered where that is less to "
          "send"),
    noted("pad_inner_dim", "flag|null", "true",
          "layers with a side that is no multiple of 16 stay in bfloat16"),
};

static constexpr Key kMsamp[] = {
    done("opt_level", "O1,O2,O3|null", "O2",
         "fp8.recipe msamp_o1 or msamp_o2 (O3 keeps weights in f8E4M3FN beside "
         "masters in float16)")
        .only("O1|O2|null")
        .orSet("fp8.recipe"),
};

/// What MS-AMP reads of a DeepSpeed JSON.
static constexpr Key kOfDeepSpeed[] = {
    done("enabled", "bool", "false", "mixed_precision fp8"),
    done("opt_level", "O1,O2,O3", "O1",
         "fp8.recipe msamp_o1 or msamp_o2 (O3 keeps weights in f8E4M3FN beside "
         "masters in float16)")
        .only("O1|O2")
        .orSet("fp8.recipe"),
    done("use_te", "bool", "false", "whose layers are quantized: MS-AMP's own")
        .only("false"),
};

const Section accel::config::kFp8Section = {
    "fp8_config", "Accelerate: fp8_config", "fp8_", kFp8Keys};
const Section accel::config::kTransformerEngineSection = {
    "TERecipeKwargs", "Accelerate: TERecipeKwargs", "", kTransformerEngine};
const Section accel::config::kTorchaoSection = {
    "AORecipeKwargs", "Accelerate: AORecipeKwargs", "", kTorchao};
const Section accel::config::kMsampSection = {
    "MSAMPRecipeKwargs", "Accelerate: MSAMPRecipeKwargs", "", kMsamp};
const Section accel::config::kDeepSpeedMsampSection = {
    "msamp", "DeepSpeed: msamp", "", kOfDeepSpeed};
