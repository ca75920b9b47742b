// The ShardingRule interface: an op's dimensions as factors, in the manner of
// einsum and of Shardy's op sharding rules.

#ifndef ACCEL_DIALECTS_INTERFACES_SHARDINGRULE_H
#define ACCEL_DIALECTS_INTERFACES_SHARDINGRULE_H

#include "mlir/IR/Builders.h"
#include "mlir/IR/OpDefinition.h"

namespace accel {

/// What becomes of a factor: it stands in results (`PassThrough`), or the op
/// combines over it (`Sum`, `Max`, `Min`), so that ranks which hold pieces of
/// it compute partial results; or that is the op's own affair (`Inside`): its
/// local form has the collectives, and its results are not partial. `Exchanged`
/// is such a one whose ranks may be those that split another factor too, of
/// other tensors: rows go to the ranks that have their groups' matrices. A
/// result that has a combined factor all the same is no partial one:
/// attention's gradient has a row of its query's for each row, and sums over
/// all of them in its keys'.
enum class FactorKind { PassThrough, Sum, Max, Min, Inside, Exchanged };

/// An op's dimensions, written in factors. matmul [i, k] x [k, j] -> [i, j] has
/// the factors i, j and k, the last one a Sum. A dimension of several factors
/// is their product, major to minor: a reshape [4, 11] -> [44] has the factors
/// 4 and 11, of which the result's dimension is (4, 11). A dimension, or the
/// minor rest of one, that no factor covers must be whole on every rank.
struct ShardingRule {
  struct Factor {
    int64_t size;
    FactorKind kind;
  };
  using Dim = llvm::SmallVector<unsigned, 2>;
  using Tensor = llvm::SmallVector<Dim, 4>;

  llvm::SmallVector<Factor> factors;
  llvm::SmallVector<Tensor> operands;
  llvm::SmallVector<Tensor> results;
  /// Sets of operands in which the op is linear, the others held fixed: if
  /// exactly the operands of one set are partial sums over an axis, so are the
  /// results. add: {{0, 1}}; mul and matmul: {{0}, {1}}.
  llvm::SmallVector<llvm::SmallVector<unsigned, 2>> linearGroups;
  /// Whether sums over micro-batches may pass, as those over ranks do. False
  /// where the op is to run once, on what all of them have added up to.
  bool passesMicroBatches = true;
  /// Factors whose places indices or masks tell apart: in another order the op
  /// would compute something else.
  llvm::SmallVector<unsigned, 2> numbered;
  /// Whether the op on pieces is the same op, attributes included. False where
  /// it looks at indices or sizes: such an op has its own `localize`.
  bool indexFree = true;
  /// Whether propagation goes from results to operands. False where what stands
  /// before and after the op is placed for different reasons.
  bool spreadsToOperands = true;

  /// A rule without factors (everything whole) for the op's operands and
  /// results, all of which are ranked tensors.
  static ShardingRule getWhole(mlir::Operation *op);
  unsigned addFactor(int64_t size, FactorKind kind = FactorKind::PassThrough);
  /// Adds a pass-through factor for a dimension of operand and result.
  void passThrough(int64_t size, unsigned operand, unsigned operandDim,
                   unsigned resultDim);
};

/// The op itself on local operands with local result types, if its rule says it
/// is index-free; an error at the op otherwise.
llvm::LogicalResult
localizeIndexFree(mlir::Operation *op, mlir::OpBuilder &builder,
                  mlir::ValueRange operands, mlir::TypeRange types,
                  llvm::SmallVectorImpl<mlir::Value> &results);

} // namespace accel

#include "dialects/Interfaces/ShardingRule.h.inc"

#endif // ACCEL_DIALECTS_INTERFACES_SHARDINGRULE_H
