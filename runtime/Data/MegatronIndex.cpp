// Reads an index in steps of a fixed size, however many sequences it has.

#include "Data/MegatronIndex.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <sstream>

namespace accel::rt {
namespace {

constexpr char kMagic[] = {'M', 'M', 'I', 'D', 'I', 'D', 'X', 0, 0};
constexpr uint64_t kHeader = sizeof kMagic + 8 + 1 + 8 + 8;
constexpr int64_t kStep = 1 << 14; ///< Numbers that are read at a time.

template <class T> T numberAt(const char *bytes) {
  T value;
  std::memcpy(&value, bytes, sizeof value);
  return value;
}

/// By the code that the index has; nothing: no integers.
std::optional<DType> typeOf(uint8_t code) {
  switch (code) {
  case 1:
    return DType::UI8;
  case 2:
    return DType::I8;
  case 3:
    return DType::I16;
  case 4:
    return DType::I32;
  case 5:
    return DType::I64;
  case 8:
    return DType::UI16;
  default:
    return std::nullopt;
  }
}

Status refused(const DataFile &file, const std::string &message) {
  return Status::error("cannot use " + inQuotes(file.path()) +
                       " as the index of a Megatron-LM dataset: " + message);
}

} // namespace

Status readSplit(const std::string &text, std::array<DataSplit, 3> &splits) {
  std::array<double, 3> shares = {};
  size_t count = 0;
  double sum = 0;
  std::istringstream parts(text);
  for (std::string part; std::getline(parts, part, ',');) {
    char *end = nullptr;
    double share = std::strtod(part.c_str(), &end);
    bool isNumber = end != part.c_str() && *end == '\0' && share >= 0 &&
                    std::isfinite(share);
    if (!isNumber || count == shares.size()) {
      sum = 0;
      break;
    }
    shares[count++] = share;
    sum += share;
  }
  if (!(sum > 0) || !std::isfinite(sum))
    return Status::error("expected the shares of training, validation and "
                         "test, as 949,50,1, as --data-split, found " +
                         inQuotes(text));
  double before = 0;
  for (size_t i = 0; i < shares.size(); ++i) {
    splits[i] = {before, before + shares[i] / sum};
    before = splits[i].end;
  }
  return Status();
}

bool MegatronIndex::isIndex(const DataFile &file) {
  char start[sizeof kMagic];
  return file.bytes() >= sizeof start &&
         file.read(0, start, sizeof start).ok() &&
         std::memcmp(start, kMagic, sizeof start) == 0;
}

uint64_t MegatronIndex::pointersAt() const {
  return kHeader + static_cast<uint64_t>(sequences) * 4;
}

Status MegatronIndex::open(const std::string &path, uint64_t dataBytes) {
  ACCEL_RT_RETURN_IF_ERROR(file.open(path));
  char header[kHeader];
  if (file.bytes() < kHeader || !isIndex(file))
    return refused(file, "expected 'MMIDIDX' at its start");
  ACCEL_RT_RETURN_IF_ERROR(file.read(0, header, sizeof header));
  const char *next = header + sizeof kMagic;
  auto version = numberAt<uint64_t>(next);
  auto code = numberAt<uint8_t>(next + 8);
  auto sequenceCount = numberAt<uint64_t>(next + 9),
       boundCount = numberAt<uint64_t>(next + 17);
  if (version != 1)
    return refused(file,
                   "expected version 1, found " + std::to_string(version));
  std::optional<DType> known = typeOf(code);
  if (!known)
    return refused(file, "expected tokens of type 1 to 5 or 8 (integers), "
                         "found type " +
                             std::to_string(code));
  type = *known;
  // No product overflows below these.
  uint64_t room = (file.bytes() - kHeader) / 4;
  uint64_t needed = sequenceCount > room || boundCount > room
                        ? UINT64_MAX
                        : kHeader + sequenceCount * 12 + boundCount * 8;
  // A multimodal dataset has a byte more for each sequence: its mode.
  if (file.bytes() != needed) {
    bool hasModes =
        needed != UINT64_MAX && file.bytes() == needed + sequenceCount;
    return refused(
        file, hasModes
                  ? "found modes of sequences, as multimodal datasets have "
                    "them: those are no text"
                  : "expected " +
                        (needed == UINT64_MAX ? std::string("more")
                                              : std::to_string(needed)) +
                        " bytes for " + std::to_string(sequenceCount) +
                        " sequences and " + std::to_string(boundCount) +
                        " bounds of documents, found " +
                        std::to_string(file.bytes()));
  }
  sequences = static_cast<int64_t>(sequenceCount);
  bounds = static_cast<int64_t>(boundCount);
  tokens = static_cast<int64_t>(dataBytes) / dtypeBytes(type);
  ACCEL_RT_RETURN_IF_ERROR(checkSequences(dataBytes));
  return checkDocuments();
}

Status MegatronIndex::checkSequences(uint64_t dataBytes) const {
  std::vector<int32_t> lengths(kStep);
  std::vector<int64_t> pointers(kStep);
  int64_t at = 0, width = dtypeBytes(type);
  for (int64_t done = 0; done < sequences;) {
    int64_t step = std::min(kStep, sequences - done);
    ACCEL_RT_RETURN_IF_ERROR(
        file.read(kHeader + static_cast<uint64_t>(done) * 4, lengths.data(),
                  static_cast<uint64_t>(step) * 4));
    ACCEL_RT_RETURN_IF_ERROR(
        file.read(pointersAt() + static_cast<uint64_t>(done) * 8,
                  pointers.data(), static_cast<uint64_t>(step) * 8));
    for (int64_t i = 0; i < step; ++i) {
      if (lengths[i] < 0 || pointers[i] != at)
        return refused(
            file, "expected sequence " + std::to_string(done + i) +
                      " of at least 0 tokens at byte " + std::to_string(at) +
                      ", behind the one before it, found " +
                      std::to_string(lengths[i]) + " tokens at byte " +
                      std::to_string(pointers[i]));
      at += lengths[i] * width;
    }
    done += step;
  }
  if (static_cast<uint64_t>(at) != dataBytes)
    return refused(file, "its sequences have " + std::to_string(at) +
                             " bytes, and the data beside it " +
                             std::to_string(dataBytes) +
                             ": one of the two was cut short or belongs to "
                             "another dataset");
  return Status();
}

Status MegatronIndex::checkDocuments() const {
  uint64_t start = pointersAt() + static_cast<uint64_t>(sequences) * 8;
  std::vector<int64_t> found(kStep);
  int64_t before = 0;
  for (int64_t done = 0; done < bounds;) {
    int64_t step = std::min(kStep, bounds - done);
    ACCEL_RT_RETURN_IF_ERROR(file.read(start + static_cast<uint64_t>(done) * 8,
                                       found.data(),
                                       static_cast<uint64_t>(step) * 8));
    for (int64_t i = 0; i < step; ++i) {
      if (found[i] < before || found[i] > sequences ||
          (done + i == 0 && found[i] != 0))
        return refused(file, "expected bounds of documents from 0 to " +
                                 std::to_string(sequences) +
                                 " that rise, found " +
                                 std::to_string(found[i]) + " behind " +
                                 std::to_string(before));
      before = found[i];
    }
    done += step;
  }
  return Status();
}

Status MegatronIndex::tokensBefore(int64_t sequence, int64_t &before) const {
  before = tokens;
  if (sequence >= sequences)
    return Status();
  ACCEL_RT_RETURN_IF_ERROR(
      file.read(pointersAt() + static_cast<uint64_t>(sequence) * 8, &before,
                sizeof before));
  before /= dtypeBytes(type);
  return Status();
}

Status MegatronIndex::tokensOf(const DataSplit &split, int64_t &begin,
                               int64_t &end) const {
  auto sequenceAt = [&](double share) { // to the nearest, halves to the even
    return static_cast<int64_t>(
        std::nearbyint(share * static_cast<double>(sequences)));
  };
  ACCEL_RT_RETURN_IF_ERROR(tokensBefore(sequenceAt(split.begin), begin));
  return tokensBefore(sequenceAt(split.end), end);
}

} // namespace accel::rt
