// The two products that have to hold: ranks = dp_replicate x dp_shard, and
// train_batch_size = rows of a micro-batch x micro-batches x ranks.

#include "lib/Config/Resolver.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace llvm;
using namespace accel::config;
using Kind = Origin::Kind;

/// Axes of `--mesh` become claims; what it does not name has one rank. Other
/// axes than the two of data parallelism are left to the pass that reads them.
Error Resolver::claimMeshFlag() {
  if (request.mesh.empty())
    return Error::success();
  Expected<std::optional<int64_t>> stage = settleInteger("zero_stage");
  if (!stage)
    return stage.takeError();
  Origin origin{Kind::Flag, {"--mesh", 0}, ""};
  int64_t sizes[2] = {1, 1}, all = 1;
  for (StringRef axis : split(request.mesh, ',')) {
    auto [name, text] = axis.split('=');
    int64_t size;
    if (text.getAsInteger(10, size) || size < 1)
      return Error::success(); // the pass that reads it says what is wrong
    all *= size;
    if (name == "dp")
      sizes[stage->value_or(0) > 0] *= size;
    else if (name == "dp_replicate" || name == "dp_shard")
      sizes[name == "dp_shard"] *= size;
  }
  ledger.claim("num_processes", std::to_string(all), origin);
  ledger.claim("dp_replicate", std::to_string(sizes[0]), origin);
  ledger.claim("dp_shard", std::to_string(sizes[1]), origin);
  return Error::success();
}

Error Resolver::settleMesh() {
  ledger.suggest("zero_stage", "0", Kind::Default, "");
  if (Error error = claimMeshFlag())
    return error;
  Expected<std::optional<int64_t>> stage = settleInteger("zero_stage");
  if (!stage)
    return stage.takeError();
  Expected<std::optional<int64_t>> ranks = settleInteger("num_processes");
  if (!ranks)
    return ranks.takeError();
  Expected<std::optional<int64_t>> copies = settleInteger("dp_replicate");
  if (!copies)
    return copies.takeError();
  Expected<std::optional<int64_t>> parts = settleInteger("dp_shard");
  if (!parts)
    return parts.takeError();
  bool split = stage->value_or(0) > 0;

  auto derive = [&](StringRef name, int64_t value, const Twine &why) {
    config.resolved.push_back({name.str(), std::to_string(value),
                               Origin{Kind::Derived, {}, why.str()}});
  };
  if (!*ranks && (*copies || *parts)) {
    *ranks = copies->value_or(1) * parts->value_or(1);
    derive("num_processes", **ranks, "dp_replicate x dp_shard");
  } else if (!*ranks) {
    *ranks = 1;
    derive("num_processes", 1, "nothing says more");
    if (layout.openRanks)
      config.missing.emplace(*layout.openRanks,
                             "expected --mesh or --set num_processes=N: the "
                             "file does not say the number of ranks");
  }
  int64_t all = **ranks;
  if (!request.mesh.empty() && *copies && *parts)
    all = **copies * **parts; // other axes of --mesh are no data parallelism

  auto divide = [&](StringRef name, int64_t by) -> Error {
    if (all % by == 0)
      return Error::success();
    return failAt(placeOf(name), "expected '" + name + "' to divide the " +
                                     Twine(all) +
                                     " ranks of 'num_processes' (" +
                                     find("num_processes")->origin.str() +
                                     "), found " + Twine(by));
  };
  if (*copies && *parts) {
    if (**copies * **parts != all) {
      Place place = placeOf("dp_shard");
      if (!place.isFile())
        place = placeOf("dp_replicate");
      if (!place.isFile())
        place = placeOf("num_processes");
      return failAt(place, "expected dp_replicate x dp_shard to be the " +
                               Twine(all) + " ranks of 'num_processes' (" +
                               find("num_processes")->origin.str() +
                               "), found " + Twine(**copies) + " x " +
                               Twine(**parts));
    }
    replicas = **copies;
    shards = **parts;
  } else if (*copies) {
    if (Error error = divide("dp_replicate", **copies))
      return error;
    replicas = **copies;
    shards = all / replicas;
    derive("dp_shard", shards, "num_processes / dp_replicate");
  } else if (*parts) {
    if (Error error = divide("dp_shard", **parts))
      return error;
    shards = **parts;
    replicas = all / shards;
    derive("dp_replicate", replicas, "num_processes / dp_shard");
  } else if (layout.hybrid && split) {
    replicas = layout.machines;
    shards = all / std::max<int64_t>(replicas, 1);
    derive("dp_replicate", replicas, "one copy per machine of num_machines");
    derive("dp_shard", shards, "the ranks of one machine");
  } else {
    (split ? shards : replicas) = all;
    derive("dp_replicate", replicas,
           split ? "states are sharded over all ranks"
                 : "zero_stage 0 replicates over all ranks");
    derive("dp_shard", shards,
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
  if (split && shards == 1 && all > 1)
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
  int64_t ranks = replicas * shards;
  auto derive = [&](StringRef name, int64_t value, StringRef why) {
    config.resolved.push_back({name.str(), std::to_string(value),
                               Origin{Kind::Derived, {}, why.str()}});
  };
  auto uneven = [&](StringRef what, int64_t by) {
    return failAt(placeOf("train_batch_size"),
                  "expected 'train_batch_size' to be a multiple of " + what +
                      " = " + Twine(by) + ", found " + Twine(**batch));
  };
  std::string rankText = std::to_string(ranks) + " ranks";
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
