// Reading of masks. Everything is done on the smallest shape a mask has: what
// was repeated over batch, heads or queries is not repeated here.

#include "AttentionMask.h"

#include "FoldConstants.h"

#include <cmath>
#include <limits>

using namespace mlir;
using namespace accel;
using namespace accel::transforms;

/// At most this: a float32 score below 1e22 vanishes when added to it, and its
/// weight is exactly 0 beside any score that is not masked.
static constexpr double kFarDown = -1e30;

FailureOr<MaskStep>
MaskStep::match(Operation *op, llvm::function_ref<bool(Value)> leadsToScores) {
  MaskStep step;
  if (auto add = dyn_cast_or_null<nn::AddOp>(op)) {
    bool left = leadsToScores(add.getLhs()),
         right = leadsToScores(add.getRhs());
    if (left == right)
      return failure();
    step.scores = left ? add.getLhs() : add.getRhs();
    step.addend = left ? add.getRhs() : add.getLhs();
    return step;
  }
  auto select = dyn_cast_or_null<nn::SelectOp>(op);
  if (!select)
    return failure();
  std::optional<double> fill = getSplatValue(select.getOnFalse());
  step.keepsWhereTrue = fill.has_value();
  if (!fill)
    fill = getSplatValue(select.getOnTrue());
  // NaN compares false, and is refused.
  if (!fill || !(*fill <= kFarDown))
    return failure();
  step.fill = *fill;
  step.condition = select.getCondition();
  step.scores = step.keepsWhereTrue ? select.getOnTrue() : select.getOnFalse();
  if (!leadsToScores(step.scores))
    return failure();
  return step;
}

namespace {

/// Builds mask arithmetic on tensors of rank 4 with dimensions of size 1 where
/// nothing differs, folding as it goes.
class MaskBuilder {
public:
  MaskBuilder(PatternRewriter &rewriter, Location loc,
              std::array<int64_t, 4> shape)
      : rewriter(rewriter), loc(loc), shape(shape) {}

  /// `value`, which broadcasts to the scores, on the smallest such shape of
  /// rank 4.
  Value narrow(Value value);
  template <typename Op> Value build(ArrayRef<Value> operands, Type element);
  Value splat(double value, Type element);

private:
  static ArrayRef<int64_t> dims(Value value) {
    return cast<RankedTensorType>(value.getType()).getShape();
  }
  Value reshape(Value value, ArrayRef<int64_t> to);

  PatternRewriter &rewriter;
  Location loc;
  std::array<int64_t, 4> shape;
};

} // namespace

Value MaskBuilder::reshape(Value value, ArrayRef<int64_t> to) {
  if (dims(value) == to)
    return value;
  auto type = RankedTensorType::get(to, getElementTypeOrSelf(value.getType()));
  return foldOrKeep(rewriter,
                    nn::ReshapeOp::create(rewriter, loc, type, value));
}

Value MaskBuilder::narrow(Value value) {
  bool split = dims(value).size() == 3; // batch and heads in one
  auto toRank4 = [&](Value mask) {
    ArrayRef<int64_t> own = dims(mask);
    SmallVector<int64_t> wide;
    if (split && own.size() == 3 && own[0] == 1)
      wide = {1, 1};
    else if (split && own.size() == 3)
      wide = {shape[0], shape[1]};
    else
      wide.append(4 - own.size(), 1);
    llvm::append_range(wide, split && own.size() == 3 ? own.drop_front() : own);
    return reshape(mask, wide);
  };
  if (auto broadcast = value.getDefiningOp<nn::BroadcastOp>())
    if (dims(broadcast.getInput()).size() <= dims(value).size())
      return toRank4(broadcast.getInput());
  value = toRank4(value);
  if (DenseElementsAttr known = getConstantValue(value))
    return nn::ConstantOp::create(rewriter, loc, withoutRepeats(known));
  return value;
}

template <typename Op>
Value MaskBuilder::build(ArrayRef<Value> operands, Type element) {
  SmallVector<int64_t> common(4, 1);
  for (Value operand : operands)
    for (auto [size, all] : llvm::zip(dims(operand), common))
      all = std::max(all, size);
  // A known operand is made wide now only if all are: then so is the result.
  bool known = llvm::all_of(operands, getConstantValue);
  SmallVector<Value> wide;
  for (Value operand : operands) {
    auto type =
        RankedTensorType::get(common, getElementTypeOrSelf(operand.getType()));
    if (operand.getType() == type) {
      wide.push_back(operand);
      continue;
    }
    auto broadcast = nn::BroadcastOp::create(rewriter, loc, type, operand);
    wide.push_back(known ? foldOrKeep(rewriter, broadcast)
                         : broadcast.getResult());
  }
  return foldOrKeep(
      rewriter,
      Op::create(rewriter, loc,
                 TypeRange(RankedTensorType::get(common, element)), wide));
}

