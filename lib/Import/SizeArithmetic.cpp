// What ops make of sizes that only the run knows: a sum of a number and of
// multiples of how many each choice chooses (Choices.h), part by part. What is
// no such sum is refused: a quotient that is rounded, a product of two, a
// comparison that comes out one way for some numbers and the other for others.

#include "NodeImporter.h"
#include "Tensors.h"
#include "lib/Transforms/FoldConstants.h"

using namespace mlir;
using namespace accel;
using namespace accel::import;

/// Where the op asks for sizes by numbers that must be known: indices, choices
/// between two.
static bool asksFor(Operation *op, unsigned operand) {
  return (isa<nn::GatherOp, nn::GatherNdOp>(op) && operand == 1) ||
         (isa<nn::SelectOp>(op) && operand == 0);
}

/// Whether each part of the result is that of the operands' parts.
static bool isLinearInParts(Operation *op) {
  if (auto reduce = dyn_cast<nn::ReduceOp>(op))
    return reduce.getKind() == nn::ReductionKind::sum;
  if (isa<nn::CastOp>(op))
    return !NodeImporter::isFloat(op->getResult(0)) &&
           NodeImporter::element(op->getResult(0)).getIntOrFloatBitWidth() >=
               32;
  return isa<nn::AddOp, nn::SubOp, nn::NegOp, nn::ReshapeOp, nn::TransposeOp,
             nn::BroadcastOp, nn::SliceOp, nn::ConcatOp, nn::GatherOp,
             nn::GatherNdOp, nn::SelectOp>(op);
}

/// The product; none of two sizes, which no choice has.
static std::optional<Choices::SizeForm> multiply(Choices::SizeForm lhs,
                                                 Choices::SizeForm rhs) {
  if (!Choices::isNumber(rhs))
    std::swap(lhs, rhs);
  if (!Choices::isNumber(rhs))
    return std::nullopt;
  for (int64_t &part : lhs)
    if (llvm::MulOverflow(part, rhs[0], part))
      return std::nullopt;
  return lhs;
}

static std::optional<Choices::SizeForm> divide(Choices::SizeForm form,
                                               const Choices::SizeForm &by) {
  if (!Choices::isNumber(by) || by[0] == 0)
    return std::nullopt;
  for (int64_t &part : form) {
    if (part % by[0] != 0)
      return std::nullopt; // rounded, it is another number of each number
    part /= by[0];
  }
  return form;
}

/// The elements of the result, where they are products or quotients.
static std::optional<SmallVector<Choices::SizeForm>>
combine(Operation *op, const Choices &choices) {
  SmallVector<Choices::SizeForm> made,
      first = choices.getForms(op->getOperand(0));
  auto reduce = dyn_cast<nn::ReduceOp>(op);
  if (reduce && reduce.getKind() == nn::ReductionKind::prod &&
      cast<RankedTensorType>(reduce.getType()).getNumElements() == 1) {
    Choices::SizeForm all{1};
    for (const Choices::SizeForm &form : first) {
      std::optional<Choices::SizeForm> product = multiply(all, form);
      if (!product)
        return std::nullopt;
      all = *product;
    }
    return SmallVector<Choices::SizeForm>{all};
  }
  if (!isa<nn::MulOp, nn::DivOp>(op))
    return std::nullopt;
  for (auto [lhs, rhs] :
       llvm::zip_equal(first, choices.getForms(op->getOperand(1)))) {
    std::optional<Choices::SizeForm> each =
        isa<nn::MulOp>(op) ? multiply(lhs, rhs) : divide(lhs, rhs);
    if (!each)
      return std::nullopt;
    made.push_back(*each);
  }
  return made;
}

