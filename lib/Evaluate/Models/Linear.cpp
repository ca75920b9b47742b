// The meaning of matrix products: loops.

#include "Group.h"

using namespace mlir;
using namespace accel;
using namespace accel::evaluate;

namespace {
/// The last two dimensions swapped.
Tensor swapLast(const Tensor &tensor) {
  SmallVector<int64_t> shape(tensor.getShape());
  SmallVector<int64_t> strides = getRowMajorStrides(shape);
  size_t rank = shape.size();
  std::swap(shape[rank - 1], shape[rank - 2]);
  std::swap(strides[rank - 1], strides[rank - 2]);
  return tensor.strided(shape, strides);
}

struct Matmul : EvaluateModel<Matmul, nn::MatmulOp> {
  LogicalResult evaluate(Operation *op, ArrayRef<Tensor> operands,
                         SmallVectorImpl<Tensor> &results) const {
    auto matmul = cast<nn::MatmulOp>(op);
    Tensor lhs = matmul.getTransposeLhs() ? swapLast(operands[0]) : operands[0];
    Tensor rhs = matmul.getTransposeRhs() ? swapLast(operands[1]) : operands[1];
    Tensor result = makeResult(op);
    int64_t rows = lhs.getShape().end()[-2], inner = lhs.getShape().back();
    int64_t columns = rhs.getShape().back();
    int64_t batch = 1;
    for (int64_t extent : lhs.getShape().drop_back(2))
      batch *= extent;
    int64_t rhsStep = rhs.getRank() == 2 ? 0 : inner * columns;
    const double *a = lhs.floats().data(), *b = rhs.floats().data();
    double *c = result.mutableFloats().data();
    for (int64_t index = 0; index < batch; ++index, b += rhsStep)
      for (int64_t row = 0; row < rows; ++row, a += inner, c += columns)
        for (int64_t k = 0; k < inner; ++k)
          for (int64_t column = 0; column < columns; ++column)
            c[column] += a[k] * b[k * columns + column];
    results.push_back(std::move(result));
    return success();
  }
};
/// Whether every row is in a group, or in none; an error at the op otherwise.
LogicalResult checkGroups(Operation *op, const Tensor &groups, int64_t count) {
  for (int64_t group : groups.ints())
    if (group < -1 || group >= count)
      return op->emitOpError() << "expected groups in [0, " << count
                               << "), or -1 for none, found " << group;
  return success();
}

struct GroupedMatmul : EvaluateModel<GroupedMatmul, nn::GroupedMatmulOp> {
  LogicalResult evaluate(Operation *op, ArrayRef<Tensor> operands,
                         SmallVectorImpl<Tensor> &results) const {
    bool transposed = cast<nn::GroupedMatmulOp>(op).getTransposeRhs();
    Tensor rhs = transposed ? swapLast(operands[1]) : operands[1];
    Tensor result = makeResult(op);
    if (failed(checkGroups(op, operands[2], rhs.getShape()[0])))
      return failure();
    int64_t inner = rhs.getShape()[1], columns = rhs.getShape()[2];
    const double *a = operands[0].floats().data();
    double *c = result.mutableFloats().data();
    for (int64_t group : operands[2].ints()) {
      const double *b = rhs.floats().data() + group * inner * columns;
      for (int64_t k = 0; group >= 0 && k < inner; ++k)
        for (int64_t column = 0; column < columns; ++column)
          c[column] += a[k] * b[k * columns + column];
      a += inner;
      c += columns;
    }
    results.push_back(std::move(result));
    return success();
  }
};

struct GroupedMatmulGrad
    : EvaluateModel<GroupedMatmulGrad, nn::GroupedMatmulGradOp> {
  LogicalResult evaluate(Operation *op, ArrayRef<Tensor> operands,
                         SmallVectorImpl<Tensor> &results) const {
    Tensor result = makeResult(op);
    if (failed(checkGroups(op, operands[2], result.getShape()[0])))
      return failure();
    int64_t inner = result.getShape()[1], columns = result.getShape()[2];
    const double *a = operands[0].floats().data(),
                 *b = operands[1].floats().data();
    double *all = result.mutableFloats().data();
    for (int64_t group : operands[2].ints()) {
      double *c = all + group * inner * columns;
      for (int64_t k = 0; group >= 0 && k < inner; ++k)
        for (int64_t column = 0; column < columns; ++column)
          c[k * columns + column] += a[k] * b[column];
      a += inner;
      b += columns;
    }
    results.push_back(std::move(result));
    return success();
  }
};
struct DealRows : EvaluateModel<DealRows, nn::DealRowsOp> {
  LogicalResult evaluate(Operation *op, ArrayRef<Tensor> operands,
                         SmallVectorImpl<Tensor> &results) const {
    auto deal = cast<nn::DealRowsOp>(op);
    int64_t ranks = deal.getRanks(), room = deal.getRoom(),
            rank = operands[1].ints()[0], all = operands[0].getNumElements(),
            perRank = deal.getNumGroups() / ranks;
    if (failed(checkGroups(op, operands[0], deal.getNumGroups())))
      return failure();
    if (rank < 0 || rank >= ranks)
      return op->emitOpError()
             << "expected a rank below " << ranks << ", found " << rank;
    Tensor rows(deal.getRows().getType()), own(deal.getOwn().getType()),
        places(deal.getPlaces().getType());
    llvm::fill(rows.mutableInts(), -1);
    llvm::fill(own.mutableInts(), -1);
    llvm::fill(places.mutableInts(), -1);
    SmallVector<int64_t> dealt(ranks, 0);
    for (auto [row, group] : llvm::enumerate(operands[0].ints())) {
      if (group < 0)
        continue;
      int64_t owner = group / perRank, place = dealt[owner]++;
      if (place >= room)
        return op->emitOpError()
               << "expected at most " << room << " rows of the groups of rank "
               << owner << ", found more";
      if (owner == rank) {
        rows.mutableInts()[place] = row;
        own.mutableInts()[place] = group - rank * perRank;
      }
      if (static_cast<int64_t>(row) / (all / ranks) == rank)
        places.mutableInts()[row % (all / ranks)] = owner * room + place;
    }
    results.append({std::move(rows), std::move(own), std::move(places)});
    return success();
  }
};
} // namespace

void evaluate::attachLinearModels(MLIRContext *context) {
  nn::DealRowsOp::attachInterface<DealRows>(*context);
  nn::MatmulOp::attachInterface<Matmul>(*context);
  nn::GroupedMatmulOp::attachInterface<GroupedMatmul>(*context);
  nn::GroupedMatmulGradOp::attachInterface<GroupedMatmulGrad>(*context);
}
