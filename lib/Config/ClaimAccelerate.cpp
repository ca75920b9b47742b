// What an Accelerate file decides, and the ways in which it can contradict
// itself.

#include "lib/Config/ClaimFile.h"
#include "lib/Config/ClaimOffload.h"

#include "llvm/ADT/STLExtras.h"

using namespace llvm;
using namespace accel::config;

static StringRef valueOf(const File &file, StringRef path, StringRef fallback) {
  const Setting *setting = file.get(path);
  return setting ? StringRef(setting->value) : fallback;
}

static int64_t numberOf(const File &file, StringRef path, int64_t fallback) {
  int64_t value = fallback;
  if (const Setting *setting = file.get(path))
    if (StringRef(setting->value).getAsInteger(10, value))
      return fallback;
  return value;
}

/// A section of another distributed_type than the file's: nothing would read
/// it. Beside one process there is nothing that it could ask for.
static Error checkSections(const File &file, StringRef type,
                           const Setting &typeSetting) {
  struct Reader {
    StringLiteral section, type;
  };
  for (auto [section, reader] :
       {Reader{"fsdp_config", "FSDP"}, Reader{"deepspeed_config", "DEEPSPEED"},
        Reader{"megatron_lm_config", "MEGATRON_LM"}}) {
    const Setting *inner = file.firstBelow(section);
    if (inner && type != reader && type != "NO")
      return failAt(
          inner->place,
          "'" + section + "' is read with 'distributed_type: " + reader +
              "', found '" + type + "' at " + typeSetting.place.str());
  }
  return Error::success();
}

static Error checkFsdp(const File &file) {
  bool second = valueOf(file, "fsdp_config.fsdp_version", "1") == "2";
  const Setting *reshard = file.get("fsdp_config.fsdp_reshard_after_forward");
  const Setting *strategy = file.get("fsdp_config.fsdp_sharding_strategy");
  if (reshard) {
    bool isBool = reshard->value == "true" || reshard->value == "false";
    if (second && !isBool)
      return failAt(reshard->place, "expected true or false as '" +
                                        reshard->path +
                                        "' with fsdp_version 2, found '" +
                                        reshard->value + "'");
    if (!second && isBool)
      return failAt(reshard->place,
                    "expected FULL_SHARD, SHARD_GRAD_OP, NO_SHARD, "
                    "HYBRID_SHARD or HYBRID_SHARD_ZERO2 as '" +
                        reshard->path + "' with fsdp_version 1, found " +
                        reshard->value);
  }
  if (strategy && second) {
    StringRef name = nameStrategy(strategy->value);
    if (name != "FULL_SHARD" && name != "SHARD_GRAD_OP")
      return failAt(strategy->place,
                    "'" + strategy->path + ": " + name +
                        "' has no meaning with fsdp_version 2: say " +
                        (name == "NO_SHARD"
                             ? "distributed_type: MULTI_GPU"
                             : "parallelism_config_dp_replicate_size and "
                               "parallelism_config_dp_shard_size"));
  }
  if (strategy && reshard) {
    StringRef first = nameStrategy(strategy->value);
    StringRef other =
        second ? (reshard->value == "true" ? "FULL_SHARD" : "SHARD_GRAD_OP")
               : nameStrategy(reshard->value);
    if (first != other)
      return failAt(std::max(strategy->place.line, reshard->place.line) ==
                            strategy->place.line
                        ? strategy->place
                        : reshard->place,
                    "'fsdp_sharding_strategy: " + strategy->value +
                        "' and 'fsdp_reshard_after_forward: " + reshard->value +
                        "' contradict each other");
  }
  const Setting *sync = file.get("fsdp_config.fsdp_sync_module_states");
  const Setting *ram = file.get("fsdp_config.fsdp_cpu_ram_efficient_loading");
  if (sync && ram && sync->value == "false" && ram->value == "true")
    return failAt(sync->place, "expected 'fsdp_sync_module_states: true' with "
                               "'fsdp_cpu_ram_efficient_loading: true', found "
                               "false");
  const Setting *kind = file.get("fsdp_config.fsdp_state_dict_type");
  if (second && kind &&
      (kind->value == "LOCAL_STATE_DICT" || kind->value == "2"))
    return failAt(kind->place, "expected FULL_STATE_DICT or "
                               "SHARDED_STATE_DICT as '" +
                                   kind->path +
                                   "' with fsdp_version 2, found "
                                   "LOCAL_STATE_DICT");
  return Error::success();
}

/// Keys that must not stand beside 'deepspeed_config_file', as Accelerate's
/// DeepSpeedPlugin has them.
static Error checkDeepSpeed(const File &file) {
  const Setting *named = file.get("deepspeed_config.deepspeed_config_file");
  if (!named || named->value == "none")
    return Error::success();
  for (StringRef key : {"gradient_accumulation_steps", "gradient_clipping",
                        "zero_stage", "offload_optimizer_device",
                        "offload_param_device", "offload_optimizer_nvme_path",
                        "offload_param_nvme_path", "zero3_save_16bit_model"})
    if (const Setting *beside = file.get(("deepspeed_config." + key).str()))
      return failAt(beside->place, "'" + beside->path +
                                       "' cannot stand beside "
                                       "'deepspeed_config_file' at " +
                                       named->place.str() +
                                       ": say it in the DeepSpeed JSON");
  return Error::success();
}

