// The table of what a module may say of itself, and its verification.

#include "dialects/Accel/Accel.h"
#include "dialects/Accel/Established.h"
#include "dialects/Accel/ParameterGroups.h"
#include "dialects/Accel/Reports.h"
#include "dialects/Accel/SeparateRows.h"
#include "dialects/Accel/Zero.h"

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinTypes.h"
#include "llvm/ADT/StringSet.h"

#include "dialects/Accel/AccelDialect.cpp.inc"

using namespace mlir;
using namespace accel;

void AccelDialect::initialize() {}

static bool isPhase(Attribute attribute) {
  auto name = dyn_cast<StringAttr>(attribute);
  return name && symbolizePhase(name.getValue());
}

static bool isConfig(Attribute attribute) {
  auto settings = dyn_cast<DictionaryAttr>(attribute);
  return settings && llvm::all_of(settings, [](NamedAttribute one) {
           if (one.getName() != "keys")
             return isa<StringAttr>(one.getValue());
           auto keys = dyn_cast<ArrayAttr>(one.getValue());
           return keys && llvm::all_of(keys, llvm::IsaPred<StringAttr>);
         });
}

static bool isListOfParameters(Attribute attribute) {
  auto list = dyn_cast<ArrayAttr>(attribute);
  return list && llvm::all_of(list, [](Attribute one) {
           auto parameter = dyn_cast<DictionaryAttr>(one);
           if (!parameter || !parameter.getAs<StringAttr>("name"))
             return false;
           bool hasShape =
               parameter.getAs<DenseI64ArrayAttr>("shape") != nullptr;
           return parameter.size() == (hasShape ? 2 : 1);
         });
}

static bool isF64(Attribute attribute) {
  auto number = dyn_cast_or_null<FloatAttr>(attribute);
  return number && number.getType().isF64();
}

static bool isParameterGroups(Attribute attribute) {
  auto groups = dyn_cast<ArrayAttr>(attribute);
  return groups && llvm::all_of(groups, [](Attribute one) {
           auto group = dyn_cast<DictionaryAttr>(one);
           auto names = group ? group.getAs<ArrayAttr>("parameters") : nullptr;
           auto why = group ? group.getAs<DictionaryAttr>("why") : nullptr;
           return names && why && group.size() == 5 &&
                  group.getAs<StringAttr>("optimizer") &&
                  isF64(group.get("lr_multiplier")) &&
                  isF64(group.get("weight_decay")) &&
                  llvm::all_of(names, llvm::IsaPred<StringAttr>) &&
                  llvm::all_of(why, [&](NamedAttribute each) {
                    return each.getName() != "why" &&
                           each.getName() != "parameters" &&
                           group.contains(each.getName()) &&
                           isa<StringAttr>(each.getValue());
                  });
         });
}

static bool isBatchDims(Attribute attribute) {
  auto dims = dyn_cast<DictionaryAttr>(attribute);
  return dims && llvm::all_of(dims, [](NamedAttribute one) {
           auto dim = dyn_cast<IntegerAttr>(one.getValue());
           return dim && dim.getType().isSignlessInteger(64) &&
                  dim.getInt() >= -1;
         });
}

/// A term of a loss: the names of its outputs, and what its denominator is
/// more than a sum.
static bool isLossTerm(Attribute attribute) {
  auto term = dyn_cast<DictionaryAttr>(attribute);
  if (!term || !term.getAs<StringAttr>("numerator"))
    return false;
  return llvm::all_of(term, [&](NamedAttribute one) {
    StringRef name = one.getName();
    if (name == "numerator" || name == "denominator")
      return isa<StringAttr>(one.getValue());
    auto number = dyn_cast<FloatAttr>(one.getValue());
    return (name == "plus" || name == "least") && number &&
           number.getType().isF64() && number.getValue().isFinite() &&
           term.contains("denominator");
  });
}

/// Names, each once, the loss and the verdict among them.
static bool isReports(Attribute attribute) {
  auto names = dyn_cast<ArrayAttr>(attribute);
  if (!names || !llvm::all_of(names, llvm::IsaPred<StringAttr>))
    return false;
  llvm::StringSet<> known;
  for (auto name : names.getAsRange<StringAttr>())
    if (!known.insert(name).second)
      return false;
  return known.contains(kLossReport) && known.contains(kVerdictReport);
}

bool accel::isReport(ModuleOp module, StringRef output) {
  if (output.starts_with(kTermPrefix) || output.starts_with(kMetricPrefix))
    return true;
  auto names = module->getAttrOfType<ArrayAttr>(kReportsAttr);
  return names && llvm::is_contained(
                      names, StringAttr::get(module.getContext(), output));
}

