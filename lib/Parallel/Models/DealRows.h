// Rows go to the ranks that have their groups' matrices, and what is made of
// them comes back.

#ifndef ACCEL_LIB_PARALLEL_MODELS_DEALROWS_H
#define ACCEL_LIB_PARALLEL_MODELS_DEALROWS_H

#include "dialects/Dist/Dist.h"
#include "dialects/NN/NN.h"

namespace accel::parallel {

/// How the rows of a group of ranks are dealt, for one of them.
class DealtRows {
public:
  /// `groups` are a rank's own, of its rows; ranks along `axes` have as many,
  /// and `numGroups` groups between them. Builds at `builder`.
  DealtRows(mlir::OpBuilder &builder, mlir::Location loc, dist::MeshOp mesh,
            dist::AxesAttr axes, mlir::Value groups, int64_t numGroups);

  /// The rows of this rank's groups, of all ranks' `rows`. What is one number
  /// throughout is there already.
  mlir::Value send(mlir::Value rows);
  /// What is made of each of this rank's own rows, wherever it was made.
  mlir::Value bringBack(mlir::Value rows) {
    return fetch(rows, deal.getPlaces());
  }
  /// The groups of what `send` gives, counted from this rank's first.
  mlir::Value getOwn() { return deal.getOwn(); }

private:
  mlir::Value fetch(mlir::Value rows, mlir::Value index);

  mlir::OpBuilder &builder;
  mlir::Location loc;
  dist::MeshOp mesh;
  dist::AxesAttr axes;
  nn::DealRowsOp deal;
};

} // namespace accel::parallel

#endif // ACCEL_LIB_PARALLEL_MODELS_DEALROWS_H
