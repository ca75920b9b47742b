// The reverse sweep: what depends on the parameters is found forwards,
// gradients are handed from results to operands backwards.

#include "accel/Autodiff/Differentiate.h"

#include "lib/Autodiff/Rules/Rules.h"

using namespace mlir;
using namespace accel;
using namespace accel::autodiff;

namespace {
class Sweep {
public:
  Sweep(OpBuilder &builder, Value loss, ValueRange wrt)
      : builder(builder), loss(loss) {
    active.insert(wrt.begin(), wrt.end());
  }

  LogicalResult run();
  Value gradientOf(Value value) const { return gradients.lookup(value); }

private:
  LogicalResult visit(Operation *op);
  void add(Value value, Value gradient, Location loc);

  OpBuilder &builder;
  Value loss;
  /// Floats that depend on what is differentiated for.
  llvm::DenseSet<Value> active;
  /// Finished ones, and sums so far.
  llvm::DenseMap<Value, Value> gradients;
};
} // namespace

void Sweep::add(Value value, Value gradient, Location loc) {
  Value &sum = gradients[value];
  sum = sum ? Value(nn::AddOp::create(builder, loc, sum, gradient)) : gradient;
}

/// Hands the gradients of `op`'s results on to its operands.
LogicalResult Sweep::visit(Operation *op) {
  SmallVector<Value> results;
  for (Value result : op->getResults())
    results.push_back(gradients.lookup(result));
  SmallVector<bool> wanted;
  for (Value operand : op->getOperands())
    wanted.push_back(active.contains(operand));
  if (llvm::none_of(results, [](Value value) { return bool(value); }) ||
      !llvm::is_contained(wanted, true))
    return success();
  auto rule = dyn_cast<DifferentiableOpInterface>(op);
  if (!rule)
    return op->emitError()
           << "'" << op->getName()
           << "' cannot be differentiated, and the loss depends "
              "on a trained parameter through it";
  SmallVector<Value> operands(op->getNumOperands());
  if (failed(rule.buildVjp(builder, results, wanted, operands)))
    return failure();
  for (auto [operand, gradient] : llvm::zip(op->getOperands(), operands))
    if (gradient)
      add(operand, gradient, gradientLoc(op));
  return success();
}

LogicalResult Sweep::run() {
  Operation *last = loss.getDefiningOp();
  Location loc = loss.getLoc();
  Emit emit{builder, loc};
  gradients[loss] = emit.splat(1, loss);
  if (!last)
    return success(); // the loss is an input
  SmallVector<Operation *> ways;
  for (Operation &op : *last->getBlock()) {
    if (llvm::any_of(op.getOperands(),
                     [&](Value operand) { return active.contains(operand); })) {
      ways.push_back(&op);
      for (Value result : op.getResults())
        if (isFloat(result))
          active.insert(result);
    }
    if (&op == last)
      break;
  }
  for (Operation *op : llvm::reverse(ways))
    if (failed(visit(op)))
      return failure();
  return success();
}

FailureOr<SmallVector<Value>>
autodiff::differentiate(OpBuilder &builder, Value loss, ValueRange wrt) {
  Sweep sweep(builder, loss, wrt);
  if (failed(sweep.run()))
    return failure();
  return llvm::map_to_vector(
      wrt, [&](Value value) { return sweep.gradientOf(value); });
}

void autodiff::registerDifferentiableModels(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, nn::NNDialect *) {
    attachElementwiseRules(context);
    attachLinearRules(context);
    attachNormRules(context);
    attachAttentionRules(context);
    attachShapeRules(context);
    attachReductionRules(context);
    attachLossRules(context);
  });
}
