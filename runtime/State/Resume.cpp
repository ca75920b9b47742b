// Opening a checkpoint, and holding it against a program.

#include "State/Resume.h"

#include "Base/SystemError.h"
#include "Data/Safetensors.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <set>
#include <unistd.h>

namespace accel::rt {
namespace {

/// Whether the state is the model's own, and not of its training.
bool isWeight(const std::string &role) {
  return role == "parameter" || role == "buffer";
}

/// Whether the state is what compressed gradients are made with.
bool isOfCompression(const std::string &role) {
  return role == "residual" || role == "factor";
}

/// Whose states they are, for what one checkpoint has and a program lacks.
const char *whose(const std::string &role) {
  return isWeight(role) ? "another model" : "another optimizer";
}

} // namespace

Status Resume::open(const std::string &path, const Executable &executable,
                    Wanted wanted, const Warn &warn) {
  folder = path;
  while (folder.size() > 1 && folder.back() == '/')
    folder.pop_back();
  std::string before;
  if (access((folder + "/" + kManifestFile).c_str(), F_OK) != 0) {
    if (errno != ENOENT && errno != ENOTDIR)
      return Status::error("cannot open the checkpoint " + inQuotes(folder) +
                           ": " + systemError(errno));
    std::vector<FoundCheckpoint> found;
    ACCEL_RT_RETURN_IF_ERROR(listCheckpoints(folder, found));
    if (found.empty())
      return Status::error("expected a checkpoint, or a folder of them, found "
                           "none in " +
                           inQuotes(folder));
    folder = found.back().path;
    for (size_t i = 0; i + 1 < found.size(); ++i)
      if (found[i].isWhole)
        before = "; the one before it is " + inQuotes(found[i].path);
    // Going on from an earlier one would lose steps without a word.
    if (!found.back().isWhole)
      return Status::error("expected the file " + inQuotes(kManifestFile) +
                           " in the checkpoint " + inQuotes(folder) +
                           ", found none: it is damaged" + before);
  }
  Status status = readManifest(folder, contents);
  if (status.ok())
    status = openFiles();
  if (!status.ok())
    return Status::error(status.message() + before);
  bool all = wanted == Wanted::All;
  if (all && contents.seed != executable.seed)
    return Status::error("expected a program with seed " +
                         std::to_string(contents.seed) +
                         ", as that of the checkpoint " + inQuotes(folder) +
                         ", found seed " + std::to_string(executable.seed));
  // Before version 5 no step was skipped: one count was of calls and updates.
  if (auto updates = states.find("counter/step");
      contents.version < 5 && updates != states.end()) {
    SavedState value = updates->second;
    states.emplace(kCallCounter, std::move(value));
  }
  if (all)
    dropCompression(executable, warn);
  std::set<std::pair<std::string, std::string>> known; // with their roles
  if (!all)
    ACCEL_RT_RETURN_IF_ERROR(findByAliases(executable, known));
  for (const StatePlan &state : executable.states) {
    known.emplace(state.name, state.role);
    if (isOfCompression(state.role))
      continue; // what is there fits
    if (all ? state.role != "accumulator" : isWeight(state.role))
      ACCEL_RT_RETURN_IF_ERROR(match(state, wanted));
  }
  for (const Manifest::State &saved : contents.states) {
    if (!all && !isWeight(saved.role)) {
      states.erase(saved.name);
      continue;
    }
    if (!known.count({saved.name, saved.role}) && !isOfCompression(saved.role))
      return Status::error(
          "found the " + saved.role + " " + inQuotes(saved.name) +
          " in the checkpoint " + inQuotes(folder) +
          ", which the program does not have: it is of " + whose(saved.role));
  }
  return Status();
}

/// The states of tied weights have one of their names, and another program may
/// have chosen another. `known` gets those that the program has.
Status
Resume::findByAliases(const Executable &executable,
                      std::set<std::pair<std::string, std::string>> &known) {
  std::unordered_map<std::string, const Manifest::State *> named;
  for (const Manifest::State &saved : contents.states)
    named.emplace(saved.name, &saved);
  for (const Manifest::State &saved : contents.states)
    for (const std::string &alias : saved.aliases)
      named.emplace(alias, &saved);
  for (const StatePlan &state : executable.states) {
    if (!isWeight(state.role))
      continue;
    const Manifest::State *first = nullptr;
    std::vector<std::string> names = state.aliases;
    names.insert(names.begin(), state.name);
    for (const std::string &name : names) {
      auto found = named.find(name);
      if (found == named.end())
        continue;
      const Manifest::State &saved = *found->second;
      if (first && first->hash != saved.hash)
        return Status::error(
            "expected the same value of " + inQuotes(first->name) + " and " +
            inQuotes(saved.name) +
            ", which are one parameter of the program, found two in the "
            "checkpoint " +
            inQuotes(folder) + ": it is of a model that does not tie them");
      first = first ? first : &saved;
      known.emplace(saved.name, saved.role);
    }
    if (first && first->name != state.name) {
      SavedState value = states.at(first->name);
      states[state.name] = std::move(value);
    }
  }
  return Status();
}

Status Resume::openFiles() {
  std::unordered_map<std::string, SafetensorsEntry>
      entries[kNumCheckpointFiles];
  uint64_t starts[kNumCheckpointFiles] = {};
  for (int i = 0; i < kNumCheckpointFiles; ++i) {
    std::string path = folder + "/" + kCheckpointFiles[i];
    files[i] =
        FileHandle(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    if (!files[i])
      return Status::error("cannot open " + inQuotes(path) +
                           " of the checkpoint: " + systemError(errno));
    std::vector<SafetensorsEntry> found;
    ACCEL_RT_RETURN_IF_ERROR(
        readSafetensors(files[i].get(), path, found, starts[i]));
    for (SafetensorsEntry &entry : found)
      entries[i].emplace(entry.name, entry);
    std::string header(starts[i], '\0');
    ACCEL_RT_RETURN_IF_ERROR(
        readRange(files[i].get(), path, 0, header.data(), header.size()));
    if (hashBytes(header.data(), header.size()) != contents.headerHashes[i])
      return Status::error("cannot use " + inQuotes(path) +
                           ": it is damaged: the header does not match its "
                           "hash in the manifest");
  }
  for (const Manifest::State &saved : contents.states) {
    std::string path = folder + "/" + kCheckpointFiles[saved.file];
    auto found = entries[saved.file].find(saved.name);
    if (found == entries[saved.file].end())
      return Status::error("expected the state " + inQuotes(saved.name) +
                           " in " + inQuotes(path) + ", found none");
    const SafetensorsEntry &entry = found->second;
    states[saved.name] = {{files[saved.file].get(), path,
                           starts[saved.file] + entry.begin, entry.dtype,
                           entry.shape, rowMajorStrides(entry.shape)},
                          entry.bytes,
                          saved.hash};
  }
  return Status();
}

Status Resume::match(const StatePlan &plan, Wanted wanted) const {
  const SavedState *state = find(plan.name);
  if (!state)
    return plan.frozen // it stays what the model's file says
               ? Status()
               : Status::error("expected the " + plan.role + " " +
                               inQuotes(plan.name) + " in the checkpoint " +
                               inQuotes(folder) + ", found none: it is of " +
                               whose(plan.role));
  // What is trained goes on with its own bits; what is not is read as weights
  // are, which is how it came into the checkpoint.
  return checkValue(state->range, plan,
                    /*widens=*/wanted == Wanted::Weights || plan.frozen);
}

void Resume::dropCompression(const Executable &executable, const Warn &warn) {
  std::set<std::string> kept, wanted;
  for (const StatePlan &state : executable.states) {
    if (!isOfCompression(state.role))
      continue;
    wanted.insert(state.name);
    auto found = states.find(state.name);
    if (found != states.end() &&
        checkValue(found->second.range, state, /*widens=*/false).ok())
      kept.insert(state.name);
  }
  std::string first;
  for (const std::string &name : wanted)
    if (!kept.count(name) && first.empty())
      first = name;
  for (const Manifest::State &saved : contents.states)
    if (isOfCompression(saved.role) && !kept.count(saved.name)) {
      states.erase(saved.name);
      if (first.empty())
        first = saved.name;
    }
  if (first.empty() || !warn)
    return;
  warn(wanted.empty()
           ? "what compression has left out of gradients is dropped, " +
                 inQuotes(first) + " of the checkpoint " + inQuotes(folder) +
                 " first: this program does not compress them"
           : "what compression leaves out of gradients begins at zero, " +
                 inQuotes(first) + " first: the checkpoint " +
                 inQuotes(folder) +
                 " has none, or that of other ranks or factors");
}

/// The end of an error about other data.
static constexpr const char *kNewData =
    ": the data would not go on where they were; to begin these at their first "
    "sample, say --new-data";

Status Resume::checkData(const DataCursor *cursor, const Warn &warn) const {
  if (!cursor || !contents.data)
    return Status();
  const DataCursor &saved = *contents.data;
  const struct {
    const char *name;
    int64_t expected, found;
  } rows[] = {{"samples in the data", saved.samples, cursor->samples},
              {"tokens in a sample", saved.length, cursor->length},
              {"samples in a step", saved.batch, cursor->batch},
              {"as the data's seed", saved.seed, cursor->seed}};
  for (const auto &row : rows)
    if (row.expected != row.found)
      return Status::error("expected " + std::to_string(row.expected) + " " +
                           row.name + ", as the checkpoint " +
                           inQuotes(folder) + " had, found " +
                           std::to_string(row.found) + kNewData);
  if (saved.isShuffled != cursor->isShuffled)
    return Status::error(
        std::string("expected data that are ") +
        (saved.isShuffled ? "shuffled" : "in the order of the file") +
        ", as the checkpoint " + inQuotes(folder) + " had them, found them " +
        (saved.isShuffled ? "in the order of the file" : "shuffled") +
        kNewData);
  if (saved.last != cursor->last)
    return Status::error(
        std::string("expected --last-batch=") + nameOf(saved.last) +
        ", as the checkpoint " + inQuotes(folder) +
        " had it, found --last-batch=" + nameOf(cursor->last) + kNewData);
  if (!saved.hash && warn)
    warn("the checkpoint " + inQuotes(folder) +
         " of an earlier version does not tell which data it had: " +
         inQuotes(cursor->file) + " is taken for the same");
  if (saved.hash && *saved.hash != *cursor->hash)
    return Status::error("expected the data of " + inQuotes(saved.file) +
                         " as the checkpoint " + inQuotes(folder) +
                         " had them, found others in " +
                         inQuotes(cursor->file) + kNewData);
  return Status();
}

const SavedState *Resume::find(const std::string &state) const {
  auto found = states.find(state);
  return found == states.end() ? nullptr : &found->second;
}

} // namespace accel::rt
