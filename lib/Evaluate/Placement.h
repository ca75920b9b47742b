// Which piece of a global tensor a rank holds at a micro-batch: cutting global
// tensors into pieces and putting pieces together again.

#ifndef ACCEL_LIB_EVALUATE_PLACEMENT_H
#define ACCEL_LIB_EVALUATE_PLACEMENT_H

#include "dialects/Dist/Dist.h"
#include "dialects/Tensor/Tensor.h"

namespace accel::evaluate {

/// A rank at a micro-batch: a coordinate along every axis of the mesh. Without
/// a mesh there is one rank and no axis.
struct MeshPoint {
  dist::MeshOp mesh;
  int64_t rank = 0;
  int64_t microBatch = 0;

  int64_t getCoordinate(llvm::StringRef axis);
  /// Size of an axis; none if there is no such axis.
  std::optional<int64_t> getAxisSize(llvm::StringRef axis);
  /// Index over several axes, the first one major. Requires that they exist.
  int64_t getIndex(llvm::ArrayRef<mlir::StringAttr> axes);
};

/// How a global tensor is cut: for each dimension the axes that split it.
struct Placement {
  llvm::SmallVector<int64_t> shape;
  llvm::SmallVector<llvm::SmallVector<mlir::StringAttr>> axes;
  /// The order in which it is cut; null: its own.
  dist::InterleavedAttr interleaved = {};

  /// Everything on every rank.
  static Placement replicated(llvm::ArrayRef<int64_t> shape);

  /// Checks that the mesh has the axes and that they divide the dimensions.
  mlir::LogicalResult verify(MeshPoint point, mlir::Location loc) const;

  /// Shape and first element of the piece at `point`.
  void locate(MeshPoint point, llvm::SmallVectorImpl<int64_t> &pieceShape,
              int64_t &offset) const;
  Tensor cut(const Tensor &global, MeshPoint point) const;
};

/// Puts the pieces of a global tensor together.
class Assembly {
public:
  Assembly(Placement placement, mlir::Type element);

  /// Adds the piece at `point`. Where another piece has been added, both must
  /// hold the same bits; otherwise emits an error at `loc` that names the
  /// tensor as `what`, and fails.
  mlir::LogicalResult add(const Tensor &piece, MeshPoint point,
                          mlir::Location loc, llvm::StringRef what);

  /// The tensor, if every element has been given; else an error at `loc`.
  mlir::FailureOr<Tensor> finish(mlir::Location loc, llvm::StringRef what);

private:
  Placement placement;
  Tensor global;
  std::vector<bool> given;
};

} // namespace accel::evaluate

#endif // ACCEL_LIB_EVALUATE_PLACEMENT_H
