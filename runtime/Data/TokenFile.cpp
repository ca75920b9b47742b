// Opening and reading token files.

#include "Data/TokenFile.h"

#include "Base/SystemError.h"
#include "Data/OpenTensor.h"
#include "Data/RangeDigest.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/stat.h>

namespace accel::rt {
namespace {

struct RawType {
  const char *name;
  DType dtype;
};
constexpr RawType kRawTypes[] = {{"uint16", DType::UI16},
                                 {"int32", DType::I32},
                                 {"uint32", DType::UI32},
                                 {"int64", DType::I64}};

bool isInteger(DType dtype) {
  return dtype > DType::I1 && dtype <= DType::UI64;
}

template <class T>
void convert(const char *bytes, int64_t count, int64_t *tokens) {
  for (int64_t i = 0; i < count; ++i) {
    T value;
    std::memcpy(&value, bytes + i * static_cast<int64_t>(sizeof value),
                sizeof value);
    tokens[i] = static_cast<int64_t>(value);
  }
}

} // namespace

Status TokenFile::open(const std::string &path, const std::string &rawType,
                       int64_t sampleLength) {
  auto refused = [&](const std::string &message) {
    return Status::error("cannot use " + inQuotes(path) +
                         " as data: " + message);
  };
  length = sampleLength;
  file = FileHandle(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat info;
  if (!file || fstat(file.get(), &info) != 0)
    return Status::error("cannot open the data " + inQuotes(path) + ": " +
                         systemError(errno));
  if (!S_ISREG(info.st_mode))
    return refused("expected a regular file");
  char start[6] = {};
  bool isNpy = path.size() > 4 && path.substr(path.size() - 4) == ".npy";
  if (info.st_size >= 6) {
    ACCEL_RT_RETURN_IF_ERROR(readRange(file.get(), path, 0, start, 6));
    isNpy |= std::memcmp(start, "\x93NUMPY", 6) == 0;
  }
  std::string perSample = std::to_string(length) + " tokens";
  if (isNpy) {
    if (!rawType.empty())
      return refused("a .npy file says its type itself, found --data-type=" +
                     rawType);
    ACCEL_RT_RETURN_IF_ERROR(openNpy(file.get(), path, range));
    if (!isInteger(range.dtype) || range.shape.empty() ||
        range.shape.size() > 2 || range.strides != rowMajorStrides(range.shape))
      return refused("expected integers [samples, length] or one stream of "
                     "them, row-major");
    if (range.shape.size() == 2 && range.shape[1] != length)
      return refused("expected samples of " + perSample +
                     " as the program has them, found " +
                     std::to_string(range.shape[1]));
  } else {
    range.fd = file.get();
    range.path = path;
    range.dtype = DType::I1;
    for (const RawType &candidate : kRawTypes)
      if (candidate.name == (rawType.empty() ? "uint16" : rawType))
        range.dtype = candidate.dtype;
    if (range.dtype == DType::I1)
      return Status::error("expected uint16, int32, uint32 or int64 as "
                           "--data-type, found " +
                           inQuotes(rawType));
    int64_t bytes = dtypeBytes(range.dtype);
    if (info.st_size % bytes)
      return refused("expected tokens of " + std::to_string(bytes) +
                     " bytes, found " + std::to_string(info.st_size) +
                     " bytes in the file");
    range.shape = {info.st_size / bytes};
  }
  samples = length ? numElements(range.shape) / length : 0;
  if (samples < 1)
    return refused("expected at least one sample of " + perSample + ", found " +
                   std::to_string(numElements(range.shape)));
  return Status();
}

Status TokenFile::hash(const std::function<void(uint64_t, uint64_t)> &told,
                       uint64_t &value) const {
  uint64_t bytes =
      static_cast<uint64_t>(samples * length * dtypeBytes(range.dtype));
  std::vector<char> buffer(1 << 20);
  RangeBlocks whole;
  RangeDigest digest(whole);
  for (uint64_t done = 0; done < bytes;) {
    uint64_t step = std::min<uint64_t>(buffer.size(), bytes - done);
    ACCEL_RT_RETURN_IF_ERROR(readRange(
        range.fd, range.path, range.offset + done, buffer.data(), step));
    digest.add(done, buffer.data(), step);
    told(done += step, bytes);
  }
  value = digest.value();
  return Status();
}

Status TokenFile::read(int64_t sample, int64_t begin, int64_t count,
                       int64_t *tokens) const {
  char bytes[kMaxRead * 8];
  int64_t size = dtypeBytes(range.dtype);
  ACCEL_RT_RETURN_IF_ERROR(readRange(
      range.fd, range.path,
      range.offset + static_cast<uint64_t>((sample * length + begin) * size),
      bytes, static_cast<uint64_t>(count * size)));
  switch (range.dtype) {
  case DType::I8:
    convert<int8_t>(bytes, count, tokens);
    break;
  case DType::UI8:
    convert<uint8_t>(bytes, count, tokens);
    break;
  case DType::I16:
    convert<int16_t>(bytes, count, tokens);
    break;
  case DType::UI16:
    convert<uint16_t>(bytes, count, tokens);
    break;
  case DType::I32:
    convert<int32_t>(bytes, count, tokens);
    break;
  case DType::UI32:
    convert<uint32_t>(bytes, count, tokens);
    break;
  default:
    convert<int64_t>(bytes, count, tokens);
  }
  return Status();
}

} // namespace accel::rt
