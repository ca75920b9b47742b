// What ranks on several machines need of a network: messages of bytes that
// nobody waits for, told apart by who sends them and by a tag. Behind it stands
// MPI (a plug-in that is loaded when it is asked for), and sockets in tests.

#ifndef ACCEL_RUNTIME_NETWORK_NETWORK_H
#define ACCEL_RUNTIME_NETWORK_NETWORK_H

#include "accel-rt/Status.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace accel::rt {

/// One process's place in the network: there is one for each rank. Used by one
/// thread at a time; no call waits, but finish().
class Network {
public:
  virtual ~Network() = default;
  virtual int64_t rank() const = 0;
  virtual int64_t size() const = 0;

  /// A message on its way; 0 is none.
  using Request = uint64_t;
  /// Of receive(): whoever sends.
  static constexpr int64_t kAnyone = -1;
  /// Tags are 0 to this.
  static constexpr int64_t kMaxTag = (int64_t(1) << 30) - 1;

  /// Sends bytes, which stay as they are until test() says so. Messages from
  /// one rank to another with one tag arrive in the order in which they were
  /// sent, and are received in the order of the receives.
  virtual Status send(int64_t to, int64_t tag, const void *data, size_t bytes,
                      Request &request) = 0;
  /// Receives a message of at most `bytes` bytes.
  virtual Status receive(int64_t from, int64_t tag, void *data, size_t bytes,
                         Request &request) = 0;
  struct Arrival {
    int64_t from = 0;
    size_t bytes = 0;
  };
  /// Whether it is done; then the request is no more. Errors: it never will be.
  virtual Status test(Request request, bool &done,
                      Arrival *arrival = nullptr) = 0;

  /// All ranks leave the network in order; waits for them. Messages that are on
  /// their way are dropped.
  virtual void finish() = 0;
};

/// Where a process is, so that ranks know which of them share memory.
struct ProcessPlace {
  /// Equal for processes that can map each other's memory.
  std::string machine;
  /// What errors call it: the host's name.
  std::string host;
  /// A bit for each of its cores that the process may use: Slurm and mpirun may
  /// give each process some of them.
  std::string cores;
};

/// This process's. $ACCEL_MACHINE names the machine where it is set.
ProcessPlace placeOfThisProcess();

/// How many ProcessPlace::cores says.
int64_t countCores(const std::string &bits);

} // namespace accel::rt

#endif // ACCEL_RUNTIME_NETWORK_NETWORK_H
