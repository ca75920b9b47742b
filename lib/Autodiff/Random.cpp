// Keys and counters of random numbers.

#include "Random.h"

#include <cmath>

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

uint64_t autodiff::hashName(StringRef name) {
  uint64_t hash = 0xcbf29ce484222325;
  for (unsigned char byte : name.bytes())
    hash = (hash ^ byte) * 0x100000001b3;
  return hash;
}

Value autodiff::buildRandomKey(const NNBuilder &build, Value calls,
                               int64_t seed, uint64_t site) {
  uint64_t base = mix(mix(seed) ^ site);
  // Keys of successive steps are successive numbers: Philox needs no more.
  return build.add(calls, build.i64(static_cast<int64_t>(base >> 1)));
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

Value autodiff::buildUniform(const NNBuilder &build, Value key,
                             ArrayRef<int64_t> shape, int64_t drawn) {
  Value coordinates = buildCoordinates(build, shape);
  if (drawn != 0)
    coordinates =
        build.add(coordinates, build.splat(double(drawn), coordinates));
  return nn::RandomUniformOp::create(build.builder, build.loc, coordinates,
                                     build.spread(key, shape));
}

Value autodiff::buildNormal(const NNBuilder &build, Value key,
                            RankedTensorType type) {
  ArrayRef<int64_t> shape = type.getShape();
  auto draw = [&](int64_t drawn) {
    return build.cast(buildUniform(build, key, shape, drawn),
                      type.getElementType());
  };
  Value first = draw(0), second = draw(type.getNumElements());
  // 1 - u is above 0, whose logarithm is no number.
  Value length = build.sqrt(build.scale(
      build.make<nn::LogOp>(build.sub(build.splat(1, first), first)), -2));
  Value angle = build.scale(second, 2 * M_PI);
  return build.mul(length, build.cos(angle));
}
