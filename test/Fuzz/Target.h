// What fuzz targets share: how a finding that no sanitizer sees is told, and
// files that are memory.

#ifndef ACCEL_TEST_FUZZ_TARGET_H
#define ACCEL_TEST_FUZZ_TARGET_H

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <sys/mman.h>
#include <unistd.h>

/// Called by libFuzzer and by Replay.cpp, once for each input.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

namespace accel::fuzz {

/// A promise that a target holds its library to: where it is broken, that is a
/// finding.
inline void require(bool holds, const char *promise) {
  if (holds)
    return;
  std::fprintf(stderr, "broken promise: %s\n", promise);
  std::abort();
}

/// A file in memory. Readers take it by descriptor or by path.
class MemoryFile {
public:
  explicit MemoryFile(const char *name) : fd(memfd_create(name, MFD_CLOEXEC)) {
    require(fd >= 0, "memfd_create gives a file");
  }
  MemoryFile(const MemoryFile &) = delete;
  MemoryFile &operator=(const MemoryFile &) = delete;
  ~MemoryFile() { close(fd); }

  /// Replaces what is in it.
  void write(std::string_view text) {
    require(ftruncate(fd, 0) == 0 && pwrite(fd, text.data(), text.size(), 0) ==
                                         static_cast<ssize_t>(text.size()),
            "a file in memory can be written");
  }
  int descriptor() const { return fd; }
  std::string path() const { return "/proc/self/fd/" + std::to_string(fd); }

private:
  int fd;
};

/// The input as text.
inline std::string_view textOf(const uint8_t *data, size_t size) {
  return {reinterpret_cast<const char *>(data), size};
}

} // namespace accel::fuzz

#endif // ACCEL_TEST_FUZZ_TARGET_H
