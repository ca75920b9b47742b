// Adam and AdamW whose moments are codes of 8 and 16 bits with one scale each
// (Peng et al., FP8-LM, arXiv:2310.18313; MS-AMP's LBAdam and LBAdamW): the
// first f8E4M3FN, the second f16. The update is made of the moments before they
// are coded, and the scales are powers of two.

#include "lib/Autodiff/Optimizers/Makers.h"
#include "lib/Autodiff/Optimizers/Optimizer.h"

#include <cfloat>

using namespace mlir;
using namespace accel;
using namespace accel::autodiff;

namespace {
class AdamFp8 : public Optimizer {
public:
  AdamFp8(const Hyperparameters &values, bool decoupled)
      : eps(values.get("eps")), decoupled(decoupled) {}

  SmallVector<StateSpec> getStates(RankedTensorType type,
                                   bool isStack) const override {
    MLIRContext *context = type.getContext();
    SmallVector<int64_t> shape;
    if (isStack) // each member's own
      shape.push_back(type.getDimSize(0));
    auto scale = RankedTensorType::get(shape, Float32Type::get(context));
    return {{"exp_avg", type.clone(Float8E4M3FNType::get(context))},
            {"exp_avg_scale", scale, 1},
            {"exp_avg_sq", type.clone(Float16Type::get(context))},
            {"exp_avg_sq_scale", scale, 1}};
  }

  void begin(const NNBuilder &build, const GroupScalars &group) override {
    beta1 = Share(build, group.get("beta1"));
    beta2 = Share(build, group.get("beta2"));
    size = build.div(group.lr, biasCorrection(build, beta1.kept, group.step));
    sqrtCorrection = build.sqrt(biasCorrection(build, beta2.kept, group.step));
    if (decoupled)
      keep = buildKeep(build, group);
    else
      addedDecay = group.get("weight_decay");
  }

  Updated update(const NNBuilder &build,
                 const ParameterValues &values) const override {
    Value gradient = addDecay(build, addedDecay, values);
    Value parameter = decay(build, keep, values.parameter);
    Value mean = average(
        build, decode(build, values.states[0], values.states[1], parameter),
        gradient, beta1);
    Value square = average(
        build, decode(build, values.states[2], values.states[3], parameter),
        build.mul(gradient, gradient), beta2);
    Value denominator = build.add(
        build.div(build.sqrt(square), spread(build, sqrtCorrection, parameter)),
        build.splat(eps, parameter));
    Updated updated{
        build.sub(parameter, build.mul(build.div(mean, denominator),
                                       spread(build, size, parameter))),
        {}};
    encode(build, mean, values.states[0], values.isStack, updated.states);
    encode(build, square, values.states[2], values.isStack, updated.states);
    return updated;
  }

private:
  /// codes / scale, in the type of the parameter.
  static Value decode(const NNBuilder &build, Value codes, Value scale,
                      Value parameter) {
    Type element = typeOf(parameter).getElementType();
    Value inverse =
        build.cast(build.div(build.splat(1, scale), scale), element);
    return build.mul(build.cast(codes, element),
                     repeat(build, inverse, parameter));
  }

  /// Appends the codes of a moment, of the type of `old`, and their scale: the
  /// largest power of two with which all are within the type; 1 of zeros.
  static void encode(const NNBuilder &build, Value moment, Value old,
                     bool isStack, SmallVector<Value> &states) {
    auto type = typeOf(old);
    Value amax = build.make<nn::AbsOp>(moment);
    // Rows first, so that kernels have rows.
    for (int64_t from : {1, 0})
      if (int64_t rank = typeOf(amax).getRank();
          from < rank && !(from == 0 && isStack))
        amax = build.make<nn::ReduceOp>(
            nn::ReductionKind::max, amax,
            llvm::to_vector(llvm::seq<int64_t>(from, rank)), /*first=*/false);
    amax = build.cast(amax, build.builder.getF32Type());
    double largest =
        llvm::APFloat::getLargest(
            cast<FloatType>(type.getElementType()).getFloatSemantics())
            .convertToDouble();
    Value most = build.splat(FLT_MAX, amax);
    Value isUsable = build.make<nn::AndOp>(
        build.compare(nn::ComparePredicate::gt, amax, build.splat(0, amax)),
        build.compare(nn::ComparePredicate::le, amax, most));
    Value ratio = build.make<nn::MinOp>(
        build.div(build.splat(largest, amax), amax), most);
    Value scale = build.make<nn::FloorPower2Op>(
        build.select(isUsable, ratio, build.splat(1, amax)));
    Type element = typeOf(moment).getElementType();
    Value scaled =
        build.mul(moment, repeat(build, build.cast(scale, element), moment));
    states.append(
        {build.make<nn::CastOp>(type, scaled, /*saturate=*/true), scale});
  }

  double eps;
  bool decoupled;
  Share beta1, beta2;
  Scalar addedDecay;
  /// lr / (1 - beta1^t), sqrt(1 - beta2^t), 1 - lr · weight_decay.
  Value size, sqrtCorrection, keep;
};
} // namespace

std::unique_ptr<Optimizer>
autodiff::makeAdamFp8(const Hyperparameters &values) {
  return std::make_unique<AdamFp8>(values, /*decoupled=*/false);
}

std::unique_ptr<Optimizer>
autodiff::makeAdamWFp8(const Hyperparameters &values) {
  return std::make_unique<AdamFp8>(values, /*decoupled=*/true);
}
