// What processes learn of each other's machines when they come together.

#include "Network/Machines.h"
#include "Conformance/SocketNetwork.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace accel::rt;

namespace {

/// The cores that the ranks of each machine share, by rank.
std::vector<int64_t> coresOf(const std::vector<ProcessPlace> &places) {
  conformance::SocketMesh mesh;
  int64_t ranks = static_cast<int64_t>(places.size());
  EXPECT_TRUE(conformance::SocketMesh::create(ranks, mesh).ok());
  auto join = [&](int64_t rank) {
    std::unique_ptr<Machines> machines;
    Status status = Machines::join(mesh.join(rank),
                                   places[static_cast<size_t>(rank)], machines);
    return status.ok() ? machines->coresHere() : -1;
  };
  std::vector<pid_t> others;
  for (int64_t rank = 1; rank < ranks; ++rank) {
    others.push_back(fork());
    if (others.back() == 0)
      _exit(static_cast<int>(join(rank)));
  }
  std::vector<int64_t> found{join(0)};
  for (pid_t other : others) {
    int status = 0;
    waitpid(other, &status, 0);
    EXPECT_TRUE(WIFEXITED(status));
    found.push_back(WEXITSTATUS(status));
  }
  return found;
}

// Slurm gives each task cores of its own: together they are the machine's.
TEST(Machines, CoresAreThoseThatAnyRankOfTheMachineMayUse) {
  EXPECT_EQ(coresOf({{"a", "a", "\x0f"},
                     {"b", "b", "\xff\x01"},
                     {"a", "a", "\xf0\x01"},
                     {"b", "b", "\xff"}}),
            (std::vector<int64_t>{9, 9, 9, 9}));
  EXPECT_EQ(
      coresOf({{"a", "a", "\x07"}, {"a", "a", "\x06"}, {"b", "b", "\x03"}}),
      (std::vector<int64_t>{3, 3, 2}));
}

TEST(Machines, APlaceSaysWhichCoresItsProcessMayUse) {
  EXPECT_GE(countCores(placeOfThisProcess().cores), 1);
}

} // namespace
