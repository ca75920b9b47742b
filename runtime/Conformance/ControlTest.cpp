// What every control plane must do, over memory that is shared, over sockets,
// and over machines of which each has its own: ranks meet, agree and leave
// words for each other, their parent sees how they are, and nobody waits for a
// rank that is no more.

#include "Conformance/MachinesCenter.h"
#include "Conformance/SocketControl.h"
#include "Control/SharedControl.h"

#include <gmock/gmock.h>

#include <chrono>
#include <csignal>
#include <cstring>
#include <thread>
#include <unistd.h>

using namespace accel::rt;
using namespace accel::rt::conformance;

namespace {

constexpr int kGood = 0, kWrong = 1, kAborted = 2;

void nap(int milliseconds) {
  std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds));
}

template <class Center> class ControlConformance : public ::testing::Test {
protected:
  using Life = std::function<int(ControlPlane &)>;

  /// Three ranks.
  void start(const Life &life) {
    ControlSize size;
    size.ranks = 3;
    size.calls = 2;
    size.words = 4;
    size.entries = 2;
    ASSERT_TRUE(center.create(size, /*spin=*/50).ok());
    for (int64_t rank = 0; rank < 3; ++rank)
      ASSERT_TRUE(center.start(rank, life).ok());
  }
  /// Waits for their ends: exit codes, or signals below 0. Like whoever
  /// oversees ranks, it aborts the run when one ended badly.
  std::vector<int> ends() {
    std::vector<int> found(3, 99);
    auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    for (int left = 3; left > 0;) {
      for (int64_t rank = 0; rank < 3; ++rank)
        if (std::optional<RankEnd> end = center.findEnd(rank)) {
          found[rank] = end->bySignal ? -end->code : end->code;
          if (found[rank] != kGood)
            center.abort();
          --left;
        }
      if (std::chrono::steady_clock::now() > limit) {
        ADD_FAILURE() << "ranks do not end";
        for (int64_t rank = 0; rank < 3; ++rank)
          center.kill(rank);
        limit += std::chrono::seconds(20);
      }
      nap(1);
    }
    return found;
  }
  static std::vector<int> all(int code) { return {code, code, code}; }

  Center center;
};

using Centers = ::testing::Types<SharedControl, SocketControl, MachinesCenter>;
TYPED_TEST_SUITE(ControlConformance, Centers);

TYPED_TEST(ControlConformance, MeetsAndPassesWordsOn) {
  this->start([](ControlPlane &plane) {
    for (uint64_t round = 1; round <= 5; ++round) {
      size_t word = static_cast<size_t>(plane.rank());
      nap(static_cast<int>(word));
      plane.post(word, 100 * round + word);
      if (!plane.barrier().ok())
        return kAborted;
      for (size_t other = 0; other < 3; ++other)
        if (plane.find(other) != 100 * round + other)
          return kWrong;
      // A word is written again after all have read it.
      if (!plane.barrier().ok())
        return kAborted;
    }
    return plane.numRanks() == 3 && plane.self().barriers == 10 ? kGood
                                                                : kWrong;
  });
  EXPECT_EQ(this->ends(), this->all(kGood));
}

/// A thread beside the one that meets has no other way to come to terms.
TYPED_TEST(ControlConformance, PassesWordsOnWithoutAMeeting) {
  this->start([](ControlPlane &plane) {
    // Each writes what it has to say first, and then that it has.
    size_t own = static_cast<size_t>(plane.rank()), said = 3;
    for (uint64_t round = 1; round <= 20; ++round) {
      if (round % 3 == own) {
        plane.post(own, 10 * round);
        plane.post(said, round);
      }
      for (int look = 0; plane.find(said) < round; ++look) {
        if (look == 5000)
          return kWrong;
        nap(1);
      }
      if (plane.find(round % 3) != 10 * round)
        return kWrong;
    }
    return kGood;
  });
  EXPECT_EQ(this->ends(), this->all(kGood));
}

TYPED_TEST(ControlConformance, AgreesOnTheGreatest) {
  this->start([](ControlPlane &plane) {
    // One agreement follows on another, with nothing in between.
    for (int64_t round = 0; round < 40; ++round) {
      int64_t value = -10 * round + (plane.rank() + round) % 3;
      if (!plane.agree(value).ok())
        return kAborted;
      if (value != -10 * round + 2)
        return kWrong;
    }
    return kGood;
  });
  EXPECT_EQ(this->ends(), this->all(kGood));
}

