// Amax, scale and cast, as ops that every pass knows.

#include "Quantize.h"

#include <cfloat>

using namespace mlir;
using namespace accel;
using namespace accel::precision;
using autodiff::NNBuilder;

Value precision::widen(const NNBuilder &build, Value value) {
  return typeOf(value).getElementType().isF64()
             ? value
             : build.cast(value, build.builder.getF32Type());
}

static Value maxOver(const NNBuilder &build, Value value,
                     ArrayRef<int64_t> dims) {
  return dims.empty() ? value
                      : build.make<nn::ReduceOp>(nn::ReductionKind::max, value,
                                                 dims, /*first=*/false);
}

/// Rows first, which kernels have.
static Value maxOfAll(const NNBuilder &build, Value value) {
  int64_t rank = typeOf(value).getRank();
  for (int64_t from : {1, 0})
    if (from < rank) {
      value = maxOver(build, value, llvm::to_vector(llvm::seq(from, rank)));
      rank = from;
    }
  return value;
}

Value precision::buildAmax(const NNBuilder &build, Value value, int64_t parts) {
  Value size = build.make<nn::AbsOp>(widen(build, value));
  Type f32 = build.builder.getF32Type();
  if (parts == 1)
    return build.cast(maxOfAll(build, size), f32);
  RankedTensorType type = typeOf(size);
  Value ofRows = maxOver(
      build, size, llvm::to_vector(llvm::seq<int64_t>(1, type.getRank())));
  int64_t rows = type.getDimSize(0);
  assert(rows % parts == 0 && "equal parts");
  Value ofParts = build.reshape(ofRows, {parts, rows / parts});
  return build.cast(maxOver(build, ofParts, {1}), f32);
}

Value precision::buildScaleOr(const NNBuilder &build, Value amax,
                              double largest, Value otherwise) {
  Value isUsable = build.make<nn::AndOp>(
      build.compare(nn::ComparePredicate::gt, amax, build.splat(0, amax)),
      build.isFinite(amax));
  Value scale = build.make<nn::MinOp>(
      build.div(build.splat(largest, amax), amax), build.splat(FLT_MAX, amax));
  return build.select(isUsable, scale, otherwise);
}

/// Transformer Engine's compute_scale_from_amax.
static Value buildExactScale(const NNBuilder &build, Value amax,
                             double largest) {
  return buildScaleOr(build, amax, largest, build.splat(1, amax));
}

/// largest / max(amax, 1e-12), in f64 (torchao's amax_to_scale).
static Value buildBoundedScale(const NNBuilder &build, Value amax,
                               double largest) {
  Value wide = build.cast(amax, build.builder.getF64Type());
  Value least = build.make<nn::MaxOp>(wide, build.splat(1e-12, wide));
  return build.cast(build.div(build.splat(largest, wide), least),
                    build.builder.getF32Type());
}

/// 1 / 2^e for the least e of an f8E8M0FNU for which no magnitude is beyond
/// `largest` · 2^e (OCP Microscaling Formats 1.0, section 6.3, rounding up, as
/// Transformer Engine does).
static Value buildSharedExponent(const NNBuilder &build, Value amax,
                                 double largest) {
  Value ratio =
      build.scale(amax, static_cast<double>(1 / static_cast<float>(largest)));
  Value below = build.make<nn::FloorPower2Op>(ratio);
  Value isPower = build.compare(nn::ComparePredicate::eq, below, ratio);
  Value power = build.select(isPower, below, build.scale(below, 2));
  Value code = build.make<nn::CastOp>(
      typeOf(power).clone(Float8E8M0FNUType::get(build.builder.getContext())),
      power, /*saturate=*/true);
  Value bounded = build.cast(code, typeOf(power).getElementType());
  return build.div(build.splat(1, bounded), bounded);
}

Value precision::buildScale(const NNBuilder &build, Value amax, double largest,
                            ScaleRule rule) {
  switch (rule) {
  case ScaleRule::Exact:
    return buildExactScale(build, amax, largest);
  case ScaleRule::Power2:
    return build.make<nn::FloorPower2Op>(buildExactScale(build, amax, largest));
  case ScaleRule::Bounded:
    return buildBoundedScale(build, amax, largest);
  case ScaleRule::BoundedPower2:
    return build.make<nn::FloorPower2Op>(
        buildBoundedScale(build, amax, largest));
  case ScaleRule::SharedExponent:
    return buildSharedExponent(build, amax, largest);
  case ScaleRule::TwoLevels:
    break; // roundToNvfp4
  }
  llvm_unreachable("a rule");
}

/// A number for each part of dimension 0 at all elements of a shape.
static Value spreadParts(const NNBuilder &build, Value numbers,
                         ArrayRef<int64_t> shape) {
  RankedTensorType type = typeOf(numbers);
  if (type.getRank() == 0)
    return build.spread(numbers, shape);
  int64_t parts = type.getDimSize(0), rows = shape.front();
  Value ofRows =
      build.reshape(build.expand(numbers, {1}, {parts, rows / parts}), {rows});
  SmallVector<int64_t> rest =
      llvm::to_vector(llvm::seq<int64_t>(1, shape.size()));
  return build.expand(ofRows, rest, shape);
}

