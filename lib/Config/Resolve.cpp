// Joins files and flags into one configuration.

#include "lib/Autodiff/UpdateRule.h"
#include "lib/Config/Resolver.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace llvm;
using namespace accel::config;
using accel::autodiff::Hyperparameter;
using Kind = Origin::Kind;

const Resolved *Config::find(StringRef name) const {
  auto found =
      find_if(resolved, [&](const Resolved &one) { return one.name == name; });
  return found == resolved.end() ? nullptr : &*found;
}

const Resolved *Resolver::find(StringRef name) const {
  return config.find(name);
}

Place Resolver::placeOf(StringRef name) const {
  const Resolved *resolved = find(name);
  return resolved ? resolved->origin.place : Place{};
}

Error Resolver::claimFlags() {
  Error errors = Error::success();
  for (auto &[name, value] : sets) {
    std::string expected = describeMismatch(*findSetting(name), value);
    if (!expected.empty())
      errors = joinErrors(std::move(errors),
                          failFlag("expected " + expected + " as '" + name +
                                   "', found '" + value + "'"));
  }
  if (request.microBatches && *request.microBatches < 1)
    errors =
        joinErrors(std::move(errors),
                   failFlag("expected --micro-batches of at least 1, found " +
                            Twine(*request.microBatches)));
  auto flag = [](StringRef name) {
    return Origin{Kind::Flag, {name.str(), 0}, ""};
  };
  if (request.microBatches)
    ledger.claim("gradient_accumulation_steps",
                 std::to_string(*request.microBatches),
                 flag("--micro-batches"));
  if (request.schedule)
    ledger.claim("schedule", *request.schedule, flag("--schedule"));
  if (request.recompute)
    ledger.claim("recompute", *request.recompute, flag("--recompute"));
  if (request.memoryBudget)
    ledger.claim("memory_budget", *request.memoryBudget,
                 flag("--memory-budget"));
  if (request.mixedPrecision)
    ledger.claim("mixed_precision", *request.mixedPrecision,
                 flag("--mixed-precision"));
  if (request.optimizer)
    ledger.claim("optimizer.type", StringRef(*request.optimizer).lower(),
                 flag("--optimizer"));
  return errors;
}

Error Resolver::settleInto(StringRef name) {
  Expected<const Resolved *> settled = ledger.settle(name);
  if (!settled)
    return settled.takeError();
  if (*settled && !find(name))
    config.resolved.push_back(**settled);
  return Error::success();
}

Expected<std::optional<int64_t>> Resolver::settleInteger(StringRef name) {
  if (Error error = settleInto(name))
    return error;
  const Resolved *resolved = find(name);
  int64_t value;
  if (!resolved || StringRef(resolved->value).getAsInteger(10, value))
    return std::nullopt;
  return value;
}

void Resolver::setScalersIdle() {
  for (Setting &setting : config.keys)
    if (StringRef path = setting.path;
        setting.idle.empty() &&
        (path.starts_with("GradScalerKwargs.") ||
         (path.starts_with("fp16.") && path != "fp16.enabled") ||
         is_contained({"--loss-scale", "--initial-loss-scale",
                       "--min-loss-scale", "--loss-scale-window",
                       "--hysteresis"},
                      path)))
      setting.idle = "read with mixed_precision fp16";
}

void Resolver::setFp8Idle() {
  for (Setting &setting : config.keys)
    if (StringRef path = setting.path;
        setting.idle.empty() &&
        (path.starts_with("fp8_config.") || path.starts_with("--fp8-") ||
         path.starts_with("TERecipeKwargs.") ||
         path.starts_with("AORecipeKwargs.") ||
         path.starts_with("MSAMPRecipeKwargs.") ||
         is_contained({"--no-fp8-wgrad", "--disable-fp8-wgrad",
                       "--first-last-layers-bf16"},
                      path)))
      setting.idle = "read with mixed_precision fp8";
}

Error Resolver::settleRest() {
  ledger.suggest("mixed_precision", "no", Kind::Default, "");
  Error errors = settleInto("mixed_precision");
  const Resolved *precision = find("mixed_precision");
  // What files say of scalers is read with fp16 alone.
  bool isScaled = precision && precision->value == "fp16";
  if (isScaled)
    ledger.suggest("scaler.type", "torch", Kind::Default,
                   "torch.amp.GradScaler, as Accelerate has it");
  else
    setScalersIdle();
  for (const Setting &setting : config.keys)
    if (isScaled && setting.value == "true" &&
        setting.path == "fp16.fp16_master_weights_and_grads")
      errors = joinErrors(
          std::move(errors),
          failAt(setting.place, "'" + setting.path +
                                    ": true' is not supported yet: weights "
                                    "that are float16 alone"));
  bool isFp8 = precision && precision->value == "fp8";
  if (!isFp8)
    setFp8Idle();
  for (const NamedSetting &one : namedSettings())
    if (ledger.findSet(one.name) ||
        ((isScaled || !one.name.starts_with("scaler.")) &&
         (isFp8 || !one.name.starts_with("fp8."))))
      errors = joinErrors(std::move(errors), settleInto(one.name));
  // In the order in which they are said: of several that match, the last
  // counts.
  for (auto &[name, value] : sets)
    if (accel::autodiff::isGroupKey(name) ||
        accel::autodiff::splitPartKey(name))
      errors = joinErrors(std::move(errors), settleInto(name));
  if (errors)
    return errors;
  auto fallBack = [&](StringRef name, StringRef value) {
    if (!find(name))
      config.resolved.push_back({name.str(), value.str(), {}});
  };
  if (Error error = checkGroups())
    return error;
  fallBack("gradient_clipping", "none");
  if (const Resolved *stage = find("zero_stage"); stage && stage->value == "3")
    fallBack("zero.gather_once", "false");
  return Error::success();
}

