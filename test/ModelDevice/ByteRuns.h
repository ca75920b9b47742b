// The bytes of a view: as few runs of bytes as its strides allow, relative to
// its first element.

#ifndef ACCEL_TEST_MODELDEVICE_BYTERUNS_H
#define ACCEL_TEST_MODELDEVICE_BYTERUNS_H

#include "Format/Layout.h"

namespace accel::rt::model {

class ByteRuns {
public:
  explicit ByteRuns(const View &view)
      : layout(view.shape, view.strides, view.strides),
        bytes(dtypeBytes(view.dtype)) {}

  /// Calls f(begin, end) on runs of bytes that together are the view's, counted
  /// from its first element.
  template <class F> void forEach(F &&f) const {
    auto visit = [&](int64_t at, int64_t, int64_t stride, int64_t,
                     int64_t count) {
      if (stride == 1) {
        f(at * bytes, (at + count) * bytes);
        return;
      }
      for (int64_t i = 0; i < (stride == 0 ? 1 : count); ++i)
        f((at + i * stride) * bytes, (at + i * stride + 1) * bytes);
    };
    layout.forRange(0, layout.elements(), visit);
  }

private:
  PairLayout layout;
  int64_t bytes;
};

} // namespace accel::rt::model

#endif // ACCEL_TEST_MODELDEVICE_BYTERUNS_H