Value MaskBuilder::splat(double value, Type element) {
  auto type = RankedTensorType::get({1, 1, 1, 1}, element);
  return nn::ConstantOp::create(
      rewriter, loc,
      DenseElementsAttr::get(type, rewriter.getFloatAttr(element, value)));
}

/// Which scores a known mask lets through; none if it does more than that.
static std::optional<SmallVector<bool>> openScores(DenseElementsAttr known) {
  if (known.getElementType().isInteger(1))
    return SmallVector<bool>(known.getValues<bool>());
  SmallVector<bool> open;
  for (const APFloat &number : known.getValues<APFloat>()) {
    APFloat wide = number;
    bool lossy;
    wide.convert(APFloat::IEEEdouble(), APFloat::rmNearestTiesToEven, &lossy);
    double value = wide.convertToDouble();
    if (value != 0 && !(value <= kFarDown))
      return std::nullopt;
    open.push_back(value == 0);
  }
  return open;
}

FailureOr<KnownMask> transforms::readKnownMask(DenseElementsAttr known,
                                               std::array<int64_t, 4> shape) {
  known = withoutRepeats(known);
  auto type = cast<RankedTensorType>(known.getType());
  std::optional<SmallVector<bool>> open = openScores(known);
  if (!open)
    return failure();
  int64_t keys = type.getDimSize(3), queries = type.getDimSize(2);
  for (size_t row = 0; row < open->size(); row += keys)
    if (!llvm::is_contained(ArrayRef(*open).slice(row, keys), true))
      return failure();
  if (!llvm::is_contained(*open, false))
    return KnownMask{nullptr, false};
  bool triangle = keys == shape[3] && queries == shape[2] &&
                  type.getDimSize(0) == 1 && type.getDimSize(1) == 1;
  // Query 0 sees key 0, and as many after it as queries come before it.
  int64_t rowOffset = llvm::count(ArrayRef(*open).take_front(keys), true) - 1;
  for (int64_t s = 0; triangle && s < queries; ++s)
    for (int64_t t = 0; triangle && t < keys; ++t)
      triangle = (*open)[s * keys + t] == (t <= s + rowOffset);
  if (triangle)
    return KnownMask{nullptr, true, rowOffset};
  // A row that is not open throughout differs from key to key.
  assert(keys == shape[3] && "a row of one element is open or refused");
  auto boolean = RankedTensorType::get(type.getShape(),
                                       IntegerType::get(type.getContext(), 1));
  return KnownMask{DenseElementsAttr::get(boolean, *open), false};
}

AttentionMask transforms::buildMask(PatternRewriter &rewriter, Location loc,
                                    ArrayRef<MaskStep> steps,
                                    std::array<int64_t, 4> shape,
                                    Type element) {
  MaskBuilder builder(rewriter, loc, shape);
  Value total;
  for (const MaskStep &step : llvm::reverse(steps)) {
    if (step.addend) {
      Value addend = builder.narrow(step.addend);
      total =
          total ? builder.build<nn::AddOp>({total, addend}, element) : addend;
      continue;
    }
    Value condition = builder.narrow(step.condition);
    Value fill = builder.splat(step.fill, element);
    Value kept = total ? total : builder.splat(0, element);
    // One selection of -inf is a mask of i1 as it stands.
    if (steps.size() == 1 && std::isinf(step.fill) && step.keepsWhereTrue &&
        !getConstantValue(condition) &&
        cast<RankedTensorType>(condition.getType()).getDimSize(3) == shape[3])
      return {condition, false, 0, false};
    total = step.keepsWhereTrue
                ? builder.build<nn::SelectOp>({condition, kept, fill}, element)
                : builder.build<nn::SelectOp>({condition, fill, kept}, element);
  }
  if (!total)
    return {nullptr, false, 0, true};
  if (DenseElementsAttr known = getConstantValue(total))
    if (FailureOr<KnownMask> read = readKnownMask(known, shape);
        succeeded(read)) {
      Value mask;
      if (read->mask)
        mask = nn::ConstantOp::create(rewriter, loc, read->mask);
      return {mask, read->causal, read->rowOffset, true};
    }
  // nn.attention wants the last dimension whole.
  auto type = cast<RankedTensorType>(total.getType());
  if (type.getDimSize(3) != shape[3]) {
    SmallVector<int64_t> whole(type.getShape());
    whole[3] = shape[3];
    total = nn::BroadcastOp::create(
        rewriter, loc, RankedTensorType::get(whole, element), total);
  }
  return {total, false, 0, false};
}
