// A process that looks for a device and says by a pipe what it has found.

#include "Run/LookForDevice.h"

#include "Base/SystemError.h"
#include "Data/TensorFile.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace accel::rt {

/// Added to the number of the system's error with which the process ends that
/// cannot tell what it has found: lower ones are those of what looks.
static constexpr int kCannotTell = 100;

/// Ends the process that has looked.
[[noreturn]] static void tell(int pipe, const std::string &why) {
  for (size_t told = 0; told < why.size();) {
    ssize_t count = write(pipe, why.data() + told, why.size() - told);
    if (count > 0)
      told += static_cast<size_t>(count);
    else if (errno != EINTR)
      _exit(kCannotTell + errno);
  }
  _exit(0);
}

Status lookForDevice(const DeviceKind &device, const Executable &plan,
                     const std::string &path) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0)
    return Status::error("cannot look for the device " + inQuotes(device.name) +
                         ": " + systemError(errno));
  FileHandle reads(ends[0]), writes(ends[1]);
  pid_t child = fork();
  if (child < 0)
    return Status::error("cannot look for the device " + inQuotes(device.name) +
                         ": " + systemError(errno));
  if (child == 0) {
    Status status = device.checkMachine(plan, path);
    tell(writes.get(), status.ok() ? std::string() : status.message());
  }
  writes = FileHandle();
  std::string why;
  char part[512];
  int failed = 0;
  for (ssize_t count;
       !failed && (count = read(reads.get(), part, sizeof part)) != 0;) {
    if (count > 0)
      why.append(part, static_cast<size_t>(count));
    else if (errno != EINTR)
      failed = errno;
  }
  int end = 0;
  while (waitpid(child, &end, 0) < 0 && errno == EINTR) {
  }
  if (WIFSIGNALED(end))
    return Status::error("the look for the device " + inQuotes(device.name) +
                         " ended by signal " + std::to_string(WTERMSIG(end)) +
                         " (" + strsignal(WTERMSIG(end)) + ")");
  if (WEXITSTATUS(end) > kCannotTell)
    failed = WEXITSTATUS(end) - kCannotTell;
  else if (WEXITSTATUS(end) != 0)
    return Status::error("the look for the device " + inQuotes(device.name) +
                         " ended with exit code " +
                         std::to_string(WEXITSTATUS(end)));
  if (failed != 0)
    return Status::error("cannot look for the device " + inQuotes(device.name) +
                         ": " + systemError(failed));
  return why.empty() ? Status() : Status::error(why);
}

} // namespace accel::rt
