// Flushing stdout, and asking a pipe whether it is full.

#include "StandardOutput.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <poll.h>

namespace accel::rt {

Status flushStandardOutput() {
  // A text longer than the buffer has failed before: its reason is still there.
  int before = std::ferror(stdout) ? errno : 0;
  errno = 0;
  if (std::fflush(stdout) == 0 && !std::ferror(stdout))
    return Status();
  int why = errno ? errno : before;
  return Status::error(
      "cannot write to the standard output" +
      (why ? std::string(": ") + std::strerror(why) : std::string()));
}

bool takesLine(int fd) {
  pollfd entry = {fd, POLLOUT, 0};
  return poll(&entry, 1, 0) != 0;
}

} // namespace accel::rt