/// Devices that the number of processes cannot mean.
static Error checkDevices(const File &file, StringRef type) {
  const Setting *cpu = file.get("use_cpu");
  if (cpu && cpu->value == "true" && type == "MULTI_GPU")
    return failAt(cpu->place, "'use_cpu: true' and 'distributed_type: "
                              "MULTI_GPU' contradict each other: say "
                              "MULTI_CPU");
  const Setting *ids = file.get("gpu_ids");
  int64_t count = numberOf(file, "num_processes", -1);
  if (!ids || ids->value == "all" || numberOf(file, "num_machines", 1) > 1 ||
      type == "NO")
    return Error::success();
  int64_t devices = StringRef(ids->value).count(',') + 1;
  if (count > devices)
    return failAt(ids->place, "expected 'gpu_ids' to name a device for each of "
                              "the " +
                                  Twine(count) +
                                  " of 'num_processes', found '" + ids->value +
                                  "'");
  return Error::success();
}

static Error checkRanks(const File &file, StringRef type) {
  const Setting *ranks = file.get("num_processes");
  int64_t count = numberOf(file, "num_processes", -1);
  if (ranks && count == 0)
    return failAt(ranks->place,
                  "expected at least 1 as 'num_processes', found 0");
  if (ranks && type == "NO" && count > 1)
    return failAt(ranks->place,
                  "'distributed_type: NO' runs one process, found "
                  "'num_processes: " +
                      ranks->value + "': say MULTI_CPU or MULTI_GPU");
  int64_t machines = numberOf(file, "num_machines", 1);
  const Setting *many = file.get("num_machines");
  if (many && count > 0 && count % machines != 0)
    return failAt(many->place,
                  "expected 'num_machines' to divide the " + Twine(count) +
                      " of 'num_processes', found " + Twine(machines));
  const Setting *rank = file.get("machine_rank");
  if (rank && numberOf(file, "machine_rank", 0) >= machines)
    return failAt(rank->place,
                  "expected less than the " + Twine(machines) +
                      " of 'num_machines' as 'machine_rank', found " +
                      rank->value);
  return Error::success();
}

static Error checkParallelism(const File &file, StringRef type) {
  const Setting *shard =
      file.get("parallelism_config.parallelism_config_dp_shard_size");
  const Setting *replicate =
      file.get("parallelism_config.parallelism_config_dp_replicate_size");
  int64_t shards =
      numberOf(file, "parallelism_config.parallelism_config_dp_shard_size", 1);
  if (shards > 1 && type != "FSDP" && type != "DEEPSPEED")
    return failAt(shard->place,
                  "expected 'distributed_type: FSDP' or DEEPSPEED with '" +
                      shard->path + ": " + shard->value + "', found " + type);
  bool first = valueOf(file, "fsdp_config.fsdp_version", "1") == "1";
  const Setting *any = file.firstBelow("parallelism_config");
  if (any && type == "FSDP" && first)
    return failAt(any->place, "expected 'fsdp_version: 2' with "
                              "'parallelism_config', found 1");
  int64_t copies = numberOf(
      file, "parallelism_config.parallelism_config_dp_replicate_size", 1);
  auto sizeOf = [&](StringRef axis) {
    return numberOf(
        file, ("parallelism_config.parallelism_config_" + axis + "_size").str(),
        1);
  };
  // Ranks that share rows; those that share sequences share states, too.
  int64_t sequences = sizeOf("cp") * sizeOf("sp");
  int64_t others = sequences * sizeOf("tp");
  bool alone =
      shard && shards == 1 && numberOf(file, "num_processes", 1) > others;
  if (type == "FSDP" && shards * sequences == 1 && (copies > 1 || alone))
    return failAt(replicate ? replicate->place : shard->place,
                  "expected 'parallelism_config_dp_shard_size' above 1 with "
                  "'distributed_type: FSDP': there is no axis to shard over");
  return Error::success();
}

Error accel::config::checkAgreement(const File &file, bool hasDeepSpeedFile) {
  if (file.kind != File::Kind::Accelerate)
    return Error::success();
  const Setting *typeSetting = file.get("distributed_type");
  if (!typeSetting) {
    Place start{file.name, 1};
    return failAt(start, "expected 'distributed_type', which Accelerate needs");
  }
  StringRef type = typeSetting->value;
  Error errors = joinErrors(checkSections(file, type, *typeSetting),
                            checkRanks(file, type));
  errors = joinErrors(std::move(errors), checkDevices(file, type));
  if (type == "FSDP")
    errors = joinErrors(std::move(errors), checkFsdp(file));
  if (type == "DEEPSPEED")
    errors = joinErrors(std::move(errors), checkDeepSpeed(file));
  return joinErrors(std::move(errors), checkParallelism(file, type));
}

