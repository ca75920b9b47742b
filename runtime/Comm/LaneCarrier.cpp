// Messages on connections of the rank's own, one for each ring, peer and
// direction: what is sent on one is received in the same order, so the oldest
// request of each is the one that bytes are for. A head before each message
// says which it is, so that ranks that have come apart end.

#include "Comm/Carrier.h"

#include "Base/SystemError.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <poll.h>
#include <sys/socket.h>
#include <sys/uio.h>

namespace accel::rt {
namespace {

/// Where others of the machine may have something, who ring no socket.
constexpr timespec kShortSleep = {0, 50000};
/// How long a run may go on without a connection before its rank says so:
/// whoever lost the other end to a fault is told by its keeper, much sooner.
constexpr auto kPatience = std::chrono::seconds(10);

/// As long as a line of the cache: the system copies what is sent to pages of
/// its own, which often begin with a head, and a Zen 4 processor copies three
/// to eight times slower to a place 1 to 16 bytes behind the source's in the
/// page than to any multiple of 64 (benchmarks/results/2026-11-25-
/// machines-collectives.md).
struct alignas(64) Head {
  int64_t tag = 0;
  uint64_t bytes = 0;
  uint64_t unused[6] = {};
};

/// One direction between two ranks, of one ring.
struct Lane {
  bool sends;
  Staging::Ring ring;
  int64_t peer;
  int socket; ///< -1 until it is used.
  bool isLost = false;
  /// Requests of it, oldest first: a ring of numbers.
  uint8_t queue[Wire::kRequests];
  size_t first = 0, count = 0;
  uint64_t done = 0; ///< Bytes of the oldest, its head among them.
  Head came = {};
};

class LaneCarrier : public Carrier {
public:
  LaneCarrier(HostMemory &memory, int64_t rank, size_t stream, Lanes &lanes)
      : memory(memory), bell(memory.wires(rank)[stream].bell), lanes(lanes),
        stream(stream) {}

  Status connect(bool sends, Staging::Ring ring, int64_t peer) override {
    if (find(sends, ring, peer))
      return Status();
    lanes.want(sends, peer, numberOf(ring));
    all.push_back({sends, ring, peer, -1, false, {}, 0, 0, 0, {}});
    polled.resize(all.size());
    return Status();
  }
  bool reaches(const char *) const override { return true; }

  void begin(int number, const CarrierMessage &message) override {
    size_t at = static_cast<size_t>(number);
    messages[at] = message;
    isDone[at] = false;
    Lane &lane = *find(message.sends, message.ring, message.peer);
    if (lane.socket < 0) // it stands since all were made
      lane.socket = lanes.socketOf(lane.sends, lane.peer, numberOf(lane.ring));
    lane.queue[(lane.first + lane.count++) % Wire::kRequests] =
        static_cast<uint8_t>(number);
    if (message.sends) // at once: what has room leaves before all else
      (void)move(lane);
  }

  Status goOn(bool &moved) override {
    moved = false;
    for (Lane &lane : all) {
      while (lane.count && !lane.isLost && move(lane))
        moved = true;
      if (lane.isLost && lane.count)
        ACCEL_RT_RETURN_IF_ERROR(lose(lane));
    }
    return wrong;
  }

  bool finish(int number) override {
    bool is = isDone[static_cast<size_t>(number)];
    isDone[static_cast<size_t>(number)] = false;
    return is;
  }

  Status wait(uint32_t seen, bool isRung) override {
    size_t count = 0;
    for (Lane &lane : all)
      if (lane.count && !lane.isLost)
        polled[count++] = {
            lane.socket, static_cast<short>(lane.sends ? POLLOUT : POLLIN), 0};
    if (count == 0)
      waitWhile(bell, seen, kSleepMilliseconds);
    else if (isRung)
      ppoll(polled.data(), count, &kShortSleep, nullptr);
    else
      poll(polled.data(), count, kSleepMilliseconds);
    return Status();
  }

private:
  uint32_t numberOf(Staging::Ring ring) const {
    return static_cast<uint32_t>(stream * Staging::kRings + ring);
  }
  Lane *find(bool sends, Staging::Ring ring, int64_t peer) {
    for (Lane &lane : all)
      if (lane.sends == sends && lane.ring == ring && lane.peer == peer)
        return &lane;
    return nullptr;
  }

  /// Moves what can be moved of the oldest request; whether any byte was.
  bool move(Lane &lane) {
    size_t number = lane.queue[lane.first];
    CarrierMessage &message = messages[number];
    Head head{message.tag, message.bytes};
    iovec parts[2];
    msghdr what = {};
    what.msg_iov = parts;
    char *start = reinterpret_cast<char *>(lane.sends ? &head : &lane.came);
    if (lane.done < sizeof head)
      parts[what.msg_iovlen++] = {start + lane.done, sizeof head - lane.done};
    uint64_t inData = lane.done > sizeof head ? lane.done - sizeof head : 0;
    // Read with its head: where it is not what was to come, the run ends.
    parts[what.msg_iovlen++] = {message.data + inData, message.bytes - inData};
    ssize_t got = lane.sends
                      ? sendmsg(lane.socket, &what, MSG_NOSIGNAL | MSG_DONTWAIT)
                      : recvmsg(lane.socket, &what, MSG_DONTWAIT);
    if (got <= 0) {
      lane.isLost = got == 0 || (errno != EAGAIN && errno != EINTR);
      why = got ? errno : 0;
      return false;
    }
    lane.done += static_cast<uint64_t>(got);
    if (!lane.sends) {
      memory.noteData(lane.peer);
      if (lane.done >= sizeof head &&
          (lane.came.tag != message.tag || lane.came.bytes != message.bytes)) {
        wrong =
            Status::error("expected message " + std::to_string(message.tag) +
                          " of " + std::to_string(message.bytes) +
                          " bytes of rank " + std::to_string(lane.peer) +
                          ", found message " + std::to_string(lane.came.tag) +
                          " of " + std::to_string(lane.came.bytes));
        return false;
      }
    }
    if (lane.done < sizeof head + message.bytes)
      return true;
    isDone[number] = true;
    lane.done = 0;
    lane.first = (lane.first + 1) % Wire::kRequests;
    --lane.count;
    return true;
  }

  Status lose(const Lane &lane) {
    auto now = std::chrono::steady_clock::now();
    if (lostAt == std::chrono::steady_clock::time_point())
      lostAt = now;
    if (now - lostAt < kPatience)
      return Status();
    return Status::error(
        "the connection with rank " + std::to_string(lane.peer) +
        " is lost: " + (why ? systemError(why) : "the other end is closed"));
  }

  HostMemory &memory;
  Word &bell;
  Lanes &lanes;
  size_t stream;
  std::vector<Lane> all;
  std::vector<pollfd> polled; ///< Room for all of them.
  CarrierMessage messages[Wire::kRequests];
  bool isDone[Wire::kRequests] = {};
  Status wrong;
  int why = 0;
  std::chrono::steady_clock::time_point lostAt;
};

} // namespace

std::unique_ptr<Carrier> makeLaneCarrier(HostMemory &memory, int64_t rank,
                                         size_t stream, Lanes &lanes) {
  return std::make_unique<LaneCarrier>(memory, rank, stream, lanes);
}

} // namespace accel::rt
