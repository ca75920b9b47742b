// Messages that the keeper sends and receives: it maps the memory that the
// machine's ranks share, and nothing else of them.

#include "Comm/Carrier.h"

namespace accel::rt {
namespace {

class WireCarrier : public Carrier {
public:
  WireCarrier(HostMemory &memory, int64_t rank, size_t stream, Word &keeperBell)
      : memory(memory), wire(memory.wires(rank)[stream]), bell(keeperBell) {}

  Status connect(bool, Staging::Ring, int64_t) override { return Status(); }
  bool reaches(const char *data) const override {
    return memory.contains(data);
  }
  void begin(int number, const CarrierMessage &message) override {
    WireRequest &made = wire.requests[number];
    made.sends = message.sends;
    made.peer = message.peer;
    made.tag = message.tag;
    made.offset = static_cast<uint64_t>(message.data - memory.base());
    made.bytes = message.bytes;
    made.order = wire.nextOrder++;
    made.state.store(WireRequest::Wanted, std::memory_order_release);
    bell.fetch_add(1);
    wakeWaiters(bell);
  }
  Status goOn(bool &moved) override {
    moved = false; // the keeper does
    return Status();
  }
  bool finish(int number) override {
    WireRequest &request = wire.requests[number];
    if (request.state.load(std::memory_order_acquire) != WireRequest::Done)
      return false;
    request.state.store(WireRequest::Free);
    return true;
  }
  Status wait(uint32_t seen, bool) override {
    waitWhile(wire.bell, seen, kSleepMilliseconds);
    return Status();
  }

private:
  HostMemory &memory;
  Wire &wire;
  Word &bell;
};

} // namespace

std::unique_ptr<Carrier> makeWireCarrier(HostMemory &memory, int64_t rank,
                                         size_t stream, Word &keeperBell) {
  return std::make_unique<WireCarrier>(memory, rank, stream, keeperBell);
}

} // namespace accel::rt
