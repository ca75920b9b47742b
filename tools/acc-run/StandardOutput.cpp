// Flushing stdout, and asking a pipe whether it is full.

#include "StandardOutput.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <poll.h>

namespace accel::rt {

Status flushStandardOutput() {
  errno = 0;
  if (std::fflush(stdout) == 0 && !std::ferror(stdout))
    return Status();
  return Status::error(
      "cannot write to the standard output" +
      (errno ? std::string(": ") + std::strerror(errno) : std::string()));
}

bool takesLine(int fd) {
  pollfd entry = {fd, POLLOUT, 0};
  return poll(&entry, 1, 0) != 0;
}

} // namespace accel::rt
