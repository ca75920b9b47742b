// What the process that starts the ranks does with the signals by which users,
// schedulers and the system ask it to end: it notes them, and decides itself
// how the run ends.

#ifndef ACCEL_RUNTIME_RUN_INTERRUPTS_H
#define ACCEL_RUNTIME_RUN_INTERRUPTS_H

#include <csignal>
#include <cstdint>
#include <cstring>
#include <ctime>
#include <string>
#include <unistd.h>

namespace accel::rt {

/// While it lives, the signals are noted instead of ending the parent: it ends
/// the ranks and removes what it has written, then fails. A signal that the
/// caller ignores (nohup, a shell's background) stays ignored.
class Interrupts {
public:
  Interrupts() {
    signalSeen = 0;
    signalsSeen = 0;
    struct sigaction action = {};
    action.sa_handler = note;
    action.sa_flags = SA_RESTART; // or a line that is being written is lost
    for (int signal : kSignals)
      sigaddset(&action.sa_mask, signal); // note() is not interrupted by itself
    for (int i = 0; i < kCount; ++i) {
      sigaction(kSignals[i], nullptr, &old[i]);
      if (old[i].sa_handler != SIG_IGN)
        sigaction(kSignals[i], &action, nullptr);
    }
  }
  ~Interrupts() { restore(); }
  Interrupts(const Interrupts &) = delete;
  Interrupts &operator=(const Interrupts &) = delete;

  /// In a rank, which ends as any process does.
  void restore() {
    for (int i = 0; i < kCount; ++i)
      sigaction(kSignals[i], &old[i], nullptr);
  }
  /// In a rank that saves a checkpoint first: a terminal interrupts all of
  /// them, and the parent alone decides. It is told of the limit of CPU time,
  /// which is each process's own.
  void ignore() {
    for (int signal : kSignals)
      std::signal(signal, signal == SIGXCPU ? tellParent : SIG_IGN);
  }
  void block(bool blocks) {
    sigset_t set;
    sigemptyset(&set);
    for (int signal : kSignals)
      sigaddset(&set, signal);
    sigprocmask(blocks ? SIG_BLOCK : SIG_UNBLOCK, &set, nullptr);
  }
  /// The first signal that came; 0: none.
  static int received() { return signalSeen; }
  /// How often the user asked: signals of one burst count once, because
  /// timeout(1), shells that are closed and service managers send two.
  static int count() { return signalsSeen; }
  /// "SIGTERM".
  static std::string nameOf(int signal) {
    const char *name = sigabbrev_np(signal);
    return name ? std::string("SIG") + name
                : "signal " + std::to_string(signal);
  }

private:
  static constexpr int kCount = 7;
  /// SIGUSR1 and SIGUSR2 are what Slurm's --signal and Grid Engine's -notify
  /// send before a limit; SIGALRM and SIGXCPU say that one is reached.
  static constexpr int kSignals[kCount] = {SIGINT,  SIGTERM, SIGHUP, SIGUSR1,
                                           SIGUSR2, SIGALRM, SIGXCPU};
  static constexpr int64_t kBurstMilliseconds = 500;

  static void tellParent(int signal) { kill(getppid(), signal); }

  static void note(int signal) {
    // The system and each rank repeat it every second.
    if (signal == SIGXCPU && signalsSeen)
      return;
    timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    int64_t now = int64_t(time.tv_sec) * 1000 + time.tv_nsec / 1000000;
    if (signalsSeen && now - lastCounted < kBurstMilliseconds)
      return;
    lastCounted = now;
    if (!signalsSeen)
      signalSeen = signal;
    signalsSeen = signalsSeen + 1;
    // The parent acts on two of them; a third finds it stuck, as in a write to
    // a disk that does not answer. Its ranks end with it.
    if (signalsSeen > 2)
      _exit(128 + signal);
  }

  static inline volatile std::sig_atomic_t signalSeen = 0, signalsSeen = 0;
  static inline volatile int64_t lastCounted = 0; // of the handler alone
  struct sigaction old[kCount];
};

} // namespace accel::rt

#endif // ACCEL_RUNTIME_RUN_INTERRUPTS_H
