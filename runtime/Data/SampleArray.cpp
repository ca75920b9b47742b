// Opening arrays of samples, and going through them.

#include "Data/SampleArray.h"

#include "Data/ConvertElements.h"
#include "Data/OpenTensor.h"
#include "Data/RangeDigest.h"
#include "Data/Safetensors.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace accel::rt {

bool isSafetensors(const std::string &path, std::string &file,
                   std::string &tensor) {
  static const std::string end = ".safetensors";
  size_t colon = path.find(end + ":");
  file = colon == std::string::npos ? path : path.substr(0, colon + end.size());
  tensor = colon == std::string::npos ? "" : path.substr(file.size() + 1);
  return file.size() > end.size() &&
         file.compare(file.size() - end.size(), end.size(), end) == 0;
}

Status SampleArray::openFile(const std::string &path, const TensorPlan &input) {
  std::string name, tensor, of = " of input " + inQuotes(input.name);
  if (!isSafetensors(path, name, tensor)) {
    ACCEL_RT_RETURN_IF_ERROR(file.open(path, of));
    return openNpy(file.descriptor(), path, range);
  }
  ACCEL_RT_RETURN_IF_ERROR(file.open(name, of));
  std::vector<SafetensorsEntry> entries;
  uint64_t start;
  ACCEL_RT_RETURN_IF_ERROR(
      readSafetensors(file.descriptor(), name, entries, start));
  const std::string &wanted = tensor.empty() ? input.name : tensor;
  auto found =
      std::find_if(entries.begin(), entries.end(),
                   [&](const auto &entry) { return entry.name == wanted; });
  if (found == entries.end()) {
    std::string names;
    for (const SafetensorsEntry &entry : entries)
      names += (names.empty() ? "" : ", ") + inQuotes(entry.name);
    return Status::error(
        "expected a tensor " + inQuotes(wanted) + " in " + inQuotes(name) +
        " for input " + inQuotes(input.name) + ", found " +
        (names.empty() ? "none" : names) +
        (tensor.empty()
             ? ": say " + inQuotes(input.name + "=" + name + ":TENSOR")
             : ""));
  }
  range = {file.descriptor(), name,         start + found->begin,
           found->dtype,      found->shape, rowMajorStrides(found->shape)};
  return Status();
}

Status SampleArray::findInSample(uint64_t sample, std::optional<int64_t> number,
                                 std::string &element) const {
  element.clear();
  DType as = number ? DType::I64 : DType::F64;
  if (!canConvert(range.dtype, as))
    return Status();
  TensorRange one = first();
  Part part{one.shape, {}};
  part.axes.resize(one.shape.size());
  std::vector<char> bytes(static_cast<size_t>(numElements(one.shape) * 8));
  View view;
  view.dtype = as;
  view.shape = one.shape;
  view.strides = rowMajorStrides(one.shape);
  PieceMover mover(one, part, view, {});
  ACCEL_RT_RETURN_IF_ERROR(mover.readBehind(
      sample * stride(), Address{reinterpret_cast<uint64_t>(bytes.data())}, 0));
  for (int64_t i = 0; i < numElements(one.shape); ++i) {
    int64_t whole;
    double real;
    std::memcpy(&whole, &bytes[static_cast<size_t>(i) * 8], 8);
    std::memcpy(&real, &bytes[static_cast<size_t>(i) * 8], 8);
    if (number ? whole != *number : std::isfinite(real))
      continue;
    std::vector<int64_t> place;
    for (size_t d = 0; d < one.shape.size(); ++d)
      if (d != dim)
        place.push_back(i / view.strides[d] % one.shape[d]);
    element = "element " +
              (place.size() == 1 ? std::to_string(place[0]) : shapeText(place));
    return Status();
  }
  return Status();
}

void SampleArray::announce(uint64_t sample) const {
  if (dim == 0 && range.strides == rowMajorStrides(range.shape))
    file.announce(range.offset + sample * stride(), stride());
}

Status SampleArray::open(const std::string &path, const TensorPlan &input) {
  auto refused = [&](const std::string &message) {
    return Status::error("cannot use " + inQuotes(path) + " as data of input " +
                         inQuotes(input.name) + ": " + message);
  };
  if (!input.batchDim)
    return refused("every batch has the same of it, so that it has no samples: "
                   "give it as a file of --inputs");
  dim = static_cast<size_t>(*input.batchDim);
  ACCEL_RT_RETURN_IF_ERROR(openFile(path, input));
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
    ACCEL_RT_RETURN_IF_ERROR(
        file.read(range.offset + done, buffer.data(), step));
    file.announce(range.offset + done + step, most);
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
