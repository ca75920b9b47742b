// The meaning of the matrix product: three loops.

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
} // namespace

void evaluate::attachLinearModels(MLIRContext *context) {
  nn::MatmulOp::attachInterface<Matmul>(*context);
}
