// Preloaded into acc-opt or acc-run (LD_PRELOAD): makes the n-th call of a kind
// fail, and counts calls, so that a driver (inject.py) can ask for every n.
// ACCEL_FAULT is STATE[:PROCESS:KIND:N:HOW]. STATE is a file that is mapped by
// all processes of a run; it gets the calls of each kind by each process, and
// how often a call was made to fail. HOW is an error number, `short` (half of
// what was asked for is moved), `zero` (nothing is) or `slow` (it takes a
// while), with a `+` behind it for the N-th call and all after it: a disk that
// is full stays full.
//
// Each process counts for itself, by its number: the first one has 0, a child
// the next one in the order of births. A count common to all would depend on
// which rank is faster, and no n would mean the same call twice.

#include "FaultKinds.h"
#include "UnnamedFiles.h"

#include <cerrno>
#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <liburing.h>
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace accel::test;

extern "C" {
void *__libc_malloc(size_t bytes);
void *__libc_calloc(size_t count, size_t bytes);
void *__libc_realloc(void *address, size_t bytes);
void *__libc_memalign(size_t alignment, size_t bytes);
}

namespace {

enum class How { Error, Short, Zero, Slow };

struct Plan {
  FaultState *state = nullptr;
  uint32_t process = 0;
  int kind = -1;
  uint64_t turn = 0;
  How how = How::Error;
  int error = 0;
  bool onwards = false;
};

Plan plan;
uint32_t self = 0;

/// Takes what stands before the next colon; allocates nothing.
const char *takeWord(const char *text, char *word, size_t room) {
  size_t length = 0;
  for (; *text && *text != ':'; ++text)
    if (length + 1 < room)
      word[length++] = *text;
  word[length] = '\0';
  return *text ? text + 1 : text;
}

/// Whether there is a plan. Libraries allocate before any constructor of this
/// one runs, so that the first call of any kind reads it.
bool isReady() {
  static int read = 0; // 1: there is one, 2: there is none
  if (read || !environ)
    return read == 1;
  read = 2;
  char path[1024], word[64];
  const char *text = nullptr;
  for (char **entry = environ; *entry; ++entry)
    if (std::strncmp(*entry, "ACCEL_FAULT=", 12) == 0)
      text = *entry + 12;
  if (!text)
    return false;
  text = takeWord(text, path, sizeof path);
  int file = static_cast<int>(
      syscall(SYS_openat, AT_FDCWD, path, O_RDWR | O_CLOEXEC, 0));
  if (file < 0)
    _exit(99);
  // Six arguments: the last is on the stack, and all of its bytes count.
  auto mapped = syscall(SYS_mmap, nullptr, sizeof(FaultState),
                        PROT_READ | PROT_WRITE, MAP_SHARED, file, 0L);
  syscall(SYS_close, file);
  plan.state = reinterpret_cast<FaultState *>(mapped);
  self = plan.state->processes.fetch_add(1);
  if (*text) {
    text = takeWord(text, word, sizeof word);
    plan.process = static_cast<uint32_t>(std::strtoul(word, nullptr, 10));
    text = takeWord(text, word, sizeof word);
    for (int kind = 0; kind < kNumFaultKinds; ++kind)
      if (std::strcmp(word, kFaultKinds[kind]) == 0)
        plan.kind = kind;
    text = takeWord(text, word, sizeof word);
    plan.turn = std::strtoull(word, nullptr, 10);
    takeWord(text, word, sizeof word);
    size_t length = std::strlen(word);
    plan.onwards = length && word[length - 1] == '+';
    if (plan.onwards)
      word[length - 1] = '\0';
    plan.how = std::strcmp(word, "short") == 0  ? How::Short
               : std::strcmp(word, "zero") == 0 ? How::Zero
               : std::strcmp(word, "slow") == 0 ? How::Slow
                                                : How::Error;
    plan.error = std::atoi(word);
  }
  read = 1;
  return true;
}

/// Counts a call; whether it is to fail.
bool fails(FaultKind kind, const char *name) {
  if (!isReady() || self >= kMostFaultProcesses)
    return false;
  uint64_t turn = plan.state->calls[self][kind].fetch_add(1) + 1;
  if (plan.kind != kind || plan.process != self ||
      (plan.onwards ? turn < plan.turn : turn != plan.turn))
    return false;
  if (plan.state->hits.fetch_add(1) == 0)
    std::strncpy(plan.state->name, name, sizeof plan.state->name - 1);
  return true;
}

/// The same for calls that know errors only.
bool failsWithError(FaultKind kind, const char *name) {
  if (!fails(kind, name))
    return false;
  errno = plan.error;
  return true;
}

/// The same for calls that move bytes: -1 and errno, or fewer of them.
template <class Move>
ssize_t moveFewer(FaultKind kind, const char *name, size_t bytes, Move &&move) {
  if (!fails(kind, name))
    return move(bytes);
  if (plan.how == How::Short)
    return move(bytes > 1 ? bytes / 2 : bytes);
  if (plan.how == How::Zero)
    return 0;
  errno = plan.error;
  return -1;
}

template <class Function> Function *realOf(const char *name, Function *) {
  return reinterpret_cast<Function *>(dlsym(RTLD_NEXT, name));
}

} // namespace

