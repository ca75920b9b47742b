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

/// Coefficients are of the op's type, as the constants of a product are.
struct NewtonSchulz : EvaluateModel<NewtonSchulz, nn::NewtonSchulzOp> {
  LogicalResult evaluate(Operation *op, ArrayRef<Tensor> operands,
                         SmallVectorImpl<Tensor> &results) const {
    auto iterations = cast<nn::NewtonSchulzOp>(op);
    SmallVector<double, 3> factors;
    for (double factor : iterations.getCoefficients())
      factors.push_back(
          roundToType(factor, iterations.getType().getElementType()));
    Tensor result = makeResult(op);
    llvm::copy(operands[0].floats(), result.mutableFloats().begin());
    int64_t rows = result.getShape().end()[-2],
            columns = result.getShape().back();
    for (int64_t first = 0; first < result.getNumElements();
         first += rows * columns)
      for (uint64_t step = 0; step < iterations.getSteps(); ++step)
        iterate(result.mutableFloats().slice(first, rows * columns), rows,
                columns, factors);
    results.push_back(std::move(result));
    return success();
  }

private:
  /// One step, of one matrix.
  static void iterate(MutableArrayRef<double> matrix, int64_t rows,
                      int64_t columns, ArrayRef<double> factors) {
    // X of at most as many rows as columns: the transpose's result is that of
    // the transpose.
    int64_t size = std::min(rows, columns), length = std::max(rows, columns);
    int64_t down = rows > columns ? 1 : columns,
            along = rows > columns ? columns : 1;
    auto x = [&](int64_t i, int64_t k) { return matrix[i * down + k * along]; };
    std::vector<double> gram(size * size), polynomial(size * size),
        next(matrix.size());
    for (int64_t i = 0; i < size; ++i)
      for (int64_t j = 0; j < size; ++j)
        for (int64_t k = 0; k < length; ++k)
          gram[i * size + j] += x(i, k) * x(j, k);
    for (int64_t i = 0; i < size; ++i)
      for (int64_t j = 0; j < size; ++j) {
        double square = 0;
        for (int64_t k = 0; k < size; ++k)
          square += gram[i * size + k] * gram[k * size + j];
        polynomial[i * size + j] =
            factors[1] * gram[i * size + j] + factors[2] * square;
      }
    for (int64_t i = 0; i < size; ++i)
      for (int64_t k = 0; k < length; ++k) {
        double sum = factors[0] * x(i, k);
        for (int64_t j = 0; j < size; ++j)
          sum += polynomial[i * size + j] * x(j, k);
        next[i * down + k * along] = sum;
      }
    llvm::copy(next, matrix.begin());
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
  nn::NewtonSchulzOp::attachInterface<NewtonSchulz>(*context);
  nn::GroupedMatmulOp::attachInterface<GroupedMatmul>(*context);
  nn::GroupedMatmulGradOp::attachInterface<GroupedMatmulGrad>(*context);
}
