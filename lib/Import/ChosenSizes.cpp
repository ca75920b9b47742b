// Sizes that only the run knows: of how many elements NonZero chooses. They are
// followed through the arithmetic of shapes, which folds, as sums of a number
// and of multiples of how many each choice chooses: what is no such sum is
// refused.

#include "NodeImporter.h"
#include "Tensors.h"
#include "lib/Transforms/FoldConstants.h"

using namespace mlir;
using namespace accel;
using namespace accel::import;

std::pair<unsigned, int64_t> Choices::countOf(unsigned number) const {
  const Choice &choice = all[number];
  return {choice.base.value_or(number), choice.base ? choice.factor : 1};
}

void Choices::markSize(Value value, SmallVector<Value> parts) {
  auto isZero = [](Value part) {
    return !part ||
           llvm::all_of(integerElements(NodeImporter::constantOf(part)),
                        [](int64_t element) { return element == 0; });
  };
  while (parts.size() > 1 && isZero(parts.back()))
    parts.pop_back();
  if (parts.size() > 1)
    sizes.insert_or_assign(value, std::move(parts));
}

SmallVector<Choices::SizeForm> Choices::getForms(Value value) const {
  int64_t count = cast<RankedTensorType>(value.getType()).getNumElements();
  SmallVector<Value> parts = getParts(value);
  SmallVector<SizeForm> forms(count, SizeForm(parts.size(), 0));
  for (auto [index, part] : llvm::enumerate(parts))
    if (part)
      for (auto [element, number] :
           llvm::enumerate(integerElements(NodeImporter::constantOf(part))))
        forms[element][index] = number;
  return forms;
}

std::optional<unsigned> Choices::findSize(ArrayRef<int64_t> form,
                                          int64_t &factor) {
  std::optional<unsigned> one;
  for (auto [index, times] : llvm::enumerate(form)) {
    if (times == 0)
      continue;
    if (one || index == 0 || times < 0)
      return std::nullopt;
    one = index - 1;
    factor = times;
  }
  return one;
}

/// How deep the arithmetic of a size is looked into.
static constexpr int kDeepestSize = 8;

/// The size that a sum over all of a mask is; null: it is no choice's.
static Value findCount(NodeImporter &n, Value value) {
  auto reduce = value.getDefiningOp<nn::ReduceOp>();
  if (!reduce || reduce.getKind() != nn::ReductionKind::sum ||
      cast<RankedTensorType>(value.getType()).getNumElements() != 1 ||
      !NodeImporter::element(value).isInteger(64))
    return nullptr;
  Choices &choices = n.graph.choices;
  int64_t each = 1; // elements for each place of a mask of rows
  for (Value mask = reduce.getInput(); mask;) {
    std::optional<unsigned> number;
    if (NodeImporter::element(mask).isInteger(1))
      number = choices.findBy(mask);
    ArrayRef<int64_t> shape = NodeImporter::shape(value);
    if (number) {
      Value places = n.ints(
          each * NodeImporter::shape(choices.get(*number).mask).front(), shape);
      auto [of, factor] = choices.countOf(*number);
      SmallVector<Value> parts(of + 2);
      parts.back() = n.ints(each * factor, shape);
      choices.markSize(places, std::move(parts));
      return places;
    }
    Operation *op = mask.getDefiningOp();
    if (!isa_and_nonnull<nn::CastOp, nn::ReshapeOp, nn::BroadcastOp>(op))
      break;
    auto count = [](Value value) {
      return ShapedType::getNumElements(NodeImporter::shape(value));
    };
    if (count(op->getOperand(0)) == 0)
      break;
    each *= count(mask) / count(op->getOperand(0));
    mask = op->getOperand(0);
  }
  return nullptr;
}

Value NodeImporter::resolveSize(Value value, int depth) {
  if (!value || constantOf(value))
    return value;
  Operation *op = value.getDefiningOp();
  if (!op || depth == kDeepestSize || isFloat(value))
    return nullptr;
  if (Value count = findCount(*this, value))
    return count;
  if (!isa<nn::AddOp, nn::MulOp, nn::CastOp, nn::ConcatOp, nn::ReshapeOp,
           nn::BroadcastOp, nn::SliceOp>(op))
    return nullptr;
  SmallVector<Value> operands;
  for (Value operand : op->getOperands()) {
    operands.push_back(resolveSize(operand, depth + 1));
    if (!operands.back())
      return nullptr;
  }
  Operation *twin = op->clone();
  graph.builder.insert(twin);
  twin->setOperands(operands);
  return finishSize(twin);
}

NodeImporter::Sizes NodeImporter::constantSizes(unsigned index) {
  Choices &choices = graph.choices;
  Value value = operand(index);
  if (value && !choices.isEmpty())
    if (Value size = resolveSize(value))
      value = size;
  if (!choices.isSize(value))
    return {constantInts(index), std::nullopt};
  Sizes sizes{integerElements(constantOf(value)), std::nullopt};
  for (auto [dim, form] : llvm::enumerate(choices.getForms(value))) {
    if (Choices::isNumber(form))
      continue;
    int64_t factor = 1;
    std::optional<unsigned> number = Choices::findSize(form, factor);
    if (!number || sizes.chosen) {
      error()
          << "expected one size that is the number of elements that NonZero "
             "chooses at run time, found others that are computed of it";
      return {};
    }
    sizes.chosen = Choices::Chosen{choices.flatten(*this, *number, factor),
                                   static_cast<int64_t>(dim)};
  }
  return sizes;
}
