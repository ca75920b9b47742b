// Reads all elements of a tensor in a file, as loading does: what a reader
// gave must lie in the file.

#ifndef ACCEL_TEST_FUZZ_READWHOLE_H
#define ACCEL_TEST_FUZZ_READWHOLE_H

#include "Data/TensorFile.h"
#include "Target.h"

namespace accel::fuzz {

inline void readWhole(const rt::TensorRange &range) {
  require(range.shape.size() == range.strides.size(),
          "a tensor has as many strides as dimensions");
  int64_t count = rt::numElements(range.shape);
  require(count >= 0, "a tensor's elements can be counted");
  // Programs have no more dimensions, and a tensor of theirs is asked for.
  if (range.shape.size() > rt::kMaxRank)
    return;
  rt::View view;
  view.dtype = range.dtype;
  view.shape = range.shape;
  view.strides = rt::rowMajorStrides(range.shape);
  rt::Part part{range.shape, {}};
  part.axes.resize(range.shape.size());
  std::vector<char> bytes(
      static_cast<size_t>(count * rt::dtypeBytes(range.dtype)));
  rt::Status status =
      rt::PieceMover(range, part, view, {}).read(bytes.data(), 0);
  require(status.ok(), "a tensor that a reader took lies in its file");
}

} // namespace accel::fuzz

#endif // ACCEL_TEST_FUZZ_READWHOLE_H
