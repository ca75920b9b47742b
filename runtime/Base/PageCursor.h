// Laying a mapping out: consecutive pieces, each starting on a page.

#ifndef ACCEL_RUNTIME_BASE_PAGECURSOR_H
#define ACCEL_RUNTIME_BASE_PAGECURSOR_H

#include <cstdint>

namespace accel::rt {

struct PageCursor {
  static constexpr uint64_t kPage = 4096;
  uint64_t bytes = 0;

  /// The start of a piece of that size.
  uint64_t take(uint64_t size) {
    uint64_t at = bytes;
    bytes = (bytes + size + kPage - 1) / kPage * kPage;
    return at;
  }
};

} // namespace accel::rt

#endif // ACCEL_RUNTIME_BASE_PAGECURSOR_H
