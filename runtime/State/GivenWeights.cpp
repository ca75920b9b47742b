// Finds each state's tensor by its name or an alias.

#include "State/GivenWeights.h"

#include "Base/StagingBytes.h"
#include "Base/SystemError.h"
#include "Data/Safetensors.h"

#include <cerrno>
#include <chrono>
#include <set>
#include <sys/stat.h>

namespace accel::rt {
namespace {

/// A state's value under one of its names.
struct NamedValue {
  std::string name;
  SavedState value;
};

/// The tensors of an open file, by name, of which it is known who has asked.
class NamedTensors {
public:
  NamedTensors(const RunOptions &options, int fd) : options(options), fd(fd) {}

  Status open() {
    std::vector<SafetensorsEntry> entries;
    ACCEL_RT_RETURN_IF_ERROR(
        readSafetensors(fd, options.weights, entries, start));
    for (SafetensorsEntry &entry : entries) {
      unused.insert(entry.name);
      byName.emplace(entry.name, std::move(entry));
    }
    return Status();
  }

  /// Null: there is none of that name.
  const SafetensorsEntry *find(const std::string &name) {
    auto found = byName.find(name);
    if (found == byName.end())
      return nullptr;
    unused.erase(name);
    return &found->second;
  }
  /// Those that nobody asked for.
  const std::set<std::string> &left() const { return unused; }

  /// What there is of `state`, by its name and its aliases.
  Status find(const StatePlan &state, std::vector<NamedValue> &values) {
    std::vector<std::string> names = state.aliases;
    names.insert(names.begin(), state.name);
    for (const std::string &name : names) {
      const SafetensorsEntry *entry = find(name);
      if (!entry)
        continue;
      TensorRange range{
          fd,           options.weights, start + entry->begin,
          entry->dtype, entry->shape,    rowMajorStrides(entry->shape)};
      ACCEL_RT_RETURN_IF_ERROR(checkValue(range, state, /*widens=*/true));
      values.push_back(
          {name, {std::move(range), entry->bytes, 0, "when the run began"}});
    }
    return values.empty()
               ? Status::error("expected the " + state.role + " " +
                               inQuotes(state.name) + " in " +
                               inQuotes(options.weights) + ", found none")
               : Status();
  }

private:
  const RunOptions &options;
  int fd;
  uint64_t start = 0;
  std::unordered_map<std::string, SafetensorsEntry> byName;
  std::set<std::string> unused;
};

/// Reads values to know them again.
class ValueHasher {
public:
  ValueHasher(const RunOptions &options, uint64_t bytes)
      : options(options), bytes(bytes), room(kStagingBytes) {}

  Status hash(SavedState &value) {
    const TensorRange &range = value.range;
    RangeBlocks whole;
    RangeDigest digest(whole);
    for (uint64_t done = 0; done < value.bytes;) {
      uint64_t step = std::min<uint64_t>(room.size(), value.bytes - done);
      ACCEL_RT_RETURN_IF_ERROR(readRange(
          range.fd, range.path, range.offset + done, room.data(), step));
      digest.add(done, room.data(), step);
      done += step;
      tell(step);
    }
    value.hash = digest.value();
    return Status();
  }

private:
  void tell(uint64_t step) {
    hashed += step;
    auto now = Clock::now();
    if (!options.progress || now - told < std::chrono::seconds(2))
      return;
    told = now;
    options.progress("loading: hashed " + std::to_string(hashed >> 20) +
                     " of " + std::to_string(bytes >> 20) + " MiB of weights");
  }

