// Where Accelerate does not do what a file says: the keys that it drops, found
// by running its launch and plugin code (1.15), and by reading it.

#include "lib/Config/ReadFile.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringSwitch.h"

using namespace llvm;
using namespace accel::config;

namespace {
/// Keys that nothing reads, whatever they say.
struct Inert {
  StringLiteral path, why;
};
} // namespace

static constexpr Inert kInert[] = {
    {"rdzv_backend", "the launch flag's own default, static, wins"},
    {"same_network", "the launch flag's own default, false, wins"},
    {"enable_cpu_affinity", "the launch flag's own default, false, wins"},
    {"fsdp_config.fsdp_backward_prefetch_policy",
     "nothing reads it: the key is fsdp_backward_prefetch"},
    {"fsdp_config.fsdp_cpu_offload",
     "nothing reads it: the key is fsdp_offload_params"},
    {"fsdp_config.fsdp_wrap_policy",
     "nothing reads it: the key is fsdp_auto_wrap_policy"},
    {"fsdp_config.fsdp_limit_all_gathers", "no launch flag has this name"},
    {"fp8_config.fp8_amax_history_length",
     "the questionnaire's spelling: nothing reads it"},
    {"fp8_config.fp8_amax_compute_algorithm",
     "the questionnaire's spelling: nothing reads it"},
    {"fp8_config.fp8_optimization_level",
     "the questionnaire's spelling: nothing reads it"},
    {"megatron_lm_config.megatron_lm_num_layers_per_virtual_pipeline_stage",
     "no launch flag has this name"},
    {"deepspeed_config.offload_optimizer_nvme_path",
     "the launch does not export it"},
    {"deepspeed_config.offload_param_nvme_path",
     "the launch does not export it"},
};

namespace {
/// Collects the differences of one file, and makes them so if asked to.
class Finder {
public:
  Finder(File &file, bool apply, std::vector<Difference> &differences)
      : file(file), apply(apply), differences(differences) {}

  void accelerate();
  void deepSpeed();

private:
  StringRef value(StringRef path) const {
    const Setting *setting = file.get(path);
    return setting ? StringRef(setting->value) : "";
  }
  /// Notes it where both do not come to the same.
  void note(const Setting &setting, StringRef there, StringRef why) {
    if (nameStrategy(setting.value) == nameStrategy(there))
      return;
    differences.push_back(
        {setting.place, setting.path, setting.value, there.str(), why.str()});
  }
  /// Accelerate does as if `path` were not there.
  void drop(StringRef path, StringRef there, StringRef why) {
    const Setting *setting = file.get(path);
    if (!setting)
      return;
    note(*setting, there, why);
    if (apply)
      file.erase(path);
  }
  void replace(StringRef path, StringRef there, StringRef why) {
    auto found =
        find_if(file.settings, [&](auto &one) { return one.path == path; });
    note(*found, there, why);
    if (apply)
      found->value = there.str();
  }
  void dropSections();
  void fsdp();
  void megatron();
  void parallelism();

  File &file;
  bool apply;
  std::vector<Difference> &differences;
};
} // namespace

/// Sections of another distributed_type than the file's.
void Finder::dropSections() {
  struct Reader {
    StringLiteral section, type;
  };
  std::string type = value("distributed_type").str(); // settings move below
  for (auto [section, reader] :
       {Reader{"fsdp_config", "FSDP"}, Reader{"deepspeed_config", "DEEPSPEED"},
        Reader{"megatron_lm_config", "MEGATRON_LM"}}) {
    const Setting *inner = file.firstBelow(section);
    if (!inner || type == reader || type.empty() || type == "NO")
      continue;
    differences.push_back({inner->place, section.str(), "refused", "ignored",
                           "not read with this distributed_type"});
    std::string prefix = (section + ".").str();
    if (apply)
      llvm::erase_if(file.settings, [&](const Setting &one) {
        return StringRef(one.path).starts_with(prefix);
      });
  }
}

void Finder::fsdp() {
  const Setting *strategy = file.get("fsdp_config.fsdp_sharding_strategy");
  const Setting *reshard = file.get("fsdp_config.fsdp_reshard_after_forward");
  bool second = value("fsdp_config.fsdp_version") == "2";
  if (second && strategy)
    drop("fsdp_config.fsdp_sharding_strategy",
         reshard ? "what fsdp_reshard_after_forward says" : "FULL_SHARD",
         "not read with fsdp_version 2");
  if (!second && reshard && reshard->value != "true" &&
      reshard->value != "false")
    drop("fsdp_config.fsdp_reshard_after_forward",
         strategy ? strategy->value : "FULL_SHARD",
         "the launch always exports FSDP_SHARDING_STRATEGY, which wins");
  if (second && file.get("fsdp_config.fsdp_backward_prefetch"))
    note(*file.get("fsdp_config.fsdp_backward_prefetch"), "ignored",
         "not read with fsdp_version 2");
  if (second && value("fsdp_config.fsdp_forward_prefetch") == "true")
    note(*file.get("fsdp_config.fsdp_forward_prefetch"), "ignored",
         "not read with fsdp_version 2");
}

