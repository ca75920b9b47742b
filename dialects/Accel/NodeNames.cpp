// Walks a location.

#include "dialects/Accel/NodeNames.h"

#include "dialects/Accel/ValueName.h"

using namespace mlir;
using namespace accel;

/// `m.transformer.h.1` and all that it lies in.
static void addPath(StringRef path, function_ref<void(StringRef)> add) {
  for (; !path.empty(); path = path.contains('.') ? path.rsplit('.').first : "")
    add(path);
}

void accel::forEachName(Location location, function_ref<void(StringRef)> node,
                        function_ref<void(StringRef)> module) {
  if (StringAttr written = getValueName(location)) {
    node(written);
  } else if (auto name = dyn_cast<NameLoc>(location)) {
    StringRef text = name.getName();
    node(text);
    if (!text.consume_front("/"))
      return;
    std::string dotted = text.str();
    std::replace(dotted.begin(), dotted.end(), '/', '.');
    if (StringRef(dotted).contains('.'))
      addPath(StringRef(dotted).rsplit('.').first, module);
  } else if (auto fused = dyn_cast<FusedLoc>(location)) {
    if (auto path = dyn_cast_or_null<StringAttr>(fused.getMetadata()))
      addPath(path, module);
    for (Location each : fused.getLocations())
      forEachName(each, node, module);
  }
}

SmallVector<std::string, 4> accel::listModules(Location location) {
  SmallVector<std::string, 4> modules;
  forEachName(
      location, [](StringRef) {},
      [&](StringRef module) {
        if (!llvm::is_contained(modules, module))
          modules.push_back(module.str());
      });
  llvm::stable_sort(modules, [](StringRef left, StringRef right) {
    return left.size() < right.size();
  });
  return modules;
}