  using Clock = std::chrono::steady_clock;
  const RunOptions &options;
  uint64_t bytes, hashed = 0;
  std::vector<char> room;
  Clock::time_point told = Clock::now();
};

/// What the exporter folded into constants is what it was then. Files that have
/// it anyway, as --save-weights writes them, are right as long as they agree,
/// which nobody can tell.
Status checkFolded(const Executable &executable, const RunOptions &options,
                   NamedTensors &tensors) {
  std::string first;
  int64_t more = -1;
  for (const FoldedParameter &folded : executable.folded) {
    const SafetensorsEntry *entry = tensors.find(folded.name);
    if (!entry)
      continue;
    if (folded.shape && *folded.shape != entry->shape)
      return Status::error("expected shape " + shapeText(*folded.shape) +
                           " of parameter " + inQuotes(folded.name) + " in " +
                           inQuotes(options.weights) + ", found " +
                           shapeText(entry->shape));
    if (++more == 0)
      first = inQuotes(folded.name);
  }
  if (more < 0 || !options.warn)
    return Status();
  if (more > 0)
    first += " and " + std::to_string(more) + " more";
  options.warn("the program does not read " + first + " of " +
               inQuotes(options.weights) +
               ": the exporter folded what the model had of it into constants, "
               "and their values are used; where the file's differ, export the "
               "model with its weights");
  return Status();
}

} // namespace

Status GivenWeights::open(const RunOptions &options,
                          const Executable &executable) {
  struct stat info;
  if (stat(options.weights.c_str(), &info) != 0)
    return Status::error("cannot open the weights " +
                         inQuotes(options.weights) + ": " + systemError(errno));
  isCheckpoint = S_ISDIR(info.st_mode);
  return isCheckpoint ? checkpoint.open(options.weights, executable,
                                        Resume::Wanted::Weights, options.warn)
                      : openFile(options, executable);
}

Status GivenWeights::openFile(const RunOptions &options,
                              const Executable &executable) {
  const std::string &path = options.weights;
  file = openForReading(path);
  if (!file)
    return Status::error("cannot open the weights " + inQuotes(path) + ": " +
                         systemError(errno));
  NamedTensors tensors(options, file.get());
  ACCEL_RT_RETURN_IF_ERROR(tensors.open());
  std::vector<std::pair<const StatePlan *, std::vector<NamedValue>>> found;
  uint64_t bytes = 0;
  for (const StatePlan &state : executable.states) {
    if (state.role != "parameter" && state.role != "buffer")
      continue;
    found.push_back({&state, {}});
    ACCEL_RT_RETURN_IF_ERROR(tensors.find(state, found.back().second));
    for (const NamedValue &named : found.back().second)
      bytes += named.value.bytes;
  }
  ACCEL_RT_RETURN_IF_ERROR(checkFolded(executable, options, tensors));
  if (!tensors.left().empty())
    return Status::error("found " + inQuotes(*tensors.left().begin()) + " in " +
                         inQuotes(path) +
                         ", which the program does not have: they are weights "
                         "of another model, or of one that was compiled "
                         "otherwise (with --train it keeps parameters that a "
                         "forward alone does without)");
  ValueHasher hasher(options, bytes);
  for (auto &[state, values] : found) {
    for (NamedValue &named : values) {
      ACCEL_RT_RETURN_IF_ERROR(hasher.hash(named.value));
      if (named.value.hash != values[0].value.hash)
        return Status::error(
            "expected the same value of " + inQuotes(values[0].name) + " and " +
            inQuotes(named.name) +
            ", which are one parameter of the program, found two in " +
            inQuotes(path) +
            ": they are weights of a model that does not tie them");
    }
    states.emplace(state->name, std::move(values[0].value));
  }
  return Status();
}

const SavedState *GivenWeights::find(const std::string &state) const {
  const SavedState *given = findOwn(state);
  // The average of a parameter (ema.decay) begins as that does.
  if (!given && state.compare(0, 4, "ema/") == 0)
    given = findOwn(state.substr(4));
  return given;
}

const SavedState *GivenWeights::findOwn(const std::string &state) const {
  if (isCheckpoint)
    return checkpoint.find(state);
  auto found = states.find(state);
  return found == states.end() ? nullptr : &found->second;
}

} // namespace accel::rt
