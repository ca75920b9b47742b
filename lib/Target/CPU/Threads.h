// How many threads a rank is compiled for.

#ifndef ACCEL_LIB_TARGET_CPU_THREADS_H
#define ACCEL_LIB_TARGET_CPU_THREADS_H

#include <algorithm>
#include <cstdint>
#include <thread>

namespace accel::cpu {

/// As many as asked for; for 0 what acc-run takes on this machine: its cores,
/// shared by the ranks.
inline int64_t countThreads(int64_t asked, int64_t ranks) {
  int64_t cores = std::max(1u, std::thread::hardware_concurrency());
  return asked > 0 ? asked : std::max<int64_t>(1, cores / ranks);
}

} // namespace accel::cpu

#endif // ACCEL_LIB_TARGET_CPU_THREADS_H
