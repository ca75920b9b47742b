// How a process ends where memory runs out: by an error, and never by a signal.
// Not only what we allocate ourselves can fail: libraries allocate while they
// are loaded, before main, and some do not look at what malloc and mmap return.

#ifndef ACCEL_RT_NOMEMORY_H
#define ACCEL_RT_NOMEMORY_H

namespace accel::rt {

/// Has `end` called, in any thread, where an allocation by `new` fails, and
/// instead of an end by a signal in a thread whose last failed call said that
/// there was no memory. Any other signal does what it did before. `end` must
/// neither allocate nor return. Of several calls the last one counts.
void endWithoutMemory(void (*end)());

} // namespace accel::rt

/// Runs `function` of type void() before the constructors of all libraries. A
/// sanitizer is not there by then.
#if defined(__SANITIZE_ADDRESS__)
#define ACCEL_RUN_FIRST(function)
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define ACCEL_RUN_FIRST(function)
#endif
#endif
#ifndef ACCEL_RUN_FIRST
#define ACCEL_RUN_FIRST(function)                                              \
  __attribute__((section(".preinit_array"),                                    \
                 used)) static void (*const runsFirst)() = function;
#endif

#endif // ACCEL_RT_NOMEMORY_H
