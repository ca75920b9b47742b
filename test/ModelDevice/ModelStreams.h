// The streams of the model device: nothing runs when it is enqueued. At each
// join what was enqueued is held against the bytes that it touches
// (History.h), and then run in an order of its own (Order.h). Commands of the
// host, which may wait for other ranks, have a thread while they run, so that
// as on a device no stream holds up another.

#ifndef ACCEL_TEST_MODELDEVICE_MODELSTREAMS_H
#define ACCEL_TEST_MODELDEVICE_MODELSTREAMS_H

#include "ModelMemory.h"
#include "ModelOptions.h"
#include "Timeline.h"

#include <functional>
#include <map>

namespace accel::rt::model {

/// A command of the device, with what is known of it.
class ModelTask : public HostTask {
public:
  ModelTask(std::unique_ptr<Task> task, CommandInfo info)
      : info(std::move(info)), task(std::move(task)) {}
  Status run(const Address *views, int64_t microBatch) override {
    return static_cast<HostTask &>(*task).run(views, microBatch);
  }
  const CommandInfo info;

private:
  std::unique_ptr<Task> task;
};

class ModelStreams : public Streams {
public:
  /// All arguments must outlive the streams.
  ModelStreams(const StreamPlan &plan, StreamWatcher &watcher,
               const ModelOptions &options, ModelMemory &memory);
  ~ModelStreams() override { memory.setStreams(false); }

  void enqueue(const Step &step, Turn turn) override;
  Status capture(const std::vector<Step> &steps,
                 std::unique_ptr<Graph> &graph) override;
  void replay(Graph &graph, Turn turn) override;
  Failure join() override;

private:
  /// Null where nothing is known of it.
  const CommandInfo *infoOf(const Work &work) const;
  std::string describe(const CommandInfo &info, const Event &event) const;
  /// Notes an error, to be told by join(); `work` is what it is about.
  void refuse(Status status, const Node *node);
  bool isDropped(const Work &work) const;

  /// Holds each command against what was done to its bytes.
  Failure inspect();
  void countLost() const;
  /// Whether two commands touch the same bytes, one of them writing, or meet
  /// other ranks in an order: each view of one against each of the other.
  bool conflict(const Node &a, const Node &b) const;
  /// Where view `i` of a command is.
  using FindView = std::function<Address(size_t i)>;
  Status touch(const Node &node, const CommandInfo &info, const Clock &clock);
  Status access(const CommandInfo &info, const FindView &at, const Event &by,
                const Clock &clock);
  Status meet(const Node &node, const CommandInfo &info, Clock &clock);
  Status tell(const Conflict &conflict, const ViewAccess &view,
              const CommandInfo &info, const Event &by, bool writes) const;

  StreamWatcher &watcher;
  const ModelOptions &options;
  ModelMemory &memory;
  Order order;
  size_t numStreams;
  std::vector<CommandInfo> infos; ///< Of the program's commands.
  std::string program;
  Timeline timeline;
  Clock joined; ///< What had happened at the last join.
  /// Streams of other engines, as one behind this device's own: what had
  /// happened before its last command, and of each body, by its first command's
  /// number and its micro-batch, which command comes next.
  Clock abroad;
  std::map<std::pair<int64_t, int64_t>, int64_t> abroadAt;
  /// Of records that other engines wait for, what had happened before the last.
  std::map<int64_t, Clock> crossed;
  std::optional<Event> lastCollective;
  size_t numReplays = 0, numEnqueued = 0; ///< Since the last join.
  bool hasBegun = false;
  Failure failure;
};

} // namespace accel::rt::model

#endif // ACCEL_TEST_MODELDEVICE_MODELSTREAMS_H
