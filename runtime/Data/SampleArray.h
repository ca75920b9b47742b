// An array in a file of which each slice along one dimension belongs to one
// sample: what --data INPUT=FILE feeds.

#ifndef ACCEL_RUNTIME_DATA_SAMPLEARRAY_H
#define ACCEL_RUNTIME_DATA_SAMPLEARRAY_H

#include "Data/DataFile.h"
#include "accel-rt/PlanFormat.h"

#include <functional>

namespace accel::rt {

class SampleArray {
public:
  /// Opens `path` for `input`: its shape but for the batch dimension, which has
  /// all samples, and elements that its own may be made of
  /// (Data/ConvertElements.h). A .npy file; or F.safetensors, of which it is
  /// the tensor of the input's name, or F.safetensors:TENSOR. Errors: another
  /// shape or type, no sample, no such tensor, an input without a batch
  /// dimension, a file that is shorter than it says.
  Status open(const std::string &path, const TensorPlan &input);

  int64_t numSamples() const { return range.shape[dim]; }
  const DataFile &source() const { return file; }
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

  /// Looks for a number in a sample, or for one that is not finite (no number);
  /// `element` says where it is: "element 3", or "element [1, 3]", of the
  /// sample's own dimensions. Empty: nowhere.
  Status findInSample(uint64_t sample, std::optional<int64_t> number,
                      std::string &element) const;
  /// Tells the system that a sample will be read soon, where its elements
  /// follow each other in the file.
  void announce(uint64_t sample) const;

private:
  Status openFile(const std::string &path, const TensorPlan &input);
  /// Calls `told` with the elements' bytes, in the order of the file, up to 1
  /// MiB at a time, until it returns false.
  Status forEachPart(
      const std::function<bool(char *bytes, uint64_t count)> &told) const;

  DataFile file;
  TensorRange range;
  size_t dim = 0; ///< Along which samples lie.
};

/// Whether `path` names a safetensors file, or a tensor in one: `file` and
/// `tensor` (empty: none) say which.
bool isSafetensors(const std::string &path, std::string &file,
                   std::string &tensor);

} // namespace accel::rt

#endif // ACCEL_RUNTIME_DATA_SAMPLEARRAY_H
