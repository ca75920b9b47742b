// How reductions, normalisations and losses take part in kernels: what they
// combine must lie within a row.

#include "Group.h"

#include "dialects/Interfaces/KernelSource.h"
#include "dialects/NN/NN.h"
#include "dialects/NN/TensorTypes.h"
#include "lib/Plan/Rows.h"

using namespace mlir;
using namespace accel;
using accel::plan::countRowDims;

/// Whether dimension `dim` and those after it lie within rows of `shape`.
static bool startsWithinRow(ArrayRef<int64_t> shape, int64_t dim,
                            int64_t rows) {
  std::optional<unsigned> dims = countRowDims(shape, rows);
  return dims && dim >= static_cast<int64_t>(*dims);
}

namespace {
template <typename Model, typename Op>
struct RowReductionKernel : KernelSourceOpInterface::ExternalModel<Model, Op> {
  KernelRole getKernelRole(Operation *) const {
    return KernelRole::RowReduction;
  }
  bool isCheap(Operation *) const { return false; }
};

/// Whether operand 0 is of rows of its own, and `dim` and those after it are
/// all that a row's result is made of.
template <typename Model>
bool readsTrailing(const Model &model, Operation *op, unsigned operand,
                   int64_t dim, int64_t count, int64_t rows) {
  int64_t rank = shapeOf(op->getOperand(0)).size();
  return operand == 0 && model.isRowLocal(op, operand, rows) &&
         dim == rank - count;
}

struct ReduceKernel : RowReductionKernel<ReduceKernel, nn::ReduceOp> {
  bool isRowLocal(Operation *op, unsigned, int64_t rows) const {
    auto reduce = cast<nn::ReduceOp>(op);
    return reduce.getDims().empty() ||
           startsWithinRow(shapeOf(reduce.getInput()), reduce.getDims().front(),
                           rows);
  }
  bool readsRowFirst(Operation *op, unsigned operand, int64_t rows) const {
    ArrayRef<int64_t> dims = cast<nn::ReduceOp>(op).getDims();
    return !dims.empty() &&
           readsTrailing(*this, op, operand, dims.front(), dims.size(), rows);
  }
  /// Sums over the leading dimensions.
  bool reducesColumns(Operation *op, int64_t rows) const {
    auto reduce = cast<nn::ReduceOp>(op);
    ArrayRef<int64_t> dims = reduce.getDims();
    return reduce.getKind() == nn::ReductionKind::sum && !dims.empty() &&
           dims.back() + 1 == static_cast<int64_t>(dims.size()) && rows > 1 &&
           isa<FloatType>(getElementTypeOrSelf(op->getResult(0))) &&
           reduce.getType().getNumElements() == rows;
  }
};

template <typename Op>
struct AlongDimKernel : RowReductionKernel<AlongDimKernel<Op>, Op> {
  bool isRowLocal(Operation *op, unsigned operand, int64_t rows) const {
    return operand == 0 &&
           startsWithinRow(shapeOf(op->getOperand(0)),
                           static_cast<int64_t>(cast<Op>(op).getDim()), rows);
  }
  /// A running sum writes as it reads; a norm is over all from `dim` on.
  bool readsRowFirst(Operation *op, unsigned operand, int64_t rows) const {
    if constexpr (std::is_same_v<Op, nn::LayerNormOp>)
      return operand == 0 && this->isRowLocal(op, operand, rows);
    return std::is_same_v<Op, nn::SoftmaxOp> &&
           readsTrailing(*this, op, operand, cast<Op>(op).getDim(), 1, rows);
  }
};

/// A row chooses its places once, in rounds that read all of it.
struct TopKKernel : RowReductionKernel<TopKKernel, nn::TopKOp> {
  bool isRowLocal(Operation *op, unsigned, int64_t rows) const {
    ArrayRef<int64_t> input = shapeOf(op->getOperand(0));
    return startsWithinRow(input, static_cast<int64_t>(input.size()) - 1, rows);
  }
};

struct CrossEntropyKernel
    : RowReductionKernel<CrossEntropyKernel, nn::CrossEntropyOp> {
  bool isRowLocal(Operation *op, unsigned, int64_t rows) const {
    ArrayRef<int64_t> logits = shapeOf(op->getOperand(0));
    return startsWithinRow(logits, static_cast<int64_t>(logits.size()) - 1,
                           rows);
  }
  bool readsRowFirst(Operation *op, unsigned operand, int64_t rows) const {
    return operand == 0 && isRowLocal(op, operand, rows);
  }
};

/// A row of the table looks for itself among the indices: not for every element
/// of it again.
struct ScatterAddKernel
    : RowReductionKernel<ScatterAddKernel, nn::ScatterAddOp> {
  bool isRowLocal(Operation *op, unsigned operand, int64_t rows) const {
    auto scatter = cast<nn::ScatterAddOp>(op);
    std::optional<unsigned> dims =
        countRowDims(scatter.getType().getShape(), rows);
    return operand == 0 && dims && *dims <= scatter.getDim() + 1;
  }
  bool readsRowFirst(Operation *op, unsigned operand, int64_t rows) const {
    return isRowLocal(op, operand, rows);
  }
};
} // namespace

void plan::attachReductionModels(MLIRContext *context) {
  nn::ReduceOp::attachInterface<ReduceKernel>(*context);
  nn::TopKOp::attachInterface<TopKKernel>(*context);
  nn::CumsumOp::attachInterface<AlongDimKernel<nn::CumsumOp>>(*context);
  nn::SoftmaxOp::attachInterface<AlongDimKernel<nn::SoftmaxOp>>(*context);
  nn::LayerNormOp::attachInterface<AlongDimKernel<nn::LayerNormOp>>(*context);
  nn::CrossEntropyOp::attachInterface<CrossEntropyKernel>(*context);
  nn::ScatterAddOp::attachInterface<ScatterAddKernel>(*context);
}
