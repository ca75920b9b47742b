// Evaluation of constants as the import goes, node by node: what shape
// arithmetic needs to vanish, and attention masks to be recognisable.

#include "GraphImporter.h"

#include "dialects/Interfaces/Evaluate.h"
#include "dialects/NN/NN.h"

using namespace mlir;
using namespace accel;
using namespace accel::import;

/// Results with more elements than this stay computed: the file and the memory
/// of the compiler would hold them.
static constexpr int64_t kLargestConstant = int64_t(1) << 24;

/// The constant's value. States are arguments, so they are never meant.
static DenseElementsAttr knownValue(Value value) {
  auto constant = value.getDefiningOp<nn::ConstantOp>();
  return constant ? dyn_cast<DenseElementsAttr>(constant.getValue())
                  : DenseElementsAttr();
}

/// The value of `op` if it moves the elements of a splat.
static DenseElementsAttr foldSplatMove(Operation *op) {
  if (!isa<nn::BroadcastOp, nn::ReshapeOp, nn::TransposeOp, nn::SliceOp>(op))
    return nullptr;
  DenseElementsAttr value = knownValue(op->getOperand(0));
  auto type = cast<RankedTensorType>(op->getResult(0).getType());
  if (!value || !value.isSplat() || type.getNumElements() == 0)
    return nullptr;
  return value.resizeSplat(type);
}

static DenseElementsAttr foldByEvaluation(Operation *op) {
  auto type = cast<RankedTensorType>(op->getResult(0).getType());
  if (!isa<EvaluateOpInterface>(op) ||
      type.getNumElements() > kLargestConstant ||
      !llvm::all_of(op->getOperands(),
                    [](Value value) { return bool(knownValue(value)); }))
    return nullptr;
  SmallVector<Tensor> operands, results;
  for (Value operand : op->getOperands()) {
    FailureOr<Tensor> tensor = Tensor::fromElements(knownValue(operand));
    if (failed(tensor))
      return nullptr;
    operands.push_back(std::move(*tensor));
  }
  if (failed(evaluateOp(op, operands, EvaluationMode::OwnTypes, results)))
    return nullptr;
  return results[0].toElements(type);
}

Value GraphImporter::foldOrKeep(Operation *op) {
  Value result = op->getResult(0);
  SmallVector<OpFoldResult, 1> folded;
  if (succeeded(op->fold(folded)) && folded.size() == 1)
    if (auto value = dyn_cast<Value>(folded[0])) {
      if (value != result)
        op->erase();
      return value;
    }
  DenseElementsAttr known = foldSplatMove(op);
  if (!known)
    known = foldByEvaluation(op);
  if (!known)
    return result;
  Value constant = nn::ConstantOp::create(builder, op->getLoc(), known);
  op->erase();
  return constant;
}
