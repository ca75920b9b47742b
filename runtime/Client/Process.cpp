// posix_spawn, which is safe in a program with threads, where fork is not.

#include "Client/Process.h"

#include "Base/SystemError.h"
#include "Calls/Channel.h"

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

extern char **environ;

namespace accel::rt {
namespace {

/// Longer than a Supervisor takes to end ranks that do not end by themselves.
constexpr auto kGrace = std::chrono::seconds(8);
constexpr auto kPoll = std::chrono::milliseconds(1);

/// What posix_spawn takes, freed at the end.
struct SpawnSettings {
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  SpawnSettings() {
    posix_spawn_file_actions_init(&actions);
    posix_spawnattr_init(&attributes);
  }
  ~SpawnSettings() {
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attributes);
  }
};

} // namespace

std::string findProgram(const char *given) {
  if (given && *given)
    return given;
  if (const char *named = std::getenv("ACC_RUN"); named && *named)
    return named;
  Dl_info info;
  if (dladdr(reinterpret_cast<void *>(&findProgram), &info) && info.dli_fname) {
    std::string path = info.dli_fname;
    size_t slash = path.rfind('/');
    path = slash == std::string::npos ? "." : path.substr(0, slash);
    path += "/../bin/acc-run";
    if (access(path.c_str(), X_OK) == 0)
      return path;
  }
  return "acc-run";
}

Status Process::start(const std::string &program,
                      std::vector<std::string> words) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
    return Status::error("cannot make a socket to " + inQuotes(program) + ": " +
                         systemError(errno));
  SpawnSettings settings;
  posix_spawn_file_actions_adddup2(&settings.actions, ends[1],
                                   kServeDescriptor);
  // What this thread blocks or the program ignores is no wish about ranks.
  sigset_t none, all;
  sigemptyset(&none);
  sigfillset(&all);
  posix_spawnattr_setsigmask(&settings.attributes, &none);
  posix_spawnattr_setsigdefault(&settings.attributes, &all);
  posix_spawnattr_setpgroup(&settings.attributes, 0);
  posix_spawnattr_setflags(&settings.attributes, POSIX_SPAWN_SETSIGMASK |
                                                     POSIX_SPAWN_SETSIGDEF |
                                                     POSIX_SPAWN_SETPGROUP);
  words.insert(words.begin(), {program, std::string(kServeOption),
                               std::to_string(kServeDescriptor)});
  std::vector<char *> arguments;
  for (std::string &word : words)
    arguments.push_back(word.data());
  arguments.push_back(nullptr);
  int error = posix_spawnp(&child, program.c_str(), &settings.actions,
                           &settings.attributes, arguments.data(), environ);
  close(ends[1]);
  if (error) {
    close(ends[0]);
    child = -1;
    return Status::error("cannot start " + inQuotes(program) + ": " +
                         systemError(error) +
                         (error == ENOENT ? ": say where acc-run is with "
                                            "the variable ACC_RUN, or put its "
                                            "folder into the PATH"
                                          : ""));
  }
  end = ends[0];
  owner = getpid();
  return Status();
}

bool Process::isOwner() const { return getpid() == owner; }

void Process::closeSocket() {
  if (end >= 0)
    close(end);
  end = -1;
}

std::string Process::collect() {
  if (child < 0 || !isOwner())
    return "";
  int status = 0;
  pid_t found = 0;
  auto deadline = std::chrono::steady_clock::now() + kGrace;
  while ((found = waitpid(child, &status, WNOHANG)) == 0 ||
         (found < 0 && errno == EINTR)) {
    if (std::chrono::steady_clock::now() > deadline) {
      kill(child, SIGKILL); // its ranks end with it
      while ((found = waitpid(child, &status, 0)) < 0 && errno == EINTR) {
      }
      break;
    }
    std::this_thread::sleep_for(kPoll);
  }
  std::string process = "process " + std::to_string(child);
  child = -1;
  if (found < 0) // the program collects its children itself
    return process + " has ended";
  if (WIFSIGNALED(status))
    return process + " was ended by signal " +
           std::to_string(WTERMSIG(status)) + " (" +
           strsignal(WTERMSIG(status)) + ")";
  return process + " ended with exit code " +
         std::to_string(WEXITSTATUS(status));
}

Process::~Process() {
  closeSocket();
  (void)collect();
}

} // namespace accel::rt
