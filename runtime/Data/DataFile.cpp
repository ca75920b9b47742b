// Opening, comparing by size and time, and reading ahead.

#include "Data/DataFile.h"

#include "Base/SystemError.h"

#include <algorithm>
#include <cerrno>
#include <fcntl.h>
#include <sys/stat.h>

namespace accel::rt {
namespace {

int64_t timeOf(const struct stat &info) {
  return int64_t(info.st_mtim.tv_sec) * 1000000000 + info.st_mtim.tv_nsec;
}

} // namespace

Status DataFile::open(const std::string &path, const std::string &of) {
  name = path;
  file = openForReading(path);
  struct stat info;
  if (!file || fstat(file.get(), &info) != 0)
    return Status::error("cannot open the data " + inQuotes(path) + of + ": " +
                         systemError(errno));
  if (!S_ISREG(info.st_mode))
    return Status::error("cannot use " + inQuotes(path) +
                         " as data: expected a regular file");
  size = static_cast<uint64_t>(info.st_size);
  writtenAt = timeOf(info);
  // Shuffled rows do not follow each other: what the system would read behind
  // each of them is not asked for, and announce() says what is.
  posix_fadvise(file.get(), 0, 0, POSIX_FADV_RANDOM);
  return Status();
}

Status DataFile::check() const {
  struct stat info;
  if (fstat(file.get(), &info) != 0)
    return Status::error("cannot use the data " + inQuotes(name) +
                         " any more: " + systemError(errno));
  auto found = static_cast<uint64_t>(info.st_size);
  if (found == size && timeOf(info) == writtenAt)
    return Status();
  return Status::error("expected the data " + inQuotes(name) +
                       " to stay as they were (" + std::to_string(size) +
                       " bytes) while they are read, found " +
                       (found == size ? "that somebody wrote to the file"
                                      : std::to_string(found) + " bytes"));
}

void DataFile::announce(uint64_t offset, uint64_t count) const {
  // The system takes no more than its largest request at a time.
  constexpr uint64_t most = 128 << 10;
  for (uint64_t done = 0; done < count; done += most)
    posix_fadvise(file.get(), static_cast<off_t>(offset + done),
                  static_cast<off_t>(std::min(most, count - done)),
                  POSIX_FADV_WILLNEED);
}

} // namespace accel::rt
