// Megatron-LM's virtual stages: chunks of a pipeline that are counted in
// layers.

#include "lib/Config/Resolver.h"

using namespace llvm;
using namespace accel::config;

static Expected<int64_t> readCount(const Setting &setting) {
  int64_t count;
  if (StringRef(setting.value).getAsInteger(10, count))
    return failAt(setting.place, "expected a number as '" + setting.path +
                                     "', found '" + setting.value + "'");
  return count;
}

/// What Megatron-LM runs with so many chunks on each rank.
static std::string nameSchedule(int64_t chunks) {
  return chunks > 1 ? "interleaved:" + std::to_string(chunks) : "1f1b";
}

Error Resolver::settleChunks() {
  Expected<std::optional<int64_t>> stages = settleInteger("pp");
  if (!stages)
    return stages.takeError();
  if (stages->value_or(1) > 1)
    ledger.suggest("schedule", "1f1b", Origin::Kind::Default,
                   "of pipelines, Megatron-LM's too");
  const std::optional<Setting> &chunks = layout.virtualStages;
  const std::optional<Setting> &each = layout.layersOfChunk;
  const std::optional<Setting> &said = chunks ? chunks : each;
  if (!said)
    return Error::success();
  if (chunks && each)
    return failAt(each->place, "expected only one of '" + chunks->path +
                                   "' and '" + each->path + "'");
  if (stages->value_or(1) == 1)
    return failAt(said->place,
                  "expected several stages, '--mesh pp=2' or more, "
                  "with '" +
                      said->path + "': a stage is cut into chunks");
  Expected<int64_t> count = readCount(*said);
  if (!count)
    return count.takeError();
  if (chunks) {
    ledger.claim("schedule", *said, nameSchedule(*count));
    return Error::success();
  }
  if (!layout.layers) {
    // Chunks are found by their work: who says how many, has said enough.
    if (Error error = settleInto("schedule"))
      return error;
    const Resolved *schedule = find("schedule");
    if (schedule && StringRef(schedule->value).starts_with("interleaved:"))
      return Error::success();
    return failAt(said->place,
                  "expected --schedule=interleaved:V with '" + said->path +
                      "', of V chunks on each rank: nothing here says how many "
                      "layers the model has");
  }
  Expected<int64_t> layers = readCount(*layout.layers);
  if (!layers)
    return layers.takeError();
  if (*layers % (**stages * *count))
    return failAt(said->place, "expected '" + said->path + "' x " +
                                   Twine(**stages) +
                                   " stages = " + Twine(**stages * *count) +
                                   " to divide the " + Twine(*layers) +
                                   " layers of '" + layout.layers->path + "'");
  ledger.claim("schedule", *said, nameSchedule(*layers / (**stages * *count)));
  return Error::success();
}
