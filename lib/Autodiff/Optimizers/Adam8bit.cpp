// Adam and AdamW whose moments are codes of 8 bits (Dettmers et al.,
// arXiv:2110.02861; bitsandbytes' Adam8bit and AdamW8bit). Each block of 256
// elements of a parameter, in row-major order, has a scale of its own, its
// largest magnitude. The update is made of the moments before they are coded.

#include "lib/Autodiff/Optimizers/Blocks.h"
#include "lib/Autodiff/Optimizers/Makers.h"
#include "lib/Autodiff/Optimizers/Optimizer.h"

using namespace mlir;
using namespace accel;
using namespace accel::autodiff;

namespace {
/// Of blocks that are 0, and smaller than a float32 can divide by.
constexpr double kLeastScale = 1e-38;

class Adam8bit : public Optimizer {
public:
  explicit Adam8bit(const Hyperparameters &values)
      : eps(values.get("eps")), leastSize(values.get("min_8bit_size")) {}

  SmallVector<StateSpec> getStates(RankedTensorType type,
                                   bool isStack) const override {
    Type element = computeType(type);
    if (!isCoded(type, isStack))
      return {{"state1", type.clone(element)}, {"state2", type.clone(element)}};
    auto codes = type.clone(
        IntegerType::get(type.getContext(), 8, IntegerType::Unsigned));
    auto scales =
        RankedTensorType::get(Blocks(type, isStack).getGrid(), element);
    return {{"state1", codes},
            {"absmax1", scales},
            {"state2", codes},
            {"absmax2", scales}};
  }

  void begin(const NNBuilder &build, const GroupScalars &group) override {
    beta1 = Share(build, group.get("beta1"));
    beta2 = Share(build, group.get("beta2"));
    size = build.div(group.lr, biasCorrection(build, beta1.kept, group.step));
    sqrtCorrection = build.sqrt(biasCorrection(build, beta2.kept, group.step));
    keep = buildKeep(build, group);
  }

  Updated update(const NNBuilder &build,
                 const ParameterValues &values) const override {
    RankedTensorType type = typeOf(values.parameter);
    Type element = computeType(type);
    Value parameter = build.cast(values.parameter, element);
    Value gradient = build.cast(values.gradient, element);
    if (!isCoded(type, values.isStack)) {
      Value mean = values.states[0], square = values.states[1];
      parameter = move(build, parameter, gradient, mean, square);
      return {build.cast(parameter, type.getElementType()), {mean, square}};
    }
    // All in the shape of blocks, so that one loop has a block's scale.
    Blocks blocks(type, values.isStack);
    Value mean = decode(build, blocks, values.states[0], values.states[1],
                        element, /*isSigned=*/true);
    Value square = decode(build, blocks, values.states[2], values.states[3],
                          element, /*isSigned=*/false);
    parameter = move(build, blocks.divide(build, parameter),
                     blocks.divide(build, gradient), mean, square);
    Updated updated{
        blocks.join(build, build.cast(parameter, type.getElementType())), {}};
    encode(build, blocks, mean, /*isSigned=*/true, updated.states);
    encode(build, blocks, square, /*isSigned=*/false, updated.states);
    return updated;
  }

private:
  /// Parameters of the user's that have few elements keep plain moments.
  bool isCoded(RankedTensorType type, bool isStack) const {
    int64_t members = isStack ? type.getDimSize(0) : 1;
    return type.getRank() > isStack &&
           double(type.getNumElements()) >= leastSize * double(members);
  }

  /// Moments are of float32, whatever the parameter is; float64 is for
  /// comparing numbers.
  static Type computeType(RankedTensorType type) {
    Type element = type.getElementType();
    return element.isF64() ? element : Float32Type::get(type.getContext());
  }

  /// The new parameter, and new moments in place of the old ones.
  Value move(const NNBuilder &build, Value parameter, Value gradient,
             Value &mean, Value &square) const {
    mean = average(build, mean, gradient, beta1);
    square = average(build, square, build.mul(gradient, gradient), beta2);
    parameter = decay(build, keep, parameter);
    Value denominator = build.add(
        build.div(build.sqrt(square), spread(build, sqrtCorrection, parameter)),
        build.splat(eps, parameter));
    return build.sub(parameter, build.mul(build.div(mean, denominator),
                                          spread(build, size, parameter)));
  }

  static Value decode(const NNBuilder &build, const Blocks &blocks, Value codes,
                      Value scales, Type element, bool isSigned) {
    auto type = typeOf(codes).clone(element);
    Value parts = build.make<nn::DynamicDecodeOp>(type, codes, isSigned);
    // Now that what fills up the last block is 0.
    return build.mul(blocks.divide(build, parts), blocks.spread(build, scales));
  }

  /// Appends the codes of a moment and the scales of its blocks.
  static void encode(const NNBuilder &build, const Blocks &blocks, Value moment,
                     bool isSigned, SmallVector<Value> &states) {
    int64_t last = typeOf(moment).getRank() - 1;
    Value scales = build.make<nn::ReduceOp>(
        nn::ReductionKind::max, build.make<nn::AbsOp>(moment),
        ArrayRef<int64_t>{last}, /*first=*/false);
    Value inverse = build.div(
        build.splat(1, scales),
        build.make<nn::MaxOp>(scales, build.splat(kLeastScale, scales)));
    Value codes = build.make<nn::DynamicEncodeOp>(
        build.mul(moment, blocks.spread(build, inverse)), isSigned);
    states.append({blocks.join(build, codes), scales});
  }

  double eps, leastSize;
  Share beta1, beta2;
  /// lr / (1 - beta1^t), sqrt(1 - beta2^t), 1 - lr · weight_decay.
  Value size, sqrtCorrection, keep;
};
} // namespace

std::unique_ptr<Optimizer>
autodiff::makeAdam8bit(const Hyperparameters &values) {
  return std::make_unique<Adam8bit>(values);
}
