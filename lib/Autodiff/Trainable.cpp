// Which states a step trains.

#include "lib/Autodiff/BuildStep.h"

#include "lib/Onnx/NamePatterns.h"

using namespace mlir;
using namespace accel;
using namespace accel::autodiff;

SmallVector<StringRef> autodiff::getNames(nn::StateOp state) {
  SmallVector<StringRef> names{state.getSymName()};
  if (ArrayAttr aliases = state.getAliasesAttr())
    llvm::append_range(names, aliases.getAsValueRange<StringAttr>());
  return names;
}

/// A stack is frozen as its members are.
static LogicalResult settleStacks(ModuleOp module) {
  SymbolTable symbols(module);
  for (auto stack : module.getOps<nn::StateOp>()) {
    SmallVector<nn::StateOp> members =
        llvm::map_to_vector(stack.getMembers(), [&](FlatSymbolRefAttr name) {
          return symbols.lookup<nn::StateOp>(name.getAttr());
        });
    if (members.empty())
      continue;
    for (nn::StateOp member : members)
      if (member.getFrozen() != members.front().getFrozen())
        return member.emitError()
               << "expected '" << member.getSymName()
               << "' to be trained where '" << members.front().getSymName()
               << "' is, because '" << stack.getSymName()
               << "' holds both: compile from the model, where patterns are "
                  "known before parameters are stacked";
    stack.setFrozen(members.front().getFrozen());
  }
  return success();
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
  nn::StateOp other; // matched by --trainable, and no parameter
  bool matchesParameter = false;
  for (auto state : module.getOps<nn::StateOp>()) {
    SmallVector<StringRef> names = getNames(state);
    llvm::append_range(all, names);
    std::optional<bool> decided = patterns->decide(names);
    if (!decided)
      continue;
    if (state.getRole() == nn::StateRole::parameter) {
      state.setFrozen(!*decided);
      matchesParameter |= *decided;
    } else if (*decided && !other)
      other = state;
  }
  if (other && !matchesParameter)
    return other.emitError() << "expected --trainable to match parameters, "
                                "found state '"
                             << other.getSymName() << "' of role "
                             << nn::stringifyStateRole(other.getRole());
  if (failed(patterns->checkAllMatched(all, entry.getLoc())) ||
      failed(settleStacks(module)))
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
    if (!element.isF32() && !element.isF64() && !element.isF16() &&
        !element.isBF16())
      return state.emitError()
             << "expected a parameter of f64, f32, bf16 or f16 to train, found "
                "'"
             << state.getSymName() << "' of type " << argument.getType()
             << ": leave it as it is by --frozen=PATTERN";
    trained.push_back({state, argument, {}});
  }
  if (trained.empty())
    return entry.emitError() << "expected a parameter to train, found none";
  return trained;
}
