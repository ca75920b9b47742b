// A ring of items for each stream, filled by one thread and emptied by another.
// It is never full: what is enqueued at once has an end (StreamPlan::capacity).

#include "Device/ThreadStreams.h"

#include "Base/StartThread.h"

namespace accel::rt {
namespace {

/// How long a stream without work sleeps.
constexpr int kRestMilliseconds = 1000;

/// A step of a captured segment.
struct Resolved {
  Work *work;
  HostTask *task;             ///< Null for records and waits.
  Word *event;                ///< Null for others.
  const EventCount *count;    ///< Of the event.
  size_t first;               ///< Of its addresses, in the graph's list.
  std::vector<size_t> moving; ///< Views that are elsewhere in other turns.
  int64_t microBatch;
  bool isInLoop;
};

/// What one stream does in a segment.
struct StreamGraph {
  std::vector<Resolved> steps;
  std::vector<Address> addresses;
};

struct ThreadGraph : Graph {
  explicit ThreadGraph(size_t streams) : streams(streams) {}
  std::vector<Step> source; ///< Whose counts are pointed to.
  std::vector<StreamGraph> streams;
};

/// A step, or a whole segment of the stream.
struct Item {
  const Step *step = nullptr;
  StreamGraph *graph = nullptr;
  Turn turn;
};

/// One stream. Its two numbers count items, and wrap.
struct Lane {
  std::vector<Item> ring;
  Word pushed{0}, done{0};
  std::atomic<bool> sleeps{false}, isAwaited{false};
  Failure failure;
  std::vector<Address> addresses; ///< Of the step at hand.
};

class ThreadStreams : public Streams {
public:
  ThreadStreams(const StreamPlan &plan, int spin, StreamWatcher &watcher)
      : watcher(watcher), spin(spin), firstThread(plan.mayWorkInJoin ? 1 : 0),
        events(std::make_unique<Word[]>(plan.events)) {
    for (size_t i = 0; i < plan.events; ++i)
      events[i] = 0;
    for (size_t i = 0; i < plan.names.size(); ++i) {
      lanes.push_back(std::make_unique<Lane>());
      lanes.back()->ring.resize(plan.capacity);
      lanes.back()->addresses.resize(plan.mostViews);
    }
  }
  ~ThreadStreams() override {
    stopping = true;
    for (auto &lane : lanes) {
      lane->pushed.fetch_add(1);
      wakeWaiters(lane->pushed);
    }
    for (std::thread &thread : threads)
      thread.join();
  }

  Status start(const StreamPlan &plan) {
    for (size_t stream = firstThread; stream < plan.names.size(); ++stream)
      ACCEL_RT_RETURN_IF_ERROR(startThread(
          threads, "the thread of stream " + inQuotes(plan.names[stream]),
          [this, stream] { work(stream); }));
    return Status();
  }

  void enqueue(const Step &step, Turn turn) override {
    push(step.stream, {&step, nullptr, turn});
  }

  Status capture(const std::vector<Step> &steps,
                 std::unique_ptr<Graph> &graph) override {
    auto made = std::make_unique<ThreadGraph>(lanes.size());
    made->source = steps;
    for (const Step &step : made->source) {
      StreamGraph &stream = made->streams[step.stream];
      Resolved resolved{step.work,
                        nullptr,
                        nullptr,
                        &step.count,
                        stream.addresses.size(),
                        {},
                        step.microBatch,
                        step.isInLoop};
      if (isEvent(*step.work))
        resolved.event = &events[step.event];
      else
        resolved.task = static_cast<HostTask *>(step.work->task.get());
      const std::vector<Place> &places = step.work->places;
      for (size_t i = 0; i < places.size(); ++i) {
        stream.addresses.push_back(places[i].at(step.microBatch));
        if (step.isInLoop && !places[i].isFixed())
          resolved.moving.push_back(i);
      }
      stream.steps.push_back(std::move(resolved));
    }
    graph = std::move(made);
    return Status();
  }

  void replay(Graph &graph, Turn turn) override {
    auto &streams = static_cast<ThreadGraph &>(graph).streams;
    for (size_t i = 0; i < streams.size(); ++i)
      if (!streams[i].steps.empty())
        push(i, {nullptr, &streams[i], turn});
  }

  Failure join() override {
    if (firstThread > 0)
      drain(0);
    for (size_t i = firstThread; i < lanes.size(); ++i) {
      Lane &lane = *lanes[i];
      lane.isAwaited.store(true);
      for (uint32_t done; (done = lane.done.load()) != lane.pushed.load();)
        waitWhile(lane.done, done, kSleepMilliseconds);
      lane.isAwaited.store(false);
    }
    Failure failure;
    for (auto &lane : lanes)
      if (lane->failure.comesBefore(failure))
        failure = lane->failure;
    return failure;
  }

private:
  static bool isEvent(const Work &work) {
    return work.kind == Work::Kind::Record || work.kind == Work::Kind::Wait;
  }

