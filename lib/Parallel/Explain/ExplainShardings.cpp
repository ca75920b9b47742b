// Follows axes of inputs and outputs that no constraint put there back to one
// that did.

#include "Origins.h"
#include "dialects/NN/Entry.h"
#include "lib/Parallel/Passes.h"
#include "lib/Parallel/Propagation/Propagation.h"

using namespace mlir;

namespace accel::parallel {
#define GEN_PASS_DEF_EXPLAINSHARDINGSPASS
#include "lib/Parallel/Passes.h.inc"

namespace {
/// One entry.
class Tracer {
public:
  Tracer(func::FuncOp entry, const Propagation &table, Origins &origins)
      : entry(entry), table(table), origins(origins) {}

  void explain(Value value, const Origins::Place &place);

private:
  /// Who put `axis` on `value`.
  std::string trace(Value value, StringAttr axis);

  func::FuncOp entry;
  const Propagation &table;
  Origins &origins;
};
} // namespace

/// The op that put an axis on a value; null if it is not there.
static Operation *findOrigin(const Propagation &table, Value value,
                             StringAttr axis) {
  for (const Propagation::Dim &dim : table.lookup(value).dims)
    for (auto [each, origin] : llvm::zip(dim.axes, dim.origins))
      if (each == axis)
        return origin;
  return nullptr;
}

std::string Tracer::trace(Value value, StringAttr axis) {
  llvm::SmallPtrSet<Operation *, 8> seen;
  Operation *last = nullptr;
  unsigned count = 0;
  for (Operation *op = findOrigin(table, value, axis);
       op && seen.insert(op).second;) {
    if (auto constraint = dyn_cast<dist::ConstraintOp>(op)) {
      auto argument = dyn_cast<BlockArgument>(constraint.getInput());
      if (!argument)
        break;
      Origins::Place place =
          Origins::ofArgument(entry, argument.getArgNumber());
      if (!place.name)
        break;
      std::string text =
          (place.kind.getValue() + " '" + place.name.getValue() + "'").str();
      if (count)
        text += (", through " + Twine(count) + (count == 1 ? " op" : " ops") +
                 ", the nearest " + describeOp(last))
                    .str();
      return text;
    }
    if (!last)
      last = op;
    ++count;
    // What the op got it from has it by another.
    Operation *next = nullptr;
    for (ValueRange values :
         {ValueRange(op->getOperands()), ValueRange(op->getResults())})
      for (Value each : values)
        if (Operation *origin = findOrigin(table, each, axis);
            !next && origin && origin != op)
          next = origin;
    op = next;
  }
  return last ? "propagation, through " + describeOp(last) : "propagation";
}

void Tracer::explain(Value value, const Origins::Place &place) {
  if (!place.name)
    return;
  for (auto [index, dim] : llvm::enumerate(table.lookup(value).dims))
    for (StringAttr axis : dim.axes)
      if (origins.find(place, index, axis).empty())
        origins.add(place, index, axis, trace(value, axis));
}

namespace {
struct ExplainShardingsPass
    : impl::ExplainShardingsPassBase<ExplainShardingsPass> {
  using Base::Base;

  void runInOrder() override {
    markAllAnalysesPreserved();
    Origins origins(getOperation());
    auto entries = nn::requireEntries(getOperation());
    if (failed(entries))
      return signalPassFailure();
    for (func::FuncOp entry : *entries) {
      Tracer tracer(entry, getChildAnalysis<Propagation>(entry), origins);
      for (BlockArgument argument : entry.getArguments())
        tracer.explain(argument,
                       Origins::ofArgument(entry, argument.getArgNumber()));
      for (OpOperand &operand : entry.front().getTerminator()->getOpOperands())
        tracer.explain(operand.get(),
                       Origins::ofResult(entry, operand.getOperandNumber()));
    }
    origins.store();
  }
};
} // namespace
} // namespace accel::parallel
