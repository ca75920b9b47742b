// The table of origins.

#include "Origins.h"

#include "dialects/NN/Entry.h"

using namespace mlir;
using namespace accel;
using namespace accel::parallel;

Origins::Origins(ModuleOp module) : module(module) {
  if (auto given = module->getAttrOfType<ArrayAttr>(dist::kOriginsAttr))
    rows.assign(given.begin(), given.end());
}

static Origins::Place makePlace(func::FuncOp entry, StringRef kind,
                                StringAttr name) {
  MLIRContext *context = entry.getContext();
  return {StringAttr::get(context, kind == "state" ? "" : entry.getSymName()),
          StringAttr::get(context, kind), name};
}

Origins::Place Origins::ofArgument(func::FuncOp entry, unsigned index) {
  if (auto state =
          entry.getArgAttrOfType<FlatSymbolRefAttr>(index, nn::kStateAttr))
    return makePlace(entry, "state", state.getAttr());
  return makePlace(entry, "input",
                   entry.getArgAttrOfType<StringAttr>(index, nn::kInputAttr));
}

Origins::Place Origins::ofResult(func::FuncOp entry, unsigned index) {
  return makePlace(
      entry, "output",
      entry.getResultAttrOfType<StringAttr>(index, nn::kOutputAttr));
}

DictionaryAttr Origins::findRow(const Place &place, std::optional<int64_t> dim,
                                StringAttr axis) const {
  for (Attribute attribute : rows) {
    auto row = cast<DictionaryAttr>(attribute);
    if (row.get("name") == place.name && row.get("kind") == place.kind &&
        row.get("entry") == place.entry && row.get("axis") == axis &&
        (!dim || row.getAs<IntegerAttr>("dim").getInt() == *dim))
      return row;
  }
  return {};
}

void Origins::add(const Place &place, int64_t dim, StringAttr axis,
                  const Twine &by) {
  if (!place.name || findRow(place, dim, axis))
    return;
  Builder builder(module.getContext());
  rows.push_back(builder.getDictionaryAttr(
      {builder.getNamedAttr("entry", place.entry),
       builder.getNamedAttr("kind", place.kind),
       builder.getNamedAttr("name", place.name),
       builder.getNamedAttr("dim", builder.getI64IntegerAttr(dim)),
       builder.getNamedAttr("axis", axis),
       builder.getNamedAttr("by", builder.getStringAttr(by))}));
}

StringRef Origins::find(const Place &place, int64_t dim,
                        StringAttr axis) const {
  DictionaryAttr row = findRow(place, dim, axis);
  return row ? row.getAs<StringAttr>("by").getValue() : StringRef();
}

StringRef Origins::find(const Place &place, StringAttr axis) const {
  DictionaryAttr row = findRow(place, std::nullopt, axis);
  return row ? row.getAs<StringAttr>("by").getValue() : StringRef();
}

StringRef Origins::findMoment(StringAttr state, StringAttr axis) const {
  for (Attribute attribute : rows) {
    auto row = cast<DictionaryAttr>(attribute);
    if (row.get("axis") == axis &&
        row.getAs<StringAttr>("name").getValue().split('/').second == state)
      return row.getAs<StringAttr>("by").getValue();
  }
  return "";
}

StringRef Origins::findInput(StringAttr axis) const {
  for (Attribute attribute : rows) {
    auto row = cast<DictionaryAttr>(attribute);
    if (row.get("axis") == axis &&
        row.getAs<StringAttr>("kind").getValue() == "input")
      return row.getAs<StringAttr>("name").getValue();
  }
  return "";
}

void Origins::store() {
  module->setAttr(dist::kOriginsAttr,
                  ArrayAttr::get(module.getContext(), rows));
}

std::string parallel::describeOp(Operation *op) {
  std::string text = op->getName().getStringRef().str(), names;
  op->getLoc()->walk([&](Location inner) {
    if (auto name = dyn_cast<NameLoc>(inner))
      names += (names.empty() ? "" : ", ") + name.getName().str();
    return WalkResult::advance();
  });
  return names.empty() ? text : text + " '" + names + "'";
}
