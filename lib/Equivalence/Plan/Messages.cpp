// Lists what each end posts, and compares the lists.

#include "Messages.h"

#include "dialects/Plan/RunList.h"
#include "llvm/ADT/MapVector.h"

using namespace mlir;
using namespace accel;

namespace {
/// One end of the messages of a tag, in an entry.
struct Posted {
  Operation *message = nullptr; ///< the last one
  StringRef stream;
  SmallVector<int64_t> microBatches = {};
};
struct Ends {
  Posted sent, received;
};
} // namespace

static LogicalResult post(Posted &end, Operation *message, StringRef stream,
                          int64_t microBatch) {
  if (end.message && end.stream != stream)
    return message->emitOpError()
           << "expected messages of one tag in one stream, found some in '"
           << end.stream << "'";
  end.message = message;
  end.stream = stream;
  end.microBatches.push_back(microBatch);
  return success();
}

LogicalResult accel::equivalence::verifyMessages(ModuleOp plan) {
  llvm::MapVector<std::pair<StringRef, int64_t>, Ends> tags; // of each entry
  for (auto program : plan.getOps<plan::ProgramOp>()) {
    llvm::DenseMap<StringAttr, SmallVector<Operation *>> messages; // of bodies
    for (auto body : program.getOps<plan::BodyOp>())
      body.walk([&](Operation *op) {
        if (isa<plan::SendOp, plan::RecvOp>(op))
          messages[body.getSymNameAttr()].push_back(op);
      });
    for (auto entry : program.getOps<plan::EntryOp>())
      for (const plan::RunTurn &run : plan::listRuns(entry))
        for (Operation *op : messages.lookup(run.run.getTaskAttr().getAttr())) {
          StringRef stream = cast<plan::CommandOpInterface>(op).getStreamName();
          auto send = dyn_cast<plan::SendOp>(op);
          int64_t tag = send ? send.getTag() : cast<plan::RecvOp>(op).getTag();
          Ends &ends = tags[{entry.getKind(), tag}];
          if (failed(post(send ? ends.sent : ends.received, op, stream,
                          run.getMicroBatch())))
            return failure();
        }
  }
  for (auto &[tag, ends] : tags)
    if (ends.sent.microBatches != ends.received.microBatches) {
      Operation *op =
          ends.sent.message ? ends.sent.message : ends.received.message;
      return op->emitOpError()
             << "does not follow from the local program: expected messages of "
                "tag "
             << tag.second
             << " to be sent and received on the same micro-batches, in one "
                "order";
    }
  return success();
}
