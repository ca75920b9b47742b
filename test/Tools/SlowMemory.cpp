// Preloaded into acc-run (LD_PRELOAD): filling an arena with memory, or with a
// byte, takes 40 ms for every 64 MiB, and no memory. So tests can have arenas
// that are larger than the machine.

#include <cstddef>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

extern "C" int madvise(void *address, size_t bytes, int advice) {
  if (advice != MADV_POPULATE_WRITE)
    return static_cast<int>(syscall(SYS_madvise, address, bytes, advice));
  usleep(static_cast<useconds_t>((bytes >> 26) * 40000));
  return 0;
}

/// Of what is smaller it is the library's.
extern "C" void *memset(void *address, int byte, size_t bytes) {
  if (bytes >= size_t(1) << 26) {
    usleep(static_cast<useconds_t>((bytes >> 26) * 40000));
    return address;
  }
  auto *at = static_cast<volatile char *>(address);
  for (size_t i = 0; i < bytes; ++i)
    at[i] = static_cast<char>(byte);
  return address;
}
