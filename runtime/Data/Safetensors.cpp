// Reads the header from an open file.

#include "Data/Safetensors.h"

namespace accel::rt {

Status readSafetensors(int fd, const std::string &path,
                       std::vector<SafetensorsEntry> &entries,
                       uint64_t &start) {
  auto refused = [&](const Status &why) {
    return Status::error("cannot use " + inQuotes(path) + ": " + why.message());
  };
  uint64_t size, length = 0;
  ACCEL_RT_RETURN_IF_ERROR(sizeOfFile(fd, path, size));
  if (size >= 8)
    ACCEL_RT_RETURN_IF_ERROR(readRange(fd, path, 0, &length, 8));
  if (Status status = checkSafetensorsLength(length, size); !status.ok())
    return refused(status);
  std::string text(length, '\0');
  ACCEL_RT_RETURN_IF_ERROR(readRange(fd, path, 8, text.data(), length));
  start = 8 + length;
  Status status = readSafetensorsHeader(text, size - start, entries);
  return status.ok() ? status : refused(status);
}

} // namespace accel::rt
