// What a model device is asked for: an order, and what it loses on purpose.

#ifndef ACCEL_TEST_MODELDEVICE_MODELOPTIONS_H
#define ACCEL_TEST_MODELDEVICE_MODELOPTIONS_H

#include "Order.h"

#include <atomic>
#include <set>

namespace accel::rt::model {

/// Of waits that were lost: whether what they order is ordered without them.
/// Shared by the ranks.
struct LostWaits {
  std::atomic<uint64_t> seen{0}, implied{0};
};

struct ModelOptions {
  Order order;
  /// Of the program of this name, the commands (Work::number) that are lost: a
  /// mutant. A wait that is lost waits for nothing; others are not there.
  std::string program;
  std::set<int64_t> lost;
  LostWaits *lostWaits = nullptr; ///< Null: nobody counts.
  /// False: only the order and poison tell.
  bool inspects = true;
};

} // namespace accel::rt::model

#endif // ACCEL_TEST_MODELDEVICE_MODELOPTIONS_H
