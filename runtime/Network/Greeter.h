// The thread that makes the connections between this process and others of its
// run: it tries addresses, and answers at its doors. All of it goes on at once
// and without waiting for anybody, so that a stranger, whether it says nothing,
// half of a greeting or what is not true, costs nothing: a few may be there,
// each for a while, and whoever of the run was turned away comes again.

#ifndef ACCEL_RUNTIME_NETWORK_GREETER_H
#define ACCEL_RUNTIME_NETWORK_GREETER_H

#include "Network/Greeting.h"

#include <chrono>
#include <condition_variable>
#include <list>
#include <map>
#include <mutex>
#include <optional>
#include <thread>

namespace accel::rt {

class Greeter {
public:
  using Clock = std::chrono::steady_clock;
  struct Options {
    /// How long an address may take to take a connection.
    std::chrono::milliseconds patience{30000};
    /// Whether it has no longer to answer, and only one chance to refuse: who
    /// is there listens already, and nobody may be.
    bool probes = false;
    /// Connections that are at the doors at once, and how long each may take to
    /// prove that it is of the run. The oldest goes where there is no room.
    size_t mostStrangers = 256;
    std::chrono::milliseconds strangerPatience{3000};
  };
  /// The secret must outlive it.
  Greeter(const Secret &secret, Options options, IsWelcome isWelcome);
  ~Greeter() { stop(); }
  Greeter(const Greeter &) = delete;
  Greeter &operator=(const Greeter &) = delete;

  /// Listens at the ports that doors have taken, and begins. Errors: the system
  /// has no room for the thread, or a port cannot listen.
  Status start(std::vector<Socket> doors);
  /// Closes the doors, and ends. What was proven stays.
  void stop();

  /// Tries to reach a process at an address; returns the number of the attempt.
  size_t tryOut(const Hello &hello, const Endpoint &there);

  /// What has become of it all.
  struct Results {
    struct Attempt {
      Hello hello;
      Endpoint there;
      bool isOver = false;
      Socket socket; ///< Of one that is over and was proven.
      int error = 0; ///< The last.
    };
    std::vector<Attempt> attempts;
    /// Who came, by rank and number.
    std::map<std::pair<int64_t, uint32_t>, Socket> comers;
  };
  /// Waits until they are as wanted, or so long; returns whether they are.
  bool wait(std::chrono::milliseconds most,
            const std::function<bool(const Results &)> &areAsWanted);
  /// After stop().
  Results takeResults() { return std::move(results); }

private:
  struct Stranger {
    Greeting greeting;
    Clock::time_point until;
  };
  struct Attempt {
    size_t number;
    Hello hello;
    Endpoint there;
    Clock::time_point until;
    Clock::time_point next; ///< When it is to be tried again.
    Socket connecting;
    std::optional<Greeting> greeting;
    int error = 0; ///< Why the last one failed.
    bool isOver = false;
  };
  void run();
  void letIn(int door, Clock::time_point now);
  bool isOver(Stranger &one, Clock::time_point now, bool isReady);
  void begin(Attempt &attempt, Clock::time_point now);
  void goOn(Attempt &attempt, Clock::time_point now, bool isReady);
  void tryAgain(Attempt &attempt, Clock::time_point now, int error);
  void end(Attempt &attempt, Socket socket, int error);

  const Secret &secret;
  Options options;
  IsWelcome isWelcome;
  std::vector<std::thread> threads;
  int bell = -1; ///< An eventfd that ends the thread's wait.

  std::mutex mutex; ///< Of what follows; held for moments.
  std::condition_variable changed;
  std::vector<Attempt> wanted;
  Results results;
  bool isStopping = false;

  // Of the thread alone.
  std::vector<Socket> doors;
  std::list<Stranger> strangers; ///< The oldest first.
  std::list<Attempt> attempts;
  Clock::time_point doorsRest; ///< Until then nobody is let in.
};

} // namespace accel::rt

#endif // ACCEL_RUNTIME_NETWORK_GREETER_H
