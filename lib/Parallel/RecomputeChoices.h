// What may be computed again of each layer of a step: for who chooses by bytes
// and time.

#ifndef ACCEL_LIB_PARALLEL_RECOMPUTECHOICES_H
#define ACCEL_LIB_PARALLEL_RECOMPUTECHOICES_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/StringSet.h"
#include <optional>
#include <string>
#include <vector>

namespace accel::parallel {

/// The layers of a step in phase `dist`, and the policies that each may have.
/// The same program gives the same layers and policies in the same order: what
/// is chosen of one holds for a copy.
class RecomputeChoices {
public:
  explicit RecomputeChoices(mlir::func::FuncOp step);

  struct Layer {
    std::string name;  ///< the path of its module, and which call of it
    int64_t chunk;     ///< of the pipeline
    unsigned kind;     ///< layers of a chunk of one kind are alike, op by op
    unsigned likeness; ///< the same of layers of all chunks
    uint32_t parts;    ///< those that it has, a bit each
  };
  llvm::ArrayRef<Layer> getLayers() const { return layers; }

  /// A policy computes parts of a layer again, or all of it.
  struct Policy {
    std::string name;   ///< "none", "layernorm,mlp", "full"
    uint32_t parts = 0; ///< a bit each, as `RecomputePolicy::getParts` has them
    bool isFull = false;
  };
  /// `none`, then parts that go together in every layer that has them, alone
  /// and together, and `full`.
  llvm::ArrayRef<Policy> getPolicies() const { return policies; }
  /// Whether a layer has all parts of a policy.
  bool mayHave(unsigned layer, unsigned policy) const {
    uint32_t wanted = policies[policy].parts;
    return (layers[layer].parts & wanted) == wanted;
  }

  /// Takes away the marks that a step has.
  static void clearMarks(mlir::func::FuncOp step);
  /// Marks the ops for `dist-recompute`. Requires for each layer a policy that
  /// it may have.
  void mark(llvm::ArrayRef<unsigned> policyOfLayer) const;

  /// Says in the locations of the forward's ops, and so of what becomes of
  /// them, of which layer they are.
  void markLocations() const;
  /// What `markLocations` has said, or the last `setLayer`.
  static std::optional<unsigned> getLayer(mlir::Location location);
  static void setLayer(mlir::Operation *op, unsigned layer);

private:
  /// What is computed again together.
  struct Part {
    std::string mark;
    unsigned layer;
    uint32_t bit; ///< none of a whole layer
    llvm::SmallVector<mlir::Operation *> members;
    bool discards;
  };
  void addPart(Part part);
  void listPolicies();

  std::vector<Layer> layers;
  std::vector<Part> parts; ///< whole layers first
  llvm::StringSet<> marks;
  std::vector<Policy> policies;
};

} // namespace accel::parallel

#endif // ACCEL_LIB_PARALLEL_RECOMPUTECHOICES_H
