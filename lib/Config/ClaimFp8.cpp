// What files say of fp8: Accelerate's `fp8_config` and recipe handlers, and
// Megatron-LM's arguments.

#include "lib/Config/ClaimFp8.h"

using namespace llvm;
using namespace accel::config;
using Kind = Origin::Kind;

namespace {
/// A key of Transformer Engine's recipe, and the setting that it is.
struct RecipeKey {
  StringLiteral name, setting;
};
} // namespace

// The questionnaire writes other names than the launch reads: both are taken.
static constexpr RecipeKey kOfTransformerEngine[] = {
    {"fp8_format", "fp8.format"},
    {"margin", "fp8.margin"},
    {"interval", "fp8.interval"},
    {"amax_history_len", "fp8.amax_history_len"},
    {"amax_history_length", "fp8.amax_history_len"},
    {"amax_compute_algo", "fp8.amax_compute_algo"},
    {"amax_compute_algorithm", "fp8.amax_compute_algo"},
    {"override_linear_precision", "fp8.override_linear_precision"},
    {"use_autocast_during_eval", "fp8.use_autocast_during_eval"},
};

/// "(false, false, false)" and lists alike.
static std::string spell(StringRef name, StringRef value) {
  if (name != "override_linear_precision")
    return value.lower();
  std::string text;
  for (char letter : value.lower())
    if (!StringRef("()[] ").contains(letter))
      text += letter;
  return text;
}

/// Claims the recipe of Transformer Engine whose keys begin with `prefix`.
static void claimTransformerEngine(const File &file, Ledger &ledger,
                                   StringRef prefix) {
  for (auto [name, setting] : kOfTransformerEngine) {
    StringRef own = name;
    if (prefix.ends_with("fp8_"))
      own.consume_front("fp8_"); // the format has it already
    if (const Setting *found = said(file, prefix + own))
      ledger.claim(setting, *found, spell(name, found->value));
  }
}

static Error refuse(const Setting &setting, const Twine &what) {
  return failAt(setting.place, "'" + setting.path + ": " + setting.value +
                                   "' is not supported yet: " + what);
}

/// Claims MS-AMP's recipe of the level that `level` says, `fallback` where it
/// is null.
static void claimMsamp(const Setting &section, const Setting *level,
                       StringRef fallback, Ledger &ledger) {
  StringRef own = level ? StringRef(level->value) : fallback;
  ledger.claim("fp8.recipe", level ? *level : section, "msamp_" + own.lower());
}

Error accel::config::claimFp8OfAccelerate(File &file, Ledger &ledger) {
  const Setting *backend = said(file, "fp8_config.fp8_backend");
  StringRef kind = backend ? StringRef(backend->value) : "TE";
  bool isMsamp = kind == "MSAMP";
  bool isTorchao = kind == "AO";
  if (isMsamp) {
    const Setting *level = said(file, "fp8_config.fp8_opt_level");
    if (!level) // the questionnaire's
      level = said(file, "fp8_config.fp8_optimization_level");
    claimMsamp(*backend, level, "O2", ledger);
  } else if (backend)
    ledger.claim("fp8.recipe", *backend, isTorchao ? "tensorwise" : "delayed");
  else
    ledger.suggest("fp8.recipe", "delayed", Kind::Default,
                   "Transformer Engine's, where fp8_backend is absent");
  if (!isTorchao && !isMsamp)
    claimTransformerEngine(file, ledger, "fp8_config.fp8_");
  for (Setting &setting : file.settings) {
    StringRef name = setting.path;
    if (!name.consume_front("fp8_config.fp8_") || !setting.idle.empty())
      continue;
    bool isOfTorchao =
        name == "pad_inner_dim" || name == "enable_fsdp_float8_all_gather";
    StringRef reader = name == "opt_level" || name == "optimization_level"
                           ? "MSAMP"
                       : isOfTorchao ? "AO"
                                     : "TE";
    if (name != "backend" && reader != kind)
      setting.idle = ("read with fp8_backend " + reader).str();
  }
  return Error::success();
}

