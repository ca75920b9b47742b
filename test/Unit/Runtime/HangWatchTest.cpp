// Who is named in a hang: by what ranks came to, not by how much they did.

#include "Run/HangWatch.h"
#include "Control/SharedControl.h"
#include "TinyExecutable.h"

#include <gmock/gmock.h>

#include <csignal>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

using namespace accel::rt;
using namespace accel::rt::test;
using ::testing::HasSubstr;

namespace {

/// Three ranks between two steps, all of which say that they wait.
class HangWatchTest : public ::testing::Test {
protected:
  HangWatchTest() : plan(meetingExecutable(3)) {
    EXPECT_TRUE(center.create({/*ranks=*/3}, /*spin=*/50).ok());
    for (int64_t rank = 0; rank < 3; ++rank) {
      RankControl &self = this->rank(rank);
      self.state = RankControl::Running;
      self.command[0] = RankControl::kBetweenRuns;
      self.waiting = true;
      self.barriers = 7;
    }
  }

  std::string describe(pid_t second = 0) {
    return HangWatch(plan, center, 1).describe({0, second, 0});
  }

  Executable plan;
  RankControl &rank(int64_t number) {
    planes.push_back(center.makePlane(number));
    return planes.back()->self();
  }

  SharedControl center;
  std::vector<std::unique_ptr<ControlPlane>> planes;
};

TEST_F(HangWatchTest, CountsNoTimeInWhichItWasStoppedItself) {
  HangWatch watch(plan, center, 1);
  EXPECT_FALSE(watch.look());
  std::this_thread::sleep_for(std::chrono::milliseconds(1500));
  EXPECT_FALSE(watch.look()) << "a parent that was stopped saw nothing";
}

TEST_F(HangWatchTest, NamesWhoIsBehindAndNotWhoDidLess) {
  EXPECT_THAT(describe(), HasSubstr("rank 0, waiting for others, between two "
                                    "runs; rank 1, waiting for others"));
  // It was stopped in a wait that is over, and has more to do than the others.
  rank(1).barriers = 6;
  rank(1).progress = 1000;
  EXPECT_THAT(describe(),
              HasSubstr("rank 0, waiting for others, between two runs; rank 1, "
                        "between two runs; rank 2, waiting for others, "));
}

TEST_F(HangWatchTest, LetsWhoIsInAMessageBeBehind) {
  // Of a pipeline's rank: it waits for one of another program, and its own
  // program's others for it.
  Body &body = plan.programs[0].bodies[0];
  ASSERT_FALSE(body.commands.empty());
  body.commands[0].what = SendCommand();
  rank(1).barriers = 6;
  rank(1).command[0] = 0;
  EXPECT_THAT(describe(), HasSubstr("; rank 1, waiting for others, in a send"));
  rank(1).waiting = false;
  EXPECT_THAT(describe(), HasSubstr("; rank 1, in a send"));
}

TEST_F(HangWatchTest, NamesWhoComputesOnAnotherStream) {
  const Body &body = plan.programs[0].bodies[1];
  int64_t first =
      static_cast<int64_t>(plan.programs[0].bodies[0].commands.size());
  ASSERT_TRUE(std::holds_alternative<KernelCommand>(body.commands[0].what) ||
              std::holds_alternative<ReadCommand>(body.commands[0].what));
  rank(1).command[0] = first;
  rank(1).command[1] = first + static_cast<int64_t>(body.commands.size()) - 1;
  EXPECT_THAT(describe(), HasSubstr("; rank 1, in a "));
  // A collective alone is a wait.
  rank(1).command[0] = RankControl::kIdle;
  EXPECT_THAT(describe(),
              HasSubstr("; rank 1, waiting for others, in a collective"));
}

TEST_F(HangWatchTest, NamesWhoHasFinishedAndWhoIsStopped) {
  rank(0).state = RankControl::Finished;
  rank(1).waiting = false;
  pid_t child = fork();
  if (child == 0)
    for (;;)
      pause();
  kill(child, SIGSTOP);
  int status;
  waitpid(child, &status, WUNTRACED);
  std::string found = describe(child);
  kill(child, SIGKILL);
  waitpid(child, &status, 0);
  EXPECT_THAT(found, HasSubstr("rank 0, which has finished; rank 1, between "
                               "two runs (process " +
                               std::to_string(child) +
                               ", in state T (stopped)); rank 2, waiting"));
}

} // namespace
