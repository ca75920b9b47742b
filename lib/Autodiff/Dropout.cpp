// Dropout by numbers that are functions of (seed, step, site, coordinates), so
// that every layout draws the same mask (law 3).

#include "lib/Autodiff/BuildStep.h"
#include "lib/Autodiff/Emit.h"

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
static Value buildCoordinates(const Emit &emit, ArrayRef<int64_t> shape) {
  auto type = RankedTensorType::get(shape, emit.builder.getI64Type());
  Value sum;
  int64_t stride = 1;
  for (int64_t dim = shape.size() - 1; dim >= 0; --dim) {
    Value index = nn::IotaOp::create(emit.builder, emit.loc, type, dim);
    if (stride != 1)
      index = emit.mul(index, emit.splat(type, double(stride)));
    sum = sum ? emit.add(index, sum) : index;
    stride *= shape[dim];
  }
  return sum ? sum : emit.splat(type, 0);
}

static Value expand(nn::DropoutOp dropout, Value counter, int64_t seed) {
  OpBuilder builder(dropout);
  Emit emit{builder, dropout.getLoc()};
  Value input = dropout.getInput();
  RankedTensorType type = Emit::typeOf(input);
  double ratio = dropout.getRatio().convertToDouble();
  uint64_t base = mix(mix(seed) ^ dropout.getSite());
  // Keys of successive steps are successive numbers: Philox needs no more.
  Value key = emit.add(counter, emit.i64(static_cast<int64_t>(base >> 1)));
  Value random = nn::RandomUniformOp::create(
      builder, emit.loc, buildCoordinates(emit, type.getShape()),
      emit.spread(key, type.getShape()));
  Value dropped = emit.compare(nn::ComparePredicate::lt, random,
                               emit.splat(Emit::typeOf(random), ratio));
  return emit.select(dropped, emit.splat(type, 0),
                     emit.mul(input, emit.splat(type, 1 / (1 - ratio))));
}

void autodiff::expandDropout(func::FuncOp entry, Value counter, int64_t seed) {
  for (auto dropout : llvm::make_early_inc_range(
           entry.getBody().front().getOps<nn::DropoutOp>())) {
    dropout.replaceAllUsesWith(expand(dropout, counter, seed));
    dropout.erase();
  }
}
