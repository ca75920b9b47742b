// Ports of all ranks, and the lanes of one.

#include "Network/Lanes.h"

#include "Base/SystemError.h"

#include <cstdlib>
#include <dirent.h>
#include <sstream>

namespace accel::rt {
namespace {

constexpr std::chrono::milliseconds kLook{20};

bool isEmptyFolder(const char *path) {
  DIR *folder = opendir(path);
  int entries = 0;
  while (folder && readdir(folder))
    ++entries;
  if (folder)
    closedir(folder);
  return entries <= 2; // '.' and '..'
}

} // namespace

/// Takes ports at the addresses by which others come, and learns theirs.
Status Lanes::takePorts(Machines &machines, const Routes &routes,
                        std::string &why) {
  size_t here = static_cast<size_t>(machines.here());
  std::string mine;
  for (uint32_t address : routes.addresses[here]) {
    Endpoint end;
    doors.push_back(takePort(address, end));
    mine += std::to_string(doors.back() ? end.port : 0) + " ";
  }
  std::vector<std::string> all;
  ACCEL_RT_RETURN_IF_ERROR(machines.exchange(mine, all));
  for (int64_t rank = 0; rank < machines.numRanks(); ++rank) {
    size_t to = static_cast<size_t>(machines.machineOf(rank));
    std::istringstream ports(all[static_cast<size_t>(rank)]);
    placeOf.emplace_back();
    for (size_t i = 0; i < routes.addresses[to].size(); ++i) {
      uint16_t port = 0;
      if (!(ports >> port) || port == 0)
        why = "rank " + std::to_string(rank) + " on machine " +
              inQuotes(machines.hostOf(rank)) + " has no free port";
      if (to != here && i == routes.chosen[to])
        placeOf.back() = {routes.addresses[to][i], port};
    }
  }
  return Status();
}

Status Lanes::join(Machines &machines, std::unique_ptr<Lanes> &lanes,
                   std::string &why) {
  if (machines.numMachines() == 1)
    return Status();
  auto made = std::make_unique<Lanes>();
  const char *wish = std::getenv("ACCEL_MESSAGES");
  std::string wanted = wish ? wish : "";
  Status own;
  if (machines.rank() == 0)
    own = made->secret.make();
  if (!wanted.empty() && wanted != "mpi" && wanted != "sockets")
    own = Status::error("expected mpi or sockets for ACCEL_MESSAGES, found " +
                        inQuotes(wanted));
  ACCEL_RT_RETURN_IF_ERROR(machines.agree(own));
  bool hasBetter = wanted.empty() && (!isEmptyFolder("/sys/class/infiniband") ||
                                      !isEmptyFolder("/sys/class/cxi"));
  std::vector<std::string> all;
  ACCEL_RT_RETURN_IF_ERROR(machines.exchange(
      wanted == "mpi" ? "ACCEL_MESSAGES=mpi asks for it"
      : hasBetter ? "machine " + inQuotes(machines.hostOf(machines.rank())) +
                        " has a network of its own kind"
                  : "",
      all));
  for (const std::string &reason : all)
    if (why.empty())
      why = reason;
  if (!why.empty())
    return Status();
  ACCEL_RT_RETURN_IF_ERROR(
      machines.exchange(machines.rank() == 0 ? made->secret.text() : "", all));
  if (!made->secret.take(all[0]))
    return Status::error("expected a secret of rank 0, found " +
                         std::to_string(all[0].size()) + " bytes");
  made->self = machines.rank();
  for (int64_t rank = 0; rank < machines.numRanks(); ++rank)
    made->isElsewhere.push_back(machines.machineOf(rank) != machines.here());
  Routes routes;
  ACCEL_RT_RETURN_IF_ERROR(findRoutes(machines, made->secret, routes, why));
  if (why.empty())
    ACCEL_RT_RETURN_IF_ERROR(made->takePorts(machines, routes, why));
  if (why.empty())
    lanes = std::move(made);
  return Status();
}

Status Lanes::serve(uint32_t numbers) {
  greeter = std::make_unique<Greeter>(
      secret, Greeter::Options(), [this, numbers](const Hello &hello) {
        return hello.kind == Hello::Lane && hello.to == self &&
               hello.from >= 0 &&
               hello.from < static_cast<int64_t>(isElsewhere.size()) &&
               isElsewhere[static_cast<size_t>(hello.from)] &&
               hello.number < numbers;
      });
  return greeter->start(std::move(doors));
}

void Lanes::want(bool sends, int64_t peer, uint32_t number) {
  if (!sends)
    return expected.push_back({peer, number});
  Hello hello;
  hello.kind = Hello::Lane;
  hello.from = self;
  hello.to = peer;
  hello.number = number;
  attempts[{peer, number}] =
      greeter->tryOut(hello, placeOf[static_cast<size_t>(peer)]);
}

Status Lanes::stand(const std::function<Status()> &look) {
  int64_t lost = -1;
  int error = 0;
  auto isDecided = [&](const Greeter::Results &results) {
    bool all = true;
    for (const Greeter::Results::Attempt &attempt : results.attempts) {
      all &= attempt.isOver;
      if (attempt.isOver && !attempt.socket) {
        lost = attempt.hello.to;
        error = attempt.error;
        return true;
      }
    }
    for (const Key &key : expected)
      all &= results.comers.count(key) > 0;
    return all;
  };
  while (!greeter->wait(kLook, isDecided))
    ACCEL_RT_RETURN_IF_ERROR(look());
  if (lost >= 0)
    return Status::error("cannot connect to rank " + std::to_string(lost) +
                         ": " + systemError(error) +
                         "; with ACCEL_MESSAGES=mpi in the environment all "
                         "goes by MPI");
  greeter->stop();
  made = greeter->takeResults();
  greeter.reset();
  return Status();
}

int Lanes::socketOf(bool sends, int64_t peer, uint32_t number) const {
  Key key(peer, number);
  return sends ? made.attempts[attempts.at(key)].socket.get()
               : made.comers.at(key).get();
}

} // namespace accel::rt
