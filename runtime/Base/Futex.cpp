// The futex system call.

#include "Base/Futex.h"

#include <climits>
#include <ctime>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace accel::rt {

void wakeWaiters(Word &word, int count) {
  syscall(SYS_futex, reinterpret_cast<uint32_t *>(&word), FUTEX_WAKE, count,
          nullptr, nullptr, 0);
}

void waitWhile(Word &word, uint32_t old, int milliseconds) {
  timespec limit = {milliseconds / 1000, (milliseconds % 1000) * 1000000L};
  syscall(SYS_futex, reinterpret_cast<uint32_t *>(&word), FUTEX_WAIT, old,
          &limit, nullptr, 0);
}

int spinLimit(int64_t threads, int64_t cores) {
  return threads <= cores ? 2000 : 50;
}

} // namespace accel::rt
