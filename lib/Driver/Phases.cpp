// The table of phases, and how a module is marked with the one it has reached.

#include "Phases.h"

using namespace mlir;
using namespace accel::driver;

static constexpr StringLiteral kNames[] = {"nn",      "train", "dist",
                                           "decided", "local", "plan"};

StringRef accel::driver::stringifyPhase(Phase phase) {
  return kNames[static_cast<int>(phase)];
}

std::optional<Phase> accel::driver::symbolizePhase(StringRef name) {
  const auto *found = llvm::find(kNames, name);
  if (found == std::end(kNames))
    return std::nullopt;
  return static_cast<Phase>(found - std::begin(kNames));
}

FailureOr<std::optional<Phase>> accel::driver::getPhase(ModuleOp module) {
  Attribute attribute = module->getDiscardableAttr(kPhaseAttr);
  if (!attribute)
    return std::optional<Phase>();
  auto name = dyn_cast<StringAttr>(attribute);
  std::optional<Phase> phase =
      name ? symbolizePhase(name.getValue()) : std::nullopt;
  if (!phase) {
    module.emitError() << "expected '" << kPhaseAttr
                       << "' to be one of nn, train, dist, decided, local and "
                          "plan, found "
                       << attribute;
    return failure();
  }
  return phase;
}
