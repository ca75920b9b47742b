// Laying checkpoints out.

#include "State/Checkpoint.h"

#include "Base/SystemError.h"
#include "Data/Safetensors.h"
#include "State/Resume.h"
#include "State/SavedWeights.h"

#include <cerrno>
#include <sys/stat.h>

namespace accel::rt {
namespace {

int fileOf(const StatePlan &state) {
  return state.role == "parameter" || state.role == "buffer" ? kModel
                                                             : kOptimizer;
}

Status sameFolder(const std::string &a, const std::string &b, bool &same) {
  struct stat first, second;
  for (auto [path, info] : {std::pair(&a, &first), std::pair(&b, &second)})
    if (stat(path->c_str(), info) != 0)
      return Status::error("cannot look at the checkpoint " + inQuotes(*path) +
                           ": " + systemError(errno));
  same = first.st_dev == second.st_dev && first.st_ino == second.st_ino;
  return Status();
}

} // namespace

Status Checkpoints::open(const ExecutableFile &file, const RunOptions &options,
                         const Weights &weights, const Resume *resumed,
                         const DataCursor *cursor, Writers writers) {
  const Executable &executable = file.plan();
  program = &executable;
  every = options.saveEvery;
  keep = options.keep;
  keepsBest = !options.keepBest.empty();
  hasEvaluations = keepsBest || options.earlyStoppingPatience;
  // What is saved at the end alone keeps nobody waiting.
  background = (every || keepsBest) && !options.checkpointSync;
  isSpread = writers != Writers::Here;
  resumedPath = resumed ? resumed->path() : "";
  ACCEL_RT_RETURN_IF_ERROR(writers == Writers::Joined
                               ? folder.join(options.checkpoint)
                               : folder.open(options.checkpoint));
  // Checkpoints of two runs in one folder would be one history that neither
  // had; and none is ever written over.
  std::vector<FoundCheckpoint> found;
  ACCEL_RT_RETURN_IF_ERROR(listCheckpoints(folder.path(), found));
  if (!found.empty() && writers != Writers::Joined) {
    const std::string &newest = found.back().path;
    if (!resumed)
      return Status::error("expected a folder without checkpoints, found " +
                           inQuotes(newest) + ": go on from it with --resume " +
                           folder.path() + ", or give another --checkpoint");
    bool same = false;
    ACCEL_RT_RETURN_IF_ERROR(sameFolder(newest, resumed->path(), same));
    if (!same)
      return Status::error("expected no checkpoint in " +
                           inQuotes(folder.path()) +
                           " that is newer than, or no part of the run of, " +
                           inQuotes(resumed->path()) + ", found " +
                           inQuotes(newest) + ": give another --checkpoint");
  }

  for (const FoundCheckpoint &each : found)
    if (each.isWhole)
      before.push_back(each.step);

  Manifest contents;
  std::vector<SafetensorsEntry> entries[kNumCheckpointFiles];
  HeldStates held;
  for (const Program &program : executable.programs)
    held.merge(findHeld(program));
  std::unordered_map<std::string_view, size_t> numbers; // in `states`
  for (size_t i = 0; i < executable.states.size(); ++i) {
    const StatePlan &state = executable.states[i];
    if (state.role == "accumulator")
      continue; // zero between steps
    bool isHeld = held.count(state.keptAs());
    if (!isHeld && state.frozen && weights.checkOf(i).isFirst)
      continue; // it stays what the model's file says
    if (!isHeld && !state.frozen)
      return Status::error("expected a buffer that keeps state " +
                           inQuotes(state.name) +
                           ", found none: its value cannot be saved");
    int index = fileOf(state);
    const OpenTensor *source = isHeld ? nullptr : &weights.values()[i];
    entries[index].push_back({state.name,
                              source ? source->range.dtype : state.dtype,
                              state.valueShape()});
    numbers.emplace(state.name, states.size());
    states.push_back({&state, index, 0, 0, source, &weights.checkOf(i)});
    contents.states.push_back({state.name, state.role, state.aliases, index});
  }
  for (int i = 0; i < kNumCheckpointFiles; ++i) {
    headers[i] = safetensorsHeader(entries[i]);
    contents.headerHashes[i] = hashBytes(headers[i].data(), headers[i].size());
    fileBytes[i] = headers[i].size();
    for (const SafetensorsEntry &entry : entries[i]) {
      fileBytes[i] += entry.bytes;
      Saved &saved = states[numbers[entry.name]];
      saved.offset = headers[i].size() + entry.begin;
      saved.bytes = entry.bytes;
    }
  }
  contents.seed = executable.seed;
  if (cursor)
    contents.data = *cursor;
  if (hasEvaluations)
    contents.evaluations.emplace();
  contents.mesh = executable.mesh;
  contents.microBatches = executable.microBatches;
  manifest.prepare(contents);
  return Status();
}

uint64_t Checkpoints::heldBytes() const {
  uint64_t bytes = 0;
  for (const Saved &saved : states)
    bytes += saved.source ? 0 : saved.bytes;
  return bytes;
}

std::string Checkpoints::whereIsTheLast() const {
  // A rank that was killed may have named one without having said so.
  std::string now = folder.whereNow();
  if (now.empty())
    return "; the folder " + inQuotes(folder.path()) +
           " of the checkpoints is gone";
  std::vector<FoundCheckpoint> found;
  if (Status status = listCheckpoints(now, found); !status.ok())
    return "; " + status.message() + ", so the last checkpoint is not known";
  std::string last = resumedPath;
  for (const FoundCheckpoint &each : found)
    if (each.isWhole)
      last = each.path;
  return last.empty() ? "; no checkpoint was saved"
                      : "; the last checkpoint is " + inQuotes(last);
}

} // namespace accel::rt