/// Whether it names inputs with rows, and such as have the same in all of them.
static bool hasRows(DictionaryAttr rows) {
  auto equal = rows ? rows.getAs<ArrayAttr>("equal") : nullptr;
  auto inputs = rows ? rows.getAs<ArrayAttr>("inputs") : nullptr;
  return equal && inputs && llvm::all_of(inputs, llvm::IsaPred<StringAttr>) &&
         llvm::all_of(equal, [](Attribute one) {
           auto pair = dyn_cast<DictionaryAttr>(one);
           return pair && pair.size() == 2 && pair.getAs<StringAttr>("input") &&
                  pair.getAs<IntegerAttr>("dim");
         });
}

static bool isSeparateRows(Attribute attribute) {
  auto rows = dyn_cast<DictionaryAttr>(attribute);
  auto terms = rows ? rows.getAs<ArrayAttr>("terms") : nullptr;
  return hasRows(rows) && terms && rows.getAs<DenseI64ArrayAttr>("ignored") &&
         rows.size() == 4 && llvm::all_of(terms, isLossTerm);
}

static bool isRowMask(Attribute attribute) {
  auto mask = dyn_cast<DictionaryAttr>(attribute);
  return hasRows(mask) && mask.getAs<StringAttr>("input") && mask.size() == 3;
}

namespace {
struct Row {
  StringLiteral name;
  /// What a message says of its type.
  StringLiteral expected;
  bool (*fits)(Attribute);
};
} // namespace

static constexpr Row kRows[] = {
    {kPhaseAttr, "one of nn, train, dist, decided, local and plan", isPhase},
    {kDecisionsAttr, "a dictionary",
     [](Attribute one) { return isa<DictionaryAttr>(one); }},
    {kConfigAttr, "a dictionary of strings, and a list of strings as 'keys'",
     isConfig},
    {kSeedAttr, "an i64",
     [](Attribute one) {
       auto number = dyn_cast<IntegerAttr>(one);
       return number && number.getType().isSignlessInteger(64);
     }},
    {kFoldedParametersAttr,
     "a list of {name = \"NAME\", shape = array<i64: …>}", isListOfParameters},
    {kParameterGroupsAttr,
     "a list of {lr_multiplier = NUMBER, optimizer = \"NAME\", parameters = "
     "[\"NAME\"], weight_decay = NUMBER, why = {KEY = \"SETTING\"}}",
     isParameterGroups},
    {kUnshiftedLabelsAttr, "a string",
     [](Attribute one) { return isa<StringAttr>(one); }},
    {kReportsAttr, "a list of different names, 'loss' and 'verdict' among them",
     isReports},
    {kSeparateRowsAttr,
     "{equal = [{dim = K, input = \"NAME\"}], ignored = array<i64: …>, "
     "inputs = [\"NAME\"], terms = [{denominator = \"NAME\", least = NUMBER, "
     "numerator = \"NAME\", plus = NUMBER}]}",
     isSeparateRows},
    {kRowMaskAttr,
     "{equal = [{dim = K, input = \"NAME\"}], input = \"NAME\", inputs = "
     "[\"NAME\"]}",
     isRowMask},
    {kBatchDimsAttr, "{NAME = K : i64}, a dimension or -1 by each input's name",
     isBatchDims},
    {kUntrainableAttr, "a string",
     [](Attribute one) { return isa<StringAttr>(one); }},
    {kGradientWireAttr, "f16 or bf16",
     [](Attribute one) {
       auto type = dyn_cast<TypeAttr>(one);
       return type && (type.getValue().isF16() || type.getValue().isBF16());
     }},
    {kEstablishedAttr, "a list of strings",
     [](Attribute one) {
       auto list = dyn_cast<ArrayAttr>(one);
       return list && llvm::all_of(list, llvm::IsaPred<StringAttr>);
     }},
    {kZeroStageAttr, "an i64 from 1 to 3",
     [](Attribute one) {
       auto stage = dyn_cast<IntegerAttr>(one);
       return stage && stage.getType().isSignlessInteger(64) &&
              stage.getInt() >= 1 && stage.getInt() <= 3;
     }},
};

LogicalResult AccelDialect::verifyOperationAttribute(Operation *op,
                                                     NamedAttribute attribute) {
  StringRef name = attribute.getName();
  const Row *row =
      llvm::find_if(kRows, [&](const Row &one) { return one.name == name; });
  if (row == std::end(kRows)) {
    auto diagnostic = op->emitError() << "expected one of ";
    llvm::interleaveComma(kRows, diagnostic, [&](const Row &one) {
      diagnostic << "'" << one.name << "'";
    });
    return diagnostic << ", found '" << name << "'";
  }
  if (!isa<ModuleOp>(op))
    return op->emitError() << "expected '" << name
                           << "' on the module, found it on a "
                           << op->getName();
  if (!row->fits(attribute.getValue()))
    return op->emitError() << "expected '" << name << "' to be "
                           << row->expected << ", found "
                           << attribute.getValue();
  return success();
}
