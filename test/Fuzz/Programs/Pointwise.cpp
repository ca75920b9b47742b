// Layers element by element, and norms.

#include "Model.h"

using namespace accel;
using namespace accel::fuzz;
using namespace mlir;

/// A function of one number, tame wherever its argument is.
static Value apply(Model &m, Value x) {
  GraphBuilder &b = m.b;
  Value positive = b.add(b.mul(x, x), 0.5);
  switch (m.random.below(20)) {
  case 0:
    return b.make<nn::SinOp>(x);
  case 1:
    return b.make<nn::CosOp>(b.make<nn::AtanOp>(x));
  case 2:
    return b.make<nn::SqrtOp>(positive);
  case 3:
    return b.make<nn::RsqrtOp>(positive);
  case 4:
    return b.make<nn::ReciprocalOp>(positive);
  case 5:
    return b.make<nn::LogOp>(positive);
  case 6:
    return b.make<nn::ExpOp>(b.make<nn::TanhOp>(x));
  case 7:
    return b.make<nn::ErfOp>(x);
  case 8:
    return b.make<nn::AbsOp>(x);
  case 9:
    return b.add(x, b.make<nn::FloorOp>(x));
  case 10:
    return b.sub(x, b.mul(b.make<nn::RoundOp>(x), 0.5));
  case 11:
    return b.binary<nn::MaxOp>(x, b.splat(m.random.pick({-0.3, 0.0, 0.2})));
  case 12:
    return b.binary<nn::MinOp>(b.binary<nn::MaxOp>(x, b.splat(-0.7)),
                               b.splat(0.9));
  case 13:
    return b.binary<nn::PowOp>(x, b.splat(m.random.pick({2.0, 3.0})));
  case 14:
    return b.binary<nn::PowOp>(positive, b.splat(m.random.pick({0.5, -1.5})));
  case 15: {
    Value condition = b.compare(
        m.random.pick({nn::ComparePredicate::gt, nn::ComparePredicate::le}), x,
        b.splat(0.1));
    if (m.random.chance(30))
      condition = b.make<nn::NotOp>(condition);
    return b.select(condition, x, b.mul(x, 0.2));
  }
  case 16: // what is not a number is nothing
    return b.select(b.make<nn::IsNanOp>(x), b.splat(0), x);
  case 17:
    return b.add(b.make<nn::StopGradientOp>(x), b.make<nn::FloorPower2Op>(x));
  case 18:
    return b.div(x, positive);
  default:
    return b.binary<nn::ModOp>(x, b.splat(2));
  }
}

static Value makeFunctions(Model &m, Value x) {
  int64_t count = m.random.between(1, 4);
  for (int64_t number = 0; number < count; ++number)
    x = apply(m, x);
  return x;
}

/// Numbers of smaller shapes are added or multiplied.
static Value makeAffine(Model &m, Value x) {
  GraphBuilder &b = m.b;
  SmallVector<Shape> shapes = {{m.width}, {m.length, m.width},    {m.length, 1},
                               {},        {1, m.length, m.width}, {1, 1, 1}};
  Shape shape = m.random.pickFrom(shapes);
  Value p = b.parameter("p", shape, 0.5, 0.8);
  Value y = m.random.chance(50) ? b.mul(x, p) : b.add(x, p);
  return m.random.chance(30) ? b.sub(p, x) : y;
}

static Value makeNorm(Model &m, Value x) {
  GraphBuilder &b = m.b;
  bool bias = m.random.chance(70);
  Shape shape = m.random.chance(85) ? Shape{m.width} : Shape{m.length, m.width};
  return b.layerNorm(x, b.parameter("scale", shape, 0.2, 1),
                     bias ? b.parameter("shift", shape) : Value(),
                     shape.size() == 1 ? 2 : 1);
}

static Value makeRmsNorm(Model &m, Value x) {
  GraphBuilder &b = m.b;
  Value mean = b.mean(b.mul(x, x), {2}, true);
  Value y = b.mul(x, b.make<nn::RsqrtOp>(b.add(mean, 0.01)));
  return b.mul(y, b.parameter("scale", {m.width}, 0.2, 1));
}

/// A norm by parts, over features or the sequence.
static Value makePartsNorm(Model &m, Value x) {
  GraphBuilder &b = m.b;
  int64_t dim = m.random.chance(70) ? 2 : 1;
  Value apart = b.sub(x, b.mean(x, {dim}, true));
  Value variance = b.mean(b.mul(apart, apart), {dim}, true);
  return b.div(apart, b.make<nn::SqrtOp>(b.add(variance, 0.1)));
}

static Value makeSoftmax(Model &m, Value x) {
  GraphBuilder &b = m.b;
  int64_t dim = m.random.between(1, 2);
  if (m.random.chance(30))
    return b.mul(b.softmax(x, dim, true), 0.2);
  return b.mul(b.softmax(x, dim), 2.0);
}

/// Group-wise softmax or mean, of heads.
static Value makeGrouped(Model &m, Value x) {
  GraphBuilder &b = m.b;
  Value split = b.reshape(x, {m.rows, m.length, m.heads, m.width / m.heads});
  int64_t dim = m.random.between(2, 3);
  Value y = m.random.chance(50) ? b.softmax(split, dim)
                                : b.sub(split, b.mean(split, {dim}, true));
  return b.reshape(y, {m.rows, m.length, m.width});
}

static Value makeDropout(Model &m, Value x) {
  return m.b.make<nn::DropoutOp>(x, llvm::APFloat(0.25),
                                 m.random.below(1000000));
}

/// Noise, by samples or for all of them, added or multiplied with.
static Value makeNoise(Model &m, Value x) {
  GraphBuilder &b = m.b;
  Shape shape(b.shapeOf(x));
  for (int64_t &size : shape)
    if (m.random.chance(20))
      size = 1;
  auto type = RankedTensorType::get(shape, b.f64());
  auto draw = [&](nn::RngDistribution distribution) {
    return b.make<nn::RngOp>(type, distribution, m.random.below(1000000));
  };
  if (m.random.chance(50))
    return b.add(x, b.mul(draw(nn::RngDistribution::normal), 0.2));
  return b.mul(x, b.add(draw(nn::RngDistribution::uniform), 0.5));
}

static Value makeMasked(Model &m, Value x) {
  GraphBuilder &b = m.b;
  Value mask = b.unsqueeze(m.keep(), 2);
  if (m.random.chance(50))
    return b.mul(x, mask);
  return b.select(b.compare(nn::ComparePredicate::gt, mask, b.splat(0.5)), x,
                  m.random.chance(50) ? b.splat(0)
                                      : b.parameter("mask_token", {m.width}));
}

static Value makeResidual(Model &m, Value x) {
  Value other = m.earlier();
  return m.random.chance(70) ? m.b.add(x, other)
                             : m.b.mul(x, m.b.make<nn::SigmoidOp>(other));
}

void fuzz::addPointwise(SmallVectorImpl<Layer> &layers) {
  layers.append({{"functions", 9, false, makeFunctions},
                 {"affine", 4, false, makeAffine},
                 {"norm", 5, false, makeNorm},
                 {"rms norm", 2, false, makeRmsNorm},
                 {"norm by parts", 2, false, makePartsNorm},
                 {"softmax", 2, false, makeSoftmax},
                 {"grouped", 2, false, makeGrouped},
                 {"dropout", 1, false, makeDropout},
                 {"noise", 1, false, makeNoise},
                 {"masked", 4, false, makeMasked},
                 {"residual", 4, false, makeResidual}});
}
