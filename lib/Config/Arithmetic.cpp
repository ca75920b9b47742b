// The two products that have to hold: ranks = pp x dp_replicate x dp_shard x ep
// x cp x sp x tp, and train_batch_size = rows of a micro-batch x micro-batches
// x ranks of data parallelism, which are those along ep as well.

#include "lib/Config/Resolver.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace llvm;
using namespace accel::config;
using Kind = Origin::Kind;

/// Axes whose ranks have different parts of the model, or of the same rows of
/// the batch, major to minor. With dp_replicate and dp_shard behind pp it is
/// the order in which Accelerate, DeepSpeed and Megatron-LM number ranks.
static constexpr StringLiteral kModelAxes[] = {"pp", "ep", "cp", "sp", "tp"};

/// Ranks are numbered in 32 bits by every communication library.
static constexpr int64_t kMostRanks = INT32_MAX;
static constexpr char kTooMany[] = "expected at most 2147483647 ranks";

/// Axes of `--mesh` become claims; what it does not name has one rank. Axes of
/// other names are left to the pass that reads them.
Error Resolver::claimMeshFlag() {
  if (request.mesh.empty())
    return Error::success();
  Expected<std::optional<int64_t>> stage = settleInteger("zero_stage");
  if (!stage)
    return stage.takeError();
  Origin origin{Kind::Flag, {"--mesh", 0}, ""};
  StringRef dp = stage->value_or(0) > 0 ? "dp_shard" : "dp_replicate";
  std::map<std::string, int64_t> sizes{{"dp_replicate", 1}, {"dp_shard", 1}};
  for (StringRef axis : kModelAxes)
    if (ledger.isClaimed(axis))
      sizes[axis.str()] = 1;
  int64_t all = 1;
  for (StringRef axis : split(request.mesh, ',')) {
    auto [given, text] = axis.split('=');
    StringRef name = given == "dp" ? dp : given;
    int64_t size;
    if (text.getAsInteger(10, size) || size < 1)
      return Error::success(); // the pass that reads it says what is wrong
    if (llvm::MulOverflow(all, size, all) || all > kMostRanks)
      return Error::success(); // as does this
    if (sizes.count(name.str()) || is_contained(kModelAxes, name))
      sizes.try_emplace(name.str(), 1).first->second *= size;
  }
  sizes["num_processes"] = all;
  Error errors = Error::success();
  for (auto &[name, size] : sizes) {
    // The mesh is taken as it is written: nothing beats a part of it.
    const std::string *set = ledger.findSet(name);
    if (set && !sameValue(*set, std::to_string(size)))
      errors = joinErrors(std::move(errors),
                          failAt(Place{}, "'" + name + "' is " + *set +
                                              " by --set, but " + Twine(size) +
                                              " by '--mesh " + request.mesh +
                                              "': say one of the two"));
    ledger.claim(name, std::to_string(size), origin);
  }
  return errors;
}

void Resolver::derive(StringRef name, int64_t value, const Twine &why) {
  config.resolved.push_back({name.str(), std::to_string(value),
                             Origin{Kind::Derived, {}, why.str()}});
}

Error Resolver::settleModelAxes() {
  for (StringRef axis : kModelAxes) {
    Expected<std::optional<int64_t>> size = settleInteger(axis);
    if (!size)
      return size.takeError();
    if (size->value_or(1) == 1)
      continue;
    modelAxes.emplace_back(axis.str(), **size);
    if (llvm::MulOverflow(modelRanks, **size, modelRanks) ||
        modelRanks > kMostRanks)
      return failAt(placeOf(axis), kTooMany);
    if (axis == "ep")
      expertRanks = **size;
    modelNames += (modelNames.empty() ? "" : " x ") + axis.str();
  }
  return checkExperts();
}

/// tp splits experts as it splits everything else; 1 is what files say that
/// mean none of it.
Error Resolver::checkExperts() {
  Expected<std::optional<int64_t>> split = settleInteger("etp");
  if (!split)
    return split.takeError();
  int64_t tensor = 1;
  for (auto &[axis, ranks] : modelAxes)
    if (axis == "tp")
      tensor = ranks;
  if (split->value_or(1) == 1 || **split == tensor)
    return Error::success();
  return failAt(placeOf("etp"), "expected for 'etp', over which experts are "
                                "split, the " +
                                    Twine(tensor) + " ranks of 'tp', found " +
                                    Twine(**split));
}