#define REAL(name)                                                             \
  ([] {                                                                        \
    static auto *real = realOf(#name, &::name);                                \
    return real;                                                               \
  }())

// NOLINTBEGIN(bugprone-macro-parentheses): lists of parameters have theirs.

/// A function that fails with FAILURE and errno.
#define FAIL_CALL(KIND, TYPE, NAME, PARAMETERS, ARGUMENTS, FAILURE)            \
  TYPE NAME PARAMETERS {                                                       \
    if (failsWithError(KIND, #NAME))                                           \
      return FAILURE;                                                          \
    return REAL(NAME) ARGUMENTS;                                               \
  }
// NOLINTEND(bugprone-macro-parentheses)

extern "C" {

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

void *malloc(size_t bytes) {
  return failsWithError(kAllocate, "malloc") ? nullptr : __libc_malloc(bytes);
}
void *calloc(size_t count, size_t bytes) {
  return failsWithError(kAllocate, "calloc") ? nullptr
                                             : __libc_calloc(count, bytes);
}
void *realloc(void *address, size_t bytes) {
  return failsWithError(kAllocate, "realloc") ? nullptr
                                              : __libc_realloc(address, bytes);
}
void *memalign(size_t alignment, size_t bytes) {
  return failsWithError(kAllocate, "memalign")
             ? nullptr
             : __libc_memalign(alignment, bytes);
}
void *aligned_alloc(size_t alignment, size_t bytes) {
  return failsWithError(kAllocate, "aligned_alloc")
             ? nullptr
             : __libc_memalign(alignment, bytes);
}
int posix_memalign(void **address, size_t alignment, size_t bytes) {
  if (failsWithError(kAllocate, "posix_memalign"))
    return ENOMEM;
  *address = __libc_memalign(alignment, bytes);
  return *address ? 0 : ENOMEM;
}

FAIL_CALL(kMap, void *, mmap,
          (void *at, size_t bytes, int access, int flags, int fd, off_t offset),
          (at, bytes, access, flags, fd, offset), MAP_FAILED)
FAIL_CALL(kMap, void *, mmap64,
          (void *at, size_t bytes, int access, int flags, int fd, off_t offset),
          (at, bytes, access, flags, fd, offset), MAP_FAILED)
FAIL_CALL(kProtect, int, mprotect, (void *at, size_t bytes, int access),
          (at, bytes, access), -1)
FAIL_CALL(kProtect, int, madvise, (void *at, size_t bytes, int advice),
          (at, bytes, advice), -1)
FAIL_CALL(kOpen, int, memfd_create, (const char *name, unsigned flags),
          (name, flags), -1)

//===----------------------------------------------------------------------===//
// Bytes of files
//===----------------------------------------------------------------------===//

ssize_t read(int fd, void *to, size_t bytes) {
  return moveFewer(kRead, "read", bytes,
                   [&](size_t count) { return REAL(read)(fd, to, count); });
}
ssize_t pread(int fd, void *to, size_t bytes, off_t at) {
  return moveFewer(kRead, "pread", bytes, [&](size_t count) {
    return REAL(pread)(fd, to, count, at);
  });
}
ssize_t pread64(int fd, void *to, size_t bytes, off_t at) {
  return moveFewer(kRead, "pread64", bytes, [&](size_t count) {
    return REAL(pread64)(fd, to, count, at);
  });
}
FAIL_CALL(kRead, ssize_t, readv, (int fd, const iovec *to, int count),
          (fd, to, count), -1)

// What cannot be said on the standard error can be said nowhere.
ssize_t write(int fd, const void *from, size_t bytes) {
  if (fd == STDERR_FILENO)
    return REAL(write)(fd, from, bytes);
  return moveFewer(kWrite, "write", bytes,
                   [&](size_t count) { return REAL(write)(fd, from, count); });
}
ssize_t pwrite(int fd, const void *from, size_t bytes, off_t at) {
  return moveFewer(kWrite, "pwrite", bytes, [&](size_t count) {
    return REAL(pwrite)(fd, from, count, at);
  });
}
ssize_t pwrite64(int fd, const void *from, size_t bytes, off_t at) {
  return moveFewer(kWrite, "pwrite64", bytes, [&](size_t count) {
    return REAL(pwrite64)(fd, from, count, at);
  });
}
FAIL_CALL(kWrite, ssize_t, writev, (int fd, const iovec *from, int count),
          (fd, from, count), -1)
FAIL_CALL(kWrite, ssize_t, sendfile,
          (int to, int from, off_t *at, size_t bytes), (to, from, at, bytes),
          -1)
FAIL_CALL(kWrite, ssize_t, copy_file_range,
          (int from, off_t *at, int to, off_t *there, size_t bytes,
           unsigned flags),
          (from, at, to, there, bytes, flags), -1)

FAIL_CALL(kSync, int, fsync, (int fd), (fd), -1)
FAIL_CALL(kSync, int, fdatasync, (int fd), (fd), -1)
FAIL_CALL(kSync, int, syncfs, (int fd), (fd), -1)
FAIL_CALL(kSync, int, sync_file_range,
          (int fd, off_t at, off_t bytes, unsigned flags),
          (fd, at, bytes, flags), -1)
FAIL_CALL(kSize, int, ftruncate, (int fd, off_t bytes), (fd, bytes), -1)
FAIL_CALL(kSize, int, ftruncate64, (int fd, off_t bytes), (fd, bytes), -1)
int posix_fallocate(int fd, off_t at, off_t bytes) {
  return fails(kSize, "posix_fallocate") ? plan.error
                                         : REAL(posix_fallocate)(fd, at, bytes);
}
int posix_fallocate64(int fd, off_t at, off_t bytes) {
  return fails(kSize, "posix_fallocate64")
             ? plan.error
             : REAL(posix_fallocate64)(fd, at, bytes);
}
FAIL_CALL(kLock, int, flock, (int fd, int what), (fd, what), -1)
FAIL_CALL(kClose, int, close, (int fd), (fd), (REAL(close)(fd), -1))

int fcntl(int fd, int what, ...) {
  va_list list;
  va_start(list, what);
  void *argument = va_arg(list, void *);
  va_end(list);
  if (what == F_SETFL && (reinterpret_cast<uintptr_t>(argument) & O_DIRECT) &&
      failsWithError(kDirect, "fcntl"))
    return -1;
  bool locks = what == F_OFD_SETLK || what == F_SETLK || what == F_OFD_SETLKW;
  if (locks && failsWithError(kLock, "fcntl"))
    return -1;
  return REAL(fcntl)(fd, what, argument);
}

//===----------------------------------------------------------------------===//
// Blocks by io_uring
//===----------------------------------------------------------------------===//

/// ACCEL_NO_RING: the kernel grants none, as under seccomp.
int io_uring_queue_init(unsigned entries, io_uring *ring, unsigned flags) {
  if (fails(kRing, "io_uring_queue_init"))
    return -plan.error;
  return std::getenv("ACCEL_NO_RING")
             ? -EPERM
             : REAL(io_uring_queue_init)(entries, ring, flags);
}

/// A block that fails is not moved at all, whatever comes of it; of a short one
/// half is, in sectors of disks. The numbers of those under way that are to
/// fail, each a bit: queues in tests are shorter.
static std::atomic<uint64_t> failedBlocks{0};

int io_uring_submit(io_uring *ring) {
  io_uring_sq &queue = ring->sq;
  if (queue.sqe_tail == queue.sqe_head || !fails(kBlock, "io_uring_submit"))
    return REAL(io_uring_submit)(ring);
  io_uring_sqe &entry = queue.sqes[queue.sqe_head & *queue.kring_mask];
  if (plan.how == How::Short) {
    entry.len = entry.len / 2 / 512 * 512;
  } else if (plan.how == How::Slow) {
    usleep(50000);
  } else {
    failedBlocks |= uint64_t(1) << entry.user_data;
    entry.opcode = IORING_OP_NOP;
  }
  return REAL(io_uring_submit)(ring);
}

int __io_uring_get_cqe(io_uring *ring, io_uring_cqe **done, unsigned submit,
                       unsigned wait, sigset_t *mask) {
  int found = REAL(__io_uring_get_cqe)(ring, done, submit, wait, mask);
  if (found != 0 || !*done)
    return found;
  uint64_t own = uint64_t(1) << (*done)->user_data;
  if (failedBlocks.fetch_and(~own) & own)
    (*done)->res = plan.how == How::Zero ? 0 : -plan.error;
  return found;
}

//===----------------------------------------------------------------------===//
// Names
//===----------------------------------------------------------------------===//

#define MODE_OF(flags)                                                         \
  mode_t mode = 0;                                                             \
  if ((flags) & (O_CREAT | O_TMPFILE)) {                                       \
    va_list list;                                                              \
    va_start(list, flags);                                                     \
    mode = va_arg(list, mode_t);                                               \
    va_end(list);                                                              \
  }

int open(const char *path, int flags, ...) {
  MODE_OF(flags)
  return failsWithError(kOpen, "open") || isRefused(flags)
             ? -1
             : REAL(open)(path, flags, mode);
}
int open64(const char *path, int flags, ...) {
  MODE_OF(flags)
  return failsWithError(kOpen, "open64") ? -1 : REAL(open64)(path, flags, mode);
}
int openat(int folder, const char *path, int flags, ...) {
  MODE_OF(flags)
  return failsWithError(kOpen, "openat")
             ? -1
             : REAL(openat)(folder, path, flags, mode);
}
int openat64(int folder, const char *path, int flags, ...) {
  MODE_OF(flags)
  return failsWithError(kOpen, "openat64")
             ? -1
             : REAL(openat64)(folder, path, flags, mode);
}
FAIL_CALL(kOpen, FILE *, fopen, (const char *path, const char *mode),
          (path, mode), nullptr)
FAIL_CALL(kOpen, FILE *, fopen64, (const char *path, const char *mode),
          (path, mode), nullptr)
FAIL_CALL(kOpen, DIR *, opendir, (const char *path), (path), nullptr)
FAIL_CALL(kOpen, DIR *, fdopendir, (int fd), (fd), nullptr)
FAIL_CALL(kList, dirent *, readdir, (DIR * folder), (folder), nullptr)
FAIL_CALL(kList, dirent64 *, readdir64, (DIR * folder), (folder), nullptr)

FAIL_CALL(kRename, int, rename, (const char *from, const char *to), (from, to),
          -1)
FAIL_CALL(kRename, int, renameat,
          (int old, const char *from, int folder, const char *to),
          (old, from, folder, to), -1)
FAIL_CALL(kRename, int, link, (const char *from, const char *to), (from, to),
          -1)
FAIL_CALL(kRename, int, linkat,
          (int old, const char *from, int folder, const char *to, int flags),
          (old, from, folder, to, flags), -1)
FAIL_CALL(kRemove, int, unlink, (const char *path), (path), -1)
FAIL_CALL(kRemove, int, unlinkat, (int folder, const char *path, int flags),
          (folder, path, flags), -1)
FAIL_CALL(kRemove, int, rmdir, (const char *path), (path), -1)
FAIL_CALL(kRemove, int, remove, (const char *path), (path), -1)
FAIL_CALL(kFolder, int, mkdir, (const char *path, mode_t mode), (path, mode),
          -1)
FAIL_CALL(kFolder, int, mkdirat, (int folder, const char *path, mode_t mode),
          (folder, path, mode), -1)

using Stat = struct stat;
using Stat64 = struct stat64;
FAIL_CALL(kStat, int, stat, (const char *path, Stat *info), (path, info), -1)
FAIL_CALL(kStat, int, stat64, (const char *path, Stat64 *info), (path, info),
          -1)
FAIL_CALL(kStat, int, lstat, (const char *path, Stat *info), (path, info), -1)
FAIL_CALL(kStat, int, fstat, (int fd, Stat *info), (fd, info), -1)
FAIL_CALL(kStat, int, fstat64, (int fd, Stat64 *info), (fd, info), -1)
FAIL_CALL(kStat, int, fstatat,
          (int folder, const char *path, Stat *info, int flags),
          (folder, path, info, flags), -1)
FAIL_CALL(kStat, int, access, (const char *path, int mode), (path, mode), -1)
FAIL_CALL(kStat, int, faccessat,
          (int folder, const char *path, int mode, int flags),
          (folder, path, mode, flags), -1)
FAIL_CALL(kStat, ssize_t, readlink, (const char *path, char *to, size_t room),
          (path, to, room), -1)

//===----------------------------------------------------------------------===//
// Processes
//===----------------------------------------------------------------------===//

/// A child's number is taken by its parent: children of one process are born
/// one after another, but run in any order.
pid_t fork() {
  if (failsWithError(kFork, "fork"))
    return -1;
  uint32_t number = isReady() ? plan.state->processes.fetch_add(1) : 0;
  pid_t child = REAL(fork)();
  if (child == 0)
    self = number;
  return child;
}
int posix_spawn(pid_t *child, const char *path,
                const posix_spawn_file_actions_t *actions,
                const posix_spawnattr_t *attributes, char *const *arguments,
                char *const *environment) {
  return fails(kFork, "posix_spawn")
             ? plan.error
             : REAL(posix_spawn)(child, path, actions, attributes, arguments,
                                 environment);
}
int pthread_create(pthread_t *thread, const pthread_attr_t *attributes,
                   void *(*body)(void *), void *argument) {
  return fails(kFork, "pthread_create")
             ? plan.error
             : REAL(pthread_create)(thread, attributes, body, argument);
}
/// ACCEL_SLOW_EXIT: a child takes longer to end than its parent waits for it.
void _exit(int status) {
  if (self > 0 && std::getenv("ACCEL_SLOW_EXIT"))
    usleep(2500000);
  REAL(_exit)(status);
  __builtin_unreachable();
}
FAIL_CALL(kWait, pid_t, waitpid, (pid_t child, int *status, int flags),
          (child, status, flags), -1)
FAIL_CALL(kWait, pid_t, wait4,
          (pid_t child, int *status, int flags, rusage *usage),
          (child, status, flags, usage), -1)
FAIL_CALL(kWait, int, poll, (pollfd * entries, nfds_t count, int limit),
          (entries, count, limit), -1)
FAIL_CALL(kRandom, ssize_t, getrandom, (void *to, size_t bytes, unsigned flags),
          (to, bytes, flags), -1)
/// Whoever is told of a failure asks dlerror for the reason.
void *dlopen(const char *path, int flags) {
  bool broken = fails(kLoad, "dlopen");
  return REAL(dlopen)(broken ? "/made/to/fail" : path, flags);
}

long syscall(long number, ...) {
  va_list list;
  va_start(list, number);
  long arguments[6];
  for (long &argument : arguments)
    argument = va_arg(list, long);
  va_end(list);
  if (number == SYS_futex && failsWithError(kFutex, "futex"))
    return -1;
  return REAL(syscall)(number, arguments[0], arguments[1], arguments[2],
                       arguments[3], arguments[4], arguments[5]);
}

} // extern "C"
