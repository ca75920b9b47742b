// The parts of a forward whose activations are computed again together.

#ifndef ACCEL_LIB_PARALLEL_RECOMPUTE_SEGMENTS_H
#define ACCEL_LIB_PARALLEL_RECOMPUTE_SEGMENTS_H

#include "dialects/NN/Chunks.h"
#include "lib/Names/RecomputePolicy.h"
#include "lib/Parallel/States/GradientOps.h"
#include "llvm/ADT/SetVector.h"

namespace accel::parallel {

/// What is computed again from what it reads.
struct Segment {
  std::string name; ///< the path of its module, or what it does and where
  llvm::SetVector<mlir::Operation *> members;
  /// Whether what the forward reads of it is not kept either, as it need not be
  /// where little work makes much of what is kept anyway.
  bool discards = false;
};

/// Whether an op may be made twice: not what crosses between chunks, nor what
/// adds to the sum of micro-batches.
inline bool isRepeatable(mlir::Operation *op) {
  return !mlir::isa<nn::CutOp, dist::AccumulateOp>(op);
}

/// The ops of a forward, by the modules that they lie in.
class ForwardModules {
public:
  explicit ForwardModules(mlir::func::FuncOp step);

  /// The segments of a policy, in the order of the forward, none of which
  /// crosses from one chunk of a pipeline to another. An op is of one segment
  /// at most. Errors, at the step: a pattern that no module matches, a part
  /// that no layer has, no layers.
  mlir::FailureOr<std::vector<Segment>> find(const RecomputePolicy &policy);

  /// The ops of the forward, in their order, but for constants and what is made
  /// of weights alone.
  llvm::ArrayRef<mlir::Operation *> getOps() const { return ops; }
  bool varies(mlir::Operation *op) const { return index.contains(op); }
  /// The modules that an op lies in, the outermost first; none of an op that
  /// the exporter said nothing of.
  llvm::ArrayRef<std::string> getModules(mlir::Operation *op) const;
  /// The layer that an op lies in: the outermost module that is numbered in a
  /// list. Empty of an op of none.
  llvm::StringRef getLayer(mlir::Operation *op) const;
  /// The chunk of a pipeline that computes an op; -1 where any of them may.
  int64_t getChunk(mlir::Operation *op) const;
  /// Adds to `members` the ops that read one of them and are read by one, of
  /// those that `isOpen` takes.
  void fill(llvm::SetVector<mlir::Operation *> &members,
            llvm::function_ref<bool(mlir::Operation *)> isOpen) const;

  /// The segments of ops by the module that each of `getOps()` is to be
  /// computed again with, empty for none; a module that is called several
  /// times, or is of several chunks, has one for each.
  std::vector<Segment> group(llvm::ArrayRef<std::string> moduleOfOp) const;

private:
  using Segments = std::vector<Segment>;
  mlir::FailureOr<Segments> findLayers(const RecomputePolicy &policy);
  mlir::FailureOr<Segments> findMatches(llvm::ArrayRef<std::string> patterns);
  Segments findCheckpoints();
  mlir::FailureOr<Segments> findParts(llvm::ArrayRef<std::string> parts);
  mlir::Value getWeight(mlir::Value operand) const;

  mlir::func::FuncOp step;
  nn::ArgumentStates states;
  llvm::SmallVector<mlir::Operation *> ops;
  llvm::DenseMap<mlir::Operation *, size_t> index; ///< of `ops`
  std::vector<llvm::SmallVector<std::string, 4>> modules;
  std::vector<int64_t> chunks;
};

/// The segments of a part of layers that is known by what it does
/// (`RecomputePolicy::Kind::Selective`): none where there is none.
std::vector<Segment> findPart(llvm::StringRef part,
                              const ForwardModules &forward);

} // namespace accel::parallel

#endif // ACCEL_LIB_PARALLEL_RECOMPUTE_SEGMENTS_H
