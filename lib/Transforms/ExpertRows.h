// The sum of alike terms, each with a weight of its own for each row, as one
// computation on rows that are dealt out to groups.

#ifndef ACCEL_LIB_TRANSFORMS_EXPERTROWS_H
#define ACCEL_LIB_TRANSFORMS_EXPERTROWS_H

#include "AlikeTerms.h"
#include "dialects/NN/TensorTypes.h"
#include "mlir/IR/Builders.h"

namespace accel::transforms {

/// Builds the sum of weight · expert over `terms` with grouped products.
class ExpertRows {
public:
  /// Where to build, and where what is built is said to come from.
  ExpertRows(const AlikeTerms &terms, mlir::OpBuilder &builder,
             mlir::Location loc)
      : terms(terms), b(builder), loc(loc) {}

  /// The sum; null where the terms are no experts, some of what was built in
  /// vain being left at the builder's place.
  mlir::Value build();

  /// In which order of terms parameters are stacked: the term of each group.
  llvm::ArrayRef<size_t> getOrder() const { return order; }
  /// Stands for the parameters that are in the place of one of the first
  /// term's, stacked: the op has no operands.
  llvm::ArrayRef<std::pair<mlir::Value, mlir::Operation *>> getStacks() const {
    return stacks;
  }

private:
  mlir::Value findExpert(mlir::Value term);
  bool number(llvm::ArrayRef<int64_t> numbers);
  mlir::Value weigh(mlir::Value weight);
  mlir::Value spread(mlir::Value value);
  mlir::Value spreadSlice(nn::SliceOp slice);
  mlir::Value chosenBy(mlir::Value weight, int64_t &places);
  bool isChoice(mlir::Value index, int64_t places);
  void choose(mlir::Value index);
  mlir::Value compute(mlir::Value value);
  mlir::Value repeat(mlir::Value value);
  mlir::Value multiply(nn::MatmulOp op);
  mlir::Value addBias(nn::BroadcastOp op);
  mlir::Value stackOf(mlir::Value parameter);
  mlir::Value reshape(mlir::Value value, llvm::ArrayRef<int64_t> shape);
  mlir::Value broadcast(mlir::Value value, llvm::ArrayRef<int64_t> shape);
  int64_t count() const { return terms.getTerms().size(); }

  const AlikeTerms &terms;
  mlir::OpBuilder &b;
  mlir::Location loc;
  llvm::SmallVector<mlir::Value> weights; ///< Of the first term.
  llvm::SmallVector<size_t> order;
  int64_t rows = 0;    ///< Of the sum.
  int64_t choices = 0; ///< Experts that a row has.
  mlir::Value groups;  ///< Of all rows' choices, one after another.
  mlir::Value index;   ///< What chooses, [rows, choices]; null: all experts.
  llvm::SmallVector<std::pair<mlir::Value, mlir::Operation *>> stacks;
  llvm::DenseMap<mlir::Value, mlir::Value> computed, spreads;
};

} // namespace accel::transforms

#endif // ACCEL_LIB_TRANSFORMS_EXPERTROWS_H
