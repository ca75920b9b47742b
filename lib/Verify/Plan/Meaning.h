// What ops compute, as value numbers: the same table for tasks and for the
// bodies of kernels, and what a command of the plan is built of.

#ifndef ACCEL_LIB_VERIFY_PLAN_MEANING_H
#define ACCEL_LIB_VERIFY_PLAN_MEANING_H

#include "Terms.h"
#include "dialects/Dist/Dist.h"
#include "dialects/NN/NN.h"
#include "dialects/Plan/Plan.h"

namespace accel::verify {

/// A piece of something global: its shape, and the axes that split each
/// dimension.
struct PieceKey {
  ValueKey key;
  bool varies = false; ///< between micro-batches

  static PieceKey of(dist::LayoutAttr layout);
  static PieceKey of(plan::PartAttr part);
  /// All of a tensor.
  static PieceKey whole(mlir::RankedTensorType type);
};

/// What a program is given.
enum class Source {
  Input,
  FirstState, ///< what a state holds when the program is loaded
  State       ///< what it holds when an entry begins
};

/// A collective on one tensor, in the words that both dialects have.
struct CollectiveKey {
  llvm::StringRef kind, combine; ///< `combine` is empty where nothing is
  llvm::SmallVector<mlir::StringAttr, 2> axes;
  int64_t dim = 0, splitDim = 0;
  llvm::SmallVector<int64_t, 0> sources; ///< of a permute
  mlir::Type wire;
};

/// A product of matrices, batched: [batch, m, k] and [batch, k, n], or [k, n].
struct ProductShape {
  int64_t batch, m, n, k;

  /// Of operands of these shapes; many rows of one matrix are one batch.
  static ProductShape of(llvm::ArrayRef<int64_t> lhs,
                         llvm::ArrayRef<int64_t> rhs);
};

/// What of attention its attributes say.
mlir::Attribute getAttentionAttributes(mlir::FloatAttr scale, bool causal,
                                       bool zeroMaskedRows);

/// What ops compute in one micro-batch.
class Meaning {
public:
  Meaning(Terms &terms, dist::MeshOp mesh) : terms(terms), mesh(mesh) {}

  /// The results of an op of nn or dist on operands; an error for one that has
  /// no meaning here.
  mlir::LogicalResult evaluate(mlir::Operation *op,
                               llvm::ArrayRef<TermId> operands,
                               llvm::SmallVectorImpl<TermId> &results);
  /// The results of a function of one block.
  mlir::LogicalResult evaluate(mlir::Region &body,
                               llvm::ArrayRef<TermId> arguments,
                               llvm::SmallVectorImpl<TermId> &results);

  TermId constant(mlir::ElementsAttr value, mlir::Operation *op);
  TermId splat(mlir::Attribute element, mlir::Type type, int64_t count,
               mlir::Operation *op);
  TermId add(TermId lhs, TermId rhs, mlir::Operation *op);
  TermId cast(TermId operand, mlir::Type type, mlir::Operation *op);
  /// lhs · rhs in `type`, of elements in the order of the shape.
  TermId product(const ProductShape &shape, TermId lhs, TermId rhs,
                 mlir::Type type, mlir::Operation *op);
  /// Results of nn.attention or nn.attention_grad; the last operand is the mask
  /// if there are more than `unmasked`. It has the shape `maskShape`.
  void attention(mlir::OperationName name, mlir::Attribute attributes,
                 llvm::ArrayRef<llvm::ArrayRef<int64_t>> shapes,
                 llvm::ArrayRef<TermId> operands, unsigned unmasked,
                 llvm::ArrayRef<mlir::Type> types,
                 llvm::ArrayRef<int64_t> counts, mlir::Operation *op,
                 llvm::SmallVectorImpl<TermId> &results);
  mlir::FailureOr<TermId> collective(const CollectiveKey &key,
                                     llvm::ArrayRef<int64_t> shape,
                                     TermId operand, mlir::Operation *op);
  TermId coordinate(llvm::ArrayRef<mlir::StringAttr> axes, mlir::Type type,
                    mlir::Operation *op);
  /// An input's or a state's piece.
  TermId given(Source source, mlir::StringAttr name, const PieceKey &piece,
               int64_t count, mlir::Type element, mlir::Operation *op);

  /// Adds the number along an axis, `stride` apart; an error at `op` if the
  /// mesh has no such axis.
  mlir::LogicalResult addCoordinate(IndexMap &map, mlir::StringAttr axis,
                                    int64_t stride, mlir::Operation *op);
  void setMicroBatch(int64_t number) { microBatch = number; }
  int64_t getMicroBatch() const { return microBatch; }

  Terms &terms;

private:
  mlir::LogicalResult
  evaluateCollective(dist::CollectiveOpInterface op,
                     llvm::ArrayRef<TermId> operands,
                     llvm::SmallVectorImpl<TermId> &results);
  TermId compute(ValueKey key, int64_t count, mlir::Type element,
                 mlir::Operation *op);
  mlir::Attribute getAttributes(mlir::Operation *op);
  TermId broadcast(TermId operand, llvm::ArrayRef<int64_t> from,
                   llvm::ArrayRef<int64_t> to);

  dist::MeshOp mesh;
  int64_t microBatch = 0;
  /// Of ops that are met again: bodies of kernels.
  llvm::DenseMap<mlir::Operation *, mlir::Attribute> attributes;
};

} // namespace accel::verify

#endif // ACCEL_LIB_VERIFY_PLAN_MEANING_H