Error accel::config::claimFp8OfHandlers(File &file, Ledger &ledger) {
  if (const Setting *section = file.firstBelow("TERecipeKwargs")) {
    const Setting *mx = said(file, "TERecipeKwargs.use_mxfp8_block_scaling");
    ledger.claim("fp8.recipe", *section,
                 mx && mx->value == "true" ? "mxfp8" : "delayed");
    claimTransformerEngine(file, ledger, "TERecipeKwargs.");
  }
  if (const Setting *section = file.firstBelow("AORecipeKwargs")) {
    const Setting *config = said(file, "AORecipeKwargs.config");
    ledger.claim("fp8.recipe", config ? *config : *section,
                 config ? config->value : "tensorwise");
  }
  if (const Setting *section = file.firstBelow("MSAMPRecipeKwargs"))
    claimMsamp(*section, said(file, "MSAMPRecipeKwargs.opt_level"), "O2",
               ledger);
  return Error::success();
}

Error accel::config::claimFp8OfDeepSpeed(File &file, Ledger &ledger) {
  const Setting *enabled = said(file, "msamp.enabled");
  if (!enabled || enabled->value != "true")
    return Error::success();
  if (const Setting *half = said(file, "fp16.enabled");
      half && half->value == "true")
    return refuse(*half, "float16 beside 'msamp.enabled', which computes in "
                         "bfloat16 what it does not in 8 bits");
  ledger.claim("mixed_precision", *enabled, "fp8");
  claimMsamp(*enabled, said(file, "msamp.opt_level"), "O1", ledger);
  return Error::success();
}

Error accel::config::claimFp8OfMegatron(File &file, Ledger &ledger) {
  const Setting *format = said(file, "--fp8-format");
  if (const Setting *fp4 = said(file, "--fp4-format")) {
    if (format)
      return failAt(fp4->place,
                    "expected one of --fp8-format and --fp4-format, "
                    "found both");
    const Setting *recipe = said(file, "--fp4-recipe");
    ledger.claim("mixed_precision", *fp4, "fp8");
    ledger.claim("fp8.recipe", recipe ? *recipe : *fp4, "nvfp4");
    return Error::success();
  }
  if (!format)
    return Error::success();
  ledger.claim("mixed_precision", *format, "fp8");
  const Setting *recipe = said(file, "--fp8-recipe");
  StringRef kind = recipe ? StringRef(recipe->value) : "delayed";
  if (kind == "delayed" || kind == "tensorwise")
    ledger.claim("fp8.format", *format);
  else if (format->value != "e4m3")
    return refuse(*format, "gradients in f8E5M2 with scales of blocks");
  if (recipe)
    ledger.claim("fp8.recipe", *recipe,
                 kind == "tensorwise"  ? "current"
                 : kind == "blockwise" ? "block"
                                       : kind.str());
  constexpr RecipeKey keys[] = {
      {"--fp8-margin", "fp8.margin"},
      {"--fp8-interval", "fp8.interval"},
      {"--fp8-amax-history-len", "fp8.amax_history_len"},
      {"--fp8-amax-compute-algo", "fp8.amax_compute_algo"}};
  bool isDelayed = kind == "delayed";
  for (Setting &setting : file.settings)
    for (auto [name, target] : keys)
      if (setting.path == name && isDelayed)
        ledger.claim(target, setting);
      else if (setting.path == name && setting.idle.empty())
        setting.idle = "read with --fp8-recipe delayed";
  for (StringRef path : {"--no-fp8-wgrad", "--disable-fp8-wgrad"})
    if (const Setting *wide = said(file, path); wide && wide->value == "true")
      ledger.claim("fp8.override_linear_precision", *wide, "false,false,true");
  if (isDelayed) {
    ledger.suggest("fp8.amax_history_len", "1", Kind::Default, "Megatron-LM's");
    ledger.suggest("fp8.amax_compute_algo", "most_recent", Kind::Default,
                   "Megatron-LM's");
  }
  return Error::success();
}
