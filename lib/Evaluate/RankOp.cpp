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
  for (StringRef name : {"row_steps", "column_steps"})
    if (auto steps = op->template getAttrOfType<DictionaryAttr>(name))
      for (NamedAttribute step : steps)
        if (!point.getAxisSize(step.getName().getValue()))
          return op.emitOpError()
                 << "expected an axis of the mesh in '" << name << "', found '"
                 << step.getName().getValue() << "'";
  auto copy = cast<AttentionLike>(op->clone());
  resolveSteps(copy, [&](StringRef axis) {
    return AxisPlace{point.getCoordinate(axis), *point.getAxisSize(axis)};
  });
  return copy.getOperation();
}

FailureOr<RankOp> RankOp::get(Operation *op, MeshPoint point) {
  FailureOr<Operation *> here =
      llvm::TypeSwitch<Operation *, FailureOr<Operation *>>(op)
          .Case<nn::AttentionOp, nn::AttentionGradOp>([&](auto attention) {
            return hasSteps(attention) ? moveRows(attention, point)
                                       : FailureOr<Operation *>(op);
          })
          .Default([](Operation *op) { return FailureOr<Operation *>(op); });
  if (failed(here))
    return failure();
  return RankOp(*here, *here != op);
}
