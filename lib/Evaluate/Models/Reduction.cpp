// The meaning of reductions, running sums and choices of the greatest.

#include "Group.h"

#include <cmath>
#include <limits>
#include <numeric>

using namespace mlir;
using namespace accel;
using namespace accel::evaluate;

namespace {
/// What an empty reduction gives.
double neutralFloat(nn::ReductionKind kind) {
  switch (kind) {
  case nn::ReductionKind::sum:
    return 0;
  case nn::ReductionKind::prod:
    return 1;
  case nn::ReductionKind::max:
    return -INFINITY;
  case nn::ReductionKind::min:
    return INFINITY;
  }
  llvm_unreachable("a reduction without meaning");
}

int64_t neutralInt(nn::ReductionKind kind, Type type) {
  unsigned bits = type.getIntOrFloatBitWidth();
  bool isUnsigned = bits == 1 || type.isUnsignedInteger();
  switch (kind) {
  case nn::ReductionKind::sum:
    return 0;
  case nn::ReductionKind::prod:
    return 1;
  case nn::ReductionKind::max:
    return isUnsigned ? 0 : llvm::minIntN(bits);
  case nn::ReductionKind::min:
    return isUnsigned ? llvm::maxUIntN(bits) : llvm::maxIntN(bits);
  }
  llvm_unreachable("a reduction without meaning");
}

double combine(nn::ReductionKind kind, double x, double y) {
  switch (kind) {
  case nn::ReductionKind::sum:
    return x + y;
  case nn::ReductionKind::prod:
    return x * y;
  case nn::ReductionKind::max: // NaN stays
    return x > y || std::isnan(x) ? x : y;
  case nn::ReductionKind::min:
    return x < y || std::isnan(x) ? x : y;
  }
  llvm_unreachable("a reduction without meaning");
}

/// Sums and products without sign, so that they wrap around.
template <typename T>
int64_t combineInts(nn::ReductionKind kind, int64_t x, int64_t y) {
  switch (kind) {
  case nn::ReductionKind::sum:
    return static_cast<uint64_t>(x) + static_cast<uint64_t>(y);
  case nn::ReductionKind::prod:
    return static_cast<uint64_t>(x) * static_cast<uint64_t>(y);
  case nn::ReductionKind::max:
    return std::max(static_cast<T>(x), static_cast<T>(y));
  case nn::ReductionKind::min:
    return std::min(static_cast<T>(x), static_cast<T>(y));
  }
  llvm_unreachable("a reduction without meaning");
}
int64_t combine(nn::ReductionKind kind, int64_t x, int64_t y) {
  return combineInts<int64_t>(kind, x, y);
}

struct Reduce : EvaluateModel<Reduce, nn::ReduceOp> {
  LogicalResult evaluate(Operation *op, ArrayRef<Tensor> operands,
                         SmallVectorImpl<Tensor> &results) const {
    auto reduce = cast<nn::ReduceOp>(op);
    nn::ReductionKind kind = reduce.getKind();
    Tensor result = makeResult(op);
    Type type = result.getElementType();
    if (result.isFloat())
      llvm::fill(result.mutableFloats(), neutralFloat(kind));
    else
      llvm::fill(result.mutableInts(), neutralInt(kind, type));
    bool isUnsigned = type.isUnsignedInteger();
    // Where each input element goes: strides of the result, 0 along `dims`.
    SmallVector<int64_t> kept = getRowMajorStrides(result.getShape());
    SmallVector<int64_t> strides;
    size_t next = 0;
    for (int64_t dim = 0; dim < operands[0].getRank(); ++dim)
      strides.push_back(
          llvm::is_contained(reduce.getDims(), dim) ? 0 : kept[next++]);
    auto join = [&](auto x, auto y) {
      if constexpr (std::is_integral_v<decltype(x)>)
        if (isUnsigned)
          return combineInts<uint64_t>(kind, x, y);
      return combine(kind, x, y);
    };
    withElements(operands[0], result, [&](auto source, auto target) {
      auto element = source.begin();
      forEachPosition(operands[0].getShape(), strides, 0, [&](int64_t at) {
        target[at] = join(target[at], *element++);
      });
    });
    if (!result.isFloat())
      for (int64_t &value : result.mutableInts())
        value = wrapToType(value, type);
    results.push_back(std::move(result));
    return success();
  }
};

struct Cumsum : EvaluateModel<Cumsum, nn::CumsumOp> {
  LogicalResult evaluate(Operation *op, ArrayRef<Tensor> operands,
                         SmallVectorImpl<Tensor> &results) const {
    auto cumsum = cast<nn::CumsumOp>(op);
    Tensor result = makeResult(op);
    DimSplit split(result.getShape(), cumsum.getDim());
    withElements(operands[0], result, [&](auto source, auto target) {
      using Value = std::decay_t<decltype(source[0])>;
      for (int64_t outer = 0; outer < split.outer; ++outer)
        for (int64_t inner = 0; inner < split.inner; ++inner) {
          Value sum = 0;
          for (int64_t i = 0; i < split.size; ++i) {
            int64_t along = cumsum.getReverse() ? split.size - 1 - i : i;
            int64_t at = (outer * split.size + along) * split.inner + inner;
            if (cumsum.getExclusive())
              target[at] = sum;
            sum = combine(nn::ReductionKind::sum, sum, source[at]);
            if (!cumsum.getExclusive())
              target[at] = sum;
          }
        }
    });
    if (!result.isFloat())
      for (int64_t &value : result.mutableInts())
        value = wrapToType(value, result.getElementType());
    results.push_back(std::move(result));
    return success();
  }
};
struct TopK : EvaluateModel<TopK, nn::TopKOp> {
  LogicalResult evaluate(Operation *op, ArrayRef<Tensor> operands,
                         SmallVectorImpl<Tensor> &results) const {
    auto topK = cast<nn::TopKOp>(op);
    Tensor result = makeResult(op);
    int64_t size = operands[0].getShape().back(), k = topK.getK();
    SmallVector<int64_t> places(size);
    auto choose = [&](auto source) {
      auto isNan = [](auto x) { return x != x; };
      // NaN is greater than any number.
      auto greater = [&](auto x, auto y) {
        return x > y || (isNan(x) && !isNan(y));
      };
      int64_t *target = result.mutableInts().data();
      for (auto row = source.begin(); row != source.end(); row += size) {
        std::iota(places.begin(), places.end(), 0);
        std::stable_sort(places.begin(), places.end(),
                         [&](int64_t i, int64_t j) {
                           return topK.getSmallest() ? greater(row[j], row[i])
                                                     : greater(row[i], row[j]);
                         });
        target = std::copy_n(places.begin(), k, target);
      }
    };
    if (operands[0].isFloat())
      choose(operands[0].floats());
    else if (operands[0].getElementType().isUnsignedInteger())
      choose(operands[0].unsignedInts());
    else
      choose(operands[0].ints());
    results.push_back(std::move(result));
    return success();
  }
};
} // namespace

void evaluate::attachReductionModels(MLIRContext *context) {
  nn::ReduceOp::attachInterface<Reduce>(*context);
  nn::TopKOp::attachInterface<TopK>(*context);
  nn::CumsumOp::attachInterface<Cumsum>(*context);
}
