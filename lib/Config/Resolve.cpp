// Joins files and flags into one configuration.

#include "accel/Autodiff/TrainOptions.h"
#include "lib/Config/Resolver.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

#include <set>

using namespace llvm;
using namespace accel::config;
using Kind = Origin::Kind;

static Origin setOrigin() { return {Kind::Set, {"--set", 0}, ""}; }

static Error failFlag(const Twine &message) { return failAt(Place{}, message); }

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

/// The key nearest to an unknown one of `--set`.
static StringRef nearestName(StringRef name) {
  ArrayRef<StringLiteral> names = settingNames();
  return *std::min_element(
      names.begin(), names.end(), [&](StringRef a, StringRef b) {
        return name.edit_distance(a) < name.edit_distance(b);
      });
}

Error Resolver::readAll() {
  std::set<std::string> seen;
  for (const std::string &set : request.sets) {
    auto [name, value] = StringRef(set).split('=');
    if (name.empty() || value.empty())
      return failFlag("expected --set key=value, found '" + set + "'");
    if (!seen.insert(name.str()).second)
      return failFlag("'" + name + "' is set twice");
    if (isSettingName(name))
      sets.emplace_back(name, value);
    else if (!request.files.empty() &&
             (findByPath(File::Kind::Accelerate, name) ||
              findByPath(File::Kind::DeepSpeed, name)))
      pathSets.emplace_back(name, value);
    else
      return failFlag("unknown key '" + name + "' of --set, the nearest is '" +
                      nearestName(name) + "'");
  }
  Findings findings;
  ReadOptions options{pathSets, request.likeAccelerate};
  for (const std::string &source : request.files)
    if (Error error = readFiles(source, options, files, findings))
      return error;
  config.differences = std::move(findings.differences);
  config.overrides = std::move(findings.overrides);
  for (auto &[path, value] : pathSets)
    if (none_of(files, [&, &path = path](const File &file) {
          return file.find(path) != nullptr;
        }))
      return failFlag("no file of --config has a place for '" + path +
                      "' of --set");
  for (size_t i = 0; i < files.size(); ++i) {
    File &file = files[i];
    bool named = i + 1 < files.size() && files[i + 1].parent.isFile();
    findDifferences(file, request.likeAccelerate, config.differences);
    if (Error error = checkAgreement(file, named))
      return error;
    if (Error error = refuseLater(file))
      return error;
    for (Setting &setting : file.settings)
      setting.idle = file.isIdle(setting);
    append_range(config.keys, file.settings);
    if (file.kind == File::Kind::Accelerate)
      claimAccelerate(file, named, ledger, layout);
    else if (Error error =
                 claimDeepSpeed(file, file.parent.isFile(), ledger, layout))
      return error;
  }
  return Error::success();
}

Error Resolver::claimSet(StringRef name, StringRef value) {
  auto expected = [&](const Twine &what) {
    return failFlag("expected " + what + " as '" + name + "', found '" + value +
                    "'");
  };
  if (is_contained({"num_processes", "dp_replicate", "dp_shard",
                    "train_batch_size", "train_micro_batch_size_per_gpu",
                    "gradient_accumulation_steps"},
                   name)) {
    int64_t count;
    if (value.getAsInteger(10, count) || count < 1)
      return expected("an integer of at least 1");
  } else if (name == "zero_stage") {
    int64_t stage;
    if (value.getAsInteger(10, stage) || stage < 0 || stage > 3)
      return expected("0, 1, 2 or 3");
  } else if (name == "zero.gather_once") {
    if (value != "true" && value != "false")
      return expected("true or false");
  } else if (name == "mixed_precision") {
    if (value != "no" && value != "bf16")
      return expected("no or bf16");
  }
  // The others are the update's, which checks them.
  ledger.claim(name, value.str(), setOrigin());
  return Error::success();
}

