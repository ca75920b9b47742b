// A wait for other ranks, as whoever traces a thread hears of it: waits that
// really sleep or spin stand in the way of commands, and are drawn in them.
// Where nobody listens it costs a look at a pointer.

#ifndef ACCEL_RUNTIME_BASE_WAITSPAN_H
#define ACCEL_RUNTIME_BASE_WAITSPAN_H

#include <chrono>
#include <cstdint>

namespace accel::rt {

/// Nanoseconds of the steady clock, which all processes of a machine share.
inline int64_t steadyNanoseconds() {
  return std::chrono::steady_clock::now().time_since_epoch().count();
}

class WaitListener {
public:
  virtual ~WaitListener() = default;
  virtual void waited(int64_t begin, int64_t end) = 0;
};

/// Who hears of the waits of this thread; null: nobody.
inline thread_local WaitListener *waitListener = nullptr;

/// Lives as long as a wait for others does.
class WaitSpan {
public:
  WaitSpan()
      : listener(waitListener), begin(listener ? steadyNanoseconds() : 0) {}
  ~WaitSpan() {
    if (listener)
      listener->waited(begin, steadyNanoseconds());
  }
  WaitSpan(const WaitSpan &) = delete;
  WaitSpan &operator=(const WaitSpan &) = delete;

private:
  WaitListener *listener;
  int64_t begin;
};

} // namespace accel::rt

#endif // ACCEL_RUNTIME_BASE_WAITSPAN_H