/// What Accelerate sends to Megatron-LM where the file says nothing.
void Finder::megatron() {
  Place place = file.get("distributed_type")->place; // settings move below
  struct Sent {
    StringLiteral path, value, why;
  };
  for (auto [key, there, why] :
       {Sent{"recompute_granularity", "full",
             "the plugin's default is sent: every activation is recomputed"},
        Sent{"context_parallel_size", "2", "the plugin's default is sent"}}) {
    std::string path = ("megatron_lm_config.megatron_lm_" + key).str();
    if (file.get(path))
      continue;
    differences.push_back({place, path, "nothing", there.str(), why.str()});
    const Key *row = findByPath(file.kind, path);
    if (apply && row->fate == Fate::Done) // the other changes no result
      file.settings.push_back({path, row, there.str(), place});
  }
  if (value("megatron_lm_config.megatron_lm_recompute_activations") == "false")
    note(*file.get("megatron_lm_config.megatron_lm_recompute_activations"),
         "true", "it is not sent, and recompute_granularity full is");
}

void Finder::parallelism() {
  auto isAbove1 = [&](StringRef axis) {
    StringRef size = value(
        ("parallelism_config.parallelism_config_" + axis + "_size").str());
    return !size.empty() && size != "1";
  };
  const Setting *tp = file.get("parallelism_config.parallelism_config_tp_size");
  const Setting *cp = file.get("parallelism_config.parallelism_config_cp_size");
  for (auto [axis, size] : {std::pair("tp", tp), std::pair("cp", cp)})
    if (isAbove1(axis) && isAbove1("dp_replicate") && !isAbove1("dp_shard"))
      note(*size, "refused",
           (axis + Twine(" beside dp_replicate needs dp_shard there")).str());
  if (isAbove1("cp") && isAbove1("sp"))
    note(*cp, "refused", "cp and sp exclude each other there");
}

void Finder::accelerate() {
  for (auto [path, why] : kInert)
    if (const Setting *setting = file.get(path))
      if (setting->key->fallback != setting->value)
        drop(path, "ignored", why);
  dropSections();
  if (value("distributed_type") == "FSDP")
    fsdp();
  if (value("distributed_type") == "MEGATRON_LM")
    megatron();
  parallelism();
  const Setting *named = file.get("deepspeed_config.deepspeed_config_file");
  if (const Setting *precision = file.get("mixed_precision"))
    if (named && named->value != "none")
      note(*precision, "refused",
           "it must not stand beside deepspeed_config_file");
  if (named && StringRef(named->value).starts_with("{") &&
      !StringRef(named->value).contains(':'))
    note(*named, "refused", "the launch hands it on as text that is no JSON");
  int64_t ranks;
  if (value("distributed_type") == "NO" &&
      !value("num_processes").getAsInteger(10, ranks) && ranks > 1)
    replace("num_processes", "1", "distributed_type NO starts one process");
  if (value("deepspeed_config.gradient_clipping") == "0")
    replace("deepspeed_config.gradient_clipping", "1",
            "0 is dropped, and DeepSpeed's own default clips");
  if (value("fp8_config.fp8_amax_compute_algo") == "most_recent")
    note(*file.get("fp8_config.fp8_amax_compute_algo"), "max",
         "a value that is Accelerate's default is dropped, and Transformer "
         "Engine's is another");
}

void Finder::deepSpeed() {
  if (!value("pipeline.stages").empty() && value("pipeline.stages") != "auto")
    drop("pipeline.stages", "ignored",
         "PipelineModule is told num_stages, and Accelerate makes none");
  if (const Setting *size = file.get("tensor_parallel.autotp_size"))
    if (size->value != "0" && value("zero_optimization.stage") == "3")
      note(*size, "refused", "DeepSpeed has no autotp_size in stage 3");
}

void accel::config::findDifferences(File &file, bool apply,
                                    std::vector<Difference> &differences) {
  Finder finder(file, apply, differences);
  if (file.kind == File::Kind::Accelerate)
    finder.accelerate();
  else if (file.kind == File::Kind::DeepSpeed)
    finder.deepSpeed();
}

/// Who reduces gradients by its own code: "FSDP", "DeepSpeed"; empty: nobody.
static StringRef findReducer(ArrayRef<File> files) {
  for (const File &file : files) {
    if (file.kind == File::Kind::DeepSpeed)
      return "DeepSpeed";
    if (file.kind == File::Kind::Megatron)
      return "Megatron-LM";
    const Setting *type = file.get("distributed_type");
    StringRef name = StringSwitch<StringRef>(type ? type->value : "")
                         .Case("FSDP", "FSDP")
                         .Case("DEEPSPEED", "DeepSpeed")
                         .Case("MEGATRON_LM", "Megatron-LM")
                         .Default("");
    if (!name.empty())
      return name;
  }
  return "";
}

void accel::config::findHookDifferences(MutableArrayRef<File> files, bool apply,
                                        std::vector<Difference> &differences) {
  constexpr StringLiteral kHook = "DistributedDataParallelKwargs.comm_hook";
  StringRef reducer = findReducer(files);
  if (reducer.empty())
    return;
  for (File &file : files) {
    const Setting *hook = file.get(kHook);
    if (!hook || hook->value == "no")
      continue;
    differences.push_back({hook->place, hook->path, hook->value, "no",
                           ("hooks are DistributedDataParallel's, and " +
                            reducer + " reduces gradients itself")
                               .str()});
    if (apply)
      file.erase(kHook);
  }
}