/// Whether a comparison comes out alike however many are chosen.
static bool isDecided(nn::CompareOp op, const Choices &choices) {
  for (auto [lhs, rhs] : llvm::zip_equal(choices.getForms(op.getLhs()),
                                         choices.getForms(op.getRhs()))) {
    size_t count = std::max(lhs.size(), rhs.size());
    lhs.resize(count);
    rhs.resize(count);
    bool isMore = true, isLess = true, isSame = true;
    for (size_t part = 0; part < count; ++part) {
      // None may be chosen, and then the numbers alone must say it.
      isMore &= part == 0 ? lhs[part] > rhs[part] : lhs[part] >= rhs[part];
      isLess &= part == 0 ? lhs[part] < rhs[part] : lhs[part] <= rhs[part];
      isSame &= lhs[part] == rhs[part];
    }
    if (!isMore && !isLess && !isSame)
      return false;
  }
  return true;
}

std::optional<SmallVector<Value>> NodeImporter::splitSize(Operation *op) {
  Choices &choices = graph.choices;
  for (OpOperand &operand : op->getOpOperands())
    if (choices.find(operand.get()) || !constantOf(operand.get()) ||
        (asksFor(op, operand.getOperandNumber()) &&
         choices.isSize(operand.get())))
      return std::nullopt;
  if (auto compare = dyn_cast<nn::CompareOp>(op))
    return isDecided(compare, choices) ? std::optional(SmallVector<Value>())
                                       : std::nullopt;
  SmallVector<Value> parts;
  if (isLinearInParts(op)) {
    size_t count = 1;
    for (Value operand : op->getOperands())
      count = std::max(count, choices.getParts(operand).size());
    for (size_t part = 0; part < count; ++part) {
      Operation *twin = op->clone();
      graph.builder.insert(twin);
      for (OpOperand &operand : twin->getOpOperands()) {
        if (asksFor(op, operand.getOperandNumber()))
          continue;
        SmallVector<Value> own = choices.getParts(operand.get());
        Value value = part < own.size() ? own[part] : Value();
        operand.set(value ? value : splatLike(operand.get(), 0));
      }
      parts.push_back(transforms::foldOrKeep(graph.builder, twin, &graph.room));
      if (!parts.back() || !constantOf(parts.back()))
        return std::nullopt;
    }
    return parts;
  }
  auto forms = combine(op, choices);
  if (!forms)
    return std::nullopt;
  size_t count = 0;
  for (const Choices::SizeForm &form : *forms)
    count = std::max(count, form.size());
  for (size_t part = 0; part < count; ++part)
    parts.push_back(ints(llvm::map_to_vector(*forms,
                                             [&](const auto &form) {
                                               return part < form.size()
                                                          ? form[part]
                                                          : int64_t(0);
                                             }),
                         shape(op->getResult(0))));
  return parts;
}

Value NodeImporter::countSize(const Choices::SizeForm &form, Type type) {
  Value sum = splat({}, type, form[0]);
  for (auto [choice, times] : llvm::enumerate(ArrayRef(form).drop_front()))
    if (times != 0)
      sum = binary<nn::AddOp>(
          sum, binary<nn::MulOp>(
                   graph.choices.count(
                       *this, {static_cast<unsigned>(choice), 0}, type),
                   splat({}, type, times)));
  return sum;
}

/// What is computed of sizes that only the run knows is such a size, or has
/// nothing to do with them; as a float it is the number itself.
Value NodeImporter::finishSize(Operation *op) {
  Value result = op->getResult(0);
  if (isa<nn::CastOp>(op) && isFloat(result) &&
      llvm::cast<RankedTensorType>(result.getType()).getNumElements() == 1) {
    Choices::SizeForm form = graph.choices.getForms(op->getOperand(0)).front();
    SmallVector<int64_t> own(shape(result));
    Type type = element(result);
    op->erase();
    return reshape(countSize(form, type), own);
  }
  std::optional<SmallVector<Value>> parts = splitSize(op);
  if (!parts) {
    op->erase();
    error()
        << "expected the number of elements that NonZero chooses at run "
           "time to shape a tensor, or to be a float, found it computed "
           "with as an integer: divide by a sum of the mask, or take a mean";
    return nullptr;
  }
  result = transforms::foldOrKeep(graph.builder, op, &graph.room);
  failed |= !result;
  if (result)
    graph.choices.markSize(result, std::move(*parts));
  return result;
}