Error Resolver::settleRanks() {
  if (Error error = settleModelAxes())
    return error;
  Expected<std::optional<int64_t>> ranks = settleInteger("num_processes");
  if (!ranks)
    return ranks.takeError();
  bool divided = find("dp_replicate") || find("dp_shard");
  int64_t named = 1;
  for (int64_t size : {replicas, shards, modelRanks})
    if (llvm::MulOverflow(named, size, named) || named > kMostRanks)
      return failAt(placeOf("dp_shard"), kTooMany);
  if (!*ranks) {
    *ranks = named;
    std::string why = divided ? "dp_replicate x dp_shard" : "";
    if (modelRanks > 1)
      why += (divided ? " x " : "") + modelNames;
    derive("num_processes", **ranks, why.empty() ? "nothing says more" : why);
    if (!divided && layout.openRanks)
      config.missing.emplace(*layout.openRanks,
                             "expected --mesh or --set num_processes=N: the "
                             "file does not say the number of ranks");
  }
  dataRanks = **ranks / modelRanks;
  if (!request.mesh.empty())
    dataRanks = replicas * shards; // other axes of --mesh divide no rows
  else if (**ranks % modelRanks != 0) {
    Place place = placeOf("num_processes");
    for (auto &[name, size] : modelAxes)
      if (placeOf(name).isFile())
        place = placeOf(name);
    return failAt(place, "expected " + modelNames + " = " + Twine(modelRanks) +
                             " to divide the " + Twine(**ranks) +
                             " ranks of 'num_processes' (" +
                             find("num_processes")->origin.str() + ")");
  }
  return Error::success();
}

/// The ranks that the axes of data parallelism divide, as messages call them.
std::string Resolver::describeDataRanks() const {
  std::string origin = find("num_processes")->origin.str();
  if (modelRanks == 1)
    return std::to_string(dataRanks) + " ranks of 'num_processes' (" + origin +
           ")";
  return std::to_string(dataRanks) + " ranks that " + modelNames +
         " leaves of "
         "'num_processes' (" +
         origin + ")";
}

Error Resolver::settleMesh() {
  ledger.suggest("zero_stage", "0", Kind::Default, "");
  if (Error error = claimMeshFlag())
    return error;
  Expected<std::optional<int64_t>> stage = settleInteger("zero_stage");
  if (!stage)
    return stage.takeError();
  Expected<std::optional<int64_t>> copies = settleInteger("dp_replicate");
  if (!copies)
    return copies.takeError();
  Expected<std::optional<int64_t>> parts = settleInteger("dp_shard");
  if (!parts)
    return parts.takeError();
  replicas = copies->value_or(1);
  shards = parts->value_or(1);
  if (Error error = settleRanks())
    return error;
  bool split = stage->value_or(0) > 0;
  int64_t all = dataRanks;

  auto divide = [&](StringRef name, int64_t by) -> Error {
    if (all % by == 0)
      return Error::success();
    return failAt(placeOf(name), "expected '" + name + "' to divide the " +
                                     describeDataRanks() + ", found " +
                                     Twine(by));
  };
  // What remains of the ranks, in words.
  std::string total = "num_processes";
  for (auto &[name, size] : modelAxes)
    total += " / " + name;
  if (*copies && *parts) {
    if (replicas * shards != all) {
      Place place = placeOf("dp_shard");
      if (!place.isFile())
        place = placeOf("dp_replicate");
      if (!place.isFile())
        place = placeOf("num_processes");
      return failAt(place, "expected dp_replicate x dp_shard to be the " +
                               describeDataRanks() + ", found " +
                               Twine(replicas) + " x " + Twine(shards));
    }
  } else if (*copies) {
    if (Error error = divide("dp_replicate", replicas))
      return error;
    shards = all / replicas;
    derive("dp_shard", shards, total + " / dp_replicate");
  } else if (*parts) {
    if (Error error = divide("dp_shard", shards))
      return error;
    replicas = all / shards;
    derive("dp_replicate", replicas, total + " / dp_shard");
  } else if (layout.hybrid && split) {
    replicas = layout.machines;
    shards = all / std::max<int64_t>(replicas, 1);
    derive("dp_replicate", replicas, "one copy per machine of num_machines");
    derive("dp_shard", shards, "the ranks of one machine");
  } else {
    (split ? shards : replicas) = all;
    for (StringRef name : {"dp_replicate", "dp_shard"})
      derive(name, name == "dp_shard" ? shards : replicas,
             split ? "states are sharded over all ranks"
                   : "zero_stage 0 replicates over all ranks");
  }
  // Without files the flags mean what they mean: a mesh may be used otherwise.
  if (request.files.empty())
    return Error::success();
  if (!split && shards > 1)
    return failAt(placeOf("dp_shard"),
                  "expected 'zero_stage' of at least 1 with 'dp_shard' " +
                      Twine(shards) + ", found 0 (" +
                      find("zero_stage")->origin.str() + ")");
  // Ranks that share sequences share states as well; those of tp do not.
  bool shares = llvm::any_of(modelAxes, [](const auto &axis) {
    return axis.first == "cp" || axis.first == "sp";
  });
  if (split && shards == 1 && all > 1 && !shares)
    return failAt(placeOf("dp_replicate"),
                  "expected 'dp_shard' above 1 with 'zero_stage' " +
                      find("zero_stage")->value +
                      ": there is no axis to shard over");
  return Error::success();
}

