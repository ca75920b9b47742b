// The model device finds what a plan leaves to chance: each test is a program
// of two streams with something missing, and an error that names both commands.

#include "../Runtime/RunFixture.h"
#include "../Runtime/WalledDevice.h"
#include "Conformance/CalmWatcher.h"
#include "test/ModelDevice/ModelDevice.h"

using namespace accel::rt;
using namespace accel::rt::test;
using namespace accel::rt::model;

namespace {

/// What the test says, done by the host in a stream's order.
class Call : public HostTask {
public:
  using Function = std::function<Status(const Address *)>;
  explicit Call(Function function) : function(std::move(function)) {}
  Status run(const Address *views, int64_t) override { return function(views); }

private:
  Function function;
};

/// A program of buffers of 16 bytes, of streams 'compute' and 'move'.
class ModelDeviceTest : public ::testing::Test {
protected:
  ModelDeviceTest() {
    program.name = "main";
    program.arenas = {{"device", 512, 64, 0}};
    for (const char *name : {"x", "y", "z"})
      addBuffer(name, "activation");
    program.bodies = {{"body", "cpu", {}}};
  }
  int64_t addBuffer(const std::string &name, const std::string &role) {
    int64_t number = static_cast<int64_t>(program.buffers.size());
    program.buffers.push_back(
        {name, role, "device", 64 * number, 16, 1, 16, "", ""});
    return number;
  }
  /// Adds a command to the body.
  void add(const std::string &stream, decltype(Command::what) what,
           const std::string &node) {
    Command made = command(std::move(what), node);
    made.stream = stream;
    program.bodies[0].commands.push_back(std::move(made));
  }
  static CopyCommand copy(int64_t from, int64_t to) {
    return {contiguousView(from, {4}), contiguousView(to, {4})};
  }
  /// Adds two kernels of two streams with one scratch, which the host does.
  void addKernels(bool areOrdered) {
    int64_t rows = addBuffer("rows", "scratch");
    auto kernel = [&](const std::string &stream, int64_t output,
                      const std::string &node) {
      KernelCommand made{
          "k", {contiguousView(0, {4})}, {contiguousView(output, {4})}, 4, 1};
      made.scratch = contiguousView(rows, {16}, DType::I8);
      made.form = {{"thread_scratch", int64_t(64)}};
      calls[static_cast<int64_t>(program.bodies[0].commands.size())] =
          [](const Address *) { return Status(); };
      add(stream, made, node);
    };
    kernel("compute", 1, "First");
    if (areOrdered) {
      add("compute", RecordCommand{"free"}, "First");
      add("move", WaitCommand{"free"}, "Second");
    }
    kernel("move", 2, "Second");
  }
  void make(const std::string &order = "seed:1") {
    ASSERT_TRUE(
        writeExecutableFile(tinyExecutable(), tinySections(), folder / "m.accx")
            .ok());
    ASSERT_TRUE(ExecutableFile::open(folder / "m.accx", file).ok());
    pool = std::make_unique<ThreadPool>(1, 50);
    ASSERT_TRUE(Order::parse(order, options.order).ok());
    kind = modelDevice(options);
    ASSERT_TRUE(kind.make(*file, *pool, nullptr, device).ok());
    ASSERT_TRUE(device->allocate(program.arenas[0], base).ok());
    const float values[4] = {1, 2, 3, 4};
    ASSERT_TRUE(device->upload(base, values, {sizeof values}).ok());
    std::map<std::string, size_t> events;
    for (const Command &command : program.bodies[0].commands) {
      Work &work = *works.emplace_back(std::make_unique<Work>());
      work.number = static_cast<int64_t>(works.size()) - 1;
      format::forEachView(command, [&](const View &view) {
        work.places.push_back(
            {base + program.buffers[view.buffer].offset + view.offset});
      });
      Step step;
      step.work = &work;
      step.stream = command.stream == "move";
      if (auto *record = std::get_if<RecordCommand>(&command.what)) {
        work.kind = Work::Kind::Record;
        step.event =
            events.try_emplace(record->event, events.size()).first->second;
      } else if (auto *wait = std::get_if<WaitCommand>(&command.what)) {
        work.kind = Work::Kind::Wait;
        step.event =
            events.try_emplace(wait->event, events.size()).first->second;
      } else if (calls.count(work.number)) {
        work.kind = Work::Kind::Host;
        work.task = std::make_unique<Call>(calls[work.number]);
      } else {
        ASSERT_TRUE(device->prepare(command, work.task).ok());
      }
      step.count = {1, {{0, 0, 1}}};
      steps.push_back(step);
      if (!command.releases.empty())
        addPoison(command, step);
    }
    StreamPlan plan{{"compute", "move"}, &program, 4, 64, 4};
    ASSERT_TRUE(device->makeStreams(plan, watcher, streams).ok());
  }
  /// What overwrites the released views, as an executor adds it.
  void addPoison(const Command &command, Step step) {
    for (const View &view : command.releases) {
      Work &work = *poison.emplace_back(std::make_unique<Work>());
      work.isPoison = true;
      work.number = step.work->number;
      work.places = {
          {base + program.buffers[view.buffer].offset + view.offset}};
      Command &fill = *fills.emplace_back(std::make_unique<Command>());
      fill.what =
          FillCommand{std::vector<int64_t>(
                          static_cast<size_t>(dtypeBytes(view.dtype)), 0xff),
                      view};
      ASSERT_TRUE(device->prepare(fill, work.task).ok());
      step.work = &work;
      steps.push_back(step);
    }
  }
  /// The error of a call.
  std::string run(uint32_t call = 1) {
    for (const Step &step : steps)
      streams->enqueue(step, {call, 0});
    Status status = streams->join().status;
    return status.ok() ? "" : status.message();
  }
  std::vector<float> find(int64_t buffer) {
    std::vector<float> values(4);
    EXPECT_TRUE(device->download(values.data(), base + 64 * buffer, {16}).ok());
    return values;
  }

