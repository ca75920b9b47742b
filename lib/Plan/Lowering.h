// What lowering an entry to a plan program keeps track of: which bytes hold
// each value, and where the next command goes.

#ifndef ACCEL_LIB_PLAN_LOWERING_H
#define ACCEL_LIB_PLAN_LOWERING_H

#include "GemmBias.h"
#include "dialects/Dist/Dist.h"
#include "dialects/Interfaces/KernelSource.h"
#include "dialects/NN/NN.h"
#include "dialects/Plan/Plan.h"
#include "mlir/IR/Builders.h"

namespace accel::plan {

/// Where a tensor lies: a strided view, in elements, of a buffer.
struct Place {
  BufferOp buffer;
  StridedView view;
  mlir::Type element;
  llvm::SmallVector<AxisStrideAttr> axes; ///< in bytes
};

/// Lowers the ops of one task to commands of a body, in program order.
class Lowering {
public:
  Lowering(ProgramOp program, mlir::OpBuilder &commands);

  /// Makes the commands of `op`. An op that no command executes is an error.
  mlir::LogicalResult lower(mlir::Operation *op);

  /// A new buffer for a whole tensor, called `name`, made unique. Names come
  /// from the IR and not from locations, which its text need not carry.
  BufferOp createBuffer(mlir::Location loc, llvm::StringRef name, Role role,
                        Space space, mlir::RankedTensorType type);

  /// Says that `value` is the whole of `buffer`.
  void setPlace(mlir::Value value, BufferOp buffer);

  /// Where `value` lies. Constants get their buffer here; a view that no
  /// strides can describe is copied.
  Place getPlace(mlir::Value value);

  /// The same, without gaps; copied if need be. `reader` is who asks.
  Place getContiguous(mlir::Value value, mlir::Location reader);

  /// The same, where all ranks can read it: in the space `shared`.
  Place getShared(mlir::Value value, mlir::Location reader);

  static ViewAttr getView(Place place);

private:
  mlir::LogicalResult lowerMatmul(nn::MatmulOp op);
  mlir::LogicalResult lowerAttention(nn::AttentionOp op);
  mlir::LogicalResult lowerCall(mlir::func::CallOp op);
  mlir::LogicalResult lowerCollective(dist::CollectiveOpInterface op);
  mlir::LogicalResult lowerSlice(dist::AllSliceOp op);

  Place copy(Place source, mlir::Location reader, Role role, Space space);
  /// A place for a command's result, laid out as its only reader wants it.
  Place createResult(mlir::Value value, mlir::Location loc);

  ProgramOp program;
  mlir::OpBuilder &commands;
  mlir::SymbolTable symbols;
  llvm::DenseMap<mlir::Value, Place> places;
  llvm::DenseMap<mlir::Attribute, BufferOp> constants;
};

} // namespace accel::plan

#endif // ACCEL_LIB_PLAN_LOWERING_H
