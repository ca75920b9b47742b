// Starting a thread where the system may refuse one: the standard library's
// exception becomes a status.

#ifndef ACCEL_RUNTIME_BASE_STARTTHREAD_H
#define ACCEL_RUNTIME_BASE_STARTTHREAD_H

#include "Base/SystemError.h"
#include "accel-rt/Status.h"

#include <system_error>
#include <thread>
#include <vector>

namespace accel::rt {

/// Adds a thread that runs `body` to `threads`; `name` is for the error.
template <class F>
Status startThread(std::vector<std::thread> &threads, const std::string &name,
                   F &&body) {
  try {
    threads.emplace_back(std::forward<F>(body));
  } catch (const std::system_error &error) {
    return Status::error("cannot start " + name + ": " +
                         systemError(error.code().value()));
  }
  return Status();
}

} // namespace accel::rt

#endif // ACCEL_RUNTIME_BASE_STARTTHREAD_H