TYPED_TEST(ControlConformance, ShowsHowRanksAreAndAsksThemToStop) {
  this->start([](ControlPlane &plane) {
    StepRecord record;
    record.values[0] = 0.5;
    plane.self().progress = 7;
    plane.report(1, 2.5 + static_cast<double>(plane.rank()), record);
    ++plane.self().runsDone;
    while (!plane.isStopWanted())
      nap(1);
    plane.self().interruptedAt = 1;
    plane.self().stoppedAt = 4 - plane.rank();
    plane.counts(1)[0].commands = 11;
    plane.close();
    return kGood;
  });
  for (int look = 0; this->center.rank(2).runsDone != 1 && look < 5000; ++look)
    nap(1);
  EXPECT_EQ(this->center.rank(2).progress, 7u);
  EXPECT_EQ(this->center.seconds(2, 1), 4.5);
  for (int look = 0; this->center.rank(0).runsDone != 1 && look < 5000; ++look)
    nap(1);
  EXPECT_EQ(this->center.record(1).values[0], 0.5);
  EXPECT_GT(this->center.process(2), 0);
  EXPECT_FALSE(this->center.isStopWanted());
  this->center.wantStop();
  EXPECT_TRUE(this->center.isStopWanted());
  EXPECT_EQ(this->ends(), this->all(kGood));
  EXPECT_EQ(this->center.process(2), 0);
  EXPECT_EQ(this->center.interruptedAt(), 1);
  EXPECT_EQ(this->center.stoppedAt(), 2) << "the first of them";
  EXPECT_EQ(this->center.counts(1, 1)[0].commands, 11u);
  EXPECT_EQ(this->center.counts(1, 0)[0].commands, 0u);
}

TYPED_TEST(ControlConformance, EndsTheWaitsForARankThatDied) {
  this->start([](ControlPlane &plane) {
    if (plane.rank() == 1)
      raise(SIGKILL);
    Status status = plane.barrier();
    return !status.ok() && status.message() == kAbortedMessage ? kAborted
                                                               : kWrong;
  });
  EXPECT_EQ(this->ends(), (std::vector<int>{kAborted, -SIGKILL, kAborted}));
}

TYPED_TEST(ControlConformance, EndsTheOthersWhereARankAborts) {
  this->start([](ControlPlane &plane) {
    if (plane.rank() == 2) {
      std::strcpy(plane.self().message, "no disk");
      plane.self().state = RankControl::Failed;
      plane.abort();
      plane.close();
      return kWrong;
    }
    if (plane.rank() == 1) { // which waits for nobody, and asks
      while (!plane.isAborted())
        nap(1);
      return kAborted;
    }
    int64_t value = 0;
    return plane.agree(value).ok() ? kGood : kAborted;
  });
  EXPECT_EQ(this->ends(), (std::vector<int>{kAborted, kAborted, kWrong}));
  EXPECT_TRUE(this->center.isAborted());
  EXPECT_EQ(this->center.rank(2).state, RankControl::Failed);
  EXPECT_STREQ(this->center.rank(2).message, "no disk");
}

TYPED_TEST(ControlConformance, EndsRanksByForce) {
  this->start([](ControlPlane &) {
    for (;;)
      pause();
    return kGood;
  });
  EXPECT_FALSE(this->center.findEnd(0));
  for (int64_t rank = 0; rank < 3; ++rank)
    this->center.kill(rank);
  EXPECT_EQ(this->ends(), this->all(-SIGKILL));
}

/// Beyond what each must do: a keeper that says nothing any more is lost, and
/// its machine named, within five seconds.
class SilentMachine : public ControlConformance<MachinesCenter> {
protected:
  void loseRankOf(int64_t rank, int signal) {
    start([](ControlPlane &plane) {
      while (plane.barrier().ok())
        nap(1);
      return kAborted;
    });
    for (int look = 0; center.rank(rank).barriers < 1 && look < 5000; ++look)
      nap(1);
    auto begin = std::chrono::steady_clock::now();
    ::kill(center.keeperOf(rank), signal);
    while (!center.isAborted() &&
           std::chrono::steady_clock::now() - begin < std::chrono::seconds(9))
      nap(10);
    EXPECT_LT(std::chrono::steady_clock::now() - begin,
              std::chrono::seconds(5));
    EXPECT_GT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(3))
        << "a machine may be slow";
    EXPECT_EQ(ends()[0], kAborted);
    EXPECT_THAT(center.rank(rank).message,
                ::testing::HasSubstr(rank == 1
                                         ? "machine 'b' has given no sign of"
                                         : "machine 'a' has given no sign of"));
  }
};

TEST_F(SilentMachine, IsLostWhereItsKeeperIsKilled) { loseRankOf(1, SIGKILL); }
TEST_F(SilentMachine, IsLostWhereItIsStopped) { loseRankOf(2, SIGSTOP); }

} // namespace
