// Which of the commands that may run next does. Every order that events allow
// is right, and a plan whose results depend on it is not: so the order is drawn
// by a seed, or taken to an extreme.

#ifndef ACCEL_TEST_MODELDEVICE_ORDER_H
#define ACCEL_TEST_MODELDEVICE_ORDER_H

#include "accel-rt/Status.h"

#include <cstdint>
#include <random>
#include <string>
#include <vector>

namespace accel::rt::model {

/// A command that waits for nothing any more.
struct Ready {
  size_t number; ///< In the order of enqueueing.
  size_t stream;
};

class Order {
public:
  /// By the seed 0.
  Order() = default;
  /// Of a text: "seed:N" draws; "last" takes what was enqueued last; "starve:S"
  /// takes what is not of stream S (counted from 0) as long as there is any,
  /// the rest drawn. Errors: none of these.
  static Status parse(const std::string &text, Order &order);

  /// The place in `ready` of what comes next. Requires that there is one.
  size_t pick(const std::vector<Ready> &ready);

private:
  enum class Kind { Drawn, Last, Starve };
  Kind kind = Kind::Drawn;
  size_t starved = 0;
  std::mt19937_64 random;
};

} // namespace accel::rt::model

#endif // ACCEL_TEST_MODELDEVICE_ORDER_H
