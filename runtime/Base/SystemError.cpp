// The table of resources and their limits.

#include "Base/SystemError.h"

#include <cerrno>
#include <cstring>

namespace accel::rt {

std::string systemError(int error) {
  std::string text = std::strerror(error);
  switch (error) {
  case EMFILE:
    return text + " (the limit is 'ulimit -n': raise it)";
  case ENFILE:
    return text + " (the limit is the machine's, /proc/sys/fs/file-max)";
  case EAGAIN:
    return text + " (of threads and processes: the limits are 'ulimit -u', "
                  "that of the cgroup, and 'ulimit -v' for the memory of their "
                  "stacks)";
  case ENOMEM:
    return text + " (the limits are the machine's memory, that of the cgroup, "
                  "and 'ulimit -v')";
  default:
    return text;
  }
}

} // namespace accel::rt
