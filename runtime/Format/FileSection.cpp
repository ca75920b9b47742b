// A megabyte at a time: neither memory nor a mapping that a shorter file would
// end by a signal.

#include "Format/FileSection.h"

#include "Base/SystemError.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <cerrno>
#include <fcntl.h>
#include <unistd.h>

namespace accel::rt {
namespace {

struct Descriptor {
  int fd;
  ~Descriptor() {
    if (fd >= 0)
      close(fd);
  }
};

Status cannotRead(const std::string &path) {
  return Status::error("cannot read the weights in " + inQuotes(path) + ": " +
                       systemError(errno));
}

} // namespace

Status readSection(const FileSection &section,
                   const std::function<bool(const char *, uint64_t)> &take,
                   uint64_t &hash) {
  // A pipe of that name would keep the compiler waiting for its writer.
  Descriptor file{
      ::open(section.path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)};
  if (file.fd < 0)
    return cannotRead(section.path);
  XXH3_state_t state;
  XXH3_64bits_reset(&state);
  std::vector<char> room(std::min<uint64_t>(section.bytes, 1 << 20));
  for (uint64_t done = 0; done < section.bytes;) {
    ssize_t got = pread(file.fd, room.data(),
                        std::min<uint64_t>(room.size(), section.bytes - done),
                        static_cast<off_t>(section.offset + done));
    if (got < 0 && errno == EINTR)
      continue;
    if (got < 0)
      return cannotRead(section.path);
    if (got == 0)
      return Status::error(
          "expected weights in bytes " + std::to_string(section.offset) +
          " to " + std::to_string(section.offset + section.bytes) + " of " +
          inQuotes(section.path) + ", found a file of " +
          std::to_string(section.offset + done) + " bytes at most");
    XXH3_64bits_update(&state, room.data(), static_cast<size_t>(got));
    if (!take(room.data(), static_cast<uint64_t>(got)))
      return Status();
    done += static_cast<uint64_t>(got);
  }
  hash = XXH3_64bits_digest(&state);
  return Status();
}

Status hashSection(FileSection &section) {
  return readSection(
      section, [](const char *, uint64_t) { return true; }, section.hash);
}

} // namespace accel::rt
