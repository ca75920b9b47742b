// Opening the values of states, and checking what ranks split.

#include "State/Weights.h"

#include "Base/StagingBytes.h"
#include "Base/SystemError.h"
#include "Data/ConvertElements.h"

#include <cerrno>
#include <map>

namespace accel::rt {
Status checkValue(const TensorRange &range, const StatePlan &state,
                  bool widens) {
  bool fits = range.dtype == state.dtype ||
              (widens && isFloatingPoint(range.dtype) &&
               canConvert(range.dtype, state.dtype)); // as PieceMover converts
  if (fits && range.shape == state.valueShape())
    return Status();
  return Status::error("expected " + typeText(state.dtype, state.valueShape()) +
                       " for the " + state.role + " " + inQuotes(state.name) +
                       ", found " + typeText(range.dtype, range.shape) +
                       " in " + inQuotes(range.path));
}

Status Weights::open(const ExecutableFile &executable,
                     const SavedStates &saved) {
  const std::string &path = executable.path();
  size_t slash = path.rfind('/');
  std::string folder =
      slash == std::string::npos ? "" : path.substr(0, slash + 1);
  std::map<std::string, int> opened;
  for (const StatePlan &state : executable.plan().states) {
    OpenTensor tensor;
    tensor.name = state.name;
    numbers[state.keptAs()].push_back(tensors.size());
    if (auto *found = saved ? saved(state.name) : nullptr) {
      tensor.range = found->range;
      tensors.push_back(std::move(tensor));
      checks.push_back({found->bytes, found->hash, found->origin, false});
      continue;
    }
    TensorRange &range = tensor.range;
    range.dtype = state.first.stored.value_or(state.dtype);
    range.shape = state.valueShape();
    range.fill.assign(state.first.fill.begin(), state.first.fill.end());
    range.offset = state.first.offset;
    // File dimension d is state dimension permutation[d].
    std::vector<int64_t> permutation = state.first.permutation;
    for (size_t d = permutation.size(); d < state.shape.size(); ++d)
      permutation.push_back(static_cast<int64_t>(d));
    range.strides.resize(state.shape.size());
    int64_t stride = 1;
    for (size_t d = permutation.size(); d-- > 0;) {
      range.strides[permutation[d]] = stride;
      stride *= range.shape[permutation[d]];
    }
    if (!range.fill.empty()) {
      range.path = path;
    } else if (!state.first.section.empty()) {
      range.fd = executable.descriptor();
      range.path = path;
      range.offset +=
          executable.fileOffset(*executable.find(state.first.section));
    } else {
      range.path = folder + state.first.path;
      auto [found, isNew] = opened.try_emplace(range.path, -1);
      if (isNew) {
        FileHandle file = openForReading(range.path);
        if (!file)
          return Status::error(
              "cannot open the weights " + inQuotes(range.path) + " of " +
              inQuotes(state.name) + ": " + systemError(errno) +
              ": the executable and its model's weights move together; begin "
              "with others by --weights, or compile with --embed-weights");
        found->second = file.get();
        files.push_back(std::move(file));
      }
      range.fd = found->second;
      uint64_t size;
      ACCEL_RT_RETURN_IF_ERROR(sizeOfFile(range.fd, range.path, size));
      if (size < range.offset + state.first.bytes)
        return Status::error(
            "expected the weights of " + inQuotes(state.name) + " in bytes " +
            std::to_string(range.offset) + " to " +
            std::to_string(range.offset + state.first.bytes) + " of " +
            inQuotes(range.path) + ", found a file of " + std::to_string(size) +
            " bytes");
    }
    tensors.push_back(std::move(tensor));
    checks.push_back({state.first.bytes,
                      range.fill.empty() ? state.first.hash : std::nullopt,
                      "compiled", true});
  }
  return Status();
}

const std::vector<size_t> &Weights::find(const std::string &kept) const {
  static const std::vector<size_t> none;
  auto found = numbers.find(kept);
  return found == numbers.end() ? none : found->second;
}

Status Weights::Check::changed(const OpenTensor &tensor) const {
  return Status::error("expected the weights of " + inQuotes(tensor.name) +
                       " as they were " + origin + ", found other bytes in " +
                       inQuotes(tensor.range.path));
}

Status
Weights::checkSplit(const Executable &executable, int64_t rank,
                    const std::function<void(int64_t, size_t, uint64_t)> &tell,
                    std::atomic<uint64_t> &progress) const {
  int64_t ranks = executable.numRanks(), turn = 0;
  std::vector<char> buffer(kStagingBytes);
  for (size_t i = 0; i < tensors.size(); ++i) {
    const TensorRange &range = tensors[i].range;
    const Check &check = checks[i];
    Part part = executable.states[i].part();
    RangeBlocks whole,
        blocks(range, part, Coordinates::of(executable.mesh, rank));
    if (!check.hash || !blocks.isSplit() || turn++ % ranks != rank)
      continue;
    RangeDigest all(whole), pieces(blocks);
    for (uint64_t done = 0; done < check.bytes;) {
      uint64_t step = std::min<uint64_t>(buffer.size(), check.bytes - done);
      ACCEL_RT_RETURN_IF_ERROR(readRange(
          range.fd, range.path, range.offset + done, buffer.data(), step));
      all.add(done, buffer.data(), step);
      pieces.add(done, buffer.data(), step);
      progress.fetch_add(1, std::memory_order_relaxed);
      done += step;
    }
    if (all.value() != *check.hash)
      return check.changed(tensors[i]);
    for (int64_t other = 0; other < ranks; ++other)
      tell(other, i,
           pieces.valueOf(
               blocks.pieceOf(part, Coordinates::of(executable.mesh, other))));
  }
  return Status();
}

} // namespace accel::rt
