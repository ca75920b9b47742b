// The meaning of the ops that move elements.

#include "Group.h"

using namespace mlir;
using namespace accel;
using namespace accel::evaluate;

namespace {
struct Reshape : EvaluateModel<Reshape, nn::ReshapeOp> {
  LogicalResult evaluate(Operation *op, ArrayRef<Tensor> operands,
                         SmallVectorImpl<Tensor> &results) const {
    results.push_back(
        operands[0].reshape(cast<nn::ReshapeOp>(op).getType().getShape()));
    return success();
  }
};

struct Transpose : EvaluateModel<Transpose, nn::TransposeOp> {
  LogicalResult evaluate(Operation *op, ArrayRef<Tensor> operands,
                         SmallVectorImpl<Tensor> &results) const {
    auto transpose = cast<nn::TransposeOp>(op);
    SmallVector<int64_t> from = getRowMajorStrides(operands[0].getShape());
    SmallVector<int64_t> strides;
    for (int64_t dim : transpose.getPermutation())
      strides.push_back(from[dim]);
    results.push_back(
        operands[0].strided(transpose.getType().getShape(), strides));
    return success();
  }
};

struct Broadcast : EvaluateModel<Broadcast, nn::BroadcastOp> {
  LogicalResult evaluate(Operation *op, ArrayRef<Tensor> operands,
                         SmallVectorImpl<Tensor> &results) const {
    ArrayRef<int64_t> from = operands[0].getShape();
    ArrayRef<int64_t> to = cast<nn::BroadcastOp>(op).getType().getShape();
    SmallVector<int64_t> strides(to.size() - from.size(), 0);
    llvm::append_range(strides, getRowMajorStrides(from));
    for (auto [dim, extent] : llvm::enumerate(from))
      if (extent == 1)
        strides[to.size() - from.size() + dim] = 0;
    results.push_back(operands[0].strided(to, strides));
    return success();
  }
};

struct Slice : EvaluateModel<Slice, nn::SliceOp> {
  LogicalResult evaluate(Operation *op, ArrayRef<Tensor> operands,
                         SmallVectorImpl<Tensor> &results) const {
    auto slice = cast<nn::SliceOp>(op);
    SmallVector<int64_t> strides = getRowMajorStrides(operands[0].getShape());
    int64_t offset = 0;
    for (size_t dim = 0; dim < strides.size(); ++dim) {
      offset += slice.getStarts()[dim] * strides[dim];
      strides[dim] *= slice.getSteps()[dim];
    }
    results.push_back(operands[0].strided(slice.getSizes(), strides, offset));
    return success();
  }
};

struct Concat : EvaluateModel<Concat, nn::ConcatOp> {
  LogicalResult evaluate(Operation *op, ArrayRef<Tensor> operands,
                         SmallVectorImpl<Tensor> &results) const {
    int64_t dim = cast<nn::ConcatOp>(op).getDim();
    Tensor result = makeResult(op);
    DimSplit whole(result.getShape(), dim);
    int64_t start = 0;
    for (const Tensor &input : operands) {
      int64_t block = input.getDimSize(dim) * whole.inner;
      withElements(input, result, [&](auto source, auto target) {
        for (int64_t outer = 0; outer < whole.outer; ++outer)
          llvm::copy(source.slice(outer * block, block),
                     target.begin() + outer * whole.size * whole.inner + start);
      });
      start += block;
    }
    results.push_back(std::move(result));
    return success();
  }
};

struct Pad : EvaluateModel<Pad, nn::PadOp> {
  LogicalResult evaluate(Operation *op, ArrayRef<Tensor> operands,
                         SmallVectorImpl<Tensor> &results) const {
    auto pad = cast<nn::PadOp>(op);
    Tensor result =
        operands[1].strided(pad.getType().getShape(),
                            SmallVector<int64_t>(pad.getType().getRank(), 0));
    SmallVector<int64_t> strides = getRowMajorStrides(result.getShape());
    int64_t offset = 0;
    for (auto [low, stride] : llvm::zip(pad.getLow(), strides))
      offset += low * stride;
    withElements(operands[0], result, [&](auto source, auto target) {
      auto next = source.begin();
      forEachPosition(operands[0].getShape(), strides, offset,
                      [&](int64_t position) { target[position] = *next++; });
    });
    results.push_back(std::move(result));
    return success();
  }
};

/// `index` counted from the front, or an error at the op.
FailureOr<int64_t> normaliseIndex(Operation *op, int64_t index, int64_t size) {
  if (index >= -size && index < size)
    return index < 0 ? index + size : index;
  return op->emitOpError() << "expected indices in [" << -size << ", "
                           << size - 1 << "], found " << index;
}

struct Gather : EvaluateModel<Gather, nn::GatherOp> {
  LogicalResult evaluate(Operation *op, ArrayRef<Tensor> operands,
                         SmallVectorImpl<Tensor> &results) const {
    Tensor result = makeResult(op);
    auto gather = cast<nn::GatherOp>(op);
    DimSplit split(operands[0].getShape(), gather.getDim());
    SmallVector<int64_t> picked;
    for (int64_t index : operands[1].ints()) {
      if (gather.getNonNegative() && index < 0)
        return op->emitOpError() << "expected indices in [0, " << split.size - 1
                                 << "], found " << index;
      FailureOr<int64_t> row = normaliseIndex(op, index, split.size);
      if (failed(row))
        return failure();
      picked.push_back(*row);
    }
    withElements(operands[0], result, [&](auto source, auto target) {
      auto out = target.begin();
      for (int64_t outer = 0; outer < split.outer; ++outer)
        for (int64_t row : picked)
          out =
              llvm::copy(source.slice((outer * split.size + row) * split.inner,
                                      split.inner),
                         out);
    });
    results.push_back(std::move(result));
    return success();
  }
};

struct ScatterAdd : EvaluateModel<ScatterAdd, nn::ScatterAddOp> {
  LogicalResult evaluate(Operation *op, ArrayRef<Tensor> operands,
                         SmallVectorImpl<Tensor> &results) const {
    Tensor result = operands[0];
    auto scatter = cast<nn::ScatterAddOp>(op);
    DimSplit split(result.getShape(), scatter.getDim());
    // Each batch has as many indices of its own.
    int64_t batches = ShapedType::getNumElements(
        result.getShape().take_front(scatter.getBatchDims()));
    SmallVector<int64_t> picked;
    for (int64_t index : operands[1].ints()) {
      FailureOr<int64_t> row = normaliseIndex(op, index, split.size);
      if (failed(row))
        return failure();
      picked.push_back(*row);
    }
    Type element = result.getElementType();
    withElements(operands[2], result, [&](auto source, auto target) {
      auto from = source.begin();
      ArrayRef<int64_t> rows = picked;
      int64_t perBatch = batches ? rows.size() / batches : 0;
      for (int64_t outer = 0; outer < split.outer; ++outer)
        for (int64_t row :
             rows.slice(outer / (split.outer / batches) * perBatch, perBatch))
          for (int64_t i = 0; i < split.inner; ++i, ++from) {
            auto &to = target[(outer * split.size + row) * split.inner + i];
            if constexpr (std::is_same_v<std::decay_t<decltype(to)>, double>)
              to += *from;
            else
              to = wrapToType(static_cast<uint64_t>(to) + *from, element);
          }
    });
    results.push_back(std::move(result));
    return success();
  }
};

struct GatherNd : EvaluateModel<GatherNd, nn::GatherNdOp> {
  LogicalResult evaluate(Operation *op, ArrayRef<Tensor> operands,
                         SmallVectorImpl<Tensor> &results) const {
    int64_t batchDims = cast<nn::GatherNdOp>(op).getBatchDims();
    const Tensor &table = operands[0];
    Tensor result = makeResult(op);
    int64_t tuple = operands[1].getShape().back();
    SmallVector<int64_t> strides = getRowMajorStrides(table.getShape());
    int64_t batches =
        ShapedType::getNumElements(table.getShape().take_front(batchDims));
    int64_t block = ShapedType::getNumElements(
        table.getShape().drop_front(batchDims + tuple));
    ArrayRef<int64_t> rest = operands[1].getShape().drop_front(batchDims);
    int64_t tuples = ShapedType::getNumElements(rest.drop_back());
    int64_t perBatch =
        ShapedType::getNumElements(table.getShape().drop_front(batchDims));
    SmallVector<int64_t> starts;
    ArrayRef<int64_t> indices = operands[1].ints();
    for (int64_t batch = 0; batch < batches; ++batch)
      for (int64_t i = 0; i < tuples;
           ++i, indices = indices.drop_front(tuple)) {
        int64_t start = batch * perBatch;
        for (int64_t d = 0; d < tuple; ++d) {
          FailureOr<int64_t> index =
              normaliseIndex(op, indices[d], table.getDimSize(batchDims + d));
          if (failed(index))
            return failure();
          start += *index * strides[batchDims + d];
        }
        starts.push_back(start);
      }
    withElements(table, result, [&](auto source, auto target) {
      auto out = target.begin();
      for (int64_t start : starts)
        out = llvm::copy(source.slice(start, block), out);
    });
    results.push_back(std::move(result));
    return success();
  }
};
} // namespace

void evaluate::attachShapeModels(MLIRContext *context) {
  nn::ReshapeOp::attachInterface<Reshape>(*context);
  nn::TransposeOp::attachInterface<Transpose>(*context);
  nn::BroadcastOp::attachInterface<Broadcast>(*context);
  nn::SliceOp::attachInterface<Slice>(*context);
  nn::ConcatOp::attachInterface<Concat>(*context);
  nn::PadOp::attachInterface<Pad>(*context);
  nn::GatherOp::attachInterface<Gather>(*context);
  nn::GatherNdOp::attachInterface<GatherNd>(*context);
  nn::ScatterAddOp::attachInterface<ScatterAdd>(*context);
}
