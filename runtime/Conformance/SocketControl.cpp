// The messages, and who sends them. Posts go before the arrival of who made
// them and are passed on at once, so that all have them when the barrier opens.

#include "Conformance/SocketControl.h"

#include "Base/SystemError.h"

#include <algorithm>
#include <cerrno>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <poll.h>
#include <sys/socket.h>
#include <thread>
#include <unistd.h>

namespace accel::rt::conformance {
namespace {
/// How often a rank tells of itself, at least.
constexpr int kSignMilliseconds = 50;
} // namespace

struct SocketControl::Message {
  enum Kind { Signs, Arrive, Post, Report, CountsOf, Abort, Go, Word, Stop };
  Kind kind = Signs;
  int64_t number = 0; ///< A value to agree on, word, call or entry.
  uint64_t value = 0;
  double seconds = 0;
  StepRecord record;
  /// A RankControl or Counts, as bytes.
  alignas(64) char bytes[std::max(sizeof(RankControl), sizeof(Counts))];

  bool send(int socket, int flags = 0) const {
    return ::send(socket, this, sizeof *this, MSG_NOSIGNAL | flags) ==
           static_cast<ssize_t>(sizeof *this);
  }
};

//===----------------------------------------------------------------------===//
// A rank
//===----------------------------------------------------------------------===//

class SocketControl::Plane : public ControlPlane {
public:
  Plane(const ControlSize &size, int64_t number, int socket)
      : size(size), number(number), socket(socket), board(size.words),
        entryCounts(size.entries), listener([this] { listen(); }) {}
  ~Plane() override {
    stopping = true;
    listener.join();
  }
  int64_t rank() const override { return number; }
  int64_t numRanks() const override { return size.ranks; }
  RankControl &self() override { return signs; }

  Status barrier() override {
    int64_t nothing = INT64_MIN;
    return agree(nothing);
  }
  Status agree(int64_t &value) override {
    ++signs.barriers;
    std::unique_lock<std::mutex> lock(mutex);
    int64_t seen = opened;
    tell();
    Message arrival;
    arrival.kind = Message::Arrive;
    arrival.number = value;
    if (aborted || !arrival.send(socket))
      return Status::error(kAbortedMessage);
    signs.waiting = true;
    changed.wait(lock, [&] { return opened != seen || aborted; });
    if (opened == seen)
      return Status::error(kAbortedMessage);
    signs.waiting = false;
    value = agreed;
    return Status();
  }

  void post(size_t word, uint64_t value) override {
    Message message;
    message.kind = Message::Post;
    message.number = static_cast<int64_t>(word);
    message.value = value;
    (void)message.send(socket);
  }
  uint64_t find(size_t word) const override {
    std::lock_guard<std::mutex> lock(mutex);
    return board[word];
  }
  void report(int64_t call, double seconds, const StepRecord &record) override {
    Message message;
    message.kind = Message::Report;
    message.number = call;
    message.seconds = seconds;
    message.record = record;
    (void)message.send(socket);
    tell();
  }
  Counts &counts(size_t entry) override { return entryCounts[entry]; }
  bool isStopWanted() const override { return stopWanted; }
  void abort() override {
    aborted = true;
    Message message;
    message.kind = Message::Abort;
    (void)message.send(socket);
  }
  bool isAborted() const override { return aborted; }
  void close() override {
    for (size_t entry = 0; entry < entryCounts.size(); ++entry) {
      Message message;
      message.kind = Message::CountsOf;
      message.number = static_cast<int64_t>(entry);
      std::memcpy(message.bytes, &entryCounts[entry], sizeof(Counts));
      (void)message.send(socket);
    }
    tell();
  }

private:
  void tell() {
    Message message;
    message.kind = Message::Signs;
    std::memcpy(message.bytes, static_cast<void *>(&signs), sizeof signs);
    (void)message.send(socket);
  }

  void listen() {
    Message message;
    while (!stopping) {
      pollfd ready{socket, POLLIN, 0};
      if (poll(&ready, 1, kSignMilliseconds) <= 0) {
        tell();
        continue;
      }
      ssize_t got = recv(socket, &message, sizeof message, 0);
      std::lock_guard<std::mutex> lock(mutex);
      if (got <= 0 || message.kind == Message::Abort)
        aborted = true; // or the parent has ended
      else if (message.kind == Message::Word)
        board[static_cast<size_t>(message.number)] = message.value;
      else if (message.kind == Message::Stop)
        stopWanted = true;
      else if (message.kind == Message::Go)
        ++opened, agreed = message.number;
      changed.notify_all();
      if (got <= 0)
        return;
    }
  }

