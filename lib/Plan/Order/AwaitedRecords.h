// What bodies, and streams of a body, tell each other by events: who moves a
// command past a record must know what others read when they have waited for
// it.

#ifndef ACCEL_LIB_PLAN_ORDER_AWAITEDRECORDS_H
#define ACCEL_LIB_PLAN_ORDER_AWAITEDRECORDS_H

#include "dialects/Plan/Plan.h"

namespace accel::plan {

/// Of a program's records, by body and event, the buffers that are read by who
/// has waited for them: by other bodies (what a stage sends), and by another
/// stream of the same body until it waits again (what is copied beside the
/// computation).
class AwaitedRecords {
public:
  explicit AwaitedRecords(ProgramOp program) {
    for (auto body : program.getOps<BodyOp>()) {
      addStreams(body);
      for (auto wait : body.getOps<WaitOp>())
        if (mlir::FlatSymbolRefAttr recorder = wait.getBodyAttr())
          body.walk([&](CommandOpInterface command) {
            for (ViewAttr view : command.getReads())
              read[{recorder.getAttr(), wait.getEventAttr()}].insert(
                  view.getBuffer().getAttr());
          });
    }
  }

  /// Whether somebody who waits for a record, which stands in a body itself,
  /// reads one of the buffers for which `isOne(name)`.
  template <class F> bool isReadBehind(RecordOp record, F &&isOne) const {
    auto body = mlir::cast<BodyOp>(record->getParentOp());
    auto found = read.find({body.getSymNameAttr(), record.getEventAttr()});
    return found != read.end() && llvm::any_of(found->second, isOne);
  }

private:
  /// The first stream has its commands in the order of the text: who moves one
  /// asks each command what it reads.
  void addStreams(BodyOp body) {
    llvm::StringMap<mlir::StringAttr> awaited; ///< by stream, the event
    for (auto command : body.getOps<CommandOpInterface>()) {
      if (command.getStreamName() == "compute")
        continue;
      mlir::StringAttr &event = awaited[command.getStreamName()];
      if (auto wait = mlir::dyn_cast<WaitOp>(command.getOperation()))
        event = wait.getBodyAttr() ? mlir::StringAttr() : wait.getEventAttr();
      else if (event)
        for (ViewAttr view : command.getReads())
          read[{body.getSymNameAttr(), event}].insert(
              view.getBuffer().getAttr());
    }
  }

  llvm::DenseMap<std::pair<mlir::StringAttr, mlir::StringAttr>,
                 llvm::DenseSet<mlir::StringAttr>>
      read;
};

} // namespace accel::plan

#endif // ACCEL_LIB_PLAN_ORDER_AWAITEDRECORDS_H
