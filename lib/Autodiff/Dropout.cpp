// Dropout by numbers that are functions of (seed, step, site, coordinates), so
// that every layout draws the same mask (law 3).

#include "NNBuilder.h"
#include "lib/Autodiff/BuildStep.h"

using namespace mlir;
using namespace accel;
using namespace accel::autodiff;

/// A bijection of 64-bit numbers without structure: the finaliser of SplitMix64
/// (Steele, Lea and Flood, OOPSLA'14).
static uint64_t mix(uint64_t x) {
  x += 0x9e3779b97f4a7c15;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

/// The place of each element in row-major order of the whole tensor.
static Value buildCoordinates(const NNBuilder &build, ArrayRef<int64_t> shape) {
  auto type = RankedTensorType::get(shape, build.builder.getI64Type());
  Value sum;
  int64_t stride = 1;
  for (int64_t dim = shape.size() - 1; dim >= 0; --dim) {
    Value index = nn::IotaOp::create(build.builder, build.loc, type, dim);
    if (stride != 1)
      index = build.mul(index, build.splat(type, double(stride)));
    sum = sum ? build.add(index, sum) : index;
    stride *= shape[dim];
  }
  return sum ? sum : build.splat(type, 0);
}

static Value expand(nn::DropoutOp dropout, Value counter, int64_t seed) {
  OpBuilder builder(dropout);
  NNBuilder build{builder, dropout.getLoc()};
  Value input = dropout.getInput();
  RankedTensorType type = NNBuilder::typeOf(input);
  double ratio = dropout.getRatio().convertToDouble();
  uint64_t base = mix(mix(seed) ^ dropout.getSite());
  // Keys of successive steps are successive numbers: Philox needs no more.
  Value key = build.add(counter, build.i64(static_cast<int64_t>(base >> 1)));
  Value random = nn::RandomUniformOp::create(
      builder, build.loc, buildCoordinates(build, type.getShape()),
      build.spread(key, type.getShape()));
  Value dropped = build.compare(nn::ComparePredicate::lt, random,
                                build.splat(NNBuilder::typeOf(random), ratio));
  return build.select(dropped, build.splat(type, 0),
                      build.mul(input, build.splat(type, 1 / (1 - ratio))));
}

void autodiff::expandDropout(func::FuncOp entry, Value counter, int64_t seed) {
  for (auto dropout : llvm::make_early_inc_range(
           entry.getBody().front().getOps<nn::DropoutOp>())) {
    dropout.replaceAllUsesWith(expand(dropout, counter, seed));
    dropout.erase();
  }
}
