// Follows values from cuts and states to what is made of them. One sweep.

#include "dialects/NN/Chunks.h"

#include "mlir/IR/SymbolTable.h"

using namespace mlir;
using namespace accel;
using namespace accel::nn;

StateOp nn::findState(BlockArgument argument) {
  auto function = cast<func::FuncOp>(argument.getOwner()->getParentOp());
  auto name = function.getArgAttrOfType<FlatSymbolRefAttr>(
      argument.getArgNumber(), kStateAttr);
  return name ? SymbolTable::lookupNearestSymbolFrom<StateOp>(function, name)
              : nullptr;
}

ArgumentStates::ArgumentStates(func::FuncOp function)
    : states(function.getNumArguments()) {
  llvm::DenseMap<Attribute, StateOp> named;
  for (auto state : function->getParentOfType<ModuleOp>().getOps<StateOp>())
    named[state.getSymNameAttr()] = state;
  for (auto [argument, state] : llvm::enumerate(states))
    if (auto name =
            function.getArgAttrOfType<FlatSymbolRefAttr>(argument, kStateAttr))
      state = named.lookup(name.getAttr());
}

FailureOr<Chunks> Chunks::compute(func::FuncOp entry) {
  Chunks result;
  auto put = [&](Value value, int64_t chunk) {
    result.chunks[value] = chunk;
    result.chunkCount = std::max(result.chunkCount, chunk + 1);
  };
  ArgumentStates states(entry);
  for (BlockArgument argument : entry.getArguments())
    if (auto owner = states.findOwner(argument))
      put(argument, *owner);
  for (Operation &op : entry.front().without_terminator()) {
    std::optional<int64_t> chunk;
    for (Value operand : op.getOperands()) {
      std::optional<int64_t> found = result.find(operand);
      if (found && chunk && *found != *chunk)
        return op.emitError()
               << "expected operands of one chunk of the pipeline, found some "
                  "of chunk "
               << *chunk << " and some of chunk " << *found
               << ": what goes from one to the other takes an nn.cut";
      chunk = found ? found : chunk;
    }
    if (auto cut = dyn_cast<CutOp>(op)) {
      if (chunk && *chunk != int64_t(cut.getFrom()))
        return op.emitError() << "expected a value of chunk " << cut.getFrom()
                              << ", found one of chunk " << *chunk;
      chunk = cut.getTo();
    }
    if (chunk)
      for (Value value : op.getResults())
        put(value, *chunk);
  }
  return result;
}
