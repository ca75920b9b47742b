// Numbers that follow from a seed alone, the same on every machine.

#ifndef ACCEL_TEST_FUZZ_PROGRAMS_RANDOM_H
#define ACCEL_TEST_FUZZ_PROGRAMS_RANDOM_H

#include "llvm/ADT/ArrayRef.h"

#include <cstdint>
#include <initializer_list>

namespace accel::fuzz {

/// splitmix64 (Steele, Lea and Flood, 2014).
class Random {
public:
  explicit Random(uint64_t seed) : state(seed) {}
  /// Of one of several programs (or layouts) that a seed stands for.
  Random(uint64_t seed, uint64_t number) : state(seed) {
    state = next() ^ (number + 1) * 0xD1342543DE82EF95;
  }

  uint64_t next() {
    uint64_t z = state += 0x9E3779B97F4A7C15;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
    return z ^ (z >> 31);
  }
  /// In [0, end). Requires end > 0.
  int64_t below(int64_t end) { return next() % static_cast<uint64_t>(end); }
  /// In [first, last].
  int64_t between(int64_t first, int64_t last) {
    return first + below(last - first + 1);
  }
  bool chance(int percent) { return below(100) < percent; }
  template <typename T> T pick(std::initializer_list<T> list) {
    return *(list.begin() + below(list.size()));
  }
  template <typename List> auto pickFrom(const List &list) {
    return list[below(list.size())];
  }

private:
  uint64_t state;
};

} // namespace accel::fuzz

#endif // ACCEL_TEST_FUZZ_PROGRAMS_RANDOM_H
