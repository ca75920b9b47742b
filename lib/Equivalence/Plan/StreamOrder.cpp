// Streams as queues: each goes on until it meets a wait for what is not
// recorded yet.

#include "StreamOrder.h"

#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/MapVector.h"

using namespace mlir;
using namespace accel;
using namespace accel::equivalence;

FailureOr<std::vector<PlannedStep>> accel::equivalence::orderCommands(
    plan::SegmentOp segment,
    const llvm::DenseMap<StringAttr, plan::BodyOp> &bodies) {
  struct Queue {
    std::vector<PlannedStep> steps;
    size_t next = 0;
  };
  llvm::MapVector<StringRef, Queue> queues;
  for (auto run : segment.getOps<plan::RunOp>()) {
    plan::BodyOp body = bodies.lookup(run.getTaskAttr().getAttr());
    if (!body)
      return run.emitOpError() << "names no body: " << run.getTaskAttr();
    body.walk([&](plan::CommandOpInterface command) {
      queues[command.getStreamName()].steps.push_back({command, run});
    });
  }
  std::vector<PlannedStep> order;
  llvm::DenseSet<std::pair<Operation *, StringAttr>> recorded;
  // The run of the segment that records what a wait is for; null if an earlier
  // one of the entry has.
  auto findRecorder = [&](plan::WaitOp wait, plan::RunOp run) {
    if (!wait.getBodyAttr())
      return run;
    plan::RunOp found;
    for (auto each : segment.getOps<plan::RunOp>()) {
      if (each == run)
        break;
      if (each.getTaskAttr() == wait.getBodyAttr() &&
          each.getOffset() == run.getOffset())
        found = each;
    }
    return found;
  };
  for (bool moved = true; moved;) {
    moved = false;
    for (auto &[name, queue] : queues)
      for (; queue.next < queue.steps.size(); ++queue.next, moved = true) {
        PlannedStep step = queue.steps[queue.next];
        Operation *op = step.command;
        if (auto wait = dyn_cast<plan::WaitOp>(op)) {
          plan::RunOp recorder = findRecorder(wait, step.run);
          if (recorder && !recorded.contains({recorder, wait.getEventAttr()}))
            break;
        }
        if (auto record = dyn_cast<plan::RecordOp>(op))
          recorded.insert({step.run, record.getEventAttr()});
        order.push_back(step);
      }
  }
  for (auto &[name, queue] : queues)
    if (queue.next < queue.steps.size())
      return queue.steps[queue.next].command.emitOpError()
             << "waits for an event that no run before it records";
  return order;
}
