// NVFP4 as ordinary ops (NVIDIA, Pretraining Large Language Models with NVFP4,
// arXiv:2509.25149; Transformer Engine's NVFP4BlockScaling): values of E2M1,
// a scale of f8E4M3FN for each block of 16, one of f32 for the tensor. Where
// operands of a weight's gradient are rotated by a Hadamard matrix, the
// rotation is of what is summed over, so that it cancels in the product.

#include "Nvfp4.h"
#include "Quantize.h"
#include "dialects/Tensor/Tensor.h"

#include <array>
#include <cfloat>

using namespace mlir;
using namespace accel;
using namespace accel::precision;
using autodiff::NNBuilder;

/// The largest number of E2M1, and the largest of all: with a block's scale.
static const double kLargest = rt::decodeNumber(rt::kF4E2M1FN,
                                                rt::kF4E2M1FN.largest()),
                    kLargestScaled =
                        kLargest * rt::decodeNumber(rt::kF8E4M3FN,
                                                    rt::kF8E4M3FN.largest());

/// Of the rotation of 16 numbers, by which a pattern of data cannot meet one of
/// the matrix. Fixed, so that both operands have the same.
static constexpr std::array<int, 16> kSigns = {1,  1,  1,  -1, 1,  -1, -1, -1,
                                               -1, -1, -1, 1,  -1, 1,  -1, -1};

static Value clamp(const NNBuilder &build, Value value, double bound) {
  return build.make<nn::MinOp>(
      build.make<nn::MaxOp>(value, build.splat(-bound, value)),
      build.splat(bound, value));
}

/// One of the two numbers of E2M1 next to a value, by chance, so that the mean
/// is the value; beyond the largest the largest.
static Value chooseE2M1(const NNBuilder &build, Value value, Value uniform) {
  Value bounded = clamp(build, value, kLargest);
  // Numbers from one power of two to the next are half of it apart, and those
  // below 1 as those above. Both ends of the interval are multiples of the
  // step, so one step suits all that is between them.
  Value step =
      build.scale(build.make<nn::MaxOp>(build.make<nn::FloorPower2Op>(
                                            build.make<nn::AbsOp>(bounded)),
                                        build.splat(1, bounded)),
                  0.5);
  Value steps = build.div(bounded, step);
  // Not floor(steps + uniform), whose sum would be rounded up to the next
  // integer: the difference from the floor is exact.
  Value below = build.make<nn::FloorOp>(steps);
  Value isUp =
      build.compare(nn::ComparePredicate::lt,
                    build.cast(uniform, typeOf(steps).getElementType()),
                    build.sub(steps, below));
  Value chosen = build.add(
      below, build.select(isUp, build.splat(1, below), build.splat(0, below)));
  return build.mul(chosen, step);
}

Value precision::roundToE2M1(const NNBuilder &build, Value value,
                             Value uniform) {
  RankedTensorType type = typeOf(value);
  if (uniform)
    value = chooseE2M1(build, value, uniform);
  Value codes = build.make<nn::CastOp>(
      type.clone(Float4E2M1FNType::get(build.builder.getContext())), value,
      /*saturate=*/true);
  return build.cast(codes, type.getElementType());
}

/// [16, 16]: signs, then Sylvester's matrix, over 4. Its product with its
/// transpose is 1.
static Value buildRotation(const NNBuilder &build, Type element) {
  constexpr unsigned size = kSigns.size();
  auto type = RankedTensorType::get({size, size}, element);
  SmallVector<APFloat> numbers;
  for (unsigned row = 0; row < size; ++row)
    for (unsigned column = 0; column < size; ++column) {
      bool isNegative = llvm::popcount(row & column) % 2 == 1;
      APFloat number((isNegative ? -0.25 : 0.25) * kSigns[row]);
      bool isInexact = false;
      number.convert(cast<FloatType>(element).getFloatSemantics(),
                     APFloat::rmNearestTiesToEven, &isInexact);
      numbers.push_back(number);
    }
  return nn::ConstantOp::create(build.builder, build.loc,
                                DenseElementsAttr::get(type, numbers));
}

/// [..., blocks, 16, columns] of what is summed over, rotated and transposed:
/// [..., blocks, columns, 16].
static Value rotate(const NNBuilder &build, Value values) {
  Value rotation = buildRotation(build, typeOf(values).getElementType());
  Value rotated = build.matmul(values, rotation, /*transposeA=*/true);
  if (auto matmul = rotated.getDefiningOp<nn::MatmulOp>()) // of constants not
    matmul->setAttr(nn::kReasonAttr, build.builder.getStringAttr(
                                         "random Hadamard transform of 16"));
  return rotated;
}

Nvfp4Operand precision::roundToNvfp4(const NNBuilder &build, Value value,
                                     int64_t dim, int64_t parts,
                                     const OperandRecipe &recipe,
                                     Value uniform) {
  Value wide = widen(build, value);
  SmallVector<int64_t> shape(typeOf(wide).getShape());
  int64_t rank = shape.size();
  SmallVector<int64_t> dims{dim};
  if (recipe.granularity == Granularity::Tile)
    dims = {rank - 2, rank - 1};
  Blocks blocks = splitBlocks(build, wide, dims, recipe.block);
  if (uniform)
    uniform = splitBlocks(build, uniform, dims, recipe.block).values;
  if (recipe.isRotated) {
    assert(dim == rank - 2 && recipe.block == int64_t(kSigns.size()));
    blocks.values = rotate(build, blocks.values);
    blocks.shared = {rank};
    if (uniform)
      uniform = build.swapLast(uniform);
  }
  RankedTensorType type = typeOf(blocks.values);

  Value amax = buildAmax(build, recipe.isRotated ? blocks.values : wide, parts);
  Value ofTensor =
      buildScaleOr(build, amax, kLargestScaled, build.splat(1, amax));
  Value ofBlocks = scaleParts(build, buildBlockAmax(build, blocks),
                              build.scale(ofTensor, 1 / kLargest));
  FloatType format = recipe.format;
  Value codes = build.make<nn::CastOp>(
      RankedTensorType::get(typeOf(ofBlocks).getShape(), format), ofBlocks,
      /*saturate=*/true);
  Value decode = build.cast(codes, build.builder.getF32Type());
  Value whole =
      scaleParts(build, decode, build.div(build.splat(1, ofTensor), ofTensor));
  Value encode = build.make<nn::MinOp>(build.div(build.splat(1, whole), whole),
                                       build.splat(FLT_MAX, whole));
  auto spread = [&](Value numbers) {
    return build.expand(build.cast(numbers, type.getElementType()),
                        blocks.shared, type.getShape());
  };
  Value rounded =
      roundToE2M1(build, build.mul(blocks.values, spread(encode)), uniform);
  Value values = build.mul(rounded, spread(decode));
  if (recipe.isRotated)
    values = build.swapLast(values);
  shape[dim] = blocks.padded[dim];
  return {joinBlocks(build, values, blocks, shape), amax};
}

Value precision::buildNvfp4Factor(const NNBuilder &build,
                                  const Nvfp4Operand &lhs,
                                  const Nvfp4Operand &rhs) {
  Value product = build.mul(lhs.amax, build.like(rhs.amax, lhs.amax));
  return build.div(product,
                   build.splat(kLargestScaled * kLargestScaled, product));
}