Error Resolver::claimFlags() {
  for (auto &[name, value] : sets)
    if (Error error = claimSet(name, value))
      return error;
  if (request.microBatches && *request.microBatches < 1)
    return failFlag("expected --micro-batches of at least 1, found " +
                    Twine(*request.microBatches));
  auto flag = [](StringRef name) {
    return Origin{Kind::Flag, {name.str(), 0}, ""};
  };
  if (request.microBatches)
    ledger.claim("gradient_accumulation_steps",
                 std::to_string(*request.microBatches),
                 flag("--micro-batches"));
  if (request.mixedPrecision)
    ledger.claim("mixed_precision", *request.mixedPrecision,
                 flag("--mixed-precision"));
  if (request.optimizer)
    ledger.claim("optimizer.type", *request.optimizer, flag("--optimizer"));
  return Error::success();
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

Error Resolver::settleRest() {
  ledger.suggest("mixed_precision", "no", Kind::Default, "");
  for (StringLiteral name : settingNames())
    if (Error error = settleInto(name))
      return error;
  auto fallBack = [&](StringRef name, StringRef value) {
    if (!find(name))
      config.resolved.push_back({name.str(), value.str(), {}});
  };
  fallBack("gradient_clipping", "none");
  if (find("zero_stage")->value == "3")
    fallBack("zero.gather_once", "false");
  return Error::success();
}

/// The keys of `--set` that the update reads.
static bool isUpdateKey(StringRef name) {
  return (name.starts_with("optimizer.") && name != "optimizer.type") ||
         name.starts_with("scheduler.") || name == "gradient_clipping" ||
         name == "seed";
}

/// What the update takes where nobody says anything, so that it is printed.
static void addDefaults(const accel::autodiff::UpdateRule &rule,
                        Config &config) {
  using accel::autodiff::Optimizer;
  auto add = [&](StringRef name, const Twine &value) {
    if (!config.find(name))
      config.resolved.push_back(
          {name.str(), value.str(),
           Origin{Kind::Default, {}, "PyTorch's, where nothing says it"}});
  };
  bool sgd = rule.optimizer == Optimizer::SGD;
  add("optimizer.type", sgd                                 ? "sgd"
                        : rule.optimizer == Optimizer::Adam ? "adam"
                                                            : "adamw");
  add("optimizer.lr", formatNumber(rule.lr));
  add("optimizer.weight_decay", formatNumber(rule.weightDecay));
  if (sgd) {
    add("optimizer.momentum", formatNumber(rule.momentum));
  } else {
    add("optimizer.betas",
        formatNumber(rule.beta1) + "," + formatNumber(rule.beta2));
    add("optimizer.eps", formatNumber(rule.eps));
  }
  add("scheduler.type", "constant");
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

Error Resolver::fillConfig() {
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
    } else if (one.value != "none") {
      config.settings.push_back(one.name + "=" + one.value);
    }
  }
  // Without a warmup there is no way of rising, and a rate that does not fall
  // either needs no schedule.
  if (value("scheduler.warmup_steps") == "0" && !request.files.empty())
    llvm::erase_if(config.settings, [](StringRef one) {
      return one.starts_with("scheduler.warmup");
    });
  if (value("scheduler.type") == "linear" &&
      value("scheduler.warmup_steps") == "0" &&
      value("scheduler.total_steps").empty() && !request.files.empty())
    llvm::erase_if(config.settings,
                   [](StringRef one) { return one.starts_with("scheduler."); });
  config.optimizer = value("optimizer.type").str();
  config.mesh = request.mesh;
  if (config.mesh.empty()) {
    std::vector<std::string> axes;
    if (replicas > 1)
      axes.push_back("dp_replicate=" + std::to_string(replicas));
    if (shards > 1)
      axes.push_back("dp_shard=" + std::to_string(shards));
    config.mesh = join(axes, ",");
  }
  config.mixedPrecision =
      value("mixed_precision") == "no" ? "" : value("mixed_precision").str();
  (void)value("zero_stage").getAsInteger(10, config.zeroStage);
  config.gatherOnce = value("zero.gather_once") == "true";
  if (config.gatherOnce && config.zeroStage != 3)
    return failAt(placeOf("zero.gather_once"),
                  "expected 'zero_stage=3' with 'zero.gather_once': only there "
                  "parameters are gathered");
  (void)value("gradient_accumulation_steps")
      .getAsInteger(10, config.microBatches);
  if (!config.missing) {
    auto rule =
        accel::autodiff::parseUpdateRule(config.optimizer, config.settings);
    if (Error error = rule.takeError()) {
      std::string message = toString(std::move(error));
      return failAt(placeOfMessage(config, message), message);
    }
    addDefaults(*rule, config);
  }
  append_range(config.overrides, ledger.takeOverrides());
  llvm::sort(config.resolved, [](const Resolved &a, const Resolved &b) {
    auto rank = [](StringRef name) {
      return llvm::find(settingNames(), name) - settingNames().begin();
    };
    return rank(a.name) < rank(b.name);
  });
  return Error::success();
}

Expected<Config> accel::config::resolveConfig(const Request &request) {
  Resolver resolver(request);
  if (Error error = resolver.readAll())
    return error;
  if (Error error = resolver.claimFlags())
    return error;
  if (Error error = resolver.settleMesh())
    return error;
  if (Error error = resolver.settleBatch())
    return error;
  if (Error error = resolver.settleRest())
    return error;
  if (Error error = resolver.fillConfig())
    return error;
  return resolver.takeConfig();
}

void accel::config::compareWithAccelerate(const Request &request,
                                          Config &config) {
  Request other = request;
  other.likeAccelerate = true;
  Expected<Config> there = resolveConfig(other);
  if (!there) {
    std::string message = toString(there.takeError());
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
}
