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
