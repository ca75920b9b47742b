// Reads and writes `nn.entry`.

#include "dialects/NN/Entry.h"

using namespace mlir;
using namespace accel;

std::optional<nn::EntryKind> nn::getEntryKind(func::FuncOp function) {
  Attribute entry = function->getAttr(kEntryAttr);
  if (!entry)
    return std::nullopt;
  auto kind = dyn_cast<EntryKindAttr>(entry);
  return kind ? kind.getValue() : EntryKind::forward;
}

void nn::setEntryKind(func::FuncOp function, EntryKind kind) {
  MLIRContext *context = function.getContext();
  if (kind == EntryKind::forward)
    function->setAttr(kEntryAttr, UnitAttr::get(context));
  else
    function->setAttr(kEntryAttr, EntryKindAttr::get(context, kind));
}

SmallVector<func::FuncOp> nn::getEntries(ModuleOp module) {
  return llvm::filter_to_vector(
      module.getOps<func::FuncOp>(),
      [](func::FuncOp function) { return function->hasAttr(kEntryAttr); });
}

FailureOr<SmallVector<func::FuncOp>> nn::requireEntries(ModuleOp module) {
  SmallVector<func::FuncOp> entries = getEntries(module);
  for (func::FuncOp entry : entries)
    if (entry.isExternal())
      return entry.emitError()
             << "expected an entry with a body, found a declaration: phase "
                "'local' has dealt it out to tasks";
  return entries;
}

LogicalResult nn::requireTypes(func::FuncOp function, bool placed) {
  auto check = [&](Location location, TypeRange types) -> LogicalResult {
    for (Type type : types)
      if (auto tensor = dyn_cast<RankedTensorType>(type);
          tensor && bool(tensor.getEncoding()) != placed)
        return emitError(location)
               << "expected tensors " << (placed ? "with" : "without")
               << " shardings, found " << tensor;
    return success();
  };
  if (failed(check(function.getLoc(), function.getArgumentTypes())))
    return failure();
  WalkResult walked = function.walk([&](Operation *op) {
    return WalkResult(check(op->getLoc(), op->getResultTypes()));
  });
  return failure(walked.wasInterrupted());
}

func::FuncOp nn::findEntry(ModuleOp module, EntryKind kind) {
  for (auto function : module.getOps<func::FuncOp>())
    if (getEntryKind(function) == kind)
      return function;
  return {};
}

llvm::DenseSet<Attribute> nn::getResiduals(ModuleOp module) {
  llvm::DenseSet<Attribute> residuals;
  for (auto state : module.getOps<StateOp>())
    if (state.getRole() == StateRole::residual)
      residuals.insert(FlatSymbolRefAttr::get(state.getSymNameAttr()));
  return residuals;
}
