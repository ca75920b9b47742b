// Takes a loss apart from its end: through sums and what is linear in one
// value, to quotients of sums over rows.

#include "LossTerms.h"

#include "NNBuilder.h"
#include "dialects/Accel/Reports.h"
#include "dialects/Interfaces/ShardingRule.h"
#include "dialects/NN/Entry.h"
#include "mlir/IR/IRMapping.h"

using namespace mlir;
using namespace accel;
using namespace accel::autodiff;
using transforms::getSplatValue;

namespace {

using Terms = SmallVector<LossTerm>;

bool isNumber(Value value) { return typeOf(value).getNumElements() == 1; }

bool isFloat(Value value) {
  return isa<FloatType>(getElementTypeOrSelf(value));
}

class LossSplitter {
public:
  LossSplitter(OpBuilder &builder, function_ref<RowKind(Value)> kindOf)
      : builder(builder), kindOf(kindOf) {}

  /// Terms whose numerators have the type of the value, which is one number.
  std::optional<Terms> split(Value value) {
    RowKind kind = kindOf(value);
    if (!isNumber(value) || !isFloat(value)) // rows are several
      return std::nullopt;
    if (kind != RowKind::Mixed)
      return Terms{{value, nullptr}};
    Operation *op = value.getDefiningOp();
    if (isa<nn::AddOp, nn::SubOp>(op))
      return splitSum(op);
    if (auto quotient = dyn_cast<nn::DivOp>(op);
        quotient && kindOf(quotient.getRhs()) != RowKind::Free)
      return makeQuotient(quotient.getLhs(), quotient.getRhs());
    if (auto reduce = dyn_cast<nn::ReduceOp>(op))
      if (auto list = reduce.getInput().getDefiningOp<nn::ConcatOp>();
          list && reduce.getKind() == nn::ReductionKind::sum)
        return splitList(list, typeOf(value));
    if (auto product = dyn_cast<nn::MulOp>(op))
      for (auto [sum, inverse] :
           {std::pair(product.getLhs(), product.getRhs()),
            std::pair(product.getRhs(), product.getLhs())})
        if (kindOf(sum) == RowKind::Sum && kindOf(inverse) == RowKind::Mixed)
          return splitProduct(sum, inverse);
    return splitLinear(op);
  }

private:
  std::optional<Terms> splitSum(Operation *op) {
    std::optional<Terms> left = split(op->getOperand(0)),
                         right = split(op->getOperand(1));
    if (!left || !right)
      return std::nullopt;
    NNBuilder build{builder, op->getLoc()};
    for (LossTerm &term : *right) {
      if (isa<nn::SubOp>(op))
        term.numerator = build.neg(term.numerator);
      left->push_back(term);
    }
    return left;
  }

  std::optional<Terms> makeQuotient(Value numerator, Value denominator) {
    if (kindOf(numerator) != RowKind::Sum)
      return std::nullopt;
    std::optional<LossTerm> term = readDenominator(denominator);
    if (term)
      term->numerator = numerator;
    return term ? std::optional(Terms{*term}) : std::nullopt;
  }

  /// A sum times what is free over a denominator.
  std::optional<Terms> splitProduct(Value sum, Value inverse) {
    if (auto of = inverse.getDefiningOp<nn::ReciprocalOp>())
      return makeQuotient(sum, of.getInput());
    auto of = inverse.getDefiningOp<nn::DivOp>();
    if (!of || kindOf(of.getLhs()) != RowKind::Free)
      return std::nullopt;
    std::optional<Terms> terms = makeQuotient(sum, of.getRhs());
    if (terms)
      terms->front().numerator =
          NNBuilder{builder, of.getLoc()}.mul(sum, of.getLhs());
    return terms;
  }

  /// Numbers that are put side by side, and added up.
  std::optional<Terms> splitList(nn::ConcatOp list, RankedTensorType type) {
    Terms all;
    NNBuilder build{builder, list.getLoc()};
    for (Value value : list.getInputs()) {
      std::optional<Terms> terms = split(value);
      if (!terms)
        return std::nullopt;
      for (LossTerm &term : *terms) {
        term.numerator = build.reshape(term.numerator, type.getShape());
        all.push_back(term);
      }
    }
    return all;
  }

  /// Of an op that is linear in one operand, on a part of it.
  std::optional<Terms> splitLinear(Operation *op) {
    std::optional<unsigned> number = findVarying(op);
    auto sharded = dyn_cast<ShardingRuleOpInterface>(op);
    if (!number || !sharded || op->getNumResults() != 1)
      return std::nullopt;
    ShardingRule rule = sharded.getShardingRule();
    if (!isa<nn::CastOp>(op) &&
        !llvm::is_contained(rule.linearGroups, ArrayRef<unsigned>{*number}))
      return std::nullopt;
    std::optional<Terms> terms = split(op->getOperand(*number));
    if (terms)
      for (LossTerm &term : *terms)
        term.numerator = applyTo(op, *number, term.numerator);
    return terms;
  }

