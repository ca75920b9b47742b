// The thread that serves the network in the process that keeps a rank: it moves
// what the rank's wires ask for, and passes messages between keepers. It goes
// on while the keeper's own thread waits for a disk or a reader.

#ifndef ACCEL_RUNTIME_NETWORK_NETWORKSERVICE_H
#define ACCEL_RUNTIME_NETWORK_NETWORKSERVICE_H

#include "Network/Network.h"
#include "Network/Wire.h"

#include <chrono>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

namespace accel::rt {

class NetworkService {
public:
  /// The longest message between keepers.
  static constexpr size_t kMaxMessage = 32 << 10;
  using Clock = std::chrono::steady_clock;

  /// What it calls, in its thread.
  struct Hooks {
    /// A message has come.
    std::function<void(int64_t from, const char *data, size_t bytes)> take;
    /// Between two looks at the network; whether somebody waits for what the
    /// next message says.
    std::function<bool()> tick;
    /// The network has failed; it is not used any more.
    std::function<void(const std::string &why)> fail;
  };

  /// `bell` changes when a wire has something new. All must outlive it.
  NetworkService(Network &network, Word &bell);
  ~NetworkService() { stop(); }
  NetworkService(const NetworkService &) = delete;
  NetworkService &operator=(const NetworkService &) = delete;

  /// Wires whose offsets count from `base`. The rank notes in `dataTimes` when
  /// data came to it that the network did not bring. Before the rank uses them;
  /// any thread.
  void serve(char *base, Wire *wires, size_t count,
             const std::atomic<int64_t> *dataTimes);
  Status start(Hooks hooks);
  /// Sends a message to a keeper; any thread, does not wait.
  void post(int64_t to, const void *header, size_t headerBytes,
            const void *data = nullptr, size_t bytes = 0);
  /// Ends the thread when all messages are on their way, or after a second.
  void stop();
  /// When something of a rank has come last; and what it has sent for ranks,
  /// which on a slow link stands before what keepers tell each other.
  Clock::time_point heard(int64_t rank) const { return at(lastHeard, rank); }
  Clock::time_point heardData(int64_t rank) const;

private:
  struct Outgoing {
    int64_t to;
    std::vector<char> bytes;
    Network::Request request = 0;
  };
  struct Moving {
    Wire *wire;
    WireRequest *what;
    Network::Request request;
  };
  void run();
  bool takeMessages();
  bool sendMessages();
  bool beginWanted();
  bool lookAtMoving();
  using Times = std::vector<std::atomic<int64_t>>; ///< Ticks of Clock.
  static void note(Times &times, int64_t rank);
  static Clock::time_point at(const Times &times, int64_t rank) {
    return Clock::time_point(
        Clock::duration(times[static_cast<size_t>(rank)].load()));
  }
  bool failed(const Status &status);

  Network &network;
  Word &bell;
  Hooks hooks;
  std::mutex mutex; ///< Of `outbox`, `base`, `wires` and `numWires`.
  std::deque<Outgoing> outbox;
  char *base = nullptr;
  Wire *wires = nullptr;
  size_t numWires = 0;
  // Of the thread alone.
  std::deque<Outgoing> leaving;
  std::vector<Moving> moving;
  std::vector<WireRequest *> wanted;
  std::vector<Wire *> wantedOf;
  static constexpr size_t kReceives = 8;
  std::vector<char> inbox[kReceives];
  Network::Request receives[kReceives] = {};
  size_t oldest = 0;
  bool broken = false;
  Times lastHeard, lastData;
  std::atomic<const std::atomic<int64_t> *> directData{nullptr};
  std::atomic<bool> stopping{false};
  std::vector<std::thread> threads;
};

} // namespace accel::rt

#endif // ACCEL_RUNTIME_NETWORK_NETWORKSERVICE_H
