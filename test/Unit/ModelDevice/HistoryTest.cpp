// Bytes and clocks: what is ordered, what is not, and what is found there.

#include "test/ModelDevice/History.h"

#include <gtest/gtest.h>

using namespace accel::rt::model;
using Kind = Conflict::Kind;

namespace {

/// Two streams, each with its clock; the number of a command is its index.
struct TwoStreams {
  std::vector<Clock> clocks{{0, 0}, {0, 0}};
  Event next(size_t stream) {
    uint64_t index = ++clocks[stream][stream];
    return {stream, index, static_cast<int64_t>(index), -1};
  }
  /// What has happened before the event that next() gave.
  Clock before(const Event &event) const {
    Clock clock = clocks[event.stream];
    --clock[event.stream];
    return clock;
  }
  /// `to` waits for all that `from` has done.
  void order(size_t from, size_t to) {
    for (size_t i = 0; i < 2; ++i)
      clocks[to][i] = std::max(clocks[to][i], clocks[from][i]);
  }
  std::optional<Conflict> read(History &history, size_t stream, uint64_t begin,
                               uint64_t end, int64_t root = -1,
                               bool needsValue = true) {
    Event event = next(stream);
    return history.read(begin, end, event, before(event), root, needsValue);
  }
  std::optional<Conflict> write(History &history, size_t stream, uint64_t begin,
                                uint64_t end, int64_t root = -1) {
    Event event = next(stream);
    return history.write(begin, end, event, before(event), root);
  }
};

TEST(History, OrdersWhatEventsOrder) {
  History history;
  TwoStreams streams;
  EXPECT_FALSE(streams.write(history, 0, 0, 64));
  EXPECT_FALSE(streams.read(history, 0, 0, 64)) << "its own stream's";
  streams.order(0, 1);
  EXPECT_FALSE(streams.read(history, 1, 16, 32));
  EXPECT_FALSE(streams.read(history, 0, 0, 64)) << "two readers";
  streams.order(1, 0);
  EXPECT_FALSE(streams.write(history, 0, 0, 64));
}

TEST(History, FindsAWriteThatAReaderDoesNotWaitFor) {
  History history;
  TwoStreams streams;
  EXPECT_FALSE(streams.write(history, 0, 0, 64));
  EXPECT_FALSE(streams.write(history, 0, 64, 128));
  auto found = streams.read(history, 1, 96, 200, -1, false);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->kind, Kind::Race);
  EXPECT_EQ(found->other.command, 2) << "the later of the two";
  EXPECT_TRUE(found->otherWrites);
  EXPECT_EQ(found->begin, 96u);
  EXPECT_EQ(found->end, 128u);
}

TEST(History, FindsAReaderThatAWriteDoesNotWaitFor) {
  History history;
  TwoStreams streams;
  EXPECT_FALSE(streams.write(history, 0, 0, 64));
  streams.order(0, 1);
  EXPECT_FALSE(streams.read(history, 1, 8, 16));
  auto found = streams.write(history, 0, 0, 64);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->kind, Kind::Race);
  EXPECT_FALSE(found->otherWrites);
  EXPECT_EQ(found->begin, 8u);
  EXPECT_EQ(found->end, 16u);
}

TEST(History, FindsTwoWrites) {
  History history;
  TwoStreams streams;
  EXPECT_FALSE(streams.write(history, 0, 0, 8));
  EXPECT_FALSE(streams.write(history, 1, 8, 16)) << "beside it";
  auto found = streams.write(history, 1, 7, 8);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->kind, Kind::Race);
}

TEST(History, KnowsEveryStreamsLastRead) {
  History history;
  TwoStreams streams;
  history.writeByHost(0, 8);
  EXPECT_FALSE(streams.read(history, 0, 0, 8));
  EXPECT_FALSE(streams.read(history, 1, 0, 8));
  auto found = streams.write(history, 0, 0, 8);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->other.stream, 1u);
}

TEST(History, FindsWhatNothingHasWritten) {
  History history;
  TwoStreams streams;
  history.writeByHost(0, 8);
  EXPECT_FALSE(streams.read(history, 0, 0, 8));
  auto found = streams.read(history, 0, 4, 12);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->kind, Kind::Unwritten);
  EXPECT_EQ(found->begin, 8u);
  EXPECT_FALSE(streams.read(history, 0, 4, 12, -1, /*needsValue=*/false));
}

TEST(History, FindsWhatWasReleased) {
  History history;
  TwoStreams streams;
  history.writeByHost(0, 8);
  Event release = streams.next(0);
  EXPECT_FALSE(history.release(0, 4, release, streams.before(release)));
  EXPECT_FALSE(streams.read(history, 0, 4, 8));
  auto found = streams.read(history, 0, 0, 8);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->kind, Kind::Released);
  EXPECT_EQ(found->end, 4u);
  EXPECT_FALSE(streams.write(history, 0, 0, 8));
  EXPECT_FALSE(streams.read(history, 0, 0, 8));
}

TEST(History, OrdersWhatIsReleased) {
  History history;
  TwoStreams streams;
  history.writeByHost(0, 8);
  EXPECT_FALSE(streams.read(history, 1, 0, 8));
  Event release = streams.next(0);
  auto found = history.release(0, 8, release, streams.before(release));
  ASSERT_TRUE(found);
  EXPECT_EQ(found->kind, Kind::Race);
}

TEST(History, FindsWhatAnotherBufferHasOverwritten) {
  History history;
  TwoStreams streams;
  EXPECT_FALSE(streams.write(history, 0, 0, 8, /*root=*/1));
  EXPECT_FALSE(streams.read(history, 0, 0, 8, /*root=*/1));
  auto found = streams.read(history, 0, 0, 8, /*root=*/2);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->kind, Kind::Overwritten);
  history.writeByHost(0, 8);
  EXPECT_FALSE(streams.read(history, 0, 0, 8, /*root=*/2));
}

} // namespace
