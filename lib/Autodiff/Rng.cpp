// Random numbers of a model, as functions of (seed, call, site, coordinates),
// so that every layout draws the same (law 3).

#include "Random.h"
#include "lib/Autodiff/BuildStep.h"

#include <cmath>

using namespace mlir;
using namespace accel;
using namespace accel::autodiff;

/// Before the first call of a step, whose key is that of 0 calls.
static constexpr int64_t kNoCall = -1;

/// Numbers above 0, whose logarithms are finite, and below 1, also where the
/// type has fewer digits than what is drawn.
static Value buildUniformOf(const NNBuilder &build, Value key,
                            RankedTensorType type) {
  constexpr unsigned kDrawnDigits = 24;
  auto element = cast<FloatType>(type.getElementType());
  unsigned digits = std::min(
      kDrawnDigits, APFloat::semanticsPrecision(element.getFloatSemantics()));
  Value drawn = buildUniform(build, key, type.getShape());
  if (digits < kDrawnDigits)
    drawn = build.scale(
        build.make<nn::FloorOp>(build.scale(drawn, std::exp2(digits))),
        std::exp2(-double(digits)));
  Value least = build.splat(std::exp2(-1.0 - digits), drawn);
  return build.cast(build.make<nn::MaxOp>(drawn, least), element);
}

static Value expandDraw(nn::RngOp rng, Value calls, int64_t seed) {
  OpBuilder builder(rng);
  NNBuilder build{builder, rng.getLoc()};
  RankedTensorType type = typeOf(rng.getResult());
  if (!calls)
    calls = build.i64(kNoCall);
  Value key = buildRandomKey(build, calls, seed, rng.getSite());
  if (rng.getDistribution() == nn::RngDistribution::uniform)
    return buildUniformOf(build, key, type);
  Type element = type.getElementType();
  Type wide =
      element.getIntOrFloatBitWidth() < 32 ? builder.getF32Type() : element;
  return build.cast(buildNormal(build, key, type.clone(wide)), element);
}

void autodiff::expandRng(func::FuncOp entry, Value calls, int64_t seed) {
  for (auto rng : llvm::make_early_inc_range(
           entry.getBody().front().getOps<nn::RngOp>())) {
    rng.replaceAllUsesWith(expandDraw(rng, calls, seed));
    rng.erase();
  }
}