/// The keys of `--set` that the update reads as they are.
static bool isUpdateKey(StringRef name) {
  return findSetting(name)->reader == NamedSetting::Reader::Update &&
         name != "optimizer.type";
}

/// As `--set` takes it.
static std::string print(const Hyperparameter &one,
                         const accel::autodiff::Hyperparameters &values) {
  switch (one.type) {
  case Hyperparameter::Type::Betas:
    return formatNumber(values.get("beta1")) + "," +
           formatNumber(values.get("beta2"));
  case Hyperparameter::Type::Flag:
    return values.isSet(one.name) ? "true" : "false";
  case Hyperparameter::Type::Word:
    return one.words[size_t(values.get(one.name))].str();
  default:
    return formatNumber(values.get(one.name));
  }
}

/// Of a schedule, but for what is 0: nothing is done for it.
static void
addDefaults(const accel::autodiff::ScheduleRule &schedule,
            function_ref<void(StringRef, const Twine &, StringRef)> add) {
  using accel::autodiff::ScheduleKey;
  for (const ScheduleKey &one : schedule.kind->keys) {
    double number = one.first ? schedule.values.get(one.name) : 0;
    if (number == 0)
      continue;
    std::string value = one.type == ScheduleKey::Type::Flag ? "true"
                        : one.type == ScheduleKey::Type::Word
                            ? one.words[size_t(number)].str()
                            : formatNumber(number);
    add(("scheduler." + one.name).str(), value, schedule.kind->whose);
  }
}

/// What the update takes where nobody says anything, so that it is printed.
static void addDefaults(const accel::autodiff::UpdateRule &rule,
                        Config &config) {
  auto add = [&](StringRef name, const Twine &value,
                 StringRef whose = "PyTorch's") {
    if (!config.find(name))
      config.resolved.push_back(
          {name.str(), value.str(),
           Origin{
               Kind::Default, {}, (whose + ", where nothing says it").str()}});
  };
  const auto &optimizer = rule.optimizer;
  add("optimizer.type", optimizer.kind->name);
  for (const Hyperparameter &one : optimizer.kind->hyperparameters)
    if (one.type != Hyperparameter::Type::Rate) // lr, which is there
      add(("optimizer." + one.name).str(), print(one, optimizer.values),
          optimizer.kind->whose);
  add("optimizer.no_decay", "none");
  add("scheduler.type", "constant");
  addDefaults(rule.schedule, add);
  add("seed", Twine(rule.seed));
}

/// The place of the setting whose name a message of the update's mentions.
static Place placeOfMessage(const Config &config, StringRef message) {
  Place found;
  for (const Resolved &one : config.resolved)
    if (one.origin.kind == Kind::File && message.contains("'" + one.name + "'"))
      found = one.origin.place;
  return found;
}

void Resolver::dropUnread() {
  auto setTo = [&](StringRef name) -> std::string {
    const std::string *said = ledger.findSet(name);
    return said ? *said : "";
  };
  std::string optimizer = setTo("optimizer.type");
  std::string schedule = setTo("scheduler.type");
  llvm::erase_if(config.resolved, [&](const Resolved &one) {
    if (!isUpdateKey(one.name) || one.origin.kind == Kind::Set ||
        accel::autodiff::isReadBy(one.name, optimizer, schedule))
      return false;
    if (one.origin.kind != Kind::File)
      return true;
    bool byOptimizer = !accel::autodiff::isReadBy(one.name, optimizer, "");
    std::string name = byOptimizer ? "optimizer.type" : "scheduler.type";
    std::string value = byOptimizer ? optimizer : schedule;
    for (Setting &setting : config.keys)
      if (setting.path == one.origin.detail &&
          setting.place.str() == one.origin.place.str())
        setting.idle = "--set " + name + "=" + value + " beats it";
    config.overrides.push_back(
        {name, value, one.name + "=" + one.value, one.origin.place});
    return true;
  });
}

