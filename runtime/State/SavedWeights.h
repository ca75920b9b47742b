// What --save-weights writes: the parameters and buffers under the user's own
// names, every alias among them, as one safetensors file. Each rank writes the
// pieces that it alone, or it first, holds.

#ifndef ACCEL_RUNTIME_STATE_SAVEDWEIGHTS_H
#define ACCEL_RUNTIME_STATE_SAVEDWEIGHTS_H

#include "Data/AtomicFile.h"
#include "State/Weights.h"

#include <functional>

namespace accel::rt {

class Executor;

/// The type of --save-dtype: bf16, fp16 or fp32; none: an empty text. Errors:
/// another text.
Status readSaveType(const std::string &text, std::optional<DType> &type);

/// By what keeps it (StatePlan::keptAs) each state that the program keeps: the
/// command of the entry `load` that reads it into the buffer where it stays.
using HeldStates = std::unordered_map<std::string_view, const ReadCommand *>;
/// `program` must outlive what is returned.
HeldStates findHeld(const Program &program);

class SavedWeights {
public:
  /// Makes the file at full size, before any rank runs, and copies what no rank
  /// changes, so that the end needs no other file. Parameters that the
  /// exporter folded away are taken from the safetensors file `original`;
  /// without one (an empty path) `warn` hears of them. Errors: the file cannot
  /// be made, a state that is kept nowhere, `original` lacks a parameter or has
  /// another shape, a frozen state whose bytes are not what they were. With
  /// `averages` what is written of a trained parameter is its average; a
  /// program that keeps none is an error. With `type` all floating-point
  /// tensors are rounded to it, on their way into the file.
  Status create(const ExecutableFile &file, const Weights &weights,
                const std::string &path, const std::string &original,
                bool averages, std::optional<DType> type,
                const std::function<void(const std::string &)> &warn,
                const SharedName &shared = {});

  /// Writes this rank's pieces as they are in memory; each is progress.
  Status writePieces(const Program &program, const Coordinates &coordinates,
                     const Executor &executor,
                     std::atomic<uint64_t> &progress) const;

  /// Brings what this process has written to storage, for another to finish.
  Status synchronise() { return file.synchronise(); }

  /// Synchronises and renames. An error says where the weights are: the folder
  /// may be gone by now, or what has the name be no file any more.
  Status finish();

private:
  /// Copies frozen states and folded parameters.
  Status copyUnchanged(const Executable &plan, const Weights &weights) const;

  /// One name in the file. Its value comes from `state`, or from `original`.
  struct Tensor {
    const StatePlan *state = nullptr;
    TensorRange original, target;
  };
  std::vector<Tensor> tensors;
  AtomicFile file;
  FileHandle originalFile;
};

} // namespace accel::rt

#endif // ACCEL_RUNTIME_STATE_SAVEDWEIGHTS_H
