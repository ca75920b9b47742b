// Handlers for what is reported to nobody, and one look at the address space.

#include "Resources.h"

#include "accel-rt/NoMemory.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/ErrorHandling.h"
#include "llvm/Support/raw_ostream.h"

#include <csignal>
#include <cstring>
#include <cxxabi.h>
#include <exception>
#include <new>
#include <sys/mman.h>
#include <typeinfo>
#include <unistd.h>

/// What compiling a small model takes beside the tool itself: stacks of
/// threads, and the code that oneDNN generates, which ends by a signal where it
/// gets no memory.
static constexpr size_t kLeastAddressSpace = size_t(256) << 20;

/// Allocates nothing. Destructors do not run: what was being written stays
/// under its temporary name.
[[noreturn]] static void end(const char *message) {
  ssize_t written = write(STDERR_FILENO, message, std::strlen(message));
  _exit(written < 0 ? 2 : 1);
}

static constexpr const char *kNoMemory =
    "acc-opt: error: cannot allocate memory: the limits are the machine's "
    "memory, that of the cgroup, and 'ulimit -v'\n";
static constexpr const char *kNoThread =
    "acc-opt: error: cannot start a thread: the limits are 'ulimit -u', that "
    "of the cgroup, and 'ulimit -v' for its stack\n";

static void endWithoutMemory() { end(kNoMemory); }

/// What libraries allocate while they are loaded can fail, too. (A sanitizer
/// does not let anything run first; there it comes with the rest.)
static bool isGuarded = false;
static void guardLoading() {
  isGuarded = true;
  std::set_new_handler(endWithoutMemory);
  llvm::install_bad_alloc_error_handler(
      [](void *, const char *, bool) { endWithoutMemory(); });
  std::set_terminate([] {
    const std::type_info *type = abi::__cxa_current_exception_type();
    if (type && std::strcmp(type->name(), "St12system_error") == 0)
      end(kNoThread); // the only use of the standard library that says it
    if (type && std::strcmp(type->name(), "St9bad_alloc") == 0)
      end(kNoMemory);
    abort();
  });
}
ACCEL_RUN_FIRST(guardLoading)

void leaveToLLVM() { std::set_new_handler(nullptr); }

llvm::LogicalResult guardResources() {
  if (!isGuarded)
    guardLoading();
  accel::rt::endWithoutMemory(endWithoutMemory);
  // A limit on the size of files is an error to report, not the end.
  std::signal(SIGXFSZ, SIG_IGN);
  // Other fatal errors are bugs, and keep their traces.
  llvm::install_fatal_error_handler([](void *, const char *reason, bool) {
    if (llvm::StringRef(reason).starts_with("pthread_create failed"))
      end(kNoThread);
    llvm::errs() << "LLVM ERROR: " << reason << "\n";
  });
  void *room = mmap(nullptr, kLeastAddressSpace, PROT_NONE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (room == MAP_FAILED) {
    llvm::errs() << kNoMemory;
    return llvm::failure();
  }
  munmap(room, kLeastAddressSpace);
  return llvm::success();
}