  TemporaryFolder folder;
  Program program;
  ModelOptions options;
  std::unique_ptr<ExecutableFile> file;
  std::unique_ptr<ThreadPool> pool;
  DeviceKind kind;
  conformance::CalmWatcher watcher;
  std::map<int64_t, Call::Function> calls; ///< By number: the host's commands.
  std::vector<std::unique_ptr<Work>> works, poison;
  std::vector<std::unique_ptr<Command>> fills; ///< Of the latter.
  std::vector<Step> steps;
  Address base;
  std::unique_ptr<Device> device;
  std::unique_ptr<Streams> streams; // ends before the works
};

const std::vector<float> kValues{1, 2, 3, 4};
const char *const kOrders[] = {"seed:1", "seed:2",   "seed:3",
                               "last",   "starve:0", "starve:1"};

class ModelOrders : public ModelDeviceTest,
                    public ::testing::WithParamInterface<const char *> {};

TEST_P(ModelOrders, HaveOneResult) {
  add("move", copy(0, 1), "First");
  add("move", RecordCommand{"moved"}, "First");
  add("compute", WaitCommand{"moved"}, "Second");
  add("compute", copy(1, 2), "Second");
  make(GetParam());
  EXPECT_EQ(run(), "");
  EXPECT_EQ(find(2), kValues);
  EXPECT_EQ(watcher.begun, 4);
  EXPECT_EQ(watcher.ended, 4);
  // The next call finds all that came before the join in order.
  EXPECT_EQ(run(2), "");
}

TEST_P(ModelOrders, FindTheSameRace) {
  add("move", copy(0, 1), "First");
  add("compute", copy(1, 2), "Second");
  make(GetParam());
  EXPECT_EQ(run(), "found a race: copy for node 'Second' (body 'body', stream "
                   "'compute') reads bytes 64 to 79 of space 'device', in "
                   "buffer 'y', and copy for node 'First' (body 'body', stream "
                   "'move') writes them, and no event orders the two");
  EXPECT_TRUE(watcher.failed);
  EXPECT_EQ(watcher.begun, 0) << "nothing runs of what is wrong";
}

INSTANTIATE_TEST_SUITE_P(All, ModelOrders, ::testing::ValuesIn(kOrders));

TEST_F(ModelDeviceTest, RunsNothingBeforeItJoins) {
  add("compute", copy(0, 1), "First");
  make();
  streams->enqueue(steps[0], {1, 0});
  EXPECT_EQ(watcher.begun, 0);
  EXPECT_TRUE(streams->join().status.ok());
  EXPECT_EQ(watcher.begun, 1);
}

TEST_F(ModelDeviceTest, FindsOverwritingWhatIsBeingRead) {
  add("compute", copy(0, 1), "First");
  add("compute", RecordCommand{"made"}, "First");
  add("move", WaitCommand{"made"}, "Second");
  add("move", copy(1, 2), "Second");
  add("compute", copy(0, 1), "Third");
  make();
  EXPECT_THAT(run(), HasSubstr("'Third' (body 'body', stream 'compute') writes "
                               "bytes 64 to 79"));
}

TEST_F(ModelDeviceTest, LooksAtTheBytesOfStridedViews) {
  // Columns of one matrix: apart, and then one element in common.
  View even = contiguousView(1, {2}), odd = even;
  even.strides = odd.strides = {2};
  odd.offset = 4;
  View two = contiguousView(0, {2});
  add("compute", CopyCommand{two, even}, "Even");
  add("move", CopyCommand{two, odd}, "Odd");
  View last = contiguousView(1, {1});
  last.offset = 12;
  add("compute", CopyCommand{contiguousView(0, {1}), last}, "Last");
  make();
  EXPECT_THAT(run(), HasSubstr("'Last' (body 'body', stream 'compute') writes "
                               "bytes 76 to 79 of space 'device'"));
}

TEST_F(ModelDeviceTest, RefusesAWaitBeforeItsRecord) {
  add("compute", WaitCommand{"moved"}, "Second");
  add("compute", copy(0, 2), "Second");
  add("move", RecordCommand{"moved"}, "First");
  make();
  EXPECT_THAT(run(), HasSubstr("whose record was not enqueued before it"));
}

TEST_F(ModelDeviceTest, RefusesToRecordTwice) {
  add("move", RecordCommand{"moved"}, "First");
  make();
  EXPECT_EQ(run(1), "");
  EXPECT_THAT(run(1), HasSubstr("records an event that was recorded"));
}

TEST_F(ModelDeviceTest, FindsWhatNothingHasWritten) {
  add("compute", copy(1, 2), "Second");
  make();
  EXPECT_THAT(run(), HasSubstr("reads bytes 64 to 79 of space 'device', in "
                               "buffer 'y', which nothing has written"));
}

TEST_F(ModelDeviceTest, FindsWhatAnotherBufferHasOverwritten) {
  program.buffers[1].offset = program.buffers[2].offset;
  add("compute", copy(0, 1), "First");
  add("compute", copy(0, 2), "Second");
  add("compute", copy(1, 0), "Third");
  make();
  EXPECT_THAT(run(), HasSubstr("which copy for node 'Second' (body 'body', "
                               "stream 'compute') has written through another "
                               "buffer"));
}

TEST_F(ModelDeviceTest, FindsWhatWasReleased) {
  add("compute", copy(0, 1), "First");
  add("compute", copy(1, 2), "Second");
  program.bodies[0].commands.back().releases = {contiguousView(1, {4})};
  add("compute", copy(1, 2), "Third");
  make();
  EXPECT_THAT(run(), HasSubstr("'Third' (body 'body', stream 'compute') reads "
                               "bytes 64 to 79 of space 'device', in buffer "
                               "'y', which copy for node 'Second' (body "
                               "'body', stream 'compute') has released"));
}

TEST_F(ModelDeviceTest, FindsAReleaseThatDoesNotWaitForAReader) {
  add("move", copy(0, 1), "First");
  add("compute", copy(0, 2), "Second");
  program.bodies[0].commands.back().releases = {contiguousView(0, {4})};
  make();
  EXPECT_THAT(run(),
              HasSubstr("found a race: copy for node 'Second' (body 'body', "
                        "stream 'compute') writes bytes 0 to 15 of space "
                        "'device', in buffer 'x', and copy for node 'First'"));
}

TEST_F(ModelDeviceTest, LosesAWaitOnPurpose) {
  add("move", copy(0, 1), "First");
  add("move", RecordCommand{"moved"}, "First");
  add("compute", WaitCommand{"moved"}, "Second");
  add("compute", copy(1, 2), "Second");
  LostWaits waits;
  options.program = "main";
  options.lost = {2};
  options.lostWaits = &waits;
  make();
  EXPECT_THAT(run(), HasSubstr("found a race"));
  EXPECT_EQ(waits.seen, 1u);
  EXPECT_EQ(waits.freed, 1u) << "the second copy";
  EXPECT_EQ(waits.conflicts, 1u);
}

TEST_F(ModelDeviceTest, KnowsAWaitThatOthersImply) {
  // The one behind it waits for all that comes before, and nothing is between.
  add("move", copy(0, 1), "First");
  add("move", RecordCommand{"moved"}, "First");
  add("move", RecordCommand{"again"}, "First");
  add("compute", WaitCommand{"moved"}, "Second");
  add("compute", WaitCommand{"again"}, "Second");
  add("compute", copy(1, 2), "Second");
  LostWaits waits;
  options.program = "main";
  options.lost = {3};
  options.lostWaits = &waits;
  make();
  EXPECT_EQ(run(), "");
  EXPECT_EQ(waits.seen, 1u);
  EXPECT_EQ(waits.freed, 0u);
}

TEST_F(ModelDeviceTest, KnowsAWaitThatOrdersNothing) {
  add("move", copy(0, 1), "First");
  add("move", RecordCommand{"moved"}, "First");
  add("compute", WaitCommand{"moved"}, "Second");
  add("compute", copy(0, 2), "Second");
  LostWaits waits;
  options.program = "main";
  options.lost = {2};
  options.lostWaits = &waits;
  make();
  EXPECT_EQ(run(), "");
  EXPECT_EQ(waits.freed, 1u);
  EXPECT_EQ(waits.conflicts, 0u) << "two readers";
}

TEST_F(ModelDeviceTest, LosesACopyOnPurpose) {
  add("compute", copy(0, 1), "First");
  add("compute", copy(1, 2), "Second");
  options.program = "main";
  options.lost = {0};
  make();
  EXPECT_THAT(run(), HasSubstr("which nothing has written"));
}

TEST_F(ModelDeviceTest, TakesScratchAsItComes) {
  program.buffers[1].role = "scratch";
  add("compute", copy(1, 2), "Second");
  make();
  EXPECT_EQ(run(), "");
}

TEST_F(ModelDeviceTest, LetsTwoKernelsKeepRowsInOneScratchInTurn) {
  addKernels(/*areOrdered=*/true);
  make();
  EXPECT_EQ(run(), "");
}

TEST_F(ModelDeviceTest, FindsTwoKernelsInOneScratchThatNothingOrders) {
  addKernels(/*areOrdered=*/false);
  make();
  EXPECT_THAT(run(), HasSubstr("of space 'device', in buffer 'rows', and "
                               "kernel for node 'First'"));
}

TEST_F(ModelDeviceTest, FindsTwoCollectivesThatNothingOrders) {
  CollectiveCommand collective;
  collective.kind = "all_reduce";
  collective.inputs = collective.outputs = {contiguousView(0, {4})};
  add("compute", collective, "First");
  collective.inputs = collective.outputs = {contiguousView(1, {4})};
  add("move", collective, "Second");
  calls[0] = calls[1] = [](const Address *) { return Status(); };
  make();
  EXPECT_THAT(run(), HasSubstr("found two collectives that no event orders"));
}

TEST_F(ModelDeviceTest, LetsNoCommandHoldUpAnotherStream) {
  // Each is a message that another rank answers when it has the other's.
  SendCommand send{contiguousView(0, {4}), "pp", 1, 0};
  add("compute", send, "First");
  add("move", send, "Second");
  std::atomic<int> met{0};
  calls[0] = calls[1] = [&](const Address *) {
    ++met;
    while (met < 2)
      std::this_thread::yield();
    return Status();
  };
  make("starve:1");
  EXPECT_EQ(run(), "");
}

TEST_F(ModelDeviceTest, HoldsTheHostToTheViewsOfItsCommand) {
  add("compute", SendCommand{contiguousView(0, {4}), "pp", 1, 0}, "First");
  calls[0] = [&](const Address *views) {
    float value = 0;
    ACCEL_RT_RETURN_IF_ERROR(device->download(&value, views[0], {4}));
    return device->upload(views[0], &value, {4}); // it sends, and writes not
  };
  make();
  EXPECT_EQ(run(), "writes bytes 0 to 3 of space 'device', which are in none "
                   "of its views");
}

TEST_F(ModelDeviceTest, LetsTheHostCopyWhenAllIsJoined) {
  add("compute", copy(0, 1), "First");
  make();
  streams->enqueue(steps[0], {1, 0});
  float value = 0;
  Status status = device->download(&value, base, {4});
  ASSERT_FALSE(status.ok());
  EXPECT_THAT(status.message(), HasSubstr("it must join first"));
  EXPECT_TRUE(streams->join().status.ok());
  EXPECT_TRUE(device->download(&value, base, {4}).ok());
}

TEST_F(ModelDeviceTest, AllocatesNothingAfterLoad) {
  make();
  Address address;
  Status status = device->allocate({"device", 64, 64, 0}, address);
  ASSERT_FALSE(status.ok());
  EXPECT_THAT(status.message(), HasSubstr("after load"));
}

TEST_F(ModelDeviceTest, CapturesNoFiles) {
  add("compute", ReadCommand{"input", "x", {}, contiguousView(1, {4})}, "Read");
  calls[0] = [](const Address *) { return Status(); };
  make();
  std::unique_ptr<Graph> graph;
  Status status = streams->capture(steps, graph);
  ASSERT_FALSE(status.ok());
  EXPECT_THAT(status.message(), HasSubstr("read for node 'Read' (body 'body', "
                                          "stream 'compute'), which may stand "
                                          "in no graph"));
}

TEST_F(ModelDeviceTest, CapturesNothingThatSaysItCannotBe) {
  add("compute", copy(0, 1), "First");
  make();
  works[0]->isCapturable = false;
  std::unique_ptr<Graph> graph;
  EXPECT_FALSE(streams->capture(steps, graph).ok());
}

TEST_F(ModelDeviceTest, CallsNoDeviceFromWithinAGraph) {
  add("compute", RecvCommand{contiguousView(0, {4}), "pp", 1, 0}, "First");
  calls[0] = [&](const Address *views) {
    return device->upload(views[0], kValues.data(), {16});
  };
  make();
  std::unique_ptr<Graph> graph;
  ASSERT_TRUE(streams->capture(steps, graph).ok());
  streams->replay(*graph, {1, 0});
  Status status = streams->join().status;
  ASSERT_FALSE(status.ok());
  EXPECT_THAT(status.message(), HasSubstr("from within a graph"));
}

TEST_F(ModelDeviceTest, CapturesBeforeAnythingIsEnqueued) {
  add("compute", copy(0, 1), "First");
  make();
  EXPECT_EQ(run(), "");
  std::unique_ptr<Graph> graph;
  EXPECT_FALSE(streams->capture(steps, graph).ok());
}

TEST_F(ModelDeviceTest, CapturesNoWaitBeforeItsRecord) {
  add("compute", WaitCommand{"moved"}, "Second");
  add("move", RecordCommand{"moved"}, "First");
  make();
  std::unique_ptr<Graph> graph;
  Status status = streams->capture(steps, graph);
  ASSERT_FALSE(status.ok());
  EXPECT_THAT(status.message(), HasSubstr("before the record"));
}

TEST_F(ModelDeviceTest, CapturesNoEdgeOfSomeTurns) {
  add("move", RecordCommand{"moved"}, "First");
  add("compute", WaitCommand{"moved"}, "Second");
  make();
  steps[0].count = {4, {{0, 0, 1}}};
  steps[1].count = {4, {{0, 0, 0}}}; // every turn waits for the first
  std::unique_ptr<Graph> graph;
  ASSERT_TRUE(streams->capture(steps, graph).ok());
  streams->replay(*graph, {1, 0});
  Status status = streams->join().status;
  ASSERT_FALSE(status.ok());
  EXPECT_THAT(status.message(), HasSubstr("of its own segment in some turns"));
}

TEST_F(ModelDeviceTest, ReplaysByEdges) {
  add("move", copy(0, 1), "First");
  add("move", RecordCommand{"moved"}, "First");
  add("compute", WaitCommand{"moved"}, "Second");
  add("compute", copy(1, 2), "Second");
  add("compute", RecordCommand{"read"}, "Second");
  add("move", WaitCommand{"read"}, "Third");
  make("last");
  std::unique_ptr<Graph> graph;
  ASSERT_TRUE(streams->capture(steps, graph).ok());
  steps.clear(); // whoever captures keeps what it needs
  for (uint32_t turn = 0; turn < 3; ++turn)
    streams->replay(*graph, {1, turn});
  EXPECT_TRUE(streams->join().status.ok());
  EXPECT_EQ(find(2), kValues);
}

TEST_F(ModelDeviceTest, FindsRacesOfWhatIsReplayed) {
  // One turn is in order, and the next does not wait for it.
  add("move", copy(0, 1), "First");
  add("move", RecordCommand{"moved"}, "First");
  add("compute", WaitCommand{"moved"}, "Second");
  add("compute", copy(1, 2), "Second");
  make();
  std::unique_ptr<Graph> graph;
  ASSERT_TRUE(streams->capture(steps, graph).ok());
  for (uint32_t turn = 0; turn < 2; ++turn)
    streams->replay(*graph, {1, turn});
  Status status = streams->join().status;
  ASSERT_FALSE(status.ok());
  EXPECT_THAT(status.message(), HasSubstr("'First' (body 'body', stream 'move')"
                                          " writes bytes 64 to 79"));
}

TEST(ModelOrder, RefusesOthers) {
  Order order;
  for (const char *text : {"", "seed", "seed:", "seed:x", "last:1", "first"}) {
    Status status = Order::parse(text, order);
    ASSERT_FALSE(status.ok()) << text;
    EXPECT_THAT(status.message(), HasSubstr("'seed:N', 'last' or 'starve"));
  }
}

TEST(ModelOrder, TakesExtremes) {
  Order order;
  std::vector<Ready> ready{{3, 0}, {7, 1}, {5, 2}};
  ASSERT_TRUE(Order::parse("last", order).ok());
  EXPECT_EQ(order.pick(ready), 1u);
  ASSERT_TRUE(Order::parse("starve:1", order).ok());
  for (int i = 0; i < 20; ++i)
    EXPECT_NE(order.pick(ready), 1u);
  EXPECT_EQ(order.pick({{7, 1}}), 0u) << "when there is nothing else";
}

} // namespace
