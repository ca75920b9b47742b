// Measures what a step loses where it rounds to float16 or to 8 bits.

#include "Passes.h"
#include "Quantize.h"
#include "dialects/Accel/NodeNames.h"
#include "dialects/Accel/Reports.h"
#include "dialects/NN/Entry.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;

namespace accel::precision {
#define GEN_PASS_DEF_MEASUREROUNDINGPASS
#include "lib/Precision/Passes.h.inc"

using autodiff::NNBuilder;

/// Whether the cast has fewer bits and a smaller range than what it casts.
/// Exponents that are shared (f8E8M0FNU) are bounded by what they are made of,
/// and of NVFP4's elements their blocks' scales are measured.
static bool isMeasured(nn::CastOp cast) {
  auto to = dyn_cast<FloatType>(getElementTypeOrSelf(cast.getType()));
  auto from =
      dyn_cast<FloatType>(getElementTypeOrSelf(cast.getInput().getType()));
  return to && from && to.getWidth() < from.getWidth() &&
         (to.isF16() || isa<Float8E4M3FNType, Float8E5M2Type>(to));
}

/// The first product of a layer, else the first op, that computes with a value,
/// behind ops that move, widen or scale it, and which operand it is there.
static std::optional<std::pair<Operation *, unsigned>> findReader(Value value) {
  std::optional<std::pair<Operation *, unsigned>> first;
  // Scales of blocks are read by what is made of them, too.
  auto isOther = [](Operation *op) { return !op->hasAttr(nn::kProductAttr); };
  for (OpOperand &use : value.getUses()) {
    Operation *user = use.getOwner();
    std::optional<std::pair<Operation *, unsigned>> found =
        std::pair(user, use.getOperandNumber());
    if (isa<nn::CastOp, nn::ReshapeOp, nn::TransposeOp, nn::SliceOp,
            nn::BroadcastOp, nn::CutOp, nn::MulOp>(user))
      found = findReader(user->getResult(0));
    if (!found)
      continue;
    bool comesFirst = !first || found->first->isBeforeInBlock(first->first);
    if (first && isOther(first->first) != isOther(found->first))
      comesFirst = isOther(first->first);
    if (comesFirst)
      first = found;
  }
  return first;
}

/// What a cast is called: the layer's weight, the kind of product and the
/// operand, or the node that reads it.
static std::string nameCast(nn::CastOp cast) {
  auto reader = findReader(cast.getResult());
  Operation *op = reader ? reader->first : cast.getOperation();
  std::string operand = !reader               ? ""
                        : reader->second == 0 ? "/left"
                        : reader->second == 1
                            ? "/right"
                            : "/" + std::to_string(reader->second);
  if (auto product = op->getAttrOfType<nn::ProductAttr>(nn::kProductAttr))
    return (product.getSite() + "/" +
            nn::stringifyProductKind(product.getKind()) + operand)
        .str();
  std::string node;
  forEachName(
      op->getLoc(),
      [&](StringRef name) {
        if (node.empty())
          node = name.str();
      },
      [](StringRef) {});
  return (node.empty() ? op->getName().stripDialect().str() : node) + operand;
}

/// The number of a few that a value is multiplied with everywhere, if it is
/// what multiplies: a scale.
static Value findScale(Value factor) {
  bool isSpread = false;
  while (Operation *op = factor.getDefiningOp()) {
    if (!isa<nn::BroadcastOp, nn::ReshapeOp, nn::CastOp>(op))
      break;
    isSpread |= isa<nn::BroadcastOp>(op);
    factor = op->getOperand(0);
  }
  return isSpread ? factor : Value();
}

/// Whether a magnitude is rounded to none of the format's numbers: half a step
/// beyond the largest, where ties go to the even one.
static Value buildOverflows(const NNBuilder &build, Value magnitude,
                            FloatType format) {
  llvm::APFloat largest = llvm::APFloat::getLargest(format.getFloatSemantics());
  llvm::APFloat below = largest;
  below.next(/*nextDown=*/true);
  double bound = largest.convertToDouble() +
                 (largest.convertToDouble() - below.convertToDouble()) / 2;
  bool isEven = !largest.bitcastToAPInt()[0];
  return build.compare(isEven ? nn::ComparePredicate::lt
                              : nn::ComparePredicate::le,
                       build.splat(bound, magnitude), magnitude);
}

/// As f32 [5]: the largest magnitude of what is rounded before its scale, the
/// smallest and the largest scale, how many elements overflow, and how many
/// that are not 0 become 0.
static Value measure(nn::CastOp cast) {
  OpBuilder builder(cast->getContext());
  builder.setInsertionPointAfter(cast);
  NNBuilder build{builder, cast.getLoc()};
  Value input = cast.getInput(), source = input, scale;
  while (auto view = source.getDefiningOp<nn::ReshapeOp>())
    source = view.getInput();
  if (auto scaled = source.getDefiningOp<nn::MulOp>())
    if ((scale = findScale(scaled.getRhs())))
      source = scaled.getLhs();
  Type f32 = builder.getF32Type();
  auto count = [&](Value condition) {
    auto type = RankedTensorType::get(typeOf(input).getShape(), f32);
    return build.sum(
        build.select(condition, build.splat(type, 1), build.splat(type, 0)),
        llvm::to_vector(llvm::seq(type.getRank())));
  };
  auto to = llvm::cast<FloatType>(cast.getType().getElementType());
  Value zero = build.splat(0, input);
  Value isBeyond = buildOverflows(build, build.make<nn::AbsOp>(input), to);
  Value rounded = build.cast(cast.getResult(), typeOf(input).getElementType());
  Value isLost = build.make<nn::AndOp>(
      build.compare(nn::ComparePredicate::ne, input, zero),
      build.compare(nn::ComparePredicate::eq, rounded, zero));
  Value one = build.splat(build.scalarType(f32), 1), least = one, most = one;
  if (scale) {
    most = buildAmax(build, scale, 1);
    least = build.div(
        one, buildAmax(build, build.div(build.splat(1, scale), scale), 1));
  }
  SmallVector<Value> numbers;
  for (Value number : {buildAmax(build, source, 1), least, most,
                       count(isBeyond), count(isLost)})
    numbers.push_back(build.reshape(number, {1}));
  return build.make<nn::ConcatOp>(numbers, 0);
}

namespace {
struct MeasureRoundingPass
    : impl::MeasureRoundingPassBase<MeasureRoundingPass> {
  using Base::Base;

  void runOnOperation() override {
    func::FuncOp step = nn::findEntry(getOperation(), nn::EntryKind::step);
    if (!step)
      return;
    SmallVector<nn::CastOp> casts;
    step.walk([&](nn::CastOp cast) {
      if (isMeasured(cast))
        casts.push_back(cast);
    });
    if (casts.empty()) {
      step.emitError() << "expected a step that rounds to float16 or to 8 bits "
                          "for --metrics=precision, found none; add "
                          "--mixed-precision=fp16 or fp8";
      return signalPassFailure();
    }
    Operation *exit = step.front().getTerminator();
    SmallVector<Value> results(exit->getOperands());
    // Outputs come before states.
    unsigned place = 0;
    while (place < results.size() && step.getResultAttr(place, nn::kOutputAttr))
      ++place;
    llvm::StringSet<> known;
    for (nn::CastOp cast : casts) {
      std::string name = nameCast(cast), unique = name;
      for (int64_t number = 2; !known.insert(unique).second; ++number)
        unique = name + "#" + std::to_string(number);
      Value numbers = measure(cast);
      OpBuilder builder(step.getContext());
      auto attribute = builder.getDictionaryAttr(builder.getNamedAttr(
          nn::kOutputAttr, builder.getStringAttr(kMetricPrefix + unique)));
      if (failed(step.insertResult(place, numbers.getType(), attribute)))
        return signalPassFailure();
      results.insert(results.begin() + place++, numbers);
    }
    exit->setOperands(results);
  }
};
} // namespace
} // namespace accel::precision
