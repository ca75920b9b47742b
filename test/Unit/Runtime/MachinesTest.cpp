// What processes learn of each other's machines when they come together, and
// how their ranks reach each other.

#include "Conformance/SocketNetwork.h"
#include "Network/Lanes.h"

#include <cstdlib>
#include <gtest/gtest.h>
#include <sys/socket.h>
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

/// What a process of a run of three, of which 1 is on another machine, does
/// with its lanes: 0, all is well.
int useLanes(std::unique_ptr<Network> network, const std::string &networks) {
  setenv("OMPI_MCA_btl_tcp_if_include", networks.c_str(), 1);
  setenv("ACCEL_MESSAGES", "sockets", 1);
  int64_t self = network->rank();
  std::string host = self == 1 ? "b" : "a", why;
  std::unique_ptr<Machines> machines;
  std::unique_ptr<Lanes> lanes;
  if (!Machines::join(std::move(network), {host, host, ""}, machines).ok() ||
      !Lanes::join(*machines, lanes, why).ok())
    return 1;
  if (!lanes)
    return why == "machine 'b' has no address of IPv4 that may be used" ? 2 : 3;
  std::vector<int64_t> peers =
      self == 1 ? std::vector<int64_t>{0, 2} : std::vector<int64_t>{1};
  if (!lanes->serve(2).ok())
    return 4;
  for (int64_t peer : peers)
    for (uint32_t number : {0, 1})
      for (bool sends : {false, true})
        lanes->want(sends, peer, number);
  int looks = 0;
  Status status = lanes->stand([&] {
    return ++looks < 1000 ? Status() : Status::error("they do not stand");
  });
  if (!status.ok())
    return 5;
  for (int64_t peer : peers)
    for (uint32_t number : {0, 1}) {
      int64_t said[] = {self, number};
      if (send(lanes->socketOf(true, peer, number), said, sizeof said, 0) !=
          sizeof said)
        return 6;
    }
  for (int64_t peer : peers)
    for (uint32_t number : {0, 1}) {
      int64_t heard[2] = {};
      if (recv(lanes->socketOf(false, peer, number), heard, sizeof heard,
               MSG_WAITALL) != sizeof heard ||
          heard[0] != peer || heard[1] != number)
        return 7;
    }
  return machines->agree(Status()).ok() ? 0 : 8; // nobody goes before all have
}

std::vector<int> lanesOf(const std::string &networks) {
  conformance::SocketMesh mesh;
  EXPECT_TRUE(conformance::SocketMesh::create(3, mesh).ok());
  std::vector<pid_t> all;
  for (int64_t rank = 0; rank < 3; ++rank) {
    all.push_back(fork());
    if (all.back() == 0)
      _exit(useLanes(mesh.join(rank), rank == 1 ? networks : "lo"));
  }
  std::vector<int> codes;
  for (pid_t process : all) {
    int status = 0;
    waitpid(process, &status, 0);
    codes.push_back(WIFEXITED(status) ? WEXITSTATUS(status) : 99);
  }
  return codes;
}

TEST(Machines, RanksOfDifferentOnesHaveLanesBothWays) {
  EXPECT_EQ(lanesOf("lo"), (std::vector<int>{0, 0, 0}));
}

TEST(Machines, WithoutANetworkThatMayBeUsedThereAreNoLanes) {
  EXPECT_EQ(lanesOf("none0"), (std::vector<int>{2, 2, 2}));
}

} // namespace
