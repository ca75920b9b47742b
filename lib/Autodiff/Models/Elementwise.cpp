// Gradients of elementwise ops that do not say theirs in their definition
// (NNElementwise.td), as it takes more than a formula. Where a function has a
// kink, the values are those that PyTorch takes: 0 for abs and relu, halves for
// equal arguments of min and max. Branches are selected, not multiplied by 0,
// which would spread NaN.

#include "Group.h"
#include "dialects/NN/Casts.h"
#include "mlir/IR/Matchers.h"

#include <cmath>

using namespace mlir;
using namespace accel;
using namespace accel::autodiff;
using nn::ComparePredicate;

namespace {
using UnaryRule = Value (*)(const NNBuilder &e, Value x, Value y, Value g);
using BinaryRule = std::pair<Value, Value> (*)(const NNBuilder &e, Value x,
                                               Value y, Value r, Value g);

template <typename Op, UnaryRule Rule>
struct Unary : GradientModel<Unary<Op, Rule>, Op> {
  static LogicalResult vjp(Op op, const NNBuilder &e, Value g,
                           SmallVectorImpl<Value> &out) {
    out.push_back(Rule(e, op.getInput(), op.getResult(), g));
    return success();
  }
};

/// Of an op whose definition says its gradient.
template <typename Op>
using DefinedRule = decltype(Op::differentiate(std::declval<NNBuilder>(),
                                               Value(), Value(), Value()));

template <typename Op, BinaryRule Rule>
struct Binary : GradientModel<Binary<Op, Rule>, Op> {
  static LogicalResult vjp(Op op, const NNBuilder &e, Value g,
                           SmallVectorImpl<Value> &out) {
    auto [x, y] = Rule(e, op.getLhs(), op.getRhs(), op.getResult(), g);
    out.append({x, y});
    return success();
  }
};

Value absRule(const NNBuilder &e, Value x, Value, Value g) {
  Value zero = e.splat(0, x);
  return e.select(
      e.compare(ComparePredicate::gt, x, zero), g,
      e.select(e.compare(ComparePredicate::lt, x, zero), e.neg(g), zero));
}
/// g times a slope that has constants in it, which a type narrower than f32
/// would round: computed in f32, and rounded once.
template <typename Slope>
Value timesSlope(const NNBuilder &e, Value x, Value g, Slope slope) {
  Type element = typeOf(x).getElementType();
  Type wide =
      element.getIntOrFloatBitWidth() < 32 ? e.builder.getF32Type() : element;
  return e.cast(e.mul(e.cast(g, wide), slope(e.cast(x, wide))), element);
}
Value erfRule(const NNBuilder &e, Value x, Value, Value g) {
  return timesSlope(e, x, g, [&](Value x) {
    Value bell = e.make<nn::ExpOp>(e.neg(e.mul(x, x)));
    return e.scale(bell, 2 / std::sqrt(M_PI));
  });
}
Value reluRule(const NNBuilder &e, Value x, Value, Value g) {
  Value zero = e.splat(0, x);
  return e.select(e.compare(ComparePredicate::le, x, zero), zero, g);
}

std::pair<Value, Value> addRule(const NNBuilder &, Value, Value, Value,
                                Value g) {
  return {g, g};
}
std::pair<Value, Value> subRule(const NNBuilder &e, Value, Value, Value,
                                Value g) {
  return {g, e.neg(g)};
}
std::pair<Value, Value> mulRule(const NNBuilder &e, Value x, Value y, Value,
                                Value g) {
  return {e.mul(g, y), e.mul(g, x)};
}
std::pair<Value, Value> divRule(const NNBuilder &e, Value, Value y, Value r,
                                Value g) {
  Value dx = e.div(g, y);
  return {dx, e.neg(e.mul(dx, r))};
}
/// x - y·n, n being a whole number: n = (x - r) / y.
std::pair<Value, Value> modRule(const NNBuilder &e, Value x, Value y, Value r,
                                Value g) {
  return {g, e.neg(e.mul(g, e.div(e.sub(x, r), y)))};
}
/// y x^(y-1), 0 for y = 0 even at x = 0; x^y ln x, 0 at x = 0 for y >= 0. A
/// constant exponent that is the same everywhere needs no selection.
std::pair<Value, Value> powRule(const NNBuilder &e, Value x, Value y, Value r,
                                Value g) {
  Value zero = e.splat(0, x);
  SplatElementsAttr exponent;
  if (matchPattern(y, m_Constant(&exponent))) {
    double number = exponent.getSplatValue<APFloat>().convertToDouble();
    if (number == 0)
      return {zero, Value()};
    Value lower = e.make<nn::PowOp>(x, e.splat(number - 1, y));
    return {e.mul(g, e.scale(lower, number)), Value()};
  }
  Value lower = e.make<nn::PowOp>(x, e.sub(y, e.splat(1, y)));
  Value dx = e.select(e.compare(ComparePredicate::eq, y, zero), zero,
                      e.mul(g, e.mul(y, lower)));
  Value flat = e.make<nn::AndOp>(e.compare(ComparePredicate::eq, x, zero),
                                 e.compare(ComparePredicate::ge, y, zero));
  Value dy = e.select(flat, zero, e.mul(g, e.mul(r, e.make<nn::LogOp>(x))));
  return {dx, dy};
}
template <ComparePredicate Wins>
std::pair<Value, Value> extremeRule(const NNBuilder &e, Value x, Value y, Value,
                                    Value g) {
  Value zero = e.splat(0, x);
  Value shared =
      e.select(e.compare(ComparePredicate::eq, x, y), e.scale(g, 0.5), zero);
  return {e.select(e.compare(Wins, x, y), g, shared),
          e.select(e.compare(Wins, y, x), g, shared)};
}

/// Φ(x) + x φ(x).
Value geluErfSlope(const NNBuilder &e, Value x) {
  Value phi = e.make<nn::ErfOp>(e.scale(x, std::sqrt(0.5)));
  phi = e.scale(e.add(e.splat(1, x), phi), 0.5);
  Value bell = e.make<nn::ExpOp>(e.scale(e.mul(x, x), -0.5));
  return e.add(phi, e.mul(x, e.scale(bell, 1 / std::sqrt(2 * M_PI))));
}

/// With v = 2c (x + a x³) and σ the sigmoid: σ(v) + x v' σ(v) σ(-v). Of
/// e = exp(-|v|) both sigmoids come without a difference that x v' would
/// amplify: 1/(1+e) and e/(1+e). Where |x| = 16 they are 1 and 0; beyond, x² is
/// held, so that v' stays finite and its product with them 0.
Value geluTanhSlope(const NNBuilder &e, Value x) {
  double a = 0.044715, c = 2 * std::sqrt(2 / M_PI);
  Value one = e.splat(1, x), most = e.splat(256, x), square = e.mul(x, x);
  square =
      e.select(e.compare(ComparePredicate::gt, square, most), most, square);
  Value rate = e.splat(c, x);
  Value v = e.mul(x, e.add(rate, e.scale(square, a * c)));
  Value slope = e.add(rate, e.scale(square, 3 * a * c));
  Value tail = e.make<nn::ExpOp>(e.neg(e.make<nn::AbsOp>(v)));
  Value larger = e.div(one, e.add(one, tail)), smaller = e.mul(tail, larger);
  Value isPositive = e.compare(ComparePredicate::ge, x, e.splat(0, x));
  Value inner = e.mul(x, e.mul(slope, e.mul(larger, smaller)));
  return e.add(e.select(isPositive, larger, smaller), inner);
}

struct Gelu : GradientModel<Gelu, nn::GeluOp> {
  static LogicalResult vjp(nn::GeluOp op, const NNBuilder &e, Value g,
                           SmallVectorImpl<Value> &out) {
    bool exact = op.getKind() == nn::GeluKind::erf;
    out.push_back(timesSlope(e, op.getInput(), g, [&](Value x) {
      return exact ? geluErfSlope(e, x) : geluTanhSlope(e, x);
    }));
    return success();
  }
};

struct Select : GradientModel<Select, nn::SelectOp> {
  static LogicalResult vjp(nn::SelectOp op, const NNBuilder &e, Value g,
                           SmallVectorImpl<Value> &out) {
    Value zero = e.splat(0, g);
    out.append({Value(), e.select(op.getCondition(), g, zero),
                e.select(op.getCondition(), zero, g)});
    return success();
  }
};

struct Cast : GradientModel<Cast, nn::CastOp> {
  static LogicalResult vjp(nn::CastOp op, const NNBuilder &e, Value g,
                           SmallVectorImpl<Value> &out) {
    Value input = op.getInput();
    if (!isFloat(input)) {
      out.push_back(Value());
      return success();
    }
    for (Value value : {input, Value(op.getResult())})
      if (nn::isCode(typeOf(value).getElementType()))
        return op.emitOpError()
               << "has no gradient: expected types that gradients are computed "
                  "in, found "
               << typeOf(value) << "; detach what it casts in the model";
    out.push_back(e.cast(g, typeOf(input).getElementType()));
    // What mixed precision says of a cast it says of the cast back.
    auto back = out.back().getDefiningOp<nn::CastOp>();
    if (Attribute reason = op->getAttr(nn::kReasonAttr); back && reason)
      back->setAttr(nn::kReasonAttr, reason);
    return success();
  }
};
} // namespace

