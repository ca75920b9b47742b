// Somebody who watches streams and never ends a run, unless told to.

#ifndef ACCEL_RUNTIME_CONFORMANCE_CALMWATCHER_H
#define ACCEL_RUNTIME_CONFORMANCE_CALMWATCHER_H

#include "accel-rt/Streams.h"

#include <atomic>

namespace accel::rt::conformance {

struct CalmWatcher : StreamWatcher {
  void begins(size_t, Work &, int64_t) override { ++begun; }
  void ends(size_t) override { ++ended; }
  void rests(size_t) override {}
  void fails() override { failed = true; }
  bool isOver() const override { return over; }

  std::atomic<int> begun{0}, ended{0};
  std::atomic<bool> failed{false}, over{false};
};

} // namespace accel::rt::conformance

#endif // ACCEL_RUNTIME_CONFORMANCE_CALMWATCHER_H
