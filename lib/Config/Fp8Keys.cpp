// Accelerate's fp8_config, in both of its dialects: that of the launch and the
// documentation, and that which the questionnaire writes. mixed_precision: fp8
// is refused, so these are read for their spelling only.

#include "Schema.h"

using namespace accel::config;

static constexpr auto kNoted = Fate::Noted;

#define ACCEL_ROW(NAME, TYPE, DEFAULT, TRAP)                                   \
  { NAME, TYPE, DEFAULT, kNoted, "", "read where mixed_precision is fp8", TRAP }

static constexpr Key kKeys[] = {
    ACCEL_ROW("fp8_backend", "~TE,MSAMP,AO|null", "TE", ""),
    ACCEL_ROW("fp8_format", "~HYBRID,E4M3,E5M2|null", "HYBRID",
              "E5M2 is refused by Transformer Engine"),
    ACCEL_ROW("fp8_margin", "int>=0|null", "0", ""),
    ACCEL_ROW("fp8_interval", "int>=1|null", "1",
              "Transformer Engine has dropped the field and ignores it"),
    ACCEL_ROW("fp8_amax_history_len", "int>=1|null", "1024", ""),
    ACCEL_ROW("fp8_amax_history_length", "int>=1|null", "1024",
              "the questionnaire's spelling: nothing reads it"),
    ACCEL_ROW("fp8_amax_compute_algo", "~max,most_recent|null", "most_recent",
              "most_recent is dropped as a default, and Transformer Engine "
              "takes max"),
    ACCEL_ROW("fp8_amax_compute_algorithm", "~max,most_recent|null",
              "most_recent", "the questionnaire's spelling: nothing reads it"),
    ACCEL_ROW("fp8_override_linear_precision", "list|string|bool|null",
              "false,false,false",
              "(false, false, false) is a string in YAML, and the launch dies "
              "on it"),
    ACCEL_ROW("fp8_use_autocast_during_eval", "flag|null", "false", ""),
    ACCEL_ROW("fp8_opt_level", "O1,O2,O3|null", "O2", ""),
    ACCEL_ROW("fp8_optimization_level", "O1,O2,O3|null", "O2",
              "the questionnaire's spelling: nothing reads it"),
    ACCEL_ROW("fp8_enable_fsdp_float8_all_gather", "flag|null", "true", ""),
    ACCEL_ROW("fp8_pad_inner_dim", "flag|null", "true", ""),
};

const Section accel::config::kFp8Section = {
    "fp8_config", "Accelerate: fp8_config", "fp8_", kKeys};
