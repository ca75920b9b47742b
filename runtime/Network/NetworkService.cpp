// One loop: messages in, messages out, wires. It looks often while something is
// on its way, and sleeps on the bell else.

#include "Network/NetworkService.h"

#include "Base/StartThread.h"

#include <algorithm>
#include <cstring>
#include <sched.h>
#include <sys/prctl.h>

namespace accel::rt {
namespace {

/// Tags of messages between keepers, and of all else from here on.
constexpr int64_t kMessageTag = 3;
/// Looks that find nothing before it sleeps between them, and how long.
constexpr int kEagerLooks = 100;
constexpr auto kNap = std::chrono::microseconds(20);
/// While nothing is on its way. A message between keepers may be as late.
constexpr int kServiceMilliseconds = 4;

} // namespace

NetworkService::NetworkService(Network &network, Word &bell)
    : network(network), bell(bell),
      lastHeard(static_cast<size_t>(network.size())),
      lastData(static_cast<size_t>(network.size())) {
  for (int64_t rank = 0; rank < network.size(); ++rank)
    note(lastHeard, rank);
  moving.reserve(256);
  wanted.reserve(256);
  wantedOf.reserve(256);
}

void NetworkService::serve(char *start, Wire *first, size_t count,
                           const std::atomic<int64_t> *dataTimes) {
  directData = dataTimes;
  std::lock_guard<std::mutex> lock(mutex);
  base = start;
  wires = first;
  numWires = count;
}

Status NetworkService::start(Hooks given) {
  hooks = std::move(given);
  for (size_t i = 0; i < kReceives; ++i) {
    inbox[i].resize(kMaxMessage);
    ACCEL_RT_RETURN_IF_ERROR(network.receive(Network::kAnyone, kMessageTag,
                                             inbox[i].data(), kMaxMessage,
                                             receives[i]));
  }
  return startThread(threads, "the thread of the network", [this] { run(); });
}

void NetworkService::post(int64_t to, const void *header, size_t headerBytes,
                          const void *data, size_t bytes) {
  Outgoing message{to, std::vector<char>(headerBytes + bytes)};
  std::memcpy(message.bytes.data(), header, headerBytes);
  if (bytes)
    std::memcpy(message.bytes.data() + headerBytes, data, bytes);
  {
    std::lock_guard<std::mutex> lock(mutex);
    outbox.push_back(std::move(message));
  }
  bell.fetch_add(1);
  wakeWaiters(bell);
}

void NetworkService::stop() {
  if (threads.empty())
    return;
  stopping = true;
  bell.fetch_add(1);
  wakeWaiters(bell);
  threads[0].join();
  threads.clear();
}

void NetworkService::note(Times &times, int64_t rank) {
  times[static_cast<size_t>(rank)] = Clock::now().time_since_epoch().count();
}

NetworkService::Clock::time_point
NetworkService::heardData(int64_t rank) const {
  Clock::time_point heard = at(lastData, rank);
  if (const std::atomic<int64_t> *direct = directData.load())
    heard = std::max(heard,
                     Clock::time_point(Clock::duration(direct[rank].load())));
  return heard;
}

bool NetworkService::failed(const Status &status) {
  if (!status.ok() && !broken) {
    broken = true;
    hooks.fail(status.message());
  }
  return !status.ok();
}

bool NetworkService::takeMessages() {
  bool any = false;
  while (!broken) {
    bool done = false;
    Network::Arrival arrival;
    if (failed(network.test(receives[oldest], done, &arrival)) || !done)
      break;
    any = true;
    note(lastHeard, arrival.from);
    hooks.take(arrival.from, inbox[oldest].data(), arrival.bytes);
    (void)failed(network.receive(Network::kAnyone, kMessageTag,
                                 inbox[oldest].data(), kMaxMessage,
                                 receives[oldest]));
    oldest = (oldest + 1) % kReceives;
  }
  return any;
}

bool NetworkService::sendMessages() {
  {
    std::lock_guard<std::mutex> lock(mutex);
    for (Outgoing &message : outbox)
      leaving.push_back(std::move(message));
    outbox.clear();
  }
  bool any = false;
  for (Outgoing &message : leaving) {
    if (broken)
      break;
    if (!message.request) {
      any = true;
      if (failed(network.send(message.to, kMessageTag, message.bytes.data(),
                              message.bytes.size(), message.request)))
        break;
    }
  }
  // Tested in order: what is behind one that waits can wait, too.
  while (!leaving.empty() && !broken) {
    bool done = false;
    if (failed(network.test(leaving.front().request, done)) || !done)
      break;
    leaving.pop_front();
  }
  return any;
}

bool NetworkService::beginWanted() {
  std::lock_guard<std::mutex> lock(mutex);
  wanted.clear();
  wantedOf.clear();
  for (size_t w = 0; w < numWires; ++w) {
    size_t first = wanted.size();
    for (WireRequest &request : wires[w].requests)
      if (request.state.load(std::memory_order_acquire) == WireRequest::Wanted)
        wanted.push_back(&request);
    std::sort(wanted.begin() + static_cast<ptrdiff_t>(first), wanted.end(),
              [](auto *a, auto *b) { return a->order < b->order; });
    wantedOf.resize(wanted.size(), &wires[w]);
  }
  for (size_t i = 0; i < wanted.size() && !broken; ++i) {
    WireRequest &what = *wanted[i];
    what.state.store(WireRequest::Active);
    Network::Request request = 0;
    Status status =
        what.sends ? network.send(what.peer, what.tag, base + what.offset,
                                  what.bytes, request)
                   : network.receive(what.peer, what.tag, base + what.offset,
                                     what.bytes, request);
    if (!failed(status))
      moving.push_back({wantedOf[i], &what, request});
  }
  return !wanted.empty();
}

bool NetworkService::lookAtMoving() {
  bool any = false;
  for (size_t i = 0; i < moving.size() && !broken;) {
    Moving &one = moving[i];
    bool done = false;
    if (failed(network.test(one.request, done)))
      break;
    if (!done) {
      ++i;
      continue;
    }
    any = true;
    if (!one.what->sends)
      note(lastData, one.what->peer);
    one.what->state.store(WireRequest::Done, std::memory_order_release);
    one.wire->ring();
    moving[i] = moving.back();
    moving.pop_back();
  }
  return any;
}

void NetworkService::run() {
  prctl(PR_SET_TIMERSLACK, 1000UL); // naps are as short as they say
  Clock::time_point stopBy{};
  for (int idle = 0;;) {
    uint32_t seen = bell.load();
    bool moved = false;
    if (!broken) {
      moved |= takeMessages();
      moved |= beginWanted();
      moved |= lookAtMoving();
      moved |= sendMessages();
    }
    bool urgent = hooks.tick();
    if (stopping) {
      if (stopBy == Clock::time_point{})
        stopBy = Clock::now() + std::chrono::seconds(1);
      std::lock_guard<std::mutex> lock(mutex);
      if (broken || (leaving.empty() && outbox.empty()) ||
          Clock::now() > stopBy)
        return;
    }
    if (moved) {
      idle = 0;
    } else if (!moving.empty() || !leaving.empty() || urgent) {
      if (++idle < kEagerLooks)
        sched_yield();
      else
        std::this_thread::sleep_for(kNap);
    } else {
      waitWhile(bell, seen, kServiceMilliseconds);
    }
  }
}

} // namespace accel::rt
