// Decisions out of a fuzzer's bytes, read from the front. When they are used up
// every answer is the first one, so that short inputs mean small things.

#ifndef ACCEL_TEST_FUZZ_BYTESOURCE_H
#define ACCEL_TEST_FUZZ_BYTESOURCE_H

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string>

namespace accel::fuzz {

class ByteSource {
public:
  ByteSource(const uint8_t *data, size_t size) : next(data), end(data + size) {}

  bool isEmpty() const { return next == end; }
  uint8_t byte() { return isEmpty() ? 0 : *next++; }
  /// In [0, below). Requires 0 < below <= 256.
  size_t below(size_t below) { return byte() % below; }
  /// True of `odds` in 256 bytes, none of them 0.
  bool rarely(unsigned odds) { return byte() > 255 - odds; }
  template <class T, size_t N> const T &pick(const T (&values)[N]) {
    return values[below(N)];
  }
  /// Mostly small, now and then one at which arithmetic breaks.
  int64_t integer() {
    static constexpr int64_t kEdges[] = {
        INT64_MAX, INT64_MIN,        INT32_MAX,  INT32_MIN,
        1 << 20,   int64_t(1) << 32, -(1 << 20), int64_t(1) << 56,
        255,       INT64_MIN + 1};
    uint8_t kind = byte();
    return kind > 245 ? pick(kEdges) : static_cast<int64_t>(kind % 9) - 3;
  }
  /// `count` bytes, repeated where there are too few.
  std::string bytes(size_t count) {
    std::string result;
    while (result.size() < count)
      result += static_cast<char>(isEmpty() ? result.size() % 5 : byte());
    return result;
  }

private:
  const uint8_t *next, *end;
};

} // namespace accel::fuzz

#endif // ACCEL_TEST_FUZZ_BYTESOURCE_H
