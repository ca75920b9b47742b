// MS-AMP's scaling as ops on scalars and a short vector.

#include "AmaxWindow.h"
#include "Quantize.h"

#include <cfloat>

using namespace mlir;
using namespace accel;
using namespace accel::precision;
using autodiff::NNBuilder;

Value precision::buildPower2Or(const NNBuilder &build, Value amax,
                               double largest, Value old) {
  Value before = build.like(old, amax);
  // Of an infinite one they take the logarithm as well, which is below 0.
  Value isInfinite =
      build.compare(nn::ComparePredicate::gt, amax, build.splat(FLT_MAX, amax));
  Value otherwise = build.select(
      isInfinite, build.div(build.splat(1, before), before), before);
  return build.make<nn::FloorPower2Op>(
      buildScaleOr(build, amax, largest, otherwise));
}

Value precision::buildScaleInTime(const NNBuilder &build, Value scale,
                                  Value count, int64_t length, Value amax,
                                  double largest) {
  Value isFirst =
      build.compare(nn::ComparePredicate::lt, count, build.i64(length));
  return build.select(build.spread(isFirst, typeOf(amax).getShape()),
                      buildPower2Or(build, amax, largest, scale),
                      build.like(scale, amax));
}

WindowStates precision::updateWindow(const NNBuilder &build,
                                     const WindowStates &old, Value amax,
                                     double largest) {
  int64_t length = typeOf(old.window).getDimSize(0);
  Value isFinite = build.isFinite(amax);
  Value zero = build.splat(0, amax);
  Value own = build.select(isFinite, amax, zero);
  Value most = build.make<nn::MaxOp>(
      own, build.make<nn::ReduceOp>(nn::ReductionKind::max, old.window,
                                    ArrayRef<int64_t>{0}, /*first=*/false));
  // The oldest goes, and the first is 0 for the amax to come.
  Value kept = build.make<nn::SliceOp>(old.window, ArrayRef<int64_t>{1},
                                       ArrayRef<int64_t>{length - 2},
                                       ArrayRef<int64_t>{1});
  Value rolled = build.make<nn::ConcatOp>(
      ValueRange{build.reshape(zero, {1}), build.reshape(own, {1}), kept},
      int64_t(0));
  return {
      buildPower2Or(build, most, largest, old.scale), rolled,
      build.select(isFinite, build.add(old.count, build.i64(1)), build.i64(0))};
}
