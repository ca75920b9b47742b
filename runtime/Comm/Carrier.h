// What takes the messages of one stream of a rank to ranks of other machines:
// by the process that keeps the rank (Wire.h), or by connections of its own
// (Lanes.h). Requests are numbered by who makes them.

#ifndef ACCEL_RUNTIME_COMM_CARRIER_H
#define ACCEL_RUNTIME_COMM_CARRIER_H

#include "Comm/HostMemory.h"
#include "Network/Lanes.h"

namespace accel::rt {

/// A message. Both ends name the same ring: that of the sender's staging.
struct CarrierMessage {
  bool sends;
  Staging::Ring ring;
  int64_t peer, tag;
  char *data; ///< Of a send it is only read.
  uint64_t bytes;
};

class Carrier {
public:
  virtual ~Carrier() = default;
  /// At preparation: there will be messages of that ring to or from a rank.
  virtual Status connect(bool sends, Staging::Ring ring, int64_t peer) = 0;
  /// Whether bytes may lie there.
  virtual bool reaches(const char *data) const = 0;

  /// Begins request `number`, below Wire::kRequests. Messages of one ring
  /// between two ranks are sent and received in one order.
  virtual void begin(int number, const CarrierMessage &message) = 0;
  /// Goes on with all; says whether anything moved. Errors: something other
  /// came than what was to come.
  virtual Status goOn(bool &moved) = 0;
  /// Whether a request is done. If so, it is no more.
  virtual bool finish(int number) = 0;
  /// Waits a little, until there may be something to go on with. `seen` is what
  /// the wire's bell was before one looked; others ring it if `isRung`.
  virtual Status wait(uint32_t seen, bool isRung) = 0;
};

/// By the keeper, whose bell is rung.
std::unique_ptr<Carrier> makeWireCarrier(HostMemory &memory, int64_t rank,
                                         size_t stream, Word &keeperBell);
std::unique_ptr<Carrier> makeLaneCarrier(HostMemory &memory, int64_t rank,
                                         size_t stream, Lanes &lanes);

} // namespace accel::rt

#endif // ACCEL_RUNTIME_COMM_CARRIER_H
