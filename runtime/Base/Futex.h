// Waiting on a word of memory, shared between threads or between processes:
// a bounded spin, then the kernel. Nothing here spins without end: four ranks
// on two cores would stand in each other's way.

#ifndef ACCEL_RUNTIME_BASE_FUTEX_H
#define ACCEL_RUNTIME_BASE_FUTEX_H

#include <atomic>
#include <cstdint>

namespace accel::rt {

using Word = std::atomic<uint32_t>;
static_assert(sizeof(Word) == 4, "a futex is a 32-bit word");

/// Wakes up to `count` waiters of `word`, in any process that maps it.
void wakeWaiters(Word &word, int count = INT32_MAX);

/// Returns when `word` is no longer `old`, or after `milliseconds`, or
/// spuriously.
void waitWhile(Word &word, uint32_t old, int milliseconds);

/// How long a wait sleeps before it looks whether the run is over.
inline constexpr int kSleepMilliseconds = 50;

/// Hints that this is a spin loop.
inline void pauseCore() { __builtin_ia32_pause(); }

/// How often a waiter looks before it sleeps: many times where every thread has
/// a core of its own (some 20 µs), hardly ever where cores are shared.
int spinLimit(int64_t threads, int64_t cores);

} // namespace accel::rt

#endif // ACCEL_RUNTIME_BASE_FUTEX_H
