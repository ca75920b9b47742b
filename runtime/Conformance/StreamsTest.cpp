// What the streams of every device must do: events order them, what fails is
// told where they are joined, a captured segment does what its steps would have
// done, and nothing waits for ever once the run is over.

#include "Conformance/DeviceFixture.h"

#include <thread>

using namespace accel::rt;
using namespace accel::rt::test;
using namespace accel::rt::conformance;

namespace {

/// What the test says, done by the host in a stream's order.
class Call : public HostTask {
public:
  explicit Call(std::function<Status(int64_t)> function)
      : function(std::move(function)) {}
  Status run(const Address *, int64_t microBatch) override {
    return function(microBatch);
  }

private:
  std::function<Status(int64_t)> function;
};

class StreamConformance : public DeviceConformance {
protected:
  void make() {
    Status status = device().makeStreams(
        {{"compute", "comm"}, nullptr, 2, /*capacity=*/36, 2}, watcher,
        streams);
    ASSERT_TRUE(status.ok()) << status.message();
  }
  Work &add(std::vector<Place> places = {}) {
    Work &work = *works.emplace_back(std::make_unique<Work>());
    work.number = static_cast<int64_t>(works.size()) - 1;
    work.places = std::move(places);
    return work;
  }
  Step call(size_t stream, std::function<Status(int64_t)> function) {
    Work &work = add();
    work.kind = Work::Kind::Host;
    work.task = std::make_unique<Call>(std::move(function));
    return step(stream, work);
  }
  Step run(size_t stream, const Command &command, std::vector<Place> places) {
    Work &work = add(std::move(places));
    Status status = device().prepare(command, work.task);
    EXPECT_TRUE(status.ok()) << status.message();
    return step(stream, work);
  }
  /// Of the one run of a body in each turn.
  Step meet(size_t stream, Work::Kind kind, size_t event) {
    Work &work = add();
    work.kind = kind;
    Step made = step(stream, work);
    made.event = event;
    made.count = {kTurns, {{0, 0, 1}}};
    return made;
  }
  static Step step(size_t stream, Work &work) {
    Step made;
    made.work = &work;
    made.stream = stream;
    made.isInLoop = true;
    return made;
  }

