// Opening arrays of samples, and going through them.

#include "Data/SampleArray.h"

#include "Base/SystemError.h"
#include "Data/ConvertElements.h"
#include "Data/OpenTensor.h"
#include "Data/RangeDigest.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace accel::rt {

Status SampleArray::open(const std::string &path, const TensorPlan &input) {
  auto refused = [&](const std::string &message) {
    return Status::error("cannot use " + inQuotes(path) + " as data of input " +
                         inQuotes(input.name) + ": " + message);
  };
  if (!input.batchDim)
    return refused("every batch has the same of it, so that it has no samples: "
                   "give it as a file of --inputs");
  dim = static_cast<size_t>(*input.batchDim);
  file = openForReading(path);
  if (!file)
    return Status::error("cannot open the data " + inQuotes(path) +
                         " of input " + inQuotes(input.name) + ": " +
                         systemError(errno));
  ACCEL_RT_RETURN_IF_ERROR(openNpy(file.get(), path, range));
  std::vector<int64_t> wanted = input.shape, found = range.shape;
  // What is said of it: any number of samples, and the rest as it is.
  std::string shape = "[";
  for (size_t d = 0; d < wanted.size(); ++d)
    shape +=
        (d ? ", " : "") + (d == dim ? "samples" : std::to_string(wanted[d]));
  if (found.size() == wanted.size())
    wanted[dim] = found[dim];
  if (found != wanted || !canConvert(range.dtype, input.dtype))
    return refused(std::string("expected ") + dtypeName(input.dtype) + " " +
                   shape + "], found " + typeText(range.dtype, range.shape));
  if (range.shape[dim] < 1)
    return refused("expected at least one sample, found none");
  return Status();
}

TensorRange SampleArray::first() const {
  TensorRange one = range;
  one.shape[dim] = 1;
  return one;
}

Status SampleArray::forEachPart(
    const std::function<bool(char *, uint64_t)> &told) const {
  // Room for the numbers, too, where they become wider.
  constexpr uint64_t most = 1 << 20;
  std::vector<char> buffer(most /
                           static_cast<uint64_t>(dtypeBytes(range.dtype)) * 8);
  for (uint64_t done = 0, all = bytes(); done < all;) {
    uint64_t step = std::min<uint64_t>(most, all - done);
    ACCEL_RT_RETURN_IF_ERROR(readRange(
        range.fd, range.path, range.offset + done, buffer.data(), step));
    if (!told(buffer.data(), step))
      return Status();
    done += step;
  }
  return Status();
}

Status SampleArray::hash(const std::function<void(uint64_t)> &told,
                         uint64_t &value) const {
  RangeBlocks whole;
  RangeDigest digest(whole);
  uint64_t done = 0;
  ACCEL_RT_RETURN_IF_ERROR(forEachPart([&](const char *bytes, uint64_t count) {
    digest.add(done, bytes, count);
    told(done += count);
    return true;
  }));
  std::string text = typeText(range.dtype, range.shape) + " at " +
                     shapeText(range.strides) + ": " +
                     std::to_string(digest.value());
  value = hashBytes(text.data(), text.size());
  return Status();
}

Status
SampleArray::forEachNumber(const std::function<bool(int64_t)> &look) const {
  if (!canConvert(range.dtype, DType::I64))
    return Status();
  auto element = static_cast<uint64_t>(dtypeBytes(range.dtype));
  Status status;
  Status read = forEachPart([&](char *bytes, uint64_t size) {
    auto count = static_cast<int64_t>(size / element);
    status = convertElements(range.dtype, DType::I64, bytes, count);
    for (int64_t i = 0; i < count && status.ok(); ++i) {
      int64_t number;
      std::memcpy(&number, bytes + i * 8, 8);
      if (look(number))
        return false;
    }
    return status.ok();
  });
  return read.ok() ? status : read;
}

} // namespace accel::rt
