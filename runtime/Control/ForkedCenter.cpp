// fork, waitpid and kill.

#include "Control/ForkedCenter.h"

#include "Base/SystemError.h"

#include <cerrno>
#include <csignal>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace accel::rt {

Status ForkedCenter::start(int64_t rank,
                           const std::function<int(ControlPlane &)> &life) {
  pid_t parent = getpid(), child = fork();
  if (child == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
      _exit(1); // the parent ended before the line above
    _exit(life(*makePlane(rank)));
  }
  if (child < 0)
    return Status::error("cannot start rank " + std::to_string(rank) + ": " +
                         systemError(errno));
  processes[static_cast<size_t>(rank)] = child;
  return Status();
}

std::optional<RankEnd> ForkedCenter::findEnd(int64_t rank) {
  pid_t &process = processes[static_cast<size_t>(rank)];
  int status = 0;
  if (process <= 0 || waitpid(process, &status, WNOHANG) != process)
    return std::nullopt;
  process = 0;
  if (WIFSIGNALED(status))
    return RankEnd{true, WTERMSIG(status)};
  return RankEnd{false, WEXITSTATUS(status)};
}

void ForkedCenter::kill(int64_t rank) {
  if (pid_t process = processes[static_cast<size_t>(rank)]; process > 0)
    ::kill(process, SIGKILL);
}

} // namespace accel::rt
