// Dropout by numbers that are functions of (seed, call, site, coordinates), so
// that every layout draws the same mask (law 3).

#include "Random.h"
#include "lib/Autodiff/BuildStep.h"

using namespace mlir;
using namespace accel;
using namespace accel::autodiff;

static Value expand(nn::DropoutOp dropout, Value calls, int64_t seed) {
  OpBuilder builder(dropout);
  NNBuilder build{builder, dropout.getLoc()};
  Value input = dropout.getInput();
  RankedTensorType type = typeOf(input);
  double ratio = dropout.getRatio().convertToDouble();
  Value key = buildRandomKey(build, calls, seed, dropout.getSite());
  Value random = buildUniform(build, key, type.getShape());
  Value dropped = build.compare(nn::ComparePredicate::lt, random,
                                build.splat(typeOf(random), ratio));
  return build.select(dropped, build.splat(type, 0),
                      build.mul(input, build.splat(type, 1 / (1 - ratio))));
}

void autodiff::expandDropout(func::FuncOp entry, Value calls, int64_t seed) {
  for (auto dropout : llvm::make_early_inc_range(
           entry.getBody().front().getOps<nn::DropoutOp>())) {
    dropout.replaceAllUsesWith(expand(dropout, calls, seed));
    dropout.erase();
  }
}
