// Finds each state's tensor by its name or an alias.

#include "State/GivenWeights.h"

#include "Base/SystemError.h"
#include "Data/Safetensors.h"

#include <cerrno>
#include <set>
#include <sys/stat.h>

namespace accel::rt {
namespace {

std::string typeText(DType dtype, const std::vector<int64_t> &shape) {
  std::string text = std::string(dtypeName(dtype)) + " [";
  for (size_t i = 0; i < shape.size(); ++i)
    text += (i ? ", " : "") + std::to_string(shape[i]);
  return text + "]";
}

} // namespace

Status GivenWeights::open(const std::string &path,
                          const Executable &executable) {
  struct stat info;
  if (stat(path.c_str(), &info) != 0)
    return Status::error("cannot open the weights " + inQuotes(path) + ": " +
                         systemError(errno));
  isCheckpoint = S_ISDIR(info.st_mode);
  return isCheckpoint
             ? checkpoint.open(path, executable, Resume::Wanted::Weights)
             : openFile(path, executable);
}

Status GivenWeights::openFile(const std::string &path,
                              const Executable &executable) {
  file = openForReading(path);
  if (!file)
    return Status::error("cannot open the weights " + inQuotes(path) + ": " +
                         systemError(errno));
  std::vector<SafetensorsEntry> entries;
  uint64_t start = 0;
  ACCEL_RT_RETURN_IF_ERROR(readSafetensors(file.get(), path, entries, start));
  std::unordered_map<std::string, const SafetensorsEntry *> byName;
  std::set<std::string> unknown;
  for (const SafetensorsEntry &entry : entries) {
    byName[entry.name] = &entry;
    unknown.insert(entry.name);
  }
  for (const StatePlan &state : executable.states) {
    if (state.role != "parameter" && state.role != "buffer")
      continue;
    const SafetensorsEntry *found = nullptr;
    std::vector<std::string> names = state.aliases;
    names.insert(names.begin(), state.name);
    for (const std::string &name : names)
      if (auto at = byName.find(name); at != byName.end()) {
        found = found ? found : at->second;
        unknown.erase(name);
      }
    if (!found)
      return Status::error("expected the " + state.role + " " +
                           inQuotes(state.name) + " in " + inQuotes(path) +
                           ", found none");
    // Reading widens what it reads (PieceMover).
    bool fits = found->dtype == state.dtype ||
                (found->dtype == DType::F32 && state.dtype == DType::F64);
    if (!fits || found->shape != state.valueShape())
      return Status::error(
          "expected " + typeText(state.dtype, state.valueShape()) +
          " for the " + state.role + " " + inQuotes(state.name) + ", found " +
          typeText(found->dtype, found->shape) + " in " + inQuotes(path));
    states[state.name] = {{file.get(), path, start + found->begin, found->dtype,
                           found->shape, rowMajorStrides(found->shape)},
                          found->bytes,
                          std::nullopt};
  }
  // Folded into constants: they are what they were compiled with.
  for (const FoldedParameter &folded : executable.folded)
    unknown.erase(folded.name);
  if (!unknown.empty())
    return Status::error("found " + inQuotes(*unknown.begin()) + " in " +
                         inQuotes(path) +
                         ", which the program does not have: they are weights "
                         "of another model, or of one that was compiled "
                         "otherwise (with --train it keeps parameters that a "
                         "forward alone does without)");
  return Status();
}

const SavedState *GivenWeights::find(const std::string &state) const {
  if (isCheckpoint)
    return checkpoint.find(state);
  auto found = states.find(state);
  return found == states.end() ? nullptr : &found->second;
}

} // namespace accel::rt
