// An array in a file of which each slice along one dimension belongs to one
// sample: what --data INPUT=FILE feeds.

#ifndef ACCEL_RUNTIME_DATA_SAMPLEARRAY_H
#define ACCEL_RUNTIME_DATA_SAMPLEARRAY_H

#include "Data/TensorFile.h"
#include "accel-rt/PlanFormat.h"

#include <functional>

namespace accel::rt {

class SampleArray {
public:
  /// Opens the .npy file at `path` for `input`: its shape but for the batch
  /// dimension, which has all samples, and elements that its own may be made of
  /// (Data/ConvertElements.h). Errors: another shape or type, no sample, an
  /// input without a batch dimension, a file that is shorter than it says.
  Status open(const std::string &path, const TensorPlan &input);

  int64_t numSamples() const { return range.shape[dim]; }
  int descriptor() const { return file.get(); }
  const std::string &path() const { return range.path; }
  /// Sample 0, as a tensor whose size along the batch dimension is 1.
  TensorRange first() const;
  /// Bytes between one sample and the next in the file.
  uint64_t stride() const {
    return static_cast<uint64_t>(range.strides[dim] * dtypeBytes(range.dtype));
  }

  /// All elements' bytes.
  uint64_t bytes() const {
    return static_cast<uint64_t>(numElements(range.shape) *
                                 dtypeBytes(range.dtype));
  }
  /// A hash that tells these elements, their type and shape from others. Reads
  /// the file once; `told` hears how many bytes are read as it goes.
  Status hash(const std::function<void(uint64_t)> &told, uint64_t &value) const;
  /// Calls `look` with each whole number, in the order of the file, until it
  /// returns true; with none where elements are floating point.
  Status forEachNumber(const std::function<bool(int64_t)> &look) const;

private:
  /// Calls `told` with the elements' bytes, in the order of the file, up to 1
  /// MiB at a time, until it returns false.
  Status forEachPart(
      const std::function<bool(char *bytes, uint64_t count)> &told) const;

  FileHandle file;
  TensorRange range;
  size_t dim = 0; ///< Along which samples lie.
};

} // namespace accel::rt

#endif // ACCEL_RUNTIME_DATA_SAMPLEARRAY_H
