// Which chunk of a pipeline each value of an entry belongs to: said by cuts and
// by states' owners, and derived for all others.

#ifndef ACCEL_DIALECTS_NN_CHUNKS_H
#define ACCEL_DIALECTS_NN_CHUNKS_H

#include "dialects/NN/NN.h"
#include "llvm/ADT/DenseMap.h"

namespace accel::nn {

/// The chunks of an entry of one block. A cut's result is of the chunk `to`, a
/// state of the one that owns it; any other value is where what it is made of
/// is. What is made of inputs and constants alone is nowhere: each chunk that
/// reads it computes it.
class Chunks {
public:
  /// Errors, at the op: operands of several chunks; a cut of a value of another
  /// chunk than it says.
  static mlir::FailureOr<Chunks> compute(mlir::func::FuncOp entry);

  /// The chunk of a value; none of what is nowhere.
  std::optional<int64_t> find(mlir::Value value) const {
    auto found = chunks.find(value);
    return found == chunks.end() ? std::nullopt
                                 : std::optional<int64_t>(found->second);
  }
  /// One more than the highest number of a chunk: 1 where nothing is cut.
  int64_t count() const { return chunkCount; }

private:
  llvm::DenseMap<mlir::Value, int64_t> chunks;
  int64_t chunkCount = 1;
};

/// The state that an argument of a function stands for; null of an input. Looks
/// through the module: who asks of many arguments uses `ArgumentStates`.
StateOp findState(mlir::BlockArgument argument);

/// The states that the arguments of a function stand for.
class ArgumentStates {
public:
  explicit ArgumentStates(mlir::func::FuncOp function);

  /// Null of an input.
  StateOp find(mlir::BlockArgument argument) const {
    return states[argument.getArgNumber()];
  }
  /// The chunk that owns the state; none of an input.
  std::optional<int64_t> findOwner(mlir::BlockArgument argument) const {
    StateOp state = find(argument);
    return state ? std::optional<int64_t>(state.getChunk()) : std::nullopt;
  }

private:
  mutable llvm::SmallVector<StateOp> states; ///< by argument
};

} // namespace accel::nn

#endif // ACCEL_DIALECTS_NN_CHUNKS_H
