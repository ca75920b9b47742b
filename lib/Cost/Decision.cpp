// Writes decisions as dictionaries, and reads them.

#include "Decision.h"

#include "dialects/Accel/Accel.h"
#include "mlir/IR/Builders.h"

using namespace mlir;
using namespace accel;
using namespace accel::cost;

static ArrayAttr findConsidered(ModuleOp module) {
  auto decisions = module->getAttrOfType<DictionaryAttr>(kDecisionsAttr);
  return decisions ? decisions.getAs<ArrayAttr>(kConsideredKey) : nullptr;
}

void cost::setDecision(ModuleOp module, StringRef key, Attribute value) {
  NamedAttrList decisions(
      module->getAttrOfType<DictionaryAttr>(kDecisionsAttr));
  if (value)
    decisions.set(key, value);
  else
    decisions.erase(key);
  module->setAttr(kDecisionsAttr, decisions.getDictionary(module.getContext()));
}

void cost::askForDecisions(ModuleOp module) {
  if (!isAskedForDecisions(module))
    setDecision(module, kConsideredKey,
                ArrayAttr::get(module.getContext(), {}));
}

bool cost::isAskedForDecisions(ModuleOp module) {
  return findConsidered(module) != nullptr;
}

static DictionaryAttr write(Builder &builder, const Alternative &alternative) {
  NamedAttrList attrs;
  attrs.set("value", builder.getStringAttr(alternative.value));
  if (alternative.seconds)
    attrs.set("seconds", builder.getF64FloatAttr(*alternative.seconds));
  if (alternative.bytes)
    attrs.set("bytes", builder.getI64IntegerAttr(*alternative.bytes));
  if (!alternative.detail.empty())
    attrs.set("detail", builder.getStringAttr(alternative.detail));
  return attrs.getDictionary(builder.getContext());
}

void cost::tell(ModuleOp module, const Decision &decision) {
  ArrayAttr before = findConsidered(module);
  if (!before)
    return;
  Builder builder(module.getContext());
  auto others = llvm::map_to_vector(decision.others,
                                    [&](const Alternative &other) -> Attribute {
                                      return write(builder, other);
                                    });
  NamedAttrList attrs;
  attrs.set("decision", builder.getStringAttr(decision.name));
  attrs.set("of", builder.getStringAttr(decision.of));
  attrs.set("chosen", write(builder, decision.chosen));
  attrs.set("others", builder.getArrayAttr(others));
  attrs.set("reason", builder.getStringAttr(decision.reason));
  SmallVector<Attribute> all(before.getValue());
  all.push_back(attrs.getDictionary(builder.getContext()));
  setDecision(module, kConsideredKey, builder.getArrayAttr(all));
}

static std::optional<Alternative> readAlternative(Attribute attr) {
  auto attrs = dyn_cast_or_null<DictionaryAttr>(attr);
  auto value = attrs ? attrs.getAs<StringAttr>("value") : nullptr;
  if (!value)
    return std::nullopt;
  Alternative result{value.str(), std::nullopt, std::nullopt, ""};
  for (NamedAttribute each : attrs) {
    auto seconds = dyn_cast<FloatAttr>(each.getValue());
    auto bytes = dyn_cast<IntegerAttr>(each.getValue());
    if (each.getName() == "seconds" && seconds)
      result.seconds = seconds.getValueAsDouble();
    else if (each.getName() == "bytes" && bytes)
      result.bytes = bytes.getInt();
    else if (auto detail = dyn_cast<StringAttr>(each.getValue());
             each.getName() == "detail" && detail)
      result.detail = detail.str();
    else if (each.getName() != "value")
      return std::nullopt;
  }
  return result;
}

static std::optional<Decision> readDecision(Attribute attr) {
  auto attrs = dyn_cast<DictionaryAttr>(attr);
  if (!attrs)
    return std::nullopt;
  auto name = attrs.getAs<StringAttr>("decision");
  auto of = attrs.getAs<StringAttr>("of");
  auto reason = attrs.getAs<StringAttr>("reason");
  auto others = attrs.getAs<ArrayAttr>("others");
  auto chosen = readAlternative(attrs.get("chosen"));
  if (!name || !of || !reason || !others || !chosen)
    return std::nullopt;
  Decision decision{name.str(), of.str(), *chosen, {}, reason.str()};
  for (Attribute each : others) {
    auto other = readAlternative(each);
    if (!other)
      return std::nullopt;
    decision.others.push_back(std::move(*other));
  }
  return decision;
}

void cost::takeBack(ModuleOp module, ArrayRef<StringRef> names) {
  ArrayAttr told = findConsidered(module);
  if (!told)
    return;
  SmallVector<Attribute> kept;
  for (Attribute each : told) {
    auto attrs = dyn_cast<DictionaryAttr>(each);
    auto name = attrs ? attrs.getAs<StringAttr>("decision") : nullptr;
    if (!name || !llvm::is_contained(names, name.getValue()))
      kept.push_back(each);
  }
  setDecision(module, kConsideredKey,
              ArrayAttr::get(module.getContext(), kept));
}

FailureOr<std::vector<Decision>> cost::readDecisions(ModuleOp module) {
  std::vector<Decision> decisions;
  ArrayAttr considered = findConsidered(module);
  if (!considered)
    return decisions;
  for (Attribute each : considered) {
    auto decision = readDecision(each);
    if (!decision)
      return module.emitError()
             << "expected in '" << kConsideredKey << "' of '" << kDecisionsAttr
             << "' a 'decision', what it is 'of', a 'reason', and a value with "
                "its seconds and bytes in 'chosen' and each of 'others', found "
             << each;
    decisions.push_back(std::move(*decision));
  }
  return decisions;
}
