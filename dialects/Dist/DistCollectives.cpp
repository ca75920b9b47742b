// Verification and folding of the collectives: the mesh and axes they name, and
// how the group's size relates the shapes.

#include "dialects/Dist/Dist.h"

using namespace mlir;
using namespace accel::dist;

/// Checks mesh and axes; returns the size of the group.
static FailureOr<int64_t> verifyGroup(CollectiveOpInterface op) {
  MeshOp mesh = MeshOp::lookup(op, op.getMeshAttr());
  if (!mesh)
    return op->emitOpError() << "no dist.mesh named " << op.getMeshAttr();
  if (op.getAxes().getOpen())
    return op->emitOpError() << "expected a closed list of axes";
  llvm::SmallDenseSet<StringAttr> seen;
  for (StringAttr axis : op.getAxes().getNames()) {
    if (!mesh.findAxisSize(axis))
      return op->emitOpError()
             << "mesh " << op.getMeshAttr() << " has no axis " << axis;
    // Sums and pieces of micro-batches stand until `local-split-tasks`.
    if (axis == MeshOp::kMicroBatchAxis &&
        !isa<AllReduceOp, AllGatherOp, AllSliceOp, AxisIndexOp>(op))
      return op->emitOpError() << "axis 'mb' runs on one rank: no message "
                                  "goes along it";
    if (!seen.insert(axis).second)
      return op->emitOpError()
             << "expected every axis once, found " << axis << " twice";
  }
  if (std::optional<Type> wire = op.getWireType();
      wire && !isa<FloatType>(*wire))
    return op->emitOpError()
           << "expected a float type on the wire, found " << *wire;
  return mesh.getGroupSize(op.getAxes());
}

/// Checks that the result is the input with dimension `dim` of size
/// `size * times / parts` for every given change.
struct DimChange {
  int64_t dim;
  int64_t times;
  int64_t parts;
};
static LogicalResult verifyResult(Operation *op, ArrayRef<DimChange> changes) {
  auto input = cast<RankedTensorType>(op->getOperand(0).getType());
  SmallVector<int64_t> shape(input.getShape());
  for (const DimChange &change : changes) {
    if (change.dim < 0 || change.dim >= input.getRank())
      return op->emitOpError() << "expected a dimension in [0, "
                               << input.getRank() << "), found " << change.dim;
    int64_t &size = shape[change.dim];
    size *= change.times;
    if (size % change.parts != 0)
      return op->emitOpError()
             << "dimension " << change.dim << " of size " << size
             << " cannot be split into " << change.parts << " equal parts";
    size /= change.parts;
  }
  auto expected = RankedTensorType::get(shape, input.getElementType());
  if (op->getResult(0).getType() != expected)
    return op->emitOpError() << "expected a result of type " << expected
                             << ", found " << op->getResult(0).getType();
  return success();
}

LogicalResult AllReduceOp::verifySymbolUses(SymbolTableCollection &) {
  return verifyGroup(*this);
}

OpFoldResult AllReduceOp::fold(FoldAdaptor) {
  return getAxes().empty() ? OpFoldResult(getInput()) : OpFoldResult();
}

LogicalResult ReduceScatterOp::verifySymbolUses(SymbolTableCollection &) {
  FailureOr<int64_t> group = verifyGroup(*this);
  if (failed(group))
    return failure();
  return verifyResult(*this, DimChange{int64_t(getDim()), 1, *group});
}

LogicalResult AllGatherOp::verifySymbolUses(SymbolTableCollection &) {
  FailureOr<int64_t> group = verifyGroup(*this);
  if (failed(group))
    return failure();
  return verifyResult(*this, DimChange{int64_t(getDim()), *group, 1});
}

LogicalResult AllSliceOp::verifySymbolUses(SymbolTableCollection &) {
  FailureOr<int64_t> group = verifyGroup(*this);
  if (failed(group))
    return failure();
  return verifyResult(*this, DimChange{int64_t(getDim()), 1, *group});
}

bool AllSliceOp::communicates() { return false; }

LogicalResult AllToAllOp::verifySymbolUses(SymbolTableCollection &) {
  FailureOr<int64_t> group = verifyGroup(*this);
  if (failed(group))
    return failure();
  return verifyResult(*this, {DimChange{int64_t(getSplitDim()), 1, *group},
                              DimChange{int64_t(getConcatDim()), *group, 1}});
}

LogicalResult PermuteOp::verifySymbolUses(SymbolTableCollection &) {
  FailureOr<int64_t> group = verifyGroup(*this);
  if (failed(group))
    return failure();
  SmallVector<int64_t> sorted(getSources());
  llvm::sort(sorted);
  bool valid = static_cast<int64_t>(sorted.size()) == *group;
  for (auto [index, source] : llvm::enumerate(sorted))
    valid = valid && source == static_cast<int64_t>(index);
  if (!valid)
    return emitOpError() << "expected a permutation of " << *group
                         << " ranks as sources, found [" << getSources() << "]";
  return success();
}

LogicalResult BroadcastOp::verifySymbolUses(SymbolTableCollection &) {
  FailureOr<int64_t> group = verifyGroup(*this);
  if (failed(group))
    return failure();
  int64_t root = getRoot();
  if (root < 0 || root >= *group)
    return emitOpError() << "expected a root in [0, " << *group << "), found "
                         << root;
  return success();
}

LogicalResult FetchRowsOp::verifySymbolUses(SymbolTableCollection &) {
  if (failed(verifyGroup(*this)))
    return failure();
  auto input = cast<RankedTensorType>(getInput().getType());
  if (input.getRank() == 0)
    return emitOpError() << "expected rows, found " << input;
  SmallVector<int64_t> shape(input.getShape());
  shape[0] = cast<RankedTensorType>(getIndex().getType()).getDimSize(0);
  if (auto expected = RankedTensorType::get(shape, input.getElementType());
      getResult().getType() != expected)
    return emitOpError() << "expected a result of type " << expected
                         << ", found " << getResult().getType();
  return success();
}

LogicalResult AxisIndexOp::verifySymbolUses(SymbolTableCollection &) {
  return verifyGroup(*this);
}

bool AxisIndexOp::communicates() { return false; }
