// Asks each op's vector-Jacobian product what it does and reads.

#include "BackwardWork.h"

#include "Work.h"
#include "dialects/Interfaces/Cost.h"
#include "dialects/Interfaces/Differentiable.h"
#include "dialects/Interfaces/KernelSource.h"
#include "dialects/NN/Chunks.h"
#include "mlir/IR/Diagnostics.h"

using namespace mlir;
using namespace accel;
using namespace accel::cost;

static bool isFloat(Value value) {
  return isa<FloatType>(getElementTypeOrSelf(value.getType()));
}

bool cost::isTrained(nn::StateOp state) {
  return state && state.getRole() == nn::StateRole::parameter &&
         !state.getFrozen();
}

/// What depends on parameters that are trained, by ops that have gradients.
static llvm::DenseSet<Value> findActive(func::FuncOp forward) {
  llvm::DenseSet<Value> active;
  nn::ArgumentStates states(forward);
  for (BlockArgument argument : forward.getArguments())
    if (isTrained(states.find(argument)))
      active.insert(argument);
  for (Operation &op : forward.front().without_terminator())
    if (isa<DifferentiableOpInterface>(op) &&
        llvm::any_of(op.getOperands(),
                     [&](Value value) { return active.contains(value); }))
      for (Value result : op.getResults())
        if (isFloat(result))
          active.insert(result);
  return active;
}

/// Which value lies in memory so that `value` can be read.
static Value findSource(Value value) {
  while (Operation *op = value.getDefiningOp()) {
    bool isWider = isa<nn::BroadcastOp, nn::CastOp>(op) &&
                   getTensorBytes(op->getOperand(0).getType()) <
                       getTensorBytes(value.getType());
    if (!isWider && !isView(op))
      break;
    value = op->getOperand(0);
  }
  return value;
}

BackwardWork cost::measureBackward(func::FuncOp forward) {
  BackwardWork result;
  llvm::DenseSet<Value> active = findActive(forward), reached;
  for (Value value : forward.front().getTerminator()->getOperands())
    if (active.contains(value))
      reached.insert(value);
  // Products are built in a function that no one else sees.
  ScopedDiagnosticHandler quiet(forward.getContext(),
                                [](Diagnostic &) { return success(); });
  OpBuilder builder(forward.getContext());
  OwningOpRef<func::FuncOp> scratch = func::FuncOp::create(
      builder, forward.getLoc(), "backward", builder.getFunctionType({}, {}));
  for (Operation &op : llvm::reverse(forward.front().without_terminator())) {
    auto differentiable = dyn_cast<DifferentiableOpInterface>(op);
    if (!differentiable || llvm::none_of(op.getResults(), [&](Value value) {
          return reached.contains(value);
        }))
      continue;
    Block *block = builder.createBlock(&scratch->getBody());
    SmallVector<Value> gradients, operandGradients(op.getNumOperands());
    for (Value value : op.getResults())
      gradients.push_back(reached.contains(value)
                              ? block->addArgument(value.getType(), op.getLoc())
                              : Value());
    auto wanted = llvm::map_to_vector(
        op.getOperands(), [&](Value value) { return active.contains(value); });
    if (failed(differentiable.buildVjp(builder, gradients, wanted,
                                       operandGradients)))
      continue;
    // Rules may build more than is asked for.
    llvm::DenseSet<Value> live;
    for (auto [operand, gradient, asked] :
         llvm::zip_equal(op.getOperands(), operandGradients, wanted))
      if (gradient && asked) {
        reached.insert(operand);
        live.insert(gradient);
      }
    for (Operation &part : llvm::reverse(*block)) {
      if (llvm::none_of(part.getResults(),
                        [&](Value value) { return live.contains(value); }))
        continue;
      result.work[&op] += getWork(&part);
      for (Value operand : part.getOperands()) {
        live.insert(operand);
        if (Value source = findSource(operand);
            source.getParentBlock() == &forward.front() &&
            source.getDefiningOp())
          result.kept.insert(source);
      }
    }
  }
  return result;
}
