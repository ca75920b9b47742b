// Follows the rows of a batch through an entry by the ops' sharding rules: what
// may be cut along a factor, each piece by itself, may be cut into rows.
// Private to the library.

#ifndef ACCEL_LIB_AUTODIFF_ROWFINDER_H
#define ACCEL_LIB_AUTODIFF_ROWFINDER_H

#include "LossTerms.h"
#include "dialects/Interfaces/ShardingRule.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/SetVector.h"

namespace accel::autodiff {

class RowFinder {
public:
  /// Of Rows, dimension `dim` is (outer, batch, inner).
  struct State {
    RowKind kind = RowKind::Free;
    size_t dim = 0;
    int64_t inner = 1;
  };

  /// Rows are where `batchDims` say that those of a batch are
  /// (lib/Names/BatchDim.h). `countsAreFree`: each row has as many labels that
  /// count. `ofTokens`: no other inputs than integers [batch, length] have
  /// rows.
  RowFinder(mlir::func::FuncOp entry, llvm::ArrayRef<std::string> batchDims,
            bool countsAreFree, bool ofTokens)
      : entry(entry), batchDims(batchDims), countsAreFree(countsAreFree),
        ofTokens(ofTokens) {}

  /// Finds where rows are alone, whether or not they depend on each other or on
  /// their place.
  RowFinder(mlir::func::FuncOp entry, llvm::ArrayRef<std::string> batchDims)
      : RowFinder(entry, batchDims, /*countsAreFree=*/false,
                  /*ofTokens=*/false) {
    placesAlone = true;
  }

  /// Finds the states of all values; fails where no input has rows.
  mlir::LogicalResult run();

  State lookup(mlir::Value value) const { return states.lookup(value); }
  RowKind kindOf(mlir::Value value) const { return lookup(value).kind; }
  /// The rows of a batch.
  int64_t getBatch() const { return batch; }

  /// What `run` took for given, as attributes say it: names of inputs with
  /// rows; inputs whose elements have to be equal along a dimension, [{dim,
  /// input}]; labels that must not be there.
  mlir::ArrayAttr getInputs(mlir::Builder &builder) const;
  mlir::ArrayAttr getEqual(mlir::Builder &builder) const;
  mlir::DenseI64ArrayAttr getIgnored(mlir::Builder &builder) const;

private:
  /// A factor of a rule in which rows are, and how many of its elements follow
  /// each other in one row.
  struct Place {
    unsigned factor;
    int64_t inner;
    bool operator==(const Place &other) const {
      return factor == other.factor && inner == other.inner;
    }
  };

  std::optional<unsigned> findBatchDim(mlir::BlockArgument argument);
  bool findInputs();
  mlir::StringAttr nameOf(mlir::BlockArgument argument);
  std::optional<Place> findPlace(const ShardingRule &rule,
                                 const ShardingRule::Dim &dim, int64_t size,
                                 int64_t inner) const;
  static std::optional<State> findFactor(const ShardingRule &rule,
                                         const ShardingRule::Tensor &tensor,
                                         llvm::ArrayRef<int64_t> shape,
                                         Place place, bool &isTwice);
  bool isDrawnByRow(mlir::Operation &op) const;
  static bool isNumbered(const ShardingRule &rule, Place place);
  State transfer(mlir::Operation *op);
  std::optional<Place> findCommonPlace(mlir::Operation *op,
                                       const ShardingRule &rule,
                                       llvm::ArrayRef<State> operands) const;
  State transferPlaces(mlir::Operation *op, const ShardingRule &rule,
                       llvm::ArrayRef<State> operands);
  State transferRows(mlir::Operation *op, const ShardingRule &rule,
                     llvm::ArrayRef<State> operands);
  State transferTerms(mlir::Operation *op, const ShardingRule &rule,
                      llvm::ArrayRef<State> operands);
  bool isEqualAlong(mlir::Value value, const State &at);
  bool isCount(mlir::Operation *op);
  bool isMoved(mlir::Value value);

  mlir::func::FuncOp entry;
  llvm::ArrayRef<std::string> batchDims;
  bool countsAreFree, ofTokens, placesAlone = false;
  int64_t batch = 1;
  llvm::DenseMap<mlir::Value, State> states; ///< Of all that is not free.
  llvm::SmallVector<mlir::StringAttr> inputs;
  llvm::SetVector<std::pair<mlir::StringAttr, int64_t>> equal;
  llvm::SetVector<int64_t> ignored;
};

/// Whether a kind is of what all rows come to together.
inline bool isOfAllRows(RowKind kind) {
  return kind == RowKind::Sum || kind == RowKind::Mean;
}

} // namespace accel::autodiff

#endif // ACCEL_LIB_AUTODIFF_ROWFINDER_H
