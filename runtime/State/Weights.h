// The states' values as ranges of open files, and what their bytes must hash
// to: those that the executable names, or a checkpoint's in their place.

#ifndef ACCEL_RUNTIME_STATE_WEIGHTS_H
#define ACCEL_RUNTIME_STATE_WEIGHTS_H

#include "Data/RangeDigest.h"

#include <functional>

namespace accel::rt {

/// A state's value in a file that was saved.
struct SavedState {
  TensorRange range;
  uint64_t bytes = 0;
  uint64_t hash = 0;
  const char *origin = "saved"; ///< For messages: as they were …
};
/// What is saved of a state, by its name; null: nothing, it keeps its first
/// value.
using SavedStates = std::function<const SavedState *(const std::string &)>;

/// Whether the value of `range` can be that of `state`: errors name its
/// shape and type. With `widens` it may be of a type that loading converts.
Status checkValue(const TensorRange &range, const StatePlan &state,
                  bool widens);

/// The states' values, by Executable::states' order: files opened, and their
/// sizes checked.
class Weights {
public:
  /// What `saved` (may be empty) has of the states is their value, in the
  /// place of their first one. Its files must stay open.
  Status open(const ExecutableFile &file, const SavedStates &saved);
  /// Reads the values that ranks have different pieces of, checks their hashes
  /// and tells what the pieces must hash to: tell(rank, state, hash),
  /// by Executable::states' order. The ranks share the work, each range is read
  /// whole by one of them. What nobody splits is checked as it is loaded.
  Status checkSplit(const Executable &executable, int64_t rank,
                    const std::function<void(int64_t, size_t, uint64_t)> &tell,
                    std::atomic<uint64_t> &progress) const;

  /// What is known of the bytes that a rank loads of one state.
  struct Check {
    uint64_t bytes = 0;           ///< Of the whole value.
    std::optional<uint64_t> hash; ///< Of it; none: any bytes will do.
    const char *origin = "";      ///< For messages.
    bool isFirst = true; ///< Of the value that the program was compiled with.
    Status changed(const OpenTensor &tensor) const;
  };
  const std::vector<OpenTensor> &values() const { return tensors; }
  const Check &checkOf(size_t state) const { return checks[state]; }
  /// The numbers of the states that are kept as that (StatePlan::keptAs), rows
  /// of a stack in any order; none if there is no such.
  const std::vector<size_t> &find(const std::string &kept) const;

private:
  std::vector<Check> checks; ///< As tensors.
  std::vector<OpenTensor> tensors;
  std::unordered_map<std::string, std::vector<size_t>> numbers;
  std::vector<FileHandle> files;
};

} // namespace accel::rt

#endif // ACCEL_RUNTIME_STATE_WEIGHTS_H
