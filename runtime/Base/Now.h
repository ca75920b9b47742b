// The time on a clock that only goes forward.

#ifndef ACCEL_RUNTIME_BASE_NOW_H
#define ACCEL_RUNTIME_BASE_NOW_H

#include <chrono>

namespace accel::rt {

/// Seconds since some moment.
inline double now() {
  return std::chrono::duration<double>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

} // namespace accel::rt

#endif // ACCEL_RUNTIME_BASE_NOW_H
