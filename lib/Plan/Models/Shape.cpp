// How ops that move elements take part in kernels: which of them stay within a
// row, and which are only another view of their operand.

#include "Group.h"

#include "dialects/Interfaces/KernelSource.h"
#include "dialects/NN/NN.h"
#include "lib/Plan/Rows.h"

using namespace mlir;
using namespace accel;
using accel::plan::countRowDims;

namespace {
template <typename Model, typename Op>
struct MovementKernel : KernelSourceOpInterface::ExternalModel<Model, Op> {
  KernelRole getKernelRole(Operation *) const { return KernelRole::Movement; }
};

struct ReshapeKernel : MovementKernel<ReshapeKernel, nn::ReshapeOp> {
  bool isRowLocal(Operation *op, unsigned, int64_t rows) const {
    return cast<nn::ReshapeOp>(op).getType().getNumElements() % rows == 0;
  }
  LogicalResult applyToView(Operation *op, StridedView &view) const {
    return view.reshape(cast<nn::ReshapeOp>(op).getType().getShape());
  }
};

struct TransposeKernel : MovementKernel<TransposeKernel, nn::TransposeOp> {
  bool isRowLocal(Operation *op, unsigned, int64_t rows) const {
    auto transpose = cast<nn::TransposeOp>(op);
    std::optional<unsigned> dims =
        countRowDims(transpose.getType().getShape(), rows);
    if (!dims)
      return false;
    for (unsigned dim = 0; dim < *dims; ++dim)
      if (transpose.getPermutation()[dim] != dim)
        return false;
    return true;
  }
  LogicalResult applyToView(Operation *op, StridedView &view) const {
    StridedView old = view;
    for (auto [dim, from] :
         llvm::enumerate(cast<nn::TransposeOp>(op).getPermutation())) {
      view.shape[dim] = old.shape[from];
      view.strides[dim] = old.strides[from];
    }
    return success();
  }
};

struct BroadcastKernel : MovementKernel<BroadcastKernel, nn::BroadcastOp> {
  bool isRowLocal(Operation *op, unsigned, int64_t rows) const {
    auto broadcast = cast<nn::BroadcastOp>(op);
    ArrayRef<int64_t> input = broadcast.getInput().getType().getShape();
    ArrayRef<int64_t> result = broadcast.getType().getShape();
    std::optional<unsigned> dims = countRowDims(result, rows);
    size_t lead = result.size() - input.size();
    if (!dims)
      return false;
    // The rows must not be what is repeated.
    for (unsigned dim = 0; dim < *dims; ++dim)
      if (result[dim] != (dim < lead ? 1 : input[dim - lead]))
        return false;
    return true;
  }
  LogicalResult applyToView(Operation *op, StridedView &view) const {
    ArrayRef<int64_t> result = cast<nn::BroadcastOp>(op).getType().getShape();
    StridedView old = view;
    size_t lead = result.size() - old.shape.size();
    view.shape.assign(result.begin(), result.end());
    view.strides.assign(result.size(), 0);
    for (size_t dim = lead; dim < result.size(); ++dim)
      if (old.shape[dim - lead] == result[dim])
        view.strides[dim] = old.strides[dim - lead];
    return success();
  }
};

struct SliceKernel : MovementKernel<SliceKernel, nn::SliceOp> {
  bool isRowLocal(Operation *op, unsigned, int64_t rows) const {
    auto slice = cast<nn::SliceOp>(op);
    ArrayRef<int64_t> input = slice.getInput().getType().getShape();
    std::optional<unsigned> dims =
        countRowDims(slice.getType().getShape(), rows);
    if (!dims)
      return false;
    for (unsigned dim = 0; dim < *dims; ++dim)
      if (slice.getSizes()[dim] != input[dim] || slice.getStarts()[dim] != 0 ||
          (slice.getSteps()[dim] != 1 && input[dim] != 1))
        return false;
    return true;
  }
  LogicalResult applyToView(Operation *op, StridedView &view) const {
    auto slice = cast<nn::SliceOp>(op);
    if (llvm::any_of(slice.getSteps(), [](int64_t step) { return step < 0; }))
      return failure(); // strides are never negative
    for (size_t dim = 0; dim < view.shape.size(); ++dim) {
      view.offset += slice.getStarts()[dim] * view.strides[dim];
      view.strides[dim] *= slice.getSteps()[dim];
      view.shape[dim] = slice.getSizes()[dim];
    }
    return success();
  }
};

/// Rows are kept if the joined or padded dimension lies within them.
struct ConcatKernel : MovementKernel<ConcatKernel, nn::ConcatOp> {
  bool isRowLocal(Operation *op, unsigned, int64_t rows) const {
    auto concat = cast<nn::ConcatOp>(op);
    std::optional<unsigned> dims =
        countRowDims(concat.getType().getShape(), rows);
    return dims && static_cast<int64_t>(concat.getDim()) >= *dims;
  }
};

struct PadKernel : MovementKernel<PadKernel, nn::PadOp> {
  bool isRowLocal(Operation *op, unsigned operand, int64_t rows) const {
    auto pad = cast<nn::PadOp>(op);
    std::optional<unsigned> dims = countRowDims(pad.getType().getShape(), rows);
    if (!dims || operand != 0)
      return false;
    for (unsigned dim = 0; dim < *dims; ++dim)
      if (pad.getLow()[dim] != 0 || pad.getHigh()[dim] != 0)
        return false;
    return true;
  }
};

/// Which row of the table is read is known at run time only; the indices are
/// read row by row where they are the result's leading dimensions.
struct GatherKernel : MovementKernel<GatherKernel, nn::GatherOp> {
  bool isRowLocal(Operation *op, unsigned operand, int64_t rows) const {
    auto gather = cast<nn::GatherOp>(op);
    ArrayRef<int64_t> indices = gather.getIndices().getType().getShape();
    std::optional<unsigned> dims = countRowDims(indices, rows);
    return operand == 1 && gather.getDim() == 0 && dims.has_value();
  }
};

struct GatherNdKernel : MovementKernel<GatherNdKernel, nn::GatherNdOp> {
  bool isRowLocal(Operation *op, unsigned operand, int64_t rows) const {
    auto gather = cast<nn::GatherNdOp>(op);
    ArrayRef<int64_t> indices = gather.getIndices().getType().getShape();
    return operand == 1 && countRowDims(indices.drop_back(), rows).has_value();
  }
};

/// Constants and counters have no operands.
template <typename Op>
struct SourceKernel : MovementKernel<SourceKernel<Op>, Op> {
  bool isRowLocal(Operation *, unsigned, int64_t) const { return false; }
};
} // namespace

void plan::attachShapeModels(MLIRContext *context) {
  nn::ReshapeOp::attachInterface<ReshapeKernel>(*context);
  nn::TransposeOp::attachInterface<TransposeKernel>(*context);
  nn::BroadcastOp::attachInterface<BroadcastKernel>(*context);
  nn::SliceOp::attachInterface<SliceKernel>(*context);
  nn::ConcatOp::attachInterface<ConcatKernel>(*context);
  nn::PadOp::attachInterface<PadKernel>(*context);
  nn::GatherOp::attachInterface<GatherKernel>(*context);
  nn::GatherNdOp::attachInterface<GatherNdKernel>(*context);
  nn::ConstantOp::attachInterface<SourceKernel<nn::ConstantOp>>(*context);
  nn::IotaOp::attachInterface<SourceKernel<nn::IotaOp>>(*context);
}
