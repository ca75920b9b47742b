// How a rank asks the process that keeps it to send and receive for it:
// requests in memory that both map, and words that wake either of them. The
// rank itself knows no network: it may die at any time, and its keeper tells of
// it.

#ifndef ACCEL_RUNTIME_NETWORK_WIRE_H
#define ACCEL_RUNTIME_NETWORK_WIRE_H

#include "Base/Futex.h"

namespace accel::rt {

/// A message that a rank wants to be sent or received. All zero at the start.
struct alignas(64) WireRequest {
  enum State : uint32_t { Free, Wanted, Active, Done };
  std::atomic<uint32_t> state{Free};
  uint32_t sends = 0;
  int64_t peer = 0, tag = 0;
  uint64_t offset = 0, bytes = 0; ///< In the memory that both map.
  uint64_t order = 0;             ///< Requests are begun in this order.
};

/// The requests of one stream of a rank, of which one thread makes them.
struct alignas(64) Wire {
  static constexpr int kRequests = 64;
  /// Changes whenever the stream may go on: a request is done, or another rank
  /// of the machine has something for it.
  Word bell{0};
  uint64_t nextOrder = 0; ///< Of the rank alone.
  WireRequest requests[kRequests];

  void ring() {
    bell.fetch_add(1);
    wakeWaiters(bell);
  }
};

} // namespace accel::rt

#endif // ACCEL_RUNTIME_NETWORK_WIRE_H
