// The table of phases, and how a module is marked with the one it has reached.

#include "dialects/Accel/Accel.h"
#include "dialects/Accel/Established.h"

using namespace mlir;
using namespace accel;

static constexpr StringLiteral kNames[] = {"nn",      "train", "dist",
                                           "decided", "local", "plan"};

StringRef accel::stringifyPhase(Phase phase) {
  return kNames[static_cast<int>(phase)];
}

std::optional<Phase> accel::symbolizePhase(StringRef name) {
  const auto *found = llvm::find(kNames, name);
  if (found == std::end(kNames))
    return std::nullopt;
  return static_cast<Phase>(found - std::begin(kNames));
}

std::optional<Phase> accel::getPhase(ModuleOp module) {
  auto name = module->getAttrOfType<StringAttr>(kPhaseAttr);
  return name ? symbolizePhase(name.getValue()) : std::nullopt;
}

void accel::setPhase(ModuleOp module, Phase phase) {
  module->setAttr(kPhaseAttr,
                  StringAttr::get(module.getContext(), stringifyPhase(phase)));
  // It stands for all of its passes.
  module->removeAttr(kEstablishedAttr);
}
