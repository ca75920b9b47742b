// A network of sockets between processes that one process forks: what MPI is
// elsewhere, for tests that need no mpirun.

#ifndef ACCEL_RUNTIME_CONFORMANCE_SOCKETNETWORK_H
#define ACCEL_RUNTIME_CONFORMANCE_SOCKETNETWORK_H

#include "Network/Network.h"

#include <vector>

namespace accel::rt::conformance {

/// A socket between each two of some ranks, made before they are forked.
class SocketMesh {
public:
  /// Errors: the system has no more files.
  static Status create(int64_t ranks, SocketMesh &mesh);
  SocketMesh() = default;
  ~SocketMesh();
  SocketMesh(const SocketMesh &) = delete;
  SocketMesh &operator=(const SocketMesh &) = delete;
  /// A rank's network, in its own process: the others' ends are closed there.
  std::unique_ptr<Network> join(int64_t rank);

private:
  /// By rank and peer; -1 where there is none any more.
  std::vector<std::vector<int>> ends;
};

} // namespace accel::rt::conformance

#endif // ACCEL_RUNTIME_CONFORMANCE_SOCKETNETWORK_H