  /// The one operand that is not free, if there is one alone.
  std::optional<unsigned> findVarying(Operation *op) {
    std::optional<unsigned> found;
    for (OpOperand &operand : op->getOpOperands()) {
      if (kindOf(operand.get()) == RowKind::Free)
        continue;
      if (found)
        return std::nullopt;
      found = operand.getOperandNumber();
    }
    return found;
  }

  Value applyTo(Operation *op, unsigned number, Value value) {
    IRMapping mapping;
    mapping.map(op->getOperand(number), value);
    return builder.clone(*op, mapping)->getResult(0);
  }

  /// Of a value that is the larger of two, these two.
  static std::optional<std::pair<Value, Value>> findLarger(Operation *op) {
    if (auto larger = dyn_cast<nn::MaxOp>(op))
      return std::pair(larger.getLhs(), larger.getRhs());
    auto select = dyn_cast<nn::SelectOp>(op); // as exporters write it
    auto compare =
        select ? select.getCondition().getDefiningOp<nn::CompareOp>() : nullptr;
    if (!compare)
      return std::nullopt;
    Value smaller = compare.getLhs(), other = compare.getRhs();
    if (llvm::is_contained({nn::ComparePredicate::gt, nn::ComparePredicate::ge},
                           compare.getPredicate()))
      std::swap(smaller, other);
    else if (compare.getPredicate() != nn::ComparePredicate::lt &&
             compare.getPredicate() != nn::ComparePredicate::le)
      return std::nullopt;
    if (select.getOnTrue() != other || select.getOnFalse() != smaller)
      return std::nullopt;
    return std::pair(smaller, other);
  }

  /// A sum over rows, to which a constant is added, or which is not let below
  /// one: neither is counted once a batch.
  std::optional<LossTerm> readDenominator(Value value) {
    if (!isNumber(value))
      return std::nullopt;
    if (kindOf(value) == RowKind::Sum)
      return LossTerm{nullptr, value};
    Operation *op = value.getDefiningOp();
    if (!op)
      return std::nullopt;
    if (isa<nn::ReshapeOp>(op) || (isa<nn::CastOp>(op) && isFloat(value))) {
      std::optional<LossTerm> term = readDenominator(op->getOperand(0));
      if (term)
        term->denominator = applyTo(op, 0, term->denominator);
      return term;
    }
    std::optional<std::pair<Value, Value>> larger = findLarger(op),
                                           both = larger;
    if (isa<nn::AddOp>(op))
      both = std::pair(op->getOperand(0), op->getOperand(1));
    if (!both)
      return std::nullopt;
    auto [sum, other] = *both;
    if (getSplatValue(sum))
      std::swap(sum, other);
    std::optional<double> constant = getSplatValue(other);
    std::optional<LossTerm> term =
        constant ? readDenominator(sum) : std::nullopt;
    if (!term || term->least)
      return std::nullopt;
    if (larger)
      term->least = *constant;
    else
      term->plus += *constant;
    return term;
  }

  OpBuilder &builder;
  function_ref<RowKind(Value)> kindOf;
};

} // namespace

std::optional<SmallVector<LossTerm>>
autodiff::splitLoss(OpBuilder &builder, Value loss,
                    function_ref<RowKind(Value)> kindOf) {
  std::optional<Terms> parts = LossSplitter(builder, kindOf).split(loss);
  if (!parts || llvm::none_of(*parts, [](const LossTerm &part) {
        return bool(part.denominator);
      }))
    return std::nullopt;
  NNBuilder build{builder, loss.getLoc()};
  Type element = typeOf(loss).getElementType();
  auto same = [](const LossTerm &a, const LossTerm &b) {
    return a.denominator == b.denominator && a.plus == b.plus &&
           a.least == b.least;
  };
  Terms terms; // of each denominator one
  for (LossTerm part : *parts) {
    part.numerator = build.cast(build.toScalar(part.numerator), element);
    auto *known = llvm::find_if(
        terms, [&](const LossTerm &term) { return same(term, part); });
    if (known == terms.end())
      terms.push_back(part);
    else
      known->numerator = build.add(known->numerator, part.numerator);
  }
  for (LossTerm &term : terms)
    if (term.denominator)
      term.denominator = build.cast(build.toScalar(term.denominator), element);
  return terms;
}

ArrayAttr
autodiff::nameTerms(Builder &builder, ArrayRef<LossTerm> terms,
                    SmallVectorImpl<std::pair<std::string, Value>> &results) {
  SmallVector<Attribute> all;
  for (const LossTerm &term : terms) {
    NamedAttrList fields;
    std::string number = std::to_string(all.size());
    auto add = [&](StringRef what, Value value) {
      std::string name = kTermPrefix.str() + number + "." + what.str();
      fields.set(what, builder.getStringAttr(name));
      results.emplace_back(name, value);
    };
    add("numerator", term.numerator);
    if (term.denominator) {
      add("denominator", term.denominator);
      fields.set("plus", builder.getF64FloatAttr(term.plus));
    }
    if (term.least)
      fields.set("least", builder.getF64FloatAttr(*term.least));
    all.push_back(fields.getDictionary(builder.getContext()));
  }
  return builder.getArrayAttr(all);
}
