// Writes points of the frontier as dictionaries, and reads them.

#include "Frontier.h"

#include "Decision.h"
#include "dialects/Accel/Accel.h"
#include "mlir/IR/Builders.h"

using namespace mlir;
using namespace accel;
using namespace accel::cost;

static ArrayAttr findFrontier(ModuleOp module) {
  auto decisions = module->getAttrOfType<DictionaryAttr>(kDecisionsAttr);
  return decisions ? decisions.getAs<ArrayAttr>(kFrontierKey) : nullptr;
}

void cost::askForFrontier(ModuleOp module) {
  if (!isAskedForFrontier(module))
    tellFrontier(module, {});
}

bool cost::isAskedForFrontier(ModuleOp module) {
  return findFrontier(module) != nullptr;
}

void cost::tellFrontier(ModuleOp module, ArrayRef<FrontierPoint> points) {
  Builder builder(module.getContext());
  auto all =
      llvm::map_to_vector(points, [&](const FrontierPoint &point) -> Attribute {
        NamedAttrList attrs;
        attrs.set("bytes", builder.getI64IntegerAttr(point.bytes));
        attrs.set("more_work", builder.getF64FloatAttr(point.moreWork));
        attrs.set("time", builder.getF64FloatAttr(point.time));
        attrs.set("what", builder.getStringAttr(point.what));
        attrs.set("decided", builder.getStringAttr(point.decided));
        return attrs.getDictionary(module.getContext());
      });
  setDecision(module, kFrontierKey, builder.getArrayAttr(all));
}

FailureOr<std::vector<FrontierPoint>> cost::readFrontier(ModuleOp module) {
  std::vector<FrontierPoint> points;
  ArrayAttr told = findFrontier(module);
  if (!told)
    return points;
  for (Attribute each : told) {
    auto attrs = dyn_cast<DictionaryAttr>(each);
    auto bytes = attrs ? attrs.getAs<IntegerAttr>("bytes") : nullptr;
    auto work = attrs ? attrs.getAs<FloatAttr>("more_work") : nullptr;
    auto time = attrs ? attrs.getAs<FloatAttr>("time") : nullptr;
    auto what = attrs ? attrs.getAs<StringAttr>("what") : nullptr;
    auto decided = attrs ? attrs.getAs<StringAttr>("decided") : nullptr;
    if (!bytes || !work || !time || !what || !decided || attrs.size() != 5)
      return module.emitError()
             << "expected in '" << kFrontierKey << "' of '" << kDecisionsAttr
             << "' 'bytes', 'more_work', 'time', 'what' and 'decided', found "
             << each;
    points.push_back({bytes.getInt(), work.getValueAsDouble(),
                      time.getValueAsDouble(), what.str(), decided.str()});
  }
  return points;
}