  static constexpr uint32_t kTurns = 6;
  std::vector<std::unique_ptr<Work>> works;
  CalmWatcher watcher;
  std::unique_ptr<Streams> streams; // ends before the works
};

TEST_P(StreamConformance, ReturnsWhenItHasEnqueued) {
  make();
  std::atomic<bool> enqueued{false};
  std::atomic<int> seen{0};
  auto wait = [&](int64_t) {
    while (!enqueued)
      std::this_thread::yield();
    ++seen;
    return Status();
  };
  streams->enqueue(call(0, wait), {1, 0});
  streams->enqueue(call(1, wait), {1, 0});
  enqueued = true;
  EXPECT_TRUE(streams->join().status.ok());
  EXPECT_EQ(seen, 2);
}

TEST_P(StreamConformance, OrdersStreamsByEvents) {
  // Each turn passes the numbers on, over both streams, in a place of its own.
  Address x = place(std::vector<float>{1, 2, 3, 4}), y = allocate(16),
          z = allocate(16 * kTurns);
  View view = contiguousView(0, {4});
  Place slots{z, /*slots=*/2, 16, /*microBatchStride=*/16};
  make();
  Command copy = command(CopyCommand{view, view}, "Copy");
  std::vector<Step> steps = {
      run(1, copy, {{x}, {y}}),       meet(1, Work::Kind::Record, 0),
      meet(0, Work::Kind::Wait, 0),   run(0, copy, {{y}, slots}),
      meet(0, Work::Kind::Record, 1), meet(1, Work::Kind::Wait, 1)};
  for (uint32_t call = 1; call < 3; ++call)
    for (uint32_t turn = 0; turn < kTurns / 2; ++turn)
      for (const Step &step : steps)
        streams->enqueue(step, {call, turn});
  ASSERT_TRUE(streams->join().status.ok());
  EXPECT_EQ(watcher.begun, int(steps.size() * kTurns));
  EXPECT_EQ(watcher.ended, watcher.begun);
  std::vector<float> found = fetch<float>(z, 4 * 4);
  // Turn m writes at (m mod 2 + m) · 16 bytes: 0, 2 and 2.
  EXPECT_EQ(std::vector<float>(found.begin(), found.begin() + 4),
            (std::vector<float>{1, 2, 3, 4}));
  EXPECT_EQ(std::vector<float>(found.begin() + 8, found.begin() + 12),
            (std::vector<float>{1, 2, 3, 4}));
}

TEST_P(StreamConformance, ReplaysWhatItCaptured) {
  std::vector<float> rows = counting<float>(4 * kTurns);
  Address x = place(rows), y = place(std::vector<float>(4 * kTurns)),
          between = allocate(16);
  View view = contiguousView(0, {4});
  make();
  Command copy = command(CopyCommand{view, view}, "Copy");
  std::vector<Step> steps = {run(1, copy, {{x, 1, 0, 16}, {between}}),
                             meet(1, Work::Kind::Record, 0),
                             meet(0, Work::Kind::Wait, 0),
                             run(0, copy, {{between}, {y, 1, 0, 16}}),
                             meet(0, Work::Kind::Record, 1),
                             meet(1, Work::Kind::Wait, 1)};
  std::unique_ptr<Graph> graph;
  ASSERT_TRUE(streams->capture(steps, graph).ok());
  EXPECT_EQ(watcher.begun, 0);
  steps.clear(); // whoever captures keeps what it needs
  for (uint32_t turn = 0; turn < kTurns; ++turn)
    streams->replay(*graph, {3, turn});
  ASSERT_TRUE(streams->join().status.ok());
  EXPECT_EQ(watcher.ended, watcher.begun);
  EXPECT_EQ(fetch<float>(y, rows.size()), rows);
}

TEST_P(StreamConformance, CountsEventsByPieces) {
  EventCount count{10, {{0, 0, 1}, {2, 5, 2}}};
  EXPECT_EQ(count.at({1, 0}), 11u);
  EXPECT_EQ(count.at({1, 1}), 12u);
  EXPECT_EQ(count.at({1, 2}), 16u);
  EXPECT_EQ(count.at({2, 4}), 30u);
}

TEST_P(StreamConformance, TellsAFailureWhereItIsJoined) {
  make();
  int later = 0;
  Step good = call(1, [](int64_t) { return Status(); });
  Step bad = call(1, [](int64_t microBatch) {
    return Status::error("it fell over on " + std::to_string(microBatch));
  });
  Step dropped = call(1, [&](int64_t) { return ++later, Status(); });
  bad.microBatch = 2;
  for (const Step *step : {&good, &bad, &dropped})
    streams->enqueue(*step, {1, 3});
  Failure failure = streams->join();
  EXPECT_EQ(failure.work, bad.work);
  ASSERT_FALSE(failure.status.ok());
  EXPECT_EQ(failure.status.message(), "it fell over on 5");
  EXPECT_TRUE(watcher.failed);
  EXPECT_EQ(later, 0) << "what stood behind it is dropped";
}

TEST_P(StreamConformance, TellsOfTheLowestCommandThatFailed) {
  // In each turn of the test the later command fails first, or second.
  for (bool isFirst : {false, true}) {
    std::atomic<bool> goesOn{false};
    auto fail = [&](bool waits, const char *text) {
      return [&goesOn, waits, text](int64_t) {
        while (waits && !goesOn)
          std::this_thread::yield();
        goesOn = true;
        return Status::error(text);
      };
    };
    make();
    Step low = call(1, fail(isFirst, "low")),
         high = call(0, fail(!isFirst, "high"));
    streams->enqueue(low, {1, 0});
    streams->enqueue(high, {1, 0});
    Failure failure = streams->join();
    EXPECT_EQ(failure.work, low.work);
    ASSERT_FALSE(failure.status.ok());
    EXPECT_EQ(failure.status.message(), "low");
  }
}

TEST_P(StreamConformance, WorksWithoutWhoeverJoins) {
  // As where the streams of another device are joined before, and wait for it.
  StreamPlan plan{{"compute"}, nullptr, 0, 1, 0};
  plan.mayWorkInJoin = false;
  Status status = device().makeStreams(plan, watcher, streams);
  ASSERT_TRUE(status.ok()) << status.message();
  std::atomic<bool> done{false};
  streams->enqueue(call(0,
                        [&](int64_t) {
                          done = true;
                          return Status();
                        }),
                   {1, 0});
  streams->flush();
  while (!done)
    std::this_thread::yield();
  EXPECT_TRUE(streams->join().status.ok());
}

TEST_P(StreamConformance, EndsItsWaitsWhenTheRunIsOver) {
  make();
  streams->enqueue(meet(1, Work::Kind::Wait, 0), {1, 0});
  streams->enqueue(call(0,
                        [&](int64_t) {
                          watcher.over = true;
                          return Status();
                        }),
                   {1, 0});
  Failure failure = streams->join();
  ASSERT_FALSE(failure.status.ok());
  EXPECT_EQ(failure.status.message(), kAbortedMessage);
  EXPECT_FALSE(watcher.failed);
}

TEST_P(StreamConformance, BlamesNoCommandForTheEndOfAnotherRank) {
  make();
  streams->enqueue(
      call(1, [](int64_t) { return Status::error(kAbortedMessage); }), {1, 0});
  Failure failure = streams->join();
  ASSERT_FALSE(failure.status.ok());
  EXPECT_EQ(failure.status.message(), kAbortedMessage);
  EXPECT_EQ(failure.work, nullptr);
  EXPECT_FALSE(watcher.failed);
}

INSTANTIATE_TEST_SUITE_P(Backends, StreamConformance,
                         ::testing::ValuesIn(backends()), [](const auto &info) {
                           return std::string(info.param.name);
                         });

} // namespace