/// What is asked of the operand stays unanswered: zero.
struct StopGradient
    : DifferentiableOpInterface::ExternalModel<StopGradient,
                                               nn::StopGradientOp> {
  LogicalResult buildVjp(Operation *, OpBuilder &, ValueRange, ArrayRef<bool>,
                         MutableArrayRef<Value>) const {
    return success();
  }
};

/// The gradient goes the way back.
struct Cut : DifferentiableOpInterface::ExternalModel<Cut, nn::CutOp> {
  LogicalResult buildVjp(Operation *op, OpBuilder &builder,
                         ValueRange gradients, ArrayRef<bool>,
                         MutableArrayRef<Value> operands) const {
    auto cut = cast<nn::CutOp>(op);
    operands[0] = nn::CutOp::create(builder, op->getLoc(), gradients[0],
                                    cut.getTo(), cut.getFrom());
    return success();
  }
};

void autodiff::attachElementwiseModels(MLIRContext *context) {
  using namespace nn;
  MLIRContext &c = *context;
  forEachElementwiseOp([&](auto tag) {
    using Op = typename decltype(tag)::type;
    if constexpr (llvm::is_detected<DefinedRule, Op>::value)
      Op::template attachInterface<
          Unary<Op, Op::template differentiate<NNBuilder>>>(c);
  });
  AbsOp::attachInterface<Unary<AbsOp, absRule>>(c);
  ErfOp::attachInterface<Unary<ErfOp, erfRule>>(c);
  ReluOp::attachInterface<Unary<ReluOp, reluRule>>(c);
  AddOp::attachInterface<Binary<AddOp, addRule>>(c);
  SubOp::attachInterface<Binary<SubOp, subRule>>(c);
  MulOp::attachInterface<Binary<MulOp, mulRule>>(c);
  DivOp::attachInterface<Binary<DivOp, divRule>>(c);
  ModOp::attachInterface<Binary<ModOp, modRule>>(c);
  PowOp::attachInterface<Binary<PowOp, powRule>>(c);
  MaxOp::attachInterface<Binary<MaxOp, extremeRule<ComparePredicate::gt>>>(c);
  MinOp::attachInterface<Binary<MinOp, extremeRule<ComparePredicate::lt>>>(c);
  GeluOp::attachInterface<Gelu>(c);
  SelectOp::attachInterface<Select>(c);
  CastOp::attachInterface<Cast>(c);
  StopGradientOp::attachInterface<StopGradient>(c);
  CutOp::attachInterface<Cut>(c);
}