  void push(size_t stream, Item item) {
    Lane &lane = *lanes[stream];
    uint32_t at = lane.pushed.load(std::memory_order_relaxed);
    lane.ring[at % lane.ring.size()] = item;
    lane.pushed.store(at + 1);
    if (lane.sleeps.load())
      wakeWaiters(lane.pushed);
  }

  /// Works off what is there.
  void drain(size_t stream) {
    Lane &lane = *lanes[stream];
    while (lane.done.load(std::memory_order_relaxed) != lane.pushed.load())
      step(lane, stream);
    watcher.rests(stream);
  }

  void work(size_t stream) {
    Lane &lane = *lanes[stream];
    while (true) {
      uint32_t done = lane.done.load(std::memory_order_relaxed);
      if (lane.pushed.load() == done) {
        lane.sleeps.store(true);
        watcher.rests(stream);
        waitWhile(lane.pushed, done, kRestMilliseconds);
        lane.sleeps.store(false);
        if (lane.pushed.load() == done)
          continue;
      }
      if (stopping)
        return;
      step(lane, stream);
    }
  }

  /// Does the oldest item, or drops it.
  void step(Lane &lane, size_t stream) {
    uint32_t at = lane.done.load(std::memory_order_relaxed);
    Item &item = lane.ring[at % lane.ring.size()];
    if (lane.failure.status.ok()) {
      if (item.graph)
        runGraph(lane, stream, *item.graph, item.turn);
      else
        runStep(lane, stream, *item.step, item.turn);
      if (!lane.failure.status.ok() &&
          lane.failure.status.message() != kAbortedMessage)
        watcher.fails();
    }
    lane.done.store(at + 1);
    if (lane.isAwaited.load())
      wakeWaiters(lane.done);
  }

  /// Whether the stream goes on.
  bool begin(Lane &lane, size_t stream, Work &work, int64_t microBatch,
             bool isInLoop) {
    if (watcher.isOver()) {
      lane.failure.status = Status::error(kAbortedMessage);
      return false;
    }
    watcher.begins(stream, work, isInLoop ? microBatch : -1);
    return true;
  }

  bool run(Lane &lane, Work &work, HostTask &task, const Address *addresses,
           int64_t microBatch) {
    Status status = task.run(addresses, microBatch);
    if (status.ok())
      return true;
    // That another rank ended is no command's failure.
    bool isOurs = status.message() != kAbortedMessage;
    lane.failure = {std::move(status), isOurs ? &work : nullptr};
    return false;
  }

  bool meet(Lane &lane, Work &work, Word &event, uint32_t count) {
    if (work.kind == Work::Kind::Record) {
      event.store(count);
      wakeWaiters(event);
      return true;
    }
    // The stream that records may be turns ahead.
    uint32_t value;
    for (int look = 0; static_cast<int32_t>((value = event.load()) - count) < 0;
         ++look) {
      if (look < spin) {
        pauseCore();
      } else if (watcher.isOver()) {
        lane.failure.status = Status::error(kAbortedMessage);
        return false;
      } else {
        waitWhile(event, value, kSleepMilliseconds);
      }
    }
    return true;
  }

  void runStep(Lane &lane, size_t stream, const Step &step, Turn turn) {
    Work &work = *step.work;
    int64_t microBatch = step.microBatch + turn.turn;
    if (!begin(lane, stream, work, microBatch, step.isInLoop))
      return;
    if (isEvent(work)) {
      if (meet(lane, work, events[step.event], step.count.at(turn)))
        watcher.ends(stream);
      return;
    }
    for (size_t i = 0; i < work.places.size(); ++i)
      lane.addresses[i] = work.places[i].at(microBatch);
    if (run(lane, work, static_cast<HostTask &>(*work.task),
            lane.addresses.data(), microBatch))
      watcher.ends(stream);
  }

  void runGraph(Lane &lane, size_t stream, StreamGraph &graph, Turn turn) {
    for (Resolved &step : graph.steps) {
      int64_t microBatch = step.microBatch + turn.turn;
      if (!begin(lane, stream, *step.work, microBatch, step.isInLoop))
        return;
      if (step.event) {
        if (!meet(lane, *step.work, *step.event, step.count->at(turn)))
          return;
        watcher.ends(stream);
        continue;
      }
      Address *addresses = graph.addresses.data() + step.first;
      for (size_t i : step.moving)
        addresses[i] = step.work->places[i].at(microBatch);
      if (!run(lane, *step.work, *step.task, addresses, microBatch))
        return;
      watcher.ends(stream);
    }
  }

  StreamWatcher &watcher;
  int spin;
  size_t firstThread; ///< Streams before it are worked off by whoever joins.
  std::unique_ptr<Word[]> events;
  std::vector<std::unique_ptr<Lane>> lanes;
  std::vector<std::thread> threads;
  std::atomic<bool> stopping{false};
};

} // namespace

Status makeThreadStreams(const StreamPlan &plan, int spin,
                         StreamWatcher &watcher,
                         std::unique_ptr<Streams> &streams) {
  auto made = std::make_unique<ThreadStreams>(plan, spin, watcher);
  ACCEL_RT_RETURN_IF_ERROR(made->start(plan));
  streams = std::move(made);
  return Status();
}

} // namespace accel::rt
