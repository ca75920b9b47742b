// Recognition of GELU. Products are read as sets of factors, so that the order
// in which an exporter multiplied does not matter.

#include "FoldConstants.h"
#include "Passes.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

#include <cmath>

using namespace mlir;

namespace accel::transforms {
#define GEN_PASS_DEF_RECOGNIZEGELUPASS
#include "lib/Transforms/Passes.h.inc"

namespace {

/// A product: a number times values.
struct Product {
  double number = 1;
  SmallVector<Value, 4> factors;
};

/// Takes `value` apart into factors, down to `depth` multiplications deep;
/// `whole` is left whole, whatever computed it.
void collectFactors(Value value, Product &product, unsigned depth,
                    Value whole = nullptr) {
  if (value == whole) {
    product.factors.push_back(value);
    return;
  }
  if (std::optional<double> constant = getSplatValue(value)) {
    product.number *= *constant;
    return;
  }
  Operation *op = value.getDefiningOp();
  if (depth > 0) {
    if (auto mul = dyn_cast_or_null<nn::MulOp>(op)) {
      collectFactors(mul.getLhs(), product, depth - 1, whole);
      collectFactors(mul.getRhs(), product, depth - 1, whole);
      return;
    }
    if (auto div = dyn_cast_or_null<nn::DivOp>(op))
      if (std::optional<double> constant = getSplatValue(div.getRhs())) {
        product.number /= *constant;
        return collectFactors(div.getLhs(), product, depth - 1, whole);
      }
    if (auto pow = dyn_cast_or_null<nn::PowOp>(op)) {
      std::optional<double> exponent = getSplatValue(pow.getRhs());
      if (exponent == 2.0 || exponent == 3.0) {
        product.factors.append(static_cast<size_t>(*exponent), pow.getLhs());
        return;
      }
    }
  }
  product.factors.push_back(value);
}

/// The other operand of an addition of the number `constant`.
Value addedTo(Value sum, double constant) {
  auto add = sum.getDefiningOp<nn::AddOp>();
  if (!add)
    return nullptr;
  if (getSplatValue(add.getRhs()) == constant)
    return add.getLhs();
  return getSplatValue(add.getLhs()) == constant ? add.getRhs() : Value();
}

/// Whether `found` is `wanted` rounded to the element type of `like`.
bool isAbout(double found, double wanted, Value like) {
  Type element = getElementTypeOrSelf(like.getType());
  double tolerance = element.isBF16() ? 1e-2 : element.isF16() ? 1e-3 : 1e-6;
  return std::abs(found - wanted) <= tolerance * std::abs(wanted);
}

bool isPower(const Product &product, Value x, size_t power, double number) {
  return product.factors.size() == power &&
         isAbout(product.number, number, x) &&
         llvm::all_of(product.factors, [&](Value f) { return f == x; });
}

constexpr double kCubic = 0.044715;

/// Whether `value` = √(2/π) (x + 0.044715 x³).
bool isTanhArgument(Value value, Value x) {
  Product product;
  collectFactors(value, product, 3, x);
  if (!isAbout(product.number, std::sqrt(2 / M_PI), x))
    return false;
  // (x + a x³), or x (1 + a x²).
  if (product.factors.size() == 1) {
    auto add = product.factors[0].getDefiningOp<nn::AddOp>();
    if (!add || (add.getLhs() != x && add.getRhs() != x))
      return false;
    Product cube;
    collectFactors(add.getLhs() == x ? add.getRhs() : add.getLhs(), cube, 4, x);
    return isPower(cube, x, 3, kCubic);
  }
  if (product.factors.size() != 2)
    return false;
  Value sum = product.factors[0] == x ? product.factors[1] : product.factors[0];
  if (product.factors[0] != x && product.factors[1] != x)
    return false;
  Value rest = addedTo(sum, 1);
  Product square;
  if (rest)
    collectFactors(rest, square, 3, x);
  return rest && isPower(square, x, 2, kCubic);
}

/// Which GELU of `x` the factor 1 + f(…) makes, if any.
std::optional<nn::GeluKind> matchBracket(Value bracket, Value x) {
  Value inner = addedTo(bracket, 1);
  if (!inner)
    return std::nullopt;
  if (auto tanh = inner.getDefiningOp<nn::TanhOp>())
    if (isTanhArgument(tanh.getInput(), x))
      return nn::GeluKind::tanh;
  if (auto erf = inner.getDefiningOp<nn::ErfOp>()) {
    Product argument;
    collectFactors(erf.getInput(), argument, 2, x);
    if (isPower(argument, x, 1, std::sqrt(0.5)))
      return nn::GeluKind::erf;
  }
  return std::nullopt;
}

struct RecognizeGelu : OpRewritePattern<nn::MulOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(nn::MulOp op,
                                PatternRewriter &rewriter) const override {
    // How deep the product goes is not known, nor whether x is one itself.
    for (unsigned depth : {1, 2, 3}) {
      Product product;
      collectFactors(op.getResult(), product, depth);
      if (product.factors.size() != 2 || product.number != 0.5)
        continue;
      for (unsigned index : {0, 1}) {
        Value x = product.factors[index], bracket = product.factors[1 - index];
        if (std::optional<nn::GeluKind> kind = matchBracket(bracket, x)) {
          rewriter.replaceOpWithNewOp<nn::GeluOp>(op, op.getType(), x, *kind);
          return success();
        }
      }
    }
    return rewriter.notifyMatchFailure(op, "no 1 + tanh or 1 + erf");
  }
};

struct RecognizeGeluPass : impl::RecognizeGeluPassBase<RecognizeGeluPass> {
  using Base::Base;

  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    patterns.add<RecognizeGelu>(&getContext());
    if (failed(applyPatternsGreedily(getOperation(), std::move(patterns))))
      signalPassFailure();
  }
};

} // namespace
} // namespace accel::transforms
