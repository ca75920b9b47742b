// Every process that mpirun starts keeps one rank, which it forks: what the
// rank computes cannot stop it from serving the network, and of a rank that
// dies there is somebody to tell. It is a process and no thread for that, and
// because ranks that are processes end each by themselves, as on one machine.
// Keepers tell rank 0's of their rank; that one oversees all (NetworkCenter),
// and is the only one that speaks.
//
// Every keeper gives rank 0's a sign of life four times a second, and it them.
// Whoever is silent for kSilence is lost, and the run ends; or for
// kSlowSilence, where its machine sends data all the time, which on a slow link
// stand before the signs.

#ifndef ACCEL_RUNTIME_CONTROL_KEEPER_H
#define ACCEL_RUNTIME_CONTROL_KEEPER_H

#include "Control/MachineControl.h"
#include "Network/NetworkService.h"

namespace accel::rt {

class Keeper {
public:
  /// How long a machine may be silent; and a sign of life, at least so often.
  static constexpr std::chrono::milliseconds kSilence{3500}, kSign{250},
      kSlowSilence{20000};
  /// How long it may be once the run ends: nobody waits for it any more.
  static constexpr std::chrono::milliseconds kShortSilence{700};

  /// `machines` must outlive it.
  explicit Keeper(Machines &machines);
  ~Keeper();
  Keeper(const Keeper &) = delete;
  Keeper &operator=(const Keeper &) = delete;

  /// Called by all. Errors: no memory or no thread.
  Status create(const ControlSize &size, int spin);

  /// Forks the rank. Errors: the system has no room for it.
  Status startRank(const std::function<int(ControlPlane &)> &life);
  /// How it ended, once it has; told once.
  std::optional<RankEnd> findEnd();
  void killRank();

  /// The rest of the life of a keeper that does not oversee: until it is told
  /// that the run is over. Returns the run's exit code. `error` is that of the
  /// rank that did not start (or none), or becomes that of a rank 0 that is
  /// lost. `atEnd` is called when the rank has ended well; its error is the
  /// rank's.
  int follow(Status &error, const std::function<Status()> &atEnd);

  /// Of rank 0's: tells all that the run is over, and leaves.
  void finish(int code);

  /// Of rank 0's, where the run was ended from without: the machines that say
  /// nothing, which may be why; a clause for the end of an error.
  std::string whoIsSilent() const;

  MachineControl &memory() { return shared; }
  Machines &places() { return machines; }
  NetworkService &network() { return *service; }
  int64_t rank() const { return machines.rank(); }

private:
  friend class NetworkCenter;
  /// Signs: a RankControl, then the seconds of `count` calls from `number` on.
  /// Counts: those of entry `number`. End: by signal if `number`, with `value`.
  /// Words: pairs. Arrive, Go: meeting `number` with `value`.
  enum class Kind : uint32_t {
    Signs,
    Counts,
    End,
    Words,
    Arrive,
    Go,
    Stop,
    Abort,
    Kill,
    Alive,
    Over,
    Farewell
  };
  struct Header {
    Kind kind;
    uint32_t count = 0;
    int64_t number = 0, value = 0;
  };
  void send(int64_t to, Header header, const void *data = nullptr,
            size_t bytes = 0);
  void sendAll(Header header, const void *data = nullptr, size_t bytes = 0);
  void take(int64_t from, const char *data, size_t bytes);
  bool tick();
  void tellSigns();
  void tellEnd();
  void bringWords();
  void bringArrival();
  void arrive(uint32_t turn, int64_t value);
  void lookForLost();
  /// Whether who oversees need not wait for a rank's end.
  bool isGone(int64_t rank);
  std::chrono::nanoseconds silenceOf(int64_t rank) const;
  void lose(int64_t rank);
  void fail(const Status &status);

  Machines &machines;
  MachineControl shared;
  std::unique_ptr<NetworkService> service;
  pid_t child = 0;
  std::optional<RankEnd> childEnd;

  // Of the service's thread, or atomic.
  std::vector<std::atomic<bool>> lost, acknowledged;
  std::atomic<bool> endToTell{false}, killWanted{false}, over{false};
  bool isEnding = false; ///< Who oversees knows why the run ends.
  std::atomic<int> exitCode{1};
  bool toldAbort = false, toldEnd = false;
  uint32_t broughtTurn = 0;
  int64_t toldCalls = 0;
  uint64_t toldRuns = 0;
  NetworkService::Clock::time_point lastSign{};
  // Of rank 0's: how many machines came to the next meeting.
  int64_t arrivals = 0, greatest = INT64_MIN;
  // Of rank 0's: what came for who oversees, who takes it.
  struct Mail {
    int64_t from;
    std::vector<char> bytes;
  };
  std::mutex mutex;
  std::vector<Mail> mail;
  std::string networkError; ///< Of `mutex`, too.
};

} // namespace accel::rt

#endif // ACCEL_RUNTIME_CONTROL_KEEPER_H
