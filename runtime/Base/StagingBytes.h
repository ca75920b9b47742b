// How much of a file goes through memory at a time, where it is read or written
// in pieces.

#ifndef ACCEL_RUNTIME_BASE_STAGINGBYTES_H
#define ACCEL_RUNTIME_BASE_STAGINGBYTES_H

#include <cstddef>

namespace accel::rt {

inline constexpr size_t kStagingBytes = 1 << 20;

} // namespace accel::rt

#endif // ACCEL_RUNTIME_BASE_STAGINGBYTES_H
