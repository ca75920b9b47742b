// fork, wait4 and kill.

#include "Control/ForkedCenter.h"

#include "Base/SystemError.h"

#include <cerrno>
#include <csignal>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

namespace accel::rt {

std::optional<RankEnd> collectRank(pid_t process) {
  int status = 0;
  rusage used = {};
  if (process <= 0 || wait4(process, &status, WNOHANG, &used) != process)
    return std::nullopt;
  if (!WIFSIGNALED(status))
    return RankEnd{false, WEXITSTATUS(status)};
  RankEnd end{true, WTERMSIG(status)};
  rlimit limit = {}; // of this process, whose the other's was
  rlim_t seconds =
      static_cast<rlim_t>(used.ru_utime.tv_sec + used.ru_stime.tv_sec + 1);
  end.isOutOfTime = (end.code == SIGKILL || end.code == SIGXCPU) &&
                    getrlimit(RLIMIT_CPU, &limit) == 0 &&
                    limit.rlim_cur != RLIM_INFINITY &&
                    seconds >= limit.rlim_cur;
  return end;
}

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
  std::optional<RankEnd> end = collectRank(process);
  if (end)
    process = 0;
  return end;
}

void ForkedCenter::kill(int64_t rank) {
  if (pid_t process = processes[static_cast<size_t>(rank)]; process > 0)
    ::kill(process, SIGKILL);
}

} // namespace accel::rt
