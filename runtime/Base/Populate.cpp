// Pages by madvise.

#include "Base/Populate.h"

#include "Base/SystemError.h"

#include <algorithm>
#include <cerrno>
#include <sys/mman.h>

namespace accel::rt {

static constexpr uint64_t kPopulatedAtOnce = 64 << 20;

Status populate(void *address, uint64_t bytes, std::atomic<uint64_t> *counter) {
  for (uint64_t done = 0; done < bytes;) {
    uint64_t step = std::min(kPopulatedAtOnce, bytes - done);
    // Kernels before 5.14 do not know this: there the first run pays.
    if (madvise(static_cast<char *>(address) + done, step,
                MADV_POPULATE_WRITE) != 0 &&
        errno != EINVAL)
      return Status::error("cannot fill an arena of " + std::to_string(bytes) +
                           " bytes with memory: " + systemError(errno));
    done += step;
    if (counter)
      counter->fetch_add(step, std::memory_order_relaxed);
  }
  return Status();
}

} // namespace accel::rt
