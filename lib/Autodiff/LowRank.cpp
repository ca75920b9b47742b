// PowerSGD's arithmetic in plain nn ops.

#include "LowRank.h"

#include "Random.h"

#include <algorithm>
#include <cmath>

using namespace mlir;
using namespace accel;
using namespace accel::autodiff;

std::optional<LowRank> autodiff::chooseLowRank(ArrayRef<int64_t> shape,
                                               int64_t rank, double leastRate) {
  if (shape.empty())
    return std::nullopt;
  LowRank found{shape.front(), 1, rank};
  for (int64_t size : shape.drop_front())
    found.columns *= size;
  found.rank = std::min({found.rank, found.rows, found.columns});
  double factors = double(found.rows + found.columns) * double(found.rank);
  if (!(factors * leastRate < double(found.rows) * double(found.columns)))
    return std::nullopt;
  return found;
}

/// Rows [from, from + count) of a matrix.
static Value sliceRows(const NNBuilder &build, Value matrix, int64_t from,
                       int64_t count) {
  ArrayRef<int64_t> shape = typeOf(matrix).getShape();
  if (count == shape[0])
    return matrix;
  return build.make<nn::SliceOp>(matrix, ArrayRef<int64_t>{from, 0},
                                 ArrayRef<int64_t>{count, shape[1]},
                                 ArrayRef<int64_t>{1, 1});
}

Value autodiff::buildOrthonormal(const NNBuilder &build, Value matrix,
                                 double epsilon) {
  int64_t rank = typeOf(matrix).getDimSize(0),
          size = typeOf(matrix).getDimSize(1);
  SmallVector<Value> rows;
  Value rest = matrix;
  for (int64_t left = rank; left > 0; --left) {
    Value row = sliceRows(build, rest, 0, 1);
    Value length = build.sqrt(build.sum(build.mul(row, row), {1}));
    if (epsilon != 0)
      length = build.add(length, build.splat(epsilon, length));
    row = build.div(row, build.expand(length, {1}, {1, size}));
    rows.push_back(row);
    if (left == 1)
      break;
    rest = sliceRows(build, rest, 1, left - 1);
    Value along = build.broadcast(row, {left - 1, size});
    Value shares = build.sum(build.mul(along, rest), {1});
    rest = build.sub(
        rest, build.mul(build.expand(shares, {1}, {left - 1, size}), along));
  }
  return rank == 1 ? rows.front() : build.make<nn::ConcatOp>(rows, 0);
}

Factored autodiff::buildFactored(const NNBuilder &build, Value matrix,
                                 Value right, double epsilon) {
  Value left = build.matmul(buildOrthonormal(build, right, epsilon), matrix,
                            /*transposeA=*/false, /*transposeB=*/true);
  left = buildOrthonormal(build, build.make<nn::CompleteOp>(left), epsilon);
  Value terms = build.matmul(left, matrix);
  Value sum = build.make<nn::CompleteOp>(terms);
  auto multiply = [&](Value factor) {
    return build.matmul(left, factor, /*transposeA=*/true);
  };
  return {multiply(sum), sum, build.sub(matrix, multiply(terms))};
}