Error Resolver::settleBatch() {
  Expected<std::optional<int64_t>> batch = settleInteger("train_batch_size");
  if (!batch)
    return batch.takeError();
  Expected<std::optional<int64_t>> rows =
      settleInteger("train_micro_batch_size_per_gpu");
  if (!rows)
    return rows.takeError();
  Expected<std::optional<int64_t>> steps =
      settleInteger("gradient_accumulation_steps");
  if (!steps)
    return steps.takeError();
  int64_t ranks = replicas * shards * expertRanks;
  auto uneven = [&](StringRef what, int64_t by) {
    return failAt(placeOf("train_batch_size"),
                  "expected 'train_batch_size' to be a multiple of " + what +
                      " = " + Twine(by) + ", found " + Twine(**batch));
  };
  std::string rankText = std::to_string(ranks) +
                         (modelRanks > 1 ? " data-parallel" : "") + " ranks";
  if (*batch && *rows && *steps) {
    if (**batch != **rows * **steps * ranks) {
      Place place = placeOf("train_batch_size");
      for (StringRef name :
           {"train_micro_batch_size_per_gpu", "gradient_accumulation_steps"})
        if (!place.isFile())
          place = placeOf(name);
      return failAt(place, "expected 'train_batch_size' to be "
                           "train_micro_batch_size_per_gpu x "
                           "gradient_accumulation_steps x ranks = " +
                               Twine(**rows) + " x " + Twine(**steps) + " x " +
                               Twine(ranks) + " = " +
                               Twine(**rows * **steps * ranks) + ", found " +
                               Twine(**batch));
    }
  } else if (*batch && *rows) {
    if (**batch % (**rows * ranks))
      return uneven("train_micro_batch_size_per_gpu x " + rankText,
                    **rows * ranks);
    *steps = **batch / (**rows * ranks);
    derive("gradient_accumulation_steps", **steps,
           "train_batch_size / (train_micro_batch_size_per_gpu x ranks)");
  } else if (*batch) {
    if (!*steps) {
      *steps = 1;
      derive("gradient_accumulation_steps", 1, "nothing says more");
    }
    if (**batch % (**steps * ranks))
      return uneven("gradient_accumulation_steps x " + rankText,
                    **steps * ranks);
    *rows = **batch / (**steps * ranks);
    derive("train_micro_batch_size_per_gpu", **rows,
           "train_batch_size / (gradient_accumulation_steps x ranks)");
  } else {
    if (!*steps) {
      *steps = 1;
      derive("gradient_accumulation_steps", 1, "nothing says more");
    }
    if (*rows) {
      *batch = **rows * **steps * ranks;
      derive("train_batch_size", **batch,
             "train_micro_batch_size_per_gpu x gradient_accumulation_steps x "
             "ranks");
    }
  }
  if (*batch) {
    const Resolved *said = find("train_batch_size");
    if (said->origin.kind == Kind::Derived)
      said = find("train_micro_batch_size_per_gpu");
    config.batchSize = {**batch, said->origin};
    return Error::success();
  }
  for (StringRef name : {"train_batch_size", "train_micro_batch_size_per_gpu"})
    config.resolved.push_back({name.str(), "the model's",
                               Origin{Kind::Derived, {}, "nothing says it"}});
  return Error::success();
}
