// What ops compute, as value numbers: the same table for tasks and for the
// bodies of kernels, and what a command of the plan is built of.

#ifndef ACCEL_LIB_EQUIVALENCE_PLAN_MEANING_H
#define ACCEL_LIB_EQUIVALENCE_PLAN_MEANING_H

#include "Terms.h"
#include "dialects/Dist/Dist.h"
#include "dialects/NN/NN.h"
#include "dialects/Plan/Plan.h"

namespace accel::equivalence {

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
  State,      ///< what it holds when an entry begins
  TurnState,  ///< what it holds when a turn of the last loop begins
  Edge        ///< what a task of another stage gives
};

/// A collective on one tensor, in the words that both dialects have.
struct CollectiveKey {
  llvm::StringRef kind, combine; ///< `combine` is empty where nothing is
  llvm::SmallVector<mlir::StringAttr, 2> axes;
  int64_t dim = 0, splitDim = 0;
  llvm::SmallVector<int64_t, 0> sources; ///< of a permute
  mlir::Type wire;
  std::optional<TermId> index; ///< of a fetch of rows
};

/// A product of matrices, batched: [batch, m, k] and [batch, k, n], or [k, n].
struct ProductShape {
  int64_t batch, m, n, k;

  /// Of operands of these shapes; many rows of one matrix are one batch.
  static ProductShape of(llvm::ArrayRef<int64_t> lhs,
                         llvm::ArrayRef<int64_t> rhs);
};

/// What of attention its attributes say, be it an op or a command. Only how
/// far rows and keys are apart tells what is hidden.
template <typename AttentionLike>
mlir::Attribute getAttentionAttributes(AttentionLike op) {
  mlir::Builder builder(op->getContext());
  return builder.getArrayAttr(
      {op.getScaleAttr(), builder.getBoolAttr(op.getCausal()),
       builder.getBoolAttr(op.getZeroMaskedRows()),
       builder.getI64IntegerAttr(int64_t(op.getRowOffset()) -
                                 int64_t(op.getColumnOffset())),
       op.getRowSteps().value_or(builder.getDictionaryAttr({})),
       op.getColumnSteps().value_or(builder.getDictionaryAttr({})),
       op.getTurnAttr(), op.getStrideAttr()});
}

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
  /// The result of an op that computes element by element, of `count` of them.
  TermId byElement(mlir::Operation *op, llvm::ArrayRef<TermId> operands,
                   int64_t count);
  TermId cast(TermId operand, mlir::Type type, mlir::Operation *op,
              bool saturates = false);
  /// lhs · rhs in `type`, of elements in the order of the shape.
  TermId product(const ProductShape &shape, TermId lhs, TermId rhs,
                 mlir::Type type, mlir::Operation *op);
  /// The result of nn.grouped_matmul or its gradient, whichever `name` says, of
  /// `count` elements: of so many rows, groups, and rows and columns of their
  /// matrices, which are not transposed.
  TermId grouped(mlir::OperationName name, llvm::ArrayRef<int64_t> sizes,
                 TermId lhs, TermId rhs, TermId groups, mlir::Type type,
                 int64_t count, mlir::Operation *op);
  /// The result, of `count` elements, of the op of convolutions that `name`
  /// says. `numbers` are the shapes of its operands and result, with a
  /// dimension of groups, its strides, dilations and low paddings.
  TermId convolution(mlir::OperationName name,
                     llvm::ArrayRef<llvm::ArrayRef<int64_t>> numbers,
                     TermId lhs, TermId rhs, mlir::Type type, int64_t count,
                     mlir::Operation *op);
  /// Results of nn.deal_rows, of so many elements.
  void deal(int64_t numGroups, int64_t ranks, TermId groups, TermId rank,
            llvm::ArrayRef<int64_t> counts, mlir::Operation *op,
            llvm::SmallVectorImpl<TermId> &results);
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
  /// An input's or a state's piece, or what comes along an edge.
  TermId given(Source source, mlir::StringAttr name, const PieceKey &piece,
               int64_t count, mlir::Type element, mlir::Operation *op);

  /// The pieces of an input that each micro-batch has, one after another, all
  /// of `count` elements.
  TermId givenOfEach(mlir::StringAttr name, const PieceKey &piece,
                     int64_t count, mlir::Type element, mlir::Operation *op);

  /// Adds the number along an axis, `stride` apart; an error at `op` if the
  /// mesh has no such axis.
  mlir::LogicalResult addCoordinate(IndexMap &map, mlir::StringAttr axis,
                                    int64_t stride, mlir::Operation *op);
  /// Of what is computed from here on: `number`, or in a loop beyond its turn.
  void setMicroBatch(int64_t number, bool inLoop);
  MicroBatch getMicroBatch() const { return microBatch; }
  /// How many micro-batches a step has.
  int64_t countMicroBatches() const;
  /// The turns from here on are those of another loop.
  void beginLoop();

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
  MicroBatch microBatch;
  mlir::StringAttr turn; ///< of the last loop
  int64_t loops = 0;     ///< so far
  /// Of ops that are met again: bodies of kernels.
  llvm::DenseMap<mlir::Operation *, mlir::Attribute> attributes;
};

} // namespace accel::equivalence

#endif // ACCEL_LIB_EQUIVALENCE_PLAN_MEANING_H
