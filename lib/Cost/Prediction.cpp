// Writes predicted arenas as dictionaries, and reads them.

#include "Prediction.h"

#include "Decision.h"
#include "dialects/Accel/Accel.h"
#include "mlir/IR/Builders.h"

using namespace mlir;
using namespace accel;
using namespace accel::cost;

static ArrayAttr findPredicted(ModuleOp module) {
  auto decisions = module->getAttrOfType<DictionaryAttr>(kDecisionsAttr);
  return decisions ? decisions.getAs<ArrayAttr>(kPredictedKey) : nullptr;
}

void cost::askForPrediction(ModuleOp module) {
  if (!isAskedForPrediction(module))
    tellPrediction(module, {});
}

bool cost::isAskedForPrediction(ModuleOp module) {
  return findPredicted(module) != nullptr;
}

void cost::tellPrediction(ModuleOp module, ArrayRef<PredictedArena> arenas) {
  Builder builder(module.getContext());
  auto all = llvm::map_to_vector(
      arenas, [&](const PredictedArena &arena) -> Attribute {
        NamedAttrList attrs;
        attrs.set("stage", builder.getI64IntegerAttr(arena.stage));
        attrs.set("space", builder.getStringAttr(arena.space));
        attrs.set("bytes", builder.getI64IntegerAttr(arena.bytes));
        return attrs.getDictionary(module.getContext());
      });
  setDecision(module, kPredictedKey, builder.getArrayAttr(all));
}

FailureOr<std::vector<PredictedArena>> cost::readPrediction(ModuleOp module) {
  std::vector<PredictedArena> arenas;
  ArrayAttr predicted = findPredicted(module);
  if (!predicted)
    return arenas;
  for (Attribute each : predicted) {
    auto attrs = dyn_cast<DictionaryAttr>(each);
    auto stage = attrs ? attrs.getAs<IntegerAttr>("stage") : nullptr;
    auto space = attrs ? attrs.getAs<StringAttr>("space") : nullptr;
    auto bytes = attrs ? attrs.getAs<IntegerAttr>("bytes") : nullptr;
    if (!stage || !space || !bytes || attrs.size() != 3)
      return module.emitError()
             << "expected in '" << kPredictedKey << "' of '" << kDecisionsAttr
             << "' a 'stage', a 'space' and its 'bytes', found " << each;
    arenas.push_back({stage.getInt(), space.str(), bytes.getInt()});
  }
  return arenas;
}

double cost::getDifferencePercent(int64_t predicted, int64_t planned) {
  return planned == 0 ? (predicted == 0 ? 0 : 100)
                      : 100.0 * double(predicted - planned) / double(planned);
}
