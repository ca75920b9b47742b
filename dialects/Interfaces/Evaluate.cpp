// Evaluation of one op through its interface, with the checks that no model has
// to repeat.

#include "dialects/Interfaces/Evaluate.h"

#include "mlir/IR/BuiltinTypes.h"

using namespace mlir;
using namespace accel;

#include "dialects/Interfaces/Evaluate.cpp.inc"

static LogicalResult checkTensor(Operation *op, const Tensor &tensor, Type type,
                                 StringRef what, unsigned number) {
  auto ranked = dyn_cast<RankedTensorType>(type);
  if (ranked && tensor.hasType(ranked))
    return success();
  InFlightDiagnostic error = op->emitOpError()
                             << "expected " << what << " " << number
                             << " of type " << type << ", found a tensor ";
  if (!tensor)
    return error << "without value";
  return error << "of " << tensor.getElementType() << " [" << tensor.getShape()
               << "]";
}

LogicalResult accel::evaluateOp(Operation *op, ArrayRef<Tensor> operands,
                                EvaluationMode mode,
                                SmallVectorImpl<Tensor> &results) {
  auto evaluable = dyn_cast<EvaluateOpInterface>(op);
  if (!evaluable)
    return op->emitOpError() << "has no meaning to the evaluator";
  if (operands.size() != op->getNumOperands())
    return op->emitOpError() << "expected " << op->getNumOperands()
                             << " operands, found " << operands.size();
  for (auto [index, tensor] : llvm::enumerate(operands))
    if (failed(checkTensor(op, tensor, op->getOperand(index).getType(),
                           "operand", index)))
      return failure();
  size_t first = results.size();
  if (failed(evaluable.evaluate(operands, results)))
    return failure();
  assert(results.size() - first == op->getNumResults() &&
         "an Evaluate model must append one tensor per result");
  for (size_t index = first; index < results.size(); ++index) {
    if (failed(checkTensor(op, results[index],
                           op->getResult(index - first).getType(), "result",
                           index - first)))
      return failure();
    if (mode == EvaluationMode::OwnTypes)
      results[index].roundToElementType();
  }
  return success();
}
