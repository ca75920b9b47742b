// Gives one class of an entry's dimensions more elements, in all that has it.

#ifndef ACCEL_LIB_PARALLEL_STRATEGY_DIMPADDER_H
#define ACCEL_LIB_PARALLEL_STRATEGY_DIMPADDER_H

#include "DimClasses.h"
#include "dialects/NN/NN.h"
#include "llvm/ADT/MapVector.h"

namespace accel::parallel {

/// A dimension of states, in all entries.
struct StateDim {
  mlir::Attribute state;
  unsigned dim;
  int64_t size, padded;
};

/// One entry, and the class of its dimensions that a state's is in.
class DimPadder {
public:
  DimPadder(mlir::func::FuncOp entry, const StateDim &which);
  /// Whether every op that has the dimension can be given more of it.
  bool canPad();
  void pad();
  /// After `canPad`: the states that have it, padded.
  llvm::MapVector<mlir::Attribute, mlir::RankedTensorType> states;

private:
  /// The padded dimension of a value of the program as it was.
  std::optional<unsigned> findDim(mlir::Value value);
  bool supports(mlir::Operation *op);
  mlir::RankedTensorType widen(mlir::RankedTensorType type, unsigned dim);
  /// A constant, or what is repeated, in another size.
  mlir::Value widenMade(mlir::Value value, unsigned dim);
  mlir::Value fill(mlir::OpOperand &operand, unsigned dim,
                   nn::ReductionKind kind);
  void padOp(mlir::Operation *op);
  bool replaceByRows(mlir::Operation *op);
  void checkIndices(mlir::Operation *op);
  void padReturn(mlir::Operation *op);

  mlir::func::FuncOp entry;
  int64_t size, paddedSize;
  DimClasses classes;
  std::optional<unsigned> number; ///< of the class
  llvm::DenseMap<mlir::Value, unsigned> dims;
  llvm::DenseSet<mlir::Value> zeros; ///< padded with zeros
};

/// The dimensions of operands that are one factor with a padded one, each with
/// its operand's number.
llvm::SmallVector<std::pair<unsigned, unsigned>>
findTied(const ShardingRule &rule, unsigned factor);

/// The factor of the padded dimension; none if the op does not have it.
std::optional<unsigned>
findFactor(mlir::Operation *op, const ShardingRule &rule,
           llvm::function_ref<std::optional<unsigned>(mlir::Value)> findDim);

} // namespace accel::parallel

#endif // ACCEL_LIB_PARALLEL_STRATEGY_DIMPADDER_H