Error Resolver::fillConfig() {
  dropUnread();
  auto value = [&](StringRef name) -> StringRef {
    const Resolved *resolved = find(name);
    return resolved ? StringRef(resolved->value) : "";
  };
  for (const Resolved &one : config.resolved) {
    if (!isUpdateKey(one.name))
      continue;
    if (one.value == "?") {
      Place place;
      for (const Setting &setting : config.keys)
        if (setting.path == "scheduler.params.total_num_steps")
          place = setting.place;
      if (!config.missing)
        config.missing.emplace(place, "expected --set " + one.name +
                                          "=N for 'total_num_steps: auto': "
                                          "nothing here says how long training "
                                          "is");
      // Long enough for all else to be checked; nothing is compiled with it.
      config.settings.push_back(one.name + "=" + std::to_string(INT64_MAX));
    } else if (one.value != "none") {
      config.settings.push_back(one.name + "=" + one.value);
    }
  }
  // Without a warmup there is no way of rising. DeepSpeed's schedules have one.
  const accel::autodiff::ScheduleKind *schedule =
      accel::autodiff::findSchedule(value("scheduler.type"));
  if (value("scheduler.warmup_steps") == "0" && !request.files.empty() &&
      !(schedule && schedule->clock == accel::autodiff::Clock::Late))
    llvm::erase_if(config.settings, [](StringRef one) {
      return one.starts_with("scheduler.warmup");
    });
  config.optimizer = value("optimizer.type").str();
  config.mesh = request.mesh;
  if (config.mesh.empty()) {
    // In the order of ranks: those of a stage are next to each other.
    std::vector<std::string> axes;
    if (!modelAxes.empty() && modelAxes.front().first == "pp")
      axes.push_back("pp=" + std::to_string(modelAxes.front().second));
    if (replicas > 1)
      axes.push_back("dp_replicate=" + std::to_string(replicas));
    if (shards > 1)
      axes.push_back("dp_shard=" + std::to_string(shards));
    for (auto &[name, size] : modelAxes)
      if (name != "pp")
        axes.push_back(name + "=" + std::to_string(size));
    config.mesh = join(axes, ",");
  }
  config.mixedPrecision =
      value("mixed_precision") == "no" ? "" : value("mixed_precision").str();
  for (const Resolved &one : config.resolved)
    if (findSetting(one.name)->reader == NamedSetting::Reader::Pass)
      config.ofPasses.emplace_back(one.name, one.value);
  if (StringRef once = value("zero.gather_once");
      (once == "true" || once == "auto") && value("zero_stage") != "3")
    return failAt(placeOf("zero.gather_once"),
                  "expected 'zero_stage=3' with 'zero.gather_once': only there "
                  "parameters are gathered");
  (void)value("gradient_accumulation_steps")
      .getAsInteger(10, config.microBatches);
  auto rule =
      accel::autodiff::parseUpdateRule(config.optimizer, config.settings);
  if (Error error = rule.takeError()) {
    Error errors = Error::success();
    handleAllErrors(std::move(error), [&](const ErrorInfoBase &one) {
      std::string message = one.message();
      errors = joinErrors(std::move(errors),
                          failAt(placeOfMessage(config, message), message));
    });
    return errors;
  }
  addDefaults(*rule, config);
  append_range(config.overrides, ledger.takeOverrides());
  llvm::stable_sort(config.resolved, [](const Resolved &a, const Resolved &b) {
    return findSetting(a.name) < findSetting(b.name);
  });
  return Error::success();
}

Expected<Config> accel::config::resolveConfig(const Request &request) {
  Resolver resolver(request);
  Error errors = joinErrors(resolver.readAll(), resolver.claimFlags());
  if (errors)
    return std::move(errors);
  errors = resolver.settleMesh();
  if (!errors)
    errors = resolver.settleBatch();
  if (!errors)
    errors = resolver.settleChunks();
  errors = joinErrors(std::move(errors), resolver.settleRest());
  if (errors)
    return std::move(errors);
  if (Error error = resolver.fillConfig())
    return std::move(error);
  return resolver.takeConfig();
}

void accel::config::compareWithAccelerate(const Request &request,
                                          Config &config) {
  Request other = request;
  other.likeAccelerate = true;
  Expected<Config> there = resolveConfig(other);
  if (!there) {
    std::string message = toString(there.takeError());
    std::replace(message.begin(), message.end(), '\n', ';');
    config.differences.push_back(
        {Place{}, "all", "accepted", "refused", std::move(message)});
    return;
  }
  for (const Resolved &here : config.resolved) {
    const Resolved *theirs = there->find(here.name);
    if (theirs && sameValue(theirs->value, here.value))
      continue;
    config.differences.push_back({here.origin.place, here.name, here.value,
                                  theirs ? theirs->value : "nothing",
                                  "what it comes to"});
  }
  for (const Resolved &theirs : there->resolved)
    if (!config.find(theirs.name))
      config.differences.push_back({theirs.origin.place, theirs.name, "nothing",
                                    theirs.value, "what it comes to"});
}
