// Forking keepers.

#include "Conformance/MachinesCenter.h"

#include <csignal>
#include <sys/wait.h>
#include <unistd.h>

namespace accel::rt::conformance {

Status MachinesCenter::create(const ControlSize &wanted, int spinLooks) {
  size = wanted;
  spin = spinLooks;
  keepers.resize(static_cast<size_t>(size.ranks));
  return SocketMesh::create(size.ranks, mesh);
}

Status MachinesCenter::join(int64_t rank) {
  std::string host = rank == 1 ? "b" : "a";
  ACCEL_RT_RETURN_IF_ERROR(
      Machines::join(mesh.join(rank), {host, host, ""}, machines));
  keeper = std::make_unique<Keeper>(*machines);
  return keeper->create(size, spin);
}

Status MachinesCenter::start(int64_t rank,
                             const std::function<int(ControlPlane &)> &life) {
  if (rank > 0) {
    pid_t made = keepers[static_cast<size_t>(rank)] = fork();
    if (made == 0) {
      Status status = join(rank);
      if (!status.ok())
        _exit(1);
      status = keeper->startRank(life);
      _exit(keeper->follow(status, [] { return Status(); }));
    }
  }
  if (rank + 1 < size.ranks)
    return Status();
  ACCEL_RT_RETURN_IF_ERROR(join(0));
  center = std::make_unique<NetworkCenter>(*keeper);
  return center->start(0, life);
}

MachinesCenter::~MachinesCenter() {
  if (keeper)
    keeper->finish(0);
  for (pid_t process : keepers)
    if (process > 0) {
      ::kill(process, SIGCONT);
      waitpid(process, nullptr, 0);
    }
}

} // namespace accel::rt::conformance
