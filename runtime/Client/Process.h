// The acc-run that a program has started, and the socket to it.

#ifndef ACCEL_RUNTIME_CLIENT_PROCESS_H
#define ACCEL_RUNTIME_CLIENT_PROCESS_H

#include "accel-rt/Status.h"

#include <string>
#include <sys/types.h>
#include <vector>

namespace accel::rt {

/// Where acc-run is: `given`, $ACC_RUN, bin/acc-run beside the folder of this
/// library, or the name alone, which the PATH is searched for.
std::string findProgram(const char *given);

class Process {
public:
  Process() = default;
  ~Process();
  Process(const Process &) = delete;
  Process &operator=(const Process &) = delete;

  /// Starts `program` with `words`, in a process group of its own: who
  /// interrupts the caller's decides there what becomes of the ranks. Errors:
  /// the system's.
  Status start(const std::string &program, std::vector<std::string> words);

  /// -1: there is none, or it was closed.
  int socket() const { return end; }
  /// Whether this is the process that has started it, and no fork of that.
  bool isOwner() const;
  /// Lets the other side see that nobody calls any more.
  void closeSocket();
  /// Waits until it has ended, by SIGKILL if it takes long, and collects it;
  /// returns how it has ended: a clause. Nothing that is done twice.
  std::string collect();

private:
  int end = -1;
  pid_t child = -1, owner = -1;
};

} // namespace accel::rt

#endif // ACCEL_RUNTIME_CLIENT_PROCESS_H
