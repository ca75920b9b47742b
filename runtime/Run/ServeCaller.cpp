// A run for a program that calls the ranks: what acc-run says on its standard
// error goes to the caller.

#include "Calls/Channel.h"
#include "accel-rt/Runtime.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace accel::rt {
namespace {

bool tell(int caller, MessageKind kind, const std::string &text) {
  Message message;
  message.kind = kind;
  message.text = text;
  return sendMessage(caller, message); // its end is noticed elsewhere
}

} // namespace

bool refuseCaller(int caller, const std::string &why) {
  return tell(caller, MessageKind::Error, printable(why));
}

Status serveCaller(RunOptions options, int &code) {
  int caller = options.caller, type = 0;
  socklen_t length = sizeof type;
  if (getsockopt(caller, SOL_SOCKET, SO_TYPE, &type, &length) != 0 ||
      type != SOCK_SEQPACKET)
    return Status::error("expected a socket at the descriptor " +
                         std::to_string(caller) + " of " + kServeOption +
                         ", found none: libaccel-run starts acc-run so "
                         "(docs/Embedding.md)");
  // What the caller had open is no business of the ranks, which would keep
  // pipes of its other children from ending.
  syscall(SYS_close_range, caller + 1, ~0U, 0);
  fcntl(caller, F_SETFD, FD_CLOEXEC);
  options.progress = [caller](const std::string &line) {
    (void)tell(caller, MessageKind::Progress, line);
  };
  options.warn = [caller](const std::string &line) {
    (void)tell(caller, MessageKind::Warning, line);
  };
  RunResult result;
  Status status = runExecutable(options, result);
  code = status.ok() ? 0 : 1;
  if (!status.ok())
    (void)refuseCaller(caller, status.message()); // or nobody wants to know
  return Status();
}

} // namespace accel::rt