  ControlSize size;
  int64_t number;
  int socket;
  RankControl signs;
  std::vector<uint64_t> board;
  std::vector<Counts> entryCounts;
  mutable std::mutex mutex;
  std::condition_variable changed;
  int64_t opened = 0, agreed = 0;
  std::atomic<bool> stopWanted{false}, aborted{false}, stopping{false};
  std::thread listener; ///< Begins when all else is there.
};

//===----------------------------------------------------------------------===//
// The parent
//===----------------------------------------------------------------------===//

Status SocketControl::create(const ControlSize &wanted, int) {
  resize(wanted);
  peers.resize(static_cast<size_t>(size.ranks));
  for (Peer &peer : peers) {
    peer.seconds.resize(static_cast<size_t>(size.calls));
    peer.counts.resize(size.entries);
  }
  records.resize(static_cast<size_t>(size.calls));
  return Status();
}

SocketControl::~SocketControl() {
  for (const Peer &peer : peers)
    if (peer.socket >= 0)
      ::close(peer.socket);
}

Status SocketControl::start(int64_t rank,
                            const std::function<int(ControlPlane &)> &life) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
    return Status::error(std::string("cannot make a socket: ") +
                         systemError(errno));
  peers[static_cast<size_t>(rank)].socket = ends[0];
  childSocket = ends[1];
  Status status = ForkedCenter::start(rank, life);
  ::close(ends[1]);
  return status;
}

std::unique_ptr<ControlPlane> SocketControl::makePlane(int64_t rank) {
  for (Peer &peer : peers)
    if (peer.socket >= 0)
      ::close(std::exchange(peer.socket, -1));
  return std::make_unique<Plane>(size, rank, childSocket);
}

void SocketControl::pump() {
  Message message;
  for (Peer &peer : peers)
    while (peer.socket >= 0 &&
           recv(peer.socket, &message, sizeof message, MSG_DONTWAIT) > 0)
      take(peer, message);
}

void SocketControl::take(Peer &peer, const Message &message) {
  size_t number = static_cast<size_t>(message.number);
  Message answer;
  switch (message.kind) {
  case Message::Signs:
    std::memcpy(static_cast<void *>(peer.signs.get()), message.bytes,
                sizeof(RankControl));
    return;
  case Message::Report:
    peer.seconds[number] = message.seconds;
    if (&peer == &peers[0])
      records[number] = message.record;
    return;
  case Message::CountsOf:
    std::memcpy(&peer.counts[number], message.bytes, sizeof(Counts));
    return;
  case Message::Post:
    answer.kind = Message::Word;
    answer.number = message.number;
    answer.value = message.value;
    return broadcast(answer);
  case Message::Arrive:
    greatest = std::max(greatest, message.number);
    if (++arrived < size.ranks)
      return;
    answer.kind = Message::Go;
    answer.number = std::exchange(greatest, INT64_MIN);
    arrived = 0;
    return broadcast(answer);
  case Message::Abort:
    return abort();
  case Message::Go:
  case Message::Word:
  case Message::Stop:
    return; // said by the parent alone
  }
}

/// Who is stopped and reads nothing misses it: then the run hangs, and is
/// ended.
void SocketControl::broadcast(const Message &message) {
  for (const Peer &peer : peers)
    if (peer.socket >= 0)
      (void)message.send(peer.socket, MSG_DONTWAIT);
}

std::optional<RankEnd> SocketControl::findEnd(int64_t rank) {
  pump();
  return ForkedCenter::findEnd(rank);
}
const RankControl &SocketControl::rank(int64_t rank) {
  pump();
  return *peers[static_cast<size_t>(rank)].signs;
}
double SocketControl::seconds(int64_t rank, int64_t call) {
  pump();
  return peers[static_cast<size_t>(rank)].seconds[static_cast<size_t>(call)];
}
StepRecord SocketControl::record(int64_t call) {
  pump();
  return records[static_cast<size_t>(call)];
}
const Counts &SocketControl::counts(int64_t rank, size_t entry) {
  pump();
  return peers[static_cast<size_t>(rank)].counts[entry];
}
void SocketControl::wantStop() {
  stopWanted = true;
  Message message;
  message.kind = Message::Stop;
  broadcast(message);
}
void SocketControl::abort() {
  aborted = true;
  Message message;
  message.kind = Message::Abort;
  broadcast(message);
}
bool SocketControl::isAborted() {
  pump();
  return aborted;
}

} // namespace accel::rt::conformance
