// Preloaded into acc-run (LD_PRELOAD): flips a bit of what a process reads of a
// file for the n-th time, as if the file had changed between two reads.
// ACCEL_CHANGE_READ is END:BYTE:N: the end of the file's path, the byte in it,
// and which of the reads that cover it, from 1. Each process counts for itself.

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sys/syscall.h>
#include <unistd.h>

namespace {

struct Target {
  char end[200] = "";
  long long byte = -1, turn = 0;
  Target() {
    const char *text = std::getenv("ACCEL_CHANGE_READ");
    if (text)
      std::sscanf(text, "%199[^:]:%lld:%lld", end, &byte, &turn);
  }
  bool is(int fd) const {
    char link[64], path[4096];
    std::snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, sizeof path - 1);
    size_t wanted = std::strlen(end);
    return length >= static_cast<ssize_t>(wanted) &&
           std::memcmp(path + length - wanted, end, wanted) == 0;
  }
};

ssize_t readChanged(int fd, void *target, size_t bytes, off_t offset) {
  static const Target changed;
  static std::atomic<long long> seen{0};
  ssize_t got = syscall(SYS_pread64, fd, target, bytes, offset);
  if (changed.byte < offset || changed.byte >= offset + got ||
      !changed.is(fd) || ++seen != changed.turn)
    return got;
  static_cast<char *>(target)[changed.byte - offset] ^= 4;
  constexpr char kLine[] = "changed a bit of what was read\n";
  return write(2, kLine, sizeof kLine - 1) < 0 ? -1 : got;
}

} // namespace

extern "C" {
ssize_t pread(int fd, void *target, size_t bytes, off_t offset) {
  return readChanged(fd, target, bytes, offset);
}
ssize_t pread64(int fd, void *target, size_t bytes, off_t offset) {
  return readChanged(fd, target, bytes, offset);
}
}
