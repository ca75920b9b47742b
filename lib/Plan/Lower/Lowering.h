// What lowering an entry to a plan program keeps track of: which bytes hold
// each value, and where the next command goes.

#ifndef ACCEL_LIB_PLAN_LOWER_LOWERING_H
#define ACCEL_LIB_PLAN_LOWER_LOWERING_H

#include "GemmBias.h"
#include "dialects/Dist/Dist.h"
#include "dialects/Interfaces/KernelSource.h"
#include "dialects/NN/NN.h"
#include "dialects/Plan/Plan.h"
#include "lib/Plan/BufferTable.h"
#include "lib/Target/Target.h"
#include "mlir/IR/Builders.h"

namespace accel::plan {

/// Where a tensor lies: a strided view, in elements, of a buffer.
struct Place {
  BufferOp buffer;
  StridedView view;
  mlir::Type element;
  llvm::SmallVector<AxisStrideAttr> axes; ///< in bytes
};

/// Lowers the ops of tasks to commands, in program order, where `commands`
/// stands.
class Lowering {
public:
  /// `module` has kernels and states by name; the program need not be in it.
  Lowering(ProgramOp program, const mlir::SymbolTable &module,
           const Target &target, mlir::OpBuilder &commands);

  /// Makes the commands of `op`. An op that no command executes is an error.
  mlir::LogicalResult lower(mlir::Operation *op);

  /// A new buffer for a whole tensor, called `name`, made unique. Names come
  /// from the IR and not from locations, which its text need not carry.
  BufferOp createBuffer(mlir::Location loc, llvm::StringRef name, Role role,
                        Space space, mlir::RankedTensorType type);
  /// The same where the target has the role.
  BufferOp createBuffer(mlir::Location loc, llvm::StringRef name, Role role,
                        mlir::RankedTensorType type) {
    return createBuffer(loc, name, role, target.getSpace(role), type);
  }

  /// Says that `value` is the whole of `buffer`, or lies at `place`.
  void setPlace(mlir::Value value, BufferOp buffer);
  void setPlace(mlir::Value value, Place place) { places[value] = place; }

  /// The whole of a buffer as a tensor of `type`, without gaps.
  static Place getWhole(BufferOp buffer, mlir::RankedTensorType type);

  /// Where `value` lies. Constants get their buffer here; a view that no
  /// strides can describe is copied.
  Place getPlace(mlir::Value value);

  /// The same, without gaps; copied if need be. `reader` is who asks.
  Place getContiguous(mlir::Value value, mlir::Location reader);

  /// The same, where other ranks can read it.
  Place getExchanged(mlir::Value value, mlir::Location reader);

  static ViewAttr getView(Place place);

  /// A copy without gaps, in a buffer of its own.
  Place copy(Place source, mlir::Location reader, Role role, Space space);
  Place copy(Place source, mlir::Location reader, Role role) {
    return copy(source, reader, role, target.getSpace(role));
  }

private:
  mlir::LogicalResult lowerMatmul(nn::MatmulOp op);
  mlir::LogicalResult lowerDealRows(nn::DealRowsOp op);
  mlir::LogicalResult lowerGroupedMatmul(nn::GroupedMatmulOp op);
  mlir::LogicalResult lowerGroupedMatmulGrad(nn::GroupedMatmulGradOp op);
  mlir::LogicalResult lowerConvolution(mlir::Operation *op, Convolution kind,
                                       llvm::ArrayRef<int64_t> strides,
                                       llvm::ArrayRef<int64_t> dilations,
                                       llvm::ArrayRef<int64_t> low);
  /// A copy of a convolution's operand, which `view` has with groups, whose
  /// elements follow each other with the dimensions in `order`, which has more
  /// than one; once for each that begins otherwise.
  Place getInOrder(mlir::Value value, const StridedView &view,
                   llvm::ArrayRef<size_t> order, mlir::Location loc);
  mlir::LogicalResult lowerAttention(nn::AttentionOp op);
  mlir::LogicalResult lowerAttentionGrad(nn::AttentionGradOp op);
  mlir::LogicalResult lowerCall(mlir::func::CallOp op);
  mlir::LogicalResult lowerCollective(dist::CollectiveOpInterface op);
  mlir::LogicalResult lowerSlice(dist::AllSliceOp op);

  /// Notes the states that more than one task of the stage reads, but for those
  /// that add to them.
  void findSharedStates();
  /// Whether the ranks' terms in `value`, which lies in `buffer`, are read by
  /// nothing but the one reduction: their sum may take their place.
  bool isReadOnce(mlir::Value value, BufferOp buffer);

  /// Operands of attention: of 4 dimensions, rows without gaps; the mask, whose
  /// repeated dimensions have size 1 (null without mask).
  ViewAttr getRows(mlir::Value value, mlir::Location reader);
  ViewAttr getMask(mlir::Value value, mlir::Location reader);

  /// A place for a command's result, laid out as its only reader wants it: a
  /// permutation, or a concatenation that it is a piece of.
  Place createResult(mlir::Value value, mlir::Location loc);

  ProgramOp program;
  const mlir::SymbolTable &module;
  const Target &target;
  mlir::OpBuilder &commands;
  BufferTable buffers;
  llvm::DenseMap<mlir::Value, Place> places;
  /// By the dimension behind the first.
  llvm::DenseMap<std::pair<mlir::Value, int>, Place> reordered;
  llvm::DenseMap<mlir::Attribute, BufferOp> constants;
  llvm::DenseSet<mlir::StringAttr> sharedStates;
};

} // namespace accel::plan

#endif // ACCEL_LIB_PLAN_LOWER_LOWERING_H
