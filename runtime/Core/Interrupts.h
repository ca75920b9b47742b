// What the process that starts the ranks does with SIGINT and SIGTERM: it notes
// them, and decides itself how the run ends.

#ifndef ACCEL_RUNTIME_CORE_INTERRUPTS_H
#define ACCEL_RUNTIME_CORE_INTERRUPTS_H

#include <csignal>

namespace accel::rt {

/// While it lives, SIGINT and SIGTERM are noted instead of ending the parent:
/// it ends the ranks and removes what it has written, then fails.
class Interrupts {
public:
  Interrupts() {
    signalSeen = 0;
    signalsSeen = 0;
    struct sigaction action = {};
    action.sa_handler = [](int signal) {
      signalSeen = signal;
      signalsSeen = signalsSeen + 1;
    };
    sigaction(SIGINT, &action, &oldInterrupt);
    sigaction(SIGTERM, &action, &oldTerminate);
  }
  ~Interrupts() { restore(); }
  /// In a rank, which ends as any process does.
  void restore() {
    sigaction(SIGINT, &oldInterrupt, nullptr);
    sigaction(SIGTERM, &oldTerminate, nullptr);
  }
  /// In a rank that saves a checkpoint first: a terminal interrupts all of
  /// them, and the parent alone decides.
  void ignore() {
    std::signal(SIGINT, SIG_IGN);
    std::signal(SIGTERM, SIG_IGN);
  }
  void block(bool blocks) {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    sigprocmask(blocks ? SIG_BLOCK : SIG_UNBLOCK, &set, nullptr);
  }
  static int received() { return signalSeen; }
  static int count() { return signalsSeen; }

private:
  static inline volatile std::sig_atomic_t signalSeen = 0, signalsSeen = 0;
  struct sigaction oldInterrupt, oldTerminate;
};

} // namespace accel::rt

#endif // ACCEL_RUNTIME_CORE_INTERRUPTS_H
