// Weights that a run begins with in the place of those that the model was
// exported with: a safetensors file, or a checkpoint's.

#ifndef ACCEL_RUNTIME_STATE_GIVENWEIGHTS_H
#define ACCEL_RUNTIME_STATE_GIVENWEIGHTS_H

#include "State/Resume.h"
#include "accel-rt/Runtime.h"

namespace accel::rt {

class GivenWeights {
public:
  /// `options.weights` is a safetensors file, as --save-weights writes it and
  /// as users have them, or a checkpoint, or a folder of these, whose newest is
  /// taken. A safetensors file has no hashes: what it holds is what this reads,
  /// and ranks that find other bytes say so. `options.warn` hears of tensors
  /// that the program cannot use, `options.progress` of how far reading is.
  /// Errors: it is none of them or damaged; a parameter or buffer is missing or
  /// of another shape or type; two names of one parameter have different
  /// values; a tensor is of no state of the program: what was trained would be
  /// lost without a word.
  Status open(const RunOptions &options, const Executable &executable);

  /// What is given of a state; null: nothing.
  const SavedState *find(const std::string &state) const;

private:
  const SavedState *findOwn(const std::string &state) const;
  Status openFile(const RunOptions &options, const Executable &executable);

  bool isCheckpoint = false;
  Resume checkpoint;
  FileHandle file;
  std::unordered_map<std::string, SavedState> states; ///< By name.
};

} // namespace accel::rt

#endif // ACCEL_RUNTIME_STATE_GIVENWEIGHTS_H
