// Memory behind the pages of an arena.

#ifndef ACCEL_RUNTIME_BASE_POPULATE_H
#define ACCEL_RUNTIME_BASE_POPULATE_H

#include "accel-rt/Status.h"

#include <atomic>
#include <cstdint>

namespace accel::rt {

/// Backs the pages of an arena by memory now, so that the first run is like the
/// others and too little memory is an error at load. It is done in pieces,
/// whose bytes are added to `counter` (may be null): a large arena takes as
/// long as a hang.
Status populate(void *address, uint64_t bytes, std::atomic<uint64_t> *counter);

} // namespace accel::rt

#endif // ACCEL_RUNTIME_BASE_POPULATE_H
