// Puts a rank's coordinates into its ops.

#include "lib/Evaluate/RankOp.h"

#include "dialects/NN/Causal.h"
#include "dialects/NN/NN.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace accel;
using namespace accel::evaluate;

template <typename AttentionLike>
static FailureOr<Operation *> moveRows(AttentionLike op, MeshPoint point) {
  DictionaryAttr steps = *op.getRowSteps();
  for (NamedAttribute step : steps)
    if (!point.getAxisSize(step.getName().getValue()))
      return op.emitOpError()
             << "expected an axis of the mesh in 'row_steps', found '"
             << step.getName().getValue() << "'";
  auto copy = cast<AttentionLike>(op->clone());
  resolveRowSteps(copy,
                  [&](StringRef axis) { return point.getCoordinate(axis); });
  return copy.getOperation();
}

FailureOr<RankOp> RankOp::get(Operation *op, MeshPoint point) {
  FailureOr<Operation *> here =
      llvm::TypeSwitch<Operation *, FailureOr<Operation *>>(op)
          .Case<nn::AttentionOp, nn::AttentionGradOp>([&](auto attention) {
            return attention.getRowSteps() ? moveRows(attention, point)
                                           : FailureOr<Operation *>(op);
          })
          .Default([](Operation *op) { return FailureOr<Operation *>(op); });
  if (failed(here))
    return failure();
  return RankOp(*here, *here != op);
}
