// Delayed scaling as ops on a scalar and a short vector.

#include "AmaxHistory.h"
#include "Quantize.h"

#include <cmath>

using namespace mlir;
using namespace accel;
using namespace accel::precision;
using autodiff::NNBuilder;

/// Elements [from, to) of a vector.
static Value slice(const NNBuilder &build, Value vector, int64_t from,
                   int64_t to) {
  return build.make<nn::SliceOp>(vector, ArrayRef<int64_t>{from},
                                 ArrayRef<int64_t>{to - from},
                                 ArrayRef<int64_t>{1});
}

/// The history rolls only where there was an amax: then the oldest goes, the
/// new one comes last, and the first is 0 for the amax to come.
static Value roll(const NNBuilder &build, Value history, Value amax) {
  int64_t length = typeOf(history).getDimSize(0);
  Value zero =
      build.splat(RankedTensorType::get({1}, build.builder.getF32Type()), 0);
  if (length == 1)
    return zero;
  SmallVector<Value> parts{zero};
  if (length > 2)
    parts.push_back(slice(build, history, 2, length));
  parts.push_back(build.reshape(amax, {1}));
  return build.make<nn::ConcatOp>(ValueRange(parts), int64_t(0));
}

QuantizerStates precision::updateHistory(const NNBuilder &build,
                                         const QuantizerStates &old, Value amax,
                                         double largest,
                                         const Fp8Recipe &recipe) {
  int64_t length = typeOf(old.history).getDimSize(0);
  Value zero = build.splat(0, amax);
  Value isThere = build.compare(nn::ComparePredicate::ne, amax, zero);
  Value chosen = amax;
  if (recipe.amax == Fp8Recipe::Amax::Max && length > 1) {
    // The whole window as it was: the oldest counts for the last time.
    Value most = build.make<nn::ReduceOp>(
        nn::ReductionKind::max, slice(build, old.history, 1, length),
        ArrayRef<int64_t>{0}, /*first=*/false);
    chosen = build.select(isThere, build.make<nn::MaxOp>(most, amax), zero);
  }
  double bound = std::ldexp(largest, -static_cast<int>(recipe.margin));
  return {buildScaleOr(build, chosen, bound, old.scale),
          build.select(build.spread(isThere, {length}),
                       roll(build, old.history, amax), old.history)};
}