Value precision::scaleParts(const NNBuilder &build, Value value,
                            Value factors) {
  RankedTensorType type = typeOf(value);
  return build.mul(
      value, spreadParts(build, build.cast(factors, type.getElementType()),
                         type.getShape()));
}

Quantized precision::quantize(const NNBuilder &build, Value value, Value scale,
                              FloatType format) {
  Value wide = widen(build, value);
  RankedTensorType type = typeOf(wide);
  Value codes =
      build.make<nn::CastOp>(RankedTensorType::get(type.getShape(), format),
                             scaleParts(build, wide, scale), /*saturate=*/true);
  return {codes, build.div(build.splat(1, scale), scale)};
}

Quantized precision::quantizeRows(const NNBuilder &build, Value value,
                                  int64_t dim, const OperandRecipe &recipe) {
  Value wide = widen(build, value);
  RankedTensorType type = typeOf(wide);
  Value amax = build.cast(maxOver(build, build.make<nn::AbsOp>(wide), {dim}),
                          build.builder.getF32Type());
  Value scale = buildScale(build, amax, getLargest(recipe.format), recipe.rule);
  Value spread = build.expand(build.cast(scale, type.getElementType()), {dim},
                              type.getShape());
  Value codes = build.make<nn::CastOp>(
      RankedTensorType::get(type.getShape(), recipe.format),
      build.mul(wide, spread), /*saturate=*/true);
  return {codes, build.div(build.splat(1, scale), scale)};
}

/// Zeros behind the last element of dimensions, up to multiples of `block`:
/// they are the largest of nothing.
static Value pad(const NNBuilder &build, Value value, ArrayRef<int64_t> dims,
                 int64_t block) {
  RankedTensorType type = typeOf(value);
  SmallVector<int64_t> low(type.getRank(), 0), high(type.getRank(), 0);
  for (int64_t dim : dims)
    high[dim] = (block - type.getDimSize(dim) % block) % block;
  if (llvm::all_of(high, [](int64_t size) { return size == 0; }))
    return value;
  return build.make<nn::PadOp>(
      value, build.splat(build.scalarType(type.getElementType()), 0), low,
      high);
}

static Value sliceTo(const NNBuilder &build, Value value,
                     ArrayRef<int64_t> shape) {
  if (typeOf(value).getShape() == shape)
    return value;
  SmallVector<int64_t> starts(shape.size(), 0), steps(shape.size(), 1);
  return build.make<nn::SliceOp>(value, starts, shape, steps);
}

Blocks precision::splitBlocks(const NNBuilder &build, Value value,
                              ArrayRef<int64_t> dims, int64_t size) {
  Value padded = pad(build, value, dims, size);
  Blocks blocks;
  SmallVector<int64_t> split;
  blocks.padded.assign(typeOf(padded).getShape().begin(),
                       typeOf(padded).getShape().end());
  for (auto [dim, each] : llvm::enumerate(blocks.padded)) {
    if (!llvm::is_contained(dims, int64_t(dim))) {
      split.push_back(each);
      continue;
    }
    split.push_back(each / size);
    blocks.shared.push_back(split.size());
    split.push_back(size);
  }
  blocks.values = build.reshape(padded, split);
  return blocks;
}

Value precision::buildBlockAmax(const NNBuilder &build, const Blocks &blocks) {
  return build.cast(
      maxOver(build, build.make<nn::AbsOp>(blocks.values), blocks.shared),
      build.builder.getF32Type());
}

Value precision::joinBlocks(const NNBuilder &build, Value values,
                            const Blocks &blocks, ArrayRef<int64_t> shape) {
  return sliceTo(build, build.reshape(values, blocks.padded), shape);
}

Value precision::roundBlocks(const NNBuilder &build, Value value, int64_t dim,
                             const OperandRecipe &recipe) {
  Value wide = widen(build, value);
  RankedTensorType type = typeOf(wide);
  int64_t rank = type.getRank();
  SmallVector<int64_t> dims{dim};
  if (recipe.granularity == Granularity::Tile)
    dims = {rank - 2, rank - 1};
  Blocks blocks = splitBlocks(build, wide, dims, recipe.block);
  ArrayRef<int64_t> split = typeOf(blocks.values).getShape();
  Value scale = buildScale(build, buildBlockAmax(build, blocks),
                           getLargest(recipe.format), recipe.rule);
  Value inverse = build.div(build.splat(1, scale), scale);
  auto spread = [&](Value numbers) {
    return build.expand(build.cast(numbers, type.getElementType()),
                        blocks.shared, split);
  };
  Value codes = build.make<nn::CastOp>(
      RankedTensorType::get(split, recipe.format),
      build.mul(blocks.values, spread(scale)), /*saturate=*/true);
  Value rounded =
      build.mul(build.cast(codes, type.getElementType()), spread(inverse));
  return joinBlocks(build, rounded, blocks, type.getShape());
}
