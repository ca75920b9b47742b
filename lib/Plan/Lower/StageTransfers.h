// What the tasks of one stage give those of others, and take from them: as
// messages, each in bodies of its own, and where these stand in the run list.

#ifndef ACCEL_LIB_PLAN_LOWER_STAGETRANSFERS_H
#define ACCEL_LIB_PLAN_LOWER_STAGETRANSFERS_H

#include "MessageOrder.h"
#include "PostingTimes.h"
#include "RunListWriter.h"
#include "SharedProgram.h"
#include "llvm/ADT/MapVector.h"
#include <map>

namespace accel::plan {

/// The messages of one entry that its tasks on one stage send and receive.
///
/// What two tasks pass on in every micro-batch has a stream of its own at
/// either end, a *channel*, so that no message waits for another one's: a body
/// sends what has been made, another receives where there is room. A receive is
/// posted one micro-batch before its reader, and a sent value is kept until two
/// more have been made; the copies that this takes are counted from the run
/// list, as all are. Where a target has queues for what ranks exchange,
/// messages stand in one order of all stages instead (MessageOrder.h), and a
/// send is waited for at once. What runs once a step passes on goes between
/// *rounds*: one group on the stream of computation, which all stages post in
/// one order.
///
/// The number of an edge in its schedule is the tag of its messages.
class StageTransfers {
public:
  StageTransfers(SharedProgram &shared, dist::ScheduleOp schedule,
                 int64_t stage, llvm::StringRef prefix);

  /// The buffer into which an edge's value comes; `task` waits for it at its
  /// beginning. Requires an edge from another stage. Fails, at the edge, if
  /// what runs for every micro-batch gives to what runs once.
  mlir::FailureOr<BufferOp> receive(dist::EdgeOp edge,
                                    mlir::BlockArgument argument);

  /// Whether messages of one task may be sent after the other has run.
  bool areTogether(mlir::FlatSymbolRefAttr task,
                   mlir::FlatSymbolRefAttr other) {
    return getStretch(task) == getStretch(other);
  }

  /// Sends what a task whose commands are in `body` gives other stages.
  /// Requires that its ops are lowered, and that what it gives keeps its value
  /// until it is sent.
  mlir::LogicalResult send(mlir::func::FuncOp task, BodyOp body);

  /// Ends the bodies of messages: all that they send and receive is there.
  /// Fails, with an error at the schedule, if its stages wait for each other.
  mlir::LogicalResult finish();

  /// Whether messages have places among the runs of tasks, each of its own.
  bool hasQueued() const { return !queued.empty(); }

  /// Adds to the list what stands between what has run and a run, or the loop
  /// that it is the first of; for null between that and the end.
  void goOnTo(dist::RunOp run, RunListWriter &list);
  /// Adds what stands right in front of a run. Fails, at the run, unless a task
  /// that exchanges messages runs on its micro-batches in their order, the
  /// first and the last outside loops.
  mlir::LogicalResult addBefore(dist::RunOp run, RunListWriter &list);

private:
  /// What comes before the micro-batches, they themselves, and what comes after
  /// them.
  enum Part { kBefore = 1, kMicroBatches = 2, kAfter = 3 };
  /// When something runs: in which part of the step, and in which of its
  /// rounds.
  using Stretch = std::pair<int, int64_t>;
  struct Channel {
    BodyOp body;
    mlir::StringAttr task; ///< this stage's
    bool sends;
    std::string stream;
    llvm::DenseSet<mlir::Attribute> buffers = {}; ///< that it sends
    /// The first micro-batches of which no run of the task, and of the body, is
    /// listed.
    int64_t next = 0, unlisted = 0;
    Posting posting = {};
  };

  dist::TaskAttr getTask(mlir::FlatSymbolRefAttr name);
  Stretch getStretch(mlir::FlatSymbolRefAttr task);
  bool isExchange(dist::EdgeOp edge);
  mlir::FailureOr<Channel *> getChannel(dist::EdgeOp edge, bool sends);
  BodyOp getExchange(Stretch stretch, mlir::Location loc);
  void addMessage(dist::EdgeOp edge, ViewAttr view, bool sends, BodyOp body,
                  llvm::StringRef stream);
  static void recordWhereMade(const Channel &channel, BodyOp body);
  mlir::LogicalResult addSend(Channel &channel, dist::RunOp run,
                              RunListWriter &list);
  void listQueued(Stretch end, RunListWriter &list);
  void runUpTo(Channel &channel, int64_t end, RunListWriter &list);
  mlir::LogicalResult addReceive(Channel &channel, dist::RunOp run,
                                 RunListWriter &list);

  SharedProgram &shared;
  dist::ScheduleOp schedule;
  int64_t stage;
  std::string prefix;
  llvm::DenseMap<mlir::Operation *, int64_t> tags; ///< of edges
  /// By the tasks at their ends.
  llvm::MapVector<std::pair<mlir::StringAttr, mlir::StringAttr>,
                  std::unique_ptr<Channel>>
      channels;
  std::map<Stretch, BodyOp> exchanges; ///< by the stretch that gives
  /// Where the target has queues: all messages, how many are listed, and how
  /// many runs of tasks.
  std::vector<QueuedMessage> queued;
  size_t listed = 0, reached = 0;
};

} // namespace accel::plan

#endif // ACCEL_LIB_PLAN_LOWER_STAGETRANSFERS_H
