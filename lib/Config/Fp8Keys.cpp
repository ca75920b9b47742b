// Accelerate's fp8_config, in both of its dialects: that of the launch and the
// documentation, and that which the questionnaire writes. mixed_precision: fp8
// is refused, so these are read for their spelling only.

#include "Schema.h"

using namespace accel::config;
using llvm::StringLiteral;

static constexpr Key fp8(StringLiteral name, StringLiteral type,
                         StringLiteral fallback) {
  return noted(name, type, fallback, "read where mixed_precision is fp8");
}

static constexpr Key kKeys[] = {
    fp8("fp8_backend", "~TE,MSAMP,AO|null", "TE"),
    fp8("fp8_format", "~HYBRID,E4M3,E5M2|null", "HYBRID")
        .beware("E5M2 is refused by Transformer Engine"),
    fp8("fp8_margin", "int>=0|null", "0"),
    fp8("fp8_interval", "int>=1|null", "1")
        .beware("Transformer Engine has dropped the field and ignores it"),
    fp8("fp8_amax_history_len", "int>=1|null", "1024"),
    fp8("fp8_amax_history_length", "int>=1|null", "1024")
        .beware("the questionnaire's spelling: nothing reads it"),
    fp8("fp8_amax_compute_algo", "~max,most_recent|null", "most_recent")
        .beware("most_recent is dropped as a default, and Transformer Engine "
                "takes max"),
    fp8("fp8_amax_compute_algorithm", "~max,most_recent|null", "most_recent")
        .beware("the questionnaire's spelling: nothing reads it"),
    fp8("fp8_override_linear_precision", "list|string|bool|null",
        "false,false,false")
        .beware("(false, false, false) is a string in YAML, and the launch "
                "dies on it"),
    fp8("fp8_use_autocast_during_eval", "flag|null", "false"),
    fp8("fp8_opt_level", "O1,O2,O3|null", "O2"),
    fp8("fp8_optimization_level", "O1,O2,O3|null", "O2")
        .beware("the questionnaire's spelling: nothing reads it"),
    fp8("fp8_enable_fsdp_float8_all_gather", "flag|null", "true"),
    fp8("fp8_pad_inner_dim", "flag|null", "true"),
};

const Section accel::config::kFp8Section = {
    "fp8_config", "Accelerate: fp8_config", "fp8_", kKeys};
