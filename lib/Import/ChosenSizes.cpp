// Sizes that only the run knows: of how many elements NonZero chooses. They are
// followed through the arithmetic of shapes, which folds, by folding it once
// more for other numbers of places: what comes out otherwise depends on them.

#include "NodeImporter.h"
#include "Tensors.h"
#include "lib/Transforms/FoldConstants.h"

using namespace mlir;
using namespace accel;
using namespace accel::import;

/// Numbers so far apart that shapes of one choice and of another differ.
int64_t Choices::getOtherSize(unsigned number) const {
  if (all[number].base)
    return getOtherSize(*all[number].base) * all[number].factor;
  int64_t places = NodeImporter::shape(all[number].mask).front();
  return places + 1000003 + 7919 * int64_t(number);
}

void Choices::markSize(Value value, Value other) {
  if (NodeImporter::constantOf(value) != NodeImporter::constantOf(other))
    others.insert_or_assign(value, other);
}

std::optional<unsigned> Choices::findSize(int64_t size, int64_t other,
                                          int64_t &factor) const {
  std::optional<unsigned> one;
  for (auto [number, choice] : llvm::enumerate(all)) {
    if (choice.base)
      continue; // it is the base's as often
    int64_t places = NodeImporter::shape(choice.mask).front();
    int64_t times = size % places == 0 ? size / places : 0;
    if (times < 1 || times * getOtherSize(number) != other)
      continue;
    if (one)
      return std::nullopt; // could be of either
    one = number;
    factor = times;
  }
  return one;
}

/// How deep the arithmetic of a size is looked into.
static constexpr int kDeep = 8;

/// The size that a sum over all of a mask is; null: it is no choice's.
static Value findCount(NodeImporter &n, Value value) {
  auto reduce = value.getDefiningOp<nn::ReduceOp>();
  if (!reduce || reduce.getKind() != nn::ReductionKind::sum ||
      cast<RankedTensorType>(value.getType()).getNumElements() != 1 ||
      !NodeImporter::element(value).isInteger(64))
    return nullptr;
  Choices &choices = n.graph.choices;
  for (Value mask = reduce.getInput(); mask;) {
    std::optional<unsigned> number;
    if (NodeImporter::element(mask).isInteger(1))
      number = choices.findBy(mask);
    ArrayRef<int64_t> shape = NodeImporter::shape(value);
    if (number) {
      Value places =
          n.ints(NodeImporter::shape(choices.get(*number).mask).front(), shape);
      choices.markSize(places, n.ints(choices.getOtherSize(*number), shape));
      return places;
    }
    Operation *op = mask.getDefiningOp();
    mask = isa_and_nonnull<nn::CastOp, nn::ReshapeOp>(op) ? op->getOperand(0)
                                                          : Value();
  }
  return nullptr;
}

Value NodeImporter::resolveSize(Value value, int depth) {
  if (!value || constantOf(value))
    return value;
  Operation *op = value.getDefiningOp();
  if (!op || depth == kDeep || isFloat(value))
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
  SmallVector<int64_t> others =
      integerElements(constantOf(choices.getOther(value)));
  for (auto [dim, size] : llvm::enumerate(sizes.values)) {
    if (size == others[dim])
      continue;
    int64_t factor = 1;
    std::optional<unsigned> number =
        choices.findSize(size, others[dim], factor);
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

/// Whether what an op makes of sizes says by other sizes that it depends on
/// them: sums, products and moves do. A comparison may come out alike for more
/// places and differ for fewer; only with less than nothing it does not.
static bool showsSizes(Operation *op, const Choices &choices) {
  if (auto reduce = dyn_cast<nn::ReduceOp>(op))
    return reduce.getKind() == nn::ReductionKind::sum ||
           reduce.getKind() == nn::ReductionKind::prod;
  if (isa<nn::CastOp>(op))
    return NodeImporter::element(op->getResult(0)).getIntOrFloatBitWidth() > 1;
  if (isa<nn::DivOp, nn::GatherOp, nn::GatherNdOp>(op))
    return !choices.isSize(op->getOperand(1));
  if (isa<nn::SelectOp>(op))
    return !choices.isSize(op->getOperand(0));
  if (isa<nn::CompareOp>(op))
    return llvm::any_of(op->getOperands(), [](Value operand) {
      DenseElementsAttr known = NodeImporter::constantOf(operand);
      return known && llvm::all_of(integerElements(known),
                                   [](int64_t value) { return value < 0; });
    });
  return isa<nn::AddOp, nn::SubOp, nn::MulOp, nn::NegOp, nn::ReshapeOp,
             nn::TransposeOp, nn::BroadcastOp, nn::SliceOp, nn::ConcatOp>(op);
}

/// What is computed of sizes that only the run knows is such a size, or has
/// nothing to do with them; as a float it is the number itself.
Value NodeImporter::finishSize(Operation *op) {
  Choices &choices = graph.choices;
  auto refuse = [&] {
    op->erase();
    error()
        << "expected the number of elements that NonZero chooses at run "
           "time to shape a tensor, or to be a float, found it computed "
           "with as an integer: divide by a sum of the mask, or take a mean";
    return nullptr;
  };
  Value result = op->getResult(0);
  if (isa<nn::CastOp>(op) && isFloat(result)) {
    Value size = op->getOperand(0);
    SmallVector<int64_t> now = integerElements(constantOf(size)),
                         other = integerElements(
                             constantOf(choices.getOther(size)));
    int64_t factor = 1;
    std::optional<unsigned> number =
        now.size() == 1 ? choices.findSize(now[0], other[0], factor)
                        : std::nullopt;
    if (!number)
      return refuse();
    SmallVector<int64_t> own(shape(result));
    Type type = element(result);
    op->erase();
    Value count = choices.count(*this, {*number, 0}, type);
    return reshape(binary<nn::MulOp>(count, splat({}, type, factor)), own);
  }
  bool isOfChosen = llvm::any_of(op->getOperands(), [&](Value operand) {
    return choices.find(operand).has_value();
  });
  if (isOfChosen || !showsSizes(op, choices))
    return refuse();
  Operation *twin = op->clone();
  graph.builder.insert(twin);
  for (OpOperand &operand : twin->getOpOperands())
    operand.set(choices.getOther(operand.get()));
  Value other = transforms::foldOrKeep(graph.builder, twin);
  if (!other || !constantOf(other))
    return refuse();
  result = transforms::foldOrKeep(graph.builder, op);
  failed |= !result;
  if (result)
    choices.markSize(result, other);
  return result;
}
