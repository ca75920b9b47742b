// Streams as queues: each goes on until it meets a wait for what is not
// recorded yet.

#include "StreamOrder.h"

#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/MapVector.h"

using namespace mlir;
using namespace accel;
using namespace accel::equivalence;

FailureOr<std::vector<plan::CommandOpInterface>>
accel::equivalence::orderCommands(plan::BodyOp body) {
  struct Queue {
    std::vector<plan::CommandOpInterface> commands;
    size_t next = 0;
  };
  llvm::MapVector<StringRef, Queue> queues;
  body.walk([&](plan::CommandOpInterface command) {
    queues[command.getStreamName()].commands.push_back(command);
  });
  std::vector<plan::CommandOpInterface> order;
  llvm::DenseSet<StringAttr> recorded;
  for (bool moved = true; moved;) {
    moved = false;
    for (auto &[name, queue] : queues)
      for (; queue.next < queue.commands.size(); ++queue.next, moved = true) {
        plan::CommandOpInterface command = queue.commands[queue.next];
        Operation *op = command;
        // What another run records, it has recorded before.
        if (auto wait = dyn_cast<plan::WaitOp>(op);
            wait && !wait.getBodyAttr() &&
            !recorded.contains(wait.getEventAttr()))
          break;
        if (auto record = dyn_cast<plan::RecordOp>(op))
          recorded.insert(record.getEventAttr());
        order.push_back(command);
      }
  }
  for (auto &[name, queue] : queues)
    if (queue.next < queue.commands.size())
      return queue.commands[queue.next].emitOpError()
             << "waits for an event that no run before it records";
  return order;
}
