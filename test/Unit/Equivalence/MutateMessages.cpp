// Changes of what stages send each other, and when.

#include "PlanMutator.h"

using namespace mlir;
using namespace accel;
using namespace accel::test;

static bool isMessage(Operation *op) {
  return isa<plan::SendOp, plan::RecvOp>(op);
}

/// Exchanges an attribute of two ops.
static void exchange(Operation *one, Operation *other, StringRef name) {
  Attribute kept = one->getAttr(name);
  one->setAttr(name, other->getAttr(name));
  other->setAttr(name, kept);
}

bool PlanMutator::changeMessage() {
  SmallVector<Operation *> messages;
  module.walk([&](Operation *op) {
    if (isMessage(op))
      messages.push_back(op);
  });
  if (messages.empty())
    return false;
  Operation *op = pick(ArrayRef(messages));
  Builder builder(module.getContext());
  // Another one of the same end.
  SmallVector<Operation *> others;
  for (Operation *other : messages)
    if (other != op && other->getName() == op->getName() &&
        other->getParentOfType<plan::ProgramOp>() ==
            op->getParentOfType<plan::ProgramOp>())
      others.push_back(other);
  auto delta = op->getAttrOfType<IntegerAttr>("delta");
  switch (random() % 5) {
  case 0:
    if (!others.empty())
      exchange(op, pick(ArrayRef(others)), "tag");
    return !others.empty();
  case 1:
    if (!others.empty())
      exchange(op, pick(ArrayRef(others)), "view");
    return !others.empty();
  case 2:
    op->setAttr("delta", builder.getI64IntegerAttr(-delta.getInt()));
    return true;
  case 3:
    op->erase();
    return true;
  default: // in another group
    if (!others.empty())
      op->moveBefore(pick(ArrayRef(others)));
    return !others.empty();
  }
}

bool PlanMutator::changeMessageRun() {
  SmallVector<plan::RunOp> runs;
  for (auto run : all<plan::RunOp>()) {
    auto body =
        run->getParentOfType<plan::ProgramOp>().lookupSymbol<plan::BodyOp>(
            run.getTask());
    bool exchanges = false;
    body.walk([&](Operation *op) { exchanges |= isMessage(op); });
    if (exchanges)
      runs.push_back(run);
  }
  if (runs.empty())
    return false;
  plan::RunOp run = pick(ArrayRef(runs));
  switch (random() % 4) {
  case 0:
    run.setOffset(run.getOffset() + (flip() ? 1 : -1));
    return true;
  case 1:
    run.erase();
    return true;
  case 2: // on another micro-batch of the same body
    for (plan::RunOp other : runs)
      if (other != run && other.getTaskAttr() == run.getTaskAttr() &&
          other.getTurn() == run.getTurn()) {
        exchange(run, other, "offset");
        return true;
      }
    return false;
  default: { // at another place
    plan::RunOp other = pick(ArrayRef(all<plan::RunOp>()));
    if (other->getParentOfType<plan::ProgramOp>() !=
            run->getParentOfType<plan::ProgramOp>() ||
        other.getTurn() != run.getTurn() || other == run)
      return false;
    run->moveBefore(other);
    return true;
  }
  }
}
