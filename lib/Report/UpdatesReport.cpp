// `--report=parameters` of a training step: how it updates each parameter, and
// what said so.

#include "Reports.h"
#include "Table.h"
#include "dialects/Accel/Accel.h"
#include "dialects/Accel/ParameterGroups.h"
#include "dialects/NN/NN.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace accel;
using namespace accel::report;
using llvm::json::Object;

/// The place in a config file, or the flag, that says a setting: of
/// "0.1 (ds.json:4)" what is in parentheses, and empty if there is none.
static StringRef findSetting(DictionaryAttr config, StringRef key) {
  auto entry = config ? config.getAs<StringAttr>(key) : nullptr;
  StringRef text = entry ? entry.getValue() : "";
  size_t open = text.rfind(" (");
  return open == StringRef::npos ? "" : text.drop_front(open + 2).drop_back();
}

/// "optimizer.no_decay=vectors (ds.json:4)"
static std::string describeReason(StringRef setting, DictionaryAttr config) {
  // A pattern may have a '=' of its own.
  StringRef key =
      setting.starts_with("groups[") ? setting : setting.split('=').first;
  StringRef origin = findSetting(config, key);
  return (setting + (origin.empty() ? "" : " (" + origin + ")")).str();
}

static Object describeRule(DictionaryAttr group, DictionaryAttr config) {
  auto number = [&](StringRef key) {
    return group.getAs<FloatAttr>(key).getValueAsDouble();
  };
  Object why;
  for (NamedAttribute reason : group.getAs<DictionaryAttr>("why"))
    why[reason.getName().getValue()] =
        describeReason(cast<StringAttr>(reason.getValue()).getValue(), config);
  return Object{
      {"optimizer", group.getAs<StringAttr>("optimizer").getValue().str()},
      {"lr_multiplier", number("lr_multiplier")},
      {"weight_decay", number("weight_decay")},
      {"why", std::move(why)}};
}

llvm::StringMap<Object> report::collectUpdates(ModuleOp module) {
  llvm::StringMap<Object> updates;
  auto groups = module->getAttrOfType<ArrayAttr>(kParameterGroupsAttr);
  if (!groups)
    return updates;
  auto config = module->getAttrOfType<DictionaryAttr>(kConfigAttr);
  for (auto group : groups.getAsRange<DictionaryAttr>())
    for (auto name :
         group.getAs<ArrayAttr>("parameters").getAsRange<StringAttr>())
      updates.try_emplace(name.getValue(), describeRule(group, config));
  return updates;
}

/// "optimizer: groups[*.bias].type; weight_decay: optimizer.weight_decay"
static std::string joinReasons(const Object &why) {
  std::string text;
  for (StringRef key : {"optimizer", "lr_multiplier", "weight_decay"})
    if (std::optional<StringRef> setting = why.getString(key))
      text += ((text.empty() ? "" : "; ") + key + ": " + *setting).str();
  return text;
}

LogicalResult report::printUpdates(ModuleOp module, llvm::raw_ostream &os,
                                   bool json) {
  if (!module->hasAttr(kParameterGroupsAttr))
    return module.emitError()
           << "expected a program that trains for --report=parameters, found "
              "no '"
           << kParameterGroupsAttr << "'";
  llvm::StringMap<Object> updates = collectUpdates(module);
  llvm::json::Array all;
  Table table(
      {"parameter", "optimizer", "lr multiplier", "weight decay", "why"});
  for (auto state : module.getOps<nn::StateOp>()) {
    auto found = updates.find(state.getSymName());
    if (found == updates.end())
      continue;
    Object &update = found->second;
    auto number = [&](StringRef key) {
      return llvm::formatv("{0}", llvm::format("%.6g", *update.getNumber(key)))
          .str();
    };
    table.add({state.getSymName().str(), update.getString("optimizer")->str(),
               number("lr_multiplier"), number("weight_decay"),
               joinReasons(*update.getObject("why"))});
    update["name"] = state.getSymName();
    all.push_back(std::move(update));
  }
  if (json)
    os << llvm::formatv("{0:2}", llvm::json::Value(std::move(all))) << "\n";
  else
    table.print(os);
  return success();
}
