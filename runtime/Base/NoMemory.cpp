// Handlers. A library that uses what malloc did not give it gets SIGSEGV, or
// calls abort; errno still says why.

#include "accel-rt/NoMemory.h"

#include <cerrno>
#include <csignal>
#include <new>
#include <unistd.h>

namespace accel::rt {
namespace {

constexpr int kSignals[] = {SIGSEGV, SIGBUS, SIGABRT};
constexpr int kCount = sizeof kSignals / sizeof *kSignals;

void (*endHere)();
struct sigaction before[kCount];

void note(int signal, siginfo_t *info, void *) {
  // One that somebody sends has nothing to do with what failed here last.
  bool ours = signal == SIGABRT ? info->si_pid == getpid() : info->si_code > 0;
  if (ours && errno == ENOMEM)
    endHere();
  // As if this handler were not there: the signal comes again at once.
  for (int i = 0; i < kCount; ++i)
    if (kSignals[i] == signal)
      sigaction(signal, &before[i], nullptr);
  raise(signal);
}

} // namespace

void endWithoutMemory(void (*end)()) {
  endHere = end;
  std::set_new_handler(end);
  struct sigaction action = {};
  action.sa_sigaction = note;
  action.sa_flags = SA_ONSTACK | SA_SIGINFO;
  for (int i = 0; i < kCount; ++i) {
    struct sigaction old;
    if (sigaction(kSignals[i], nullptr, &old) == 0 &&
        old.sa_sigaction != note &&
        sigaction(kSignals[i], &action, nullptr) == 0)
      before[i] = old;
  }
}

} // namespace accel::rt
