// Opening and reading token files.

#include "Data/TokenFile.h"

#include "Data/OpenTensor.h"
#include "Data/RangeDigest.h"

#include <cstring>

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

bool endsWith(const std::string &text, const std::string &end) {
  return text.size() > end.size() &&
         text.compare(text.size() - end.size(), end.size(), end) == 0;
}

/// Of a Megatron-LM dataset that `path` names; nothing: it names none. A raw
/// file PREFIX.bin may have a neighbour PREFIX.idx of another kind.
std::optional<std::string> prefixOfDataset(const std::string &path) {
  std::string prefix = path;
  if (endsWith(path, ".bin") || endsWith(path, ".idx"))
    prefix.resize(path.size() - 4);
  DataFile index;
  if (!index.open(prefix + ".idx").ok() || !MegatronIndex::isIndex(index))
    return std::nullopt;
  return prefix;
}

template <class T>
void widen(const char *bytes, int64_t count, int64_t *tokens) {
  for (int64_t i = 0; i < count; ++i) {
    T value;
    std::memcpy(&value, bytes + i * static_cast<int64_t>(sizeof value),
                sizeof value);
    tokens[i] = static_cast<int64_t>(value);
  }
}

} // namespace

Status TokenFile::refused(const std::string &message) const {
  return Status::error("cannot use " + inQuotes(file.path()) +
                       " as data: " + message);
}

Status TokenFile::open(const std::string &path, const std::string &rawType,
                       int64_t sampleLength,
                       const std::optional<DataSplit> &split) {
  length = sampleLength;
  std::optional<std::string> prefix = prefixOfDataset(path);
  ACCEL_RT_RETURN_IF_ERROR(file.open(prefix ? *prefix + ".bin" : path));
  if (prefix) {
    ACCEL_RT_RETURN_IF_ERROR(
        index.emplace().open(*prefix + ".idx", file.bytes()));
    ACCEL_RT_RETURN_IF_ERROR(openDataset(rawType, split.value_or(DataSplit())));
  } else if (split) {
    return refused("--data-split parts Megatron-LM datasets (PREFIX.bin and "
                   "PREFIX.idx), and this is none");
  } else {
    char start[6] = {};
    bool isNpy = endsWith(path, ".npy");
    if (file.bytes() >= 6) {
      ACCEL_RT_RETURN_IF_ERROR(file.read(0, start, 6));
      isNpy |= std::memcmp(start, "\x93NUMPY", 6) == 0;
    }
    ACCEL_RT_RETURN_IF_ERROR(isNpy ? openNumpy(rawType) : openRaw(rawType));
  }
  int64_t tokens = numElements(range.shape);
  if (overlaps() && tokens > 0)
    --tokens;
  samples = length ? tokens / length : 0;
  if (samples < 1)
    return refused("expected at least one sample of " + std::to_string(length) +
                   (overlaps() ? " tokens and the one behind it" : " tokens") +
                   ", found " + std::to_string(numElements(range.shape)) +
                   (split ? " in this part of --data-split" : ""));
  return Status();
}

Status TokenFile::openNumpy(const std::string &rawType) {
  if (!rawType.empty())
    return refused("a .npy file says its type itself, found --data-type=" +
                   rawType);
  ACCEL_RT_RETURN_IF_ERROR(openNpy(file.descriptor(), file.path(), range));
  if (!isInteger(range.dtype) || range.shape.empty() ||
      range.shape.size() > 2 || range.strides != rowMajorStrides(range.shape))
    return refused("expected integers [samples, length] or one stream of "
                   "them, row-major");
  if (range.shape.size() == 2 && range.shape[1] != length)
    return refused("expected samples of " + std::to_string(length) +
                   " tokens as the program has them, found " +
                   std::to_string(range.shape[1]));
  return Status();
}

Status TokenFile::openRaw(const std::string &rawType) {
  range.fd = file.descriptor();
  range.path = file.path();
  range.dtype = DType::I1;
  for (const RawType &candidate : kRawTypes)
    if (candidate.name == (rawType.empty() ? "uint16" : rawType))
      range.dtype = candidate.dtype;
  if (range.dtype == DType::I1)
    return Status::error("expected uint16, int32, uint32 or int64 as "
                         "--data-type, found " +
                         inQuotes(rawType));
  int64_t bytes = dtypeBytes(range.dtype);
  auto size = static_cast<int64_t>(file.bytes());
  if (size % bytes)
    return refused("expected tokens of " + std::to_string(bytes) +
                   " bytes, found " + std::to_string(size) +
                   " bytes in the file");
  range.shape = {size / bytes};
  return Status();
}

Status TokenFile::openDataset(const std::string &rawType,
                              const DataSplit &split) {
  if (!rawType.empty())
    return refused("its index says its type, found --data-type=" + rawType);
  int64_t begin, end;
  ACCEL_RT_RETURN_IF_ERROR(index->tokensOf(split, begin, end));
  range.fd = file.descriptor();
  range.path = file.path();
  range.dtype = index->dtype();
  range.offset = static_cast<uint64_t>(begin * dtypeBytes(range.dtype));
  range.shape = {end - begin};
  return Status();
}

void TokenFile::addTo(std::vector<const DataFile *> &files) const {
  files.push_back(&file);
  if (index)
    files.push_back(&index->source());
}

Status TokenFile::check() const {
  ACCEL_RT_RETURN_IF_ERROR(file.check());
  return index ? index->source().check() : Status();
}

void TokenFile::announce(int64_t sample) const {
  file.announce(placeOf(sample, 0),
                placeOf(sample, numFollowed(sample) + 1) - placeOf(sample, 0));
}

Status TokenFile::hash(const std::function<void(uint64_t, uint64_t)> &told,
                       uint64_t &value) const {
  uint64_t bytes = placeOf(samples, overlaps()) - range.offset;
  std::vector<char> buffer(1 << 20);
  RangeBlocks whole;
  RangeDigest digest(whole);
  for (uint64_t done = 0; done < bytes;) {
    uint64_t step = std::min<uint64_t>(buffer.size(), bytes - done);
    ACCEL_RT_RETURN_IF_ERROR(
        file.read(range.offset + done, buffer.data(), step));
    file.announce(range.offset + done + step, buffer.size());
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
  ACCEL_RT_RETURN_IF_ERROR(file.read(placeOf(sample, begin), bytes,
                                     static_cast<uint64_t>(count * size)));
  switch (range.dtype) {
  case DType::I8:
    widen<int8_t>(bytes, count, tokens);
    break;
  case DType::UI8:
    widen<uint8_t>(bytes, count, tokens);
    break;
  case DType::I16:
    widen<int16_t>(bytes, count, tokens);
    break;
  case DType::UI16:
    widen<uint16_t>(bytes, count, tokens);
    break;
  case DType::I32:
    widen<int32_t>(bytes, count, tokens);
    break;
  case DType::UI32:
    widen<uint32_t>(bytes, count, tokens);
    break;
  default:
    widen<int64_t>(bytes, count, tokens);
  }
  return Status();
}

} // namespace accel::rt