static void claimFsdp(const File &file, Ledger &ledger, Layout &layout) {
  using Kind = Origin::Kind;
  if (const Setting *again =
          file.get("fsdp_config.fsdp_activation_checkpointing");
      again && again->value == "true")
    ledger.claim("recompute", *again, "full:uniform:1");
  const Setting *said = file.get("fsdp_config.fsdp_sharding_strategy");
  if (!said)
    said = file.get("fsdp_config.fsdp_reshard_after_forward");
  if (!said) {
    ledger.suggest("zero_stage", "3", Kind::Default,
                   "FULL_SHARD, where fsdp_config says nothing else");
    ledger.suggest("zero.gather_once", "false", Kind::Default,
                   "FULL_SHARD, where fsdp_config says nothing else");
    return;
  }
  StringRef strategy = said->value == "true"    ? "FULL_SHARD"
                       : said->value == "false" ? "SHARD_GRAD_OP"
                                                : nameStrategy(said->value);
  ledger.claim("zero_stage", *said, strategy == "NO_SHARD" ? "0" : "3");
  if (strategy != "NO_SHARD")
    ledger.claim("zero.gather_once", *said,
                 strategy == "SHARD_GRAD_OP" || strategy == "HYBRID_SHARD_ZERO2"
                     ? "true"
                     : "false");
  if (strategy.starts_with("HYBRID"))
    layout.hybrid = *said;
}

static void claimPlugin(const File &file, Ledger &ledger) {
  using Kind = Origin::Kind;
  ledger.suggest("zero_stage", "2", Kind::Default,
                 "DeepSpeedPlugin's, where zero_stage is absent");
  const Setting *clipping = file.get("deepspeed_config.gradient_clipping");
  if (clipping && clipping->value != "auto")
    ledger.claim("gradient_clipping", *clipping,
                 clipping->value == "0" ? "none" : clipping->value);
  else
    ledger.suggest("gradient_clipping", "1", Kind::Derived,
                   "what Accelerate fills auto with");
}

void accel::config::claimAccelerate(File &file, bool hasDeepSpeedFile,
                                    Ledger &ledger, Layout &layout) {
  using Kind = Origin::Kind;
  const Setting &type = *file.get("distributed_type");
  bool readsPlugin = type.value == "DEEPSPEED" && !hasDeepSpeedFile;
  claimRows(file, ledger, [&](const Setting &setting) {
    StringRef path = setting.path;
    return !path.contains('.') || path.starts_with("parallelism_config.") ||
           (readsPlugin && path.starts_with("deepspeed_config.")) ||
           (type.value == "MEGATRON_LM" &&
            path.starts_with("megatron_lm_config."));
  });
  if (const Setting *fp16 = file.get("fp16"); fp16 && fp16->value == "true")
    ledger.claim("mixed_precision", *fp16, "fp16");
  if (type.value == "DEEPSPEED" || type.value == "MEGATRON_LM")
    ledger.suggest("scaler.type",
                   type.value == "DEEPSPEED" ? "deepspeed" : "megatron",
                   Kind::Default, "that of its engine");
  if (type.value == "FSDP") {
    claimFsdp(file, ledger, layout);
    claimOffload(file, "fsdp_config.", ledger);
  } else if (type.value == "DEEPSPEED") {
    if (readsPlugin) {
      claimPlugin(file, ledger);
      claimStorage(file, ledger);
    }
  } else if (type.value == "MEGATRON_LM") {
    claimMegatronPlugin(file, ledger, layout);
    claimOffload(file, "megatron_lm_config.", ledger);
  } else {
    ledger.claim("zero_stage", type, "0");
  }
  const Setting *ranks = file.get("num_processes");
  if (ranks && ranks->value != "-1")
    ledger.claim("num_processes", *ranks);
  else if (type.value == "NO")
    ledger.suggest("num_processes", "1", Kind::Derived,
                   "distributed_type NO runs one process");
  else
    layout.openRanks = ranks ? ranks->place : type.place;
  if (const Setting *machines = file.get("num_machines")) {
    layout.machines = numberOf(file, "num_machines", 1);
    layout.machinesPlace = machines->place;
  }
  const Setting *strategy =
      file.get("parallelism_config.parallelism_config_cp_comm_strategy");
  if (strategy && strategy->value != "null" &&
      numberOf(file, "parallelism_config.parallelism_config_cp_size", 1) > 1)
    ledger.claim("cp.strategy", *strategy,
                 strategy->value == "alltoall" ? "ring" : "allgather");
  const Setting *copies =
      file.get("parallelism_config.parallelism_config_dp_replicate_size");
  const Setting *parts =
      file.get("parallelism_config.parallelism_config_dp_shard_size");
  // Sizes of 1 all over ask for nothing: Accelerate replicates over all ranks.
  bool asks = any_of(file.settings, [](const Setting &setting) {
    StringRef path = setting.path;
    return path.starts_with("parallelism_config.") && path.ends_with("_size") &&
           setting.value != "null" && setting.value != "1";
  });
  if (copies && asks)
    ledger.claim("dp_replicate", *copies);
  if (parts && asks)
    ledger.claim("dp_shard", *parts);
}
