// Which states a step trains.

#include "lib/Autodiff/BuildStep.h"

#include "lib/Onnx/NamePatterns.h"

using namespace mlir;
using namespace accel;
using namespace accel::autodiff;

static SmallVector<StringRef> namesOf(nn::StateOp state) {
  SmallVector<StringRef> names{state.getSymName()};
  if (ArrayAttr aliases = state.getAliasesAttr())
    llvm::append_range(names, aliases.getAsValueRange<StringAttr>());
  return names;
}

FailureOr<SmallVector<Trained>>
autodiff::chooseTrained(ModuleOp module, func::FuncOp entry,
                        ArrayRef<std::string> trainable,
                        ArrayRef<std::string> frozen) {
  FailureOr<onnxio::NamePatterns> patterns =
      onnxio::NamePatterns::compile(trainable, frozen, entry.getLoc());
  if (failed(patterns))
    return failure();
  SmallVector<StringRef> all;
  for (auto state : module.getOps<nn::StateOp>()) {
    SmallVector<StringRef> names = namesOf(state);
    llvm::append_range(all, names);
    std::optional<bool> decided = patterns->decide(names);
    if (decided)
      state.setFrozen(!*decided);
    if (decided == true && state.getRole() != nn::StateRole::parameter)
      return state.emitError() << "expected --trainable to match parameters, "
                                  "found state '"
                               << state.getSymName() << "' of role "
                               << nn::stringifyStateRole(state.getRole());
  }
  if (failed(patterns->checkAllMatched(all, entry.getLoc())))
    return failure();

  SmallVector<Trained> trained;
  SymbolTable symbols(module);
  for (BlockArgument argument : entry.getArguments()) {
    auto symbol = entry.getArgAttrOfType<FlatSymbolRefAttr>(
        argument.getArgNumber(), nn::kStateAttr);
    if (!symbol)
      continue;
    auto state = symbols.lookup<nn::StateOp>(symbol.getAttr());
    if (state.getFrozen() || state.getRole() != nn::StateRole::parameter)
      continue;
    Type element = getElementTypeOrSelf(argument.getType());
    if (!element.isF32() && !element.isF64())
      return state.emitError()
             << "expected a parameter of f32 or f64 to train, found '"
             << state.getSymName() << "' of type " << argument.getType()
             << ": export the model in float32 (model.float()) and use "
                "--mixed-precision=bf16, or leave it as it is by "
                "--frozen=PATTERN";
    trained.push_back({state, argument});
  }
  if (trained.empty())
    return entry.emitError() << "expected a parameter to train, found none";
  return trained;
}
