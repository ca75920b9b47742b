// What a model device is asked for: an order, and what it loses on purpose.

#ifndef ACCEL_TEST_MODELDEVICE_MODELOPTIONS_H
#define ACCEL_TEST_MODELDEVICE_MODELOPTIONS_H

#include "ModelSection.h"
#include "Order.h"

#include <atomic>
#include <set>

namespace accel::rt::model {

/// What became of waits that were lost. Shared by the ranks.
struct LostWaits {
  std::atomic<uint64_t> seen{0};
  /// Commands before which fewer commands must have ended than with the waits.
  /// None: other waits imply the lost ones, and the plan is the same.
  std::atomic<uint64_t> freed{0};
  /// Pairs of commands that only the lost waits order, and that touch the same
  /// bytes, one of them writing, or are two collectives. None: the waits order
  /// nothing that shows.
  std::atomic<uint64_t> conflicts{0};
};

struct ModelOptions {
  Order order;
  size_t mostCaptured = kMostCaptured; ///< Device::mostCaptured
  /// Of the program of this name, the commands (Work::number) that are lost: a
  /// mutant. A wait that is lost waits for nothing; others are not there.
  std::string program;
  std::set<int64_t> lost;
  LostWaits *lostWaits = nullptr; ///< Null: nobody counts.
  /// Whether it is said on stderr, at each join, what was enqueued.
  bool tells = false;
  /// False: only the order and poison tell.
  bool inspects = true;
};

} // namespace accel::rt::model

#endif // ACCEL_TEST_MODELDEVICE_MODELOPTIONS_H
