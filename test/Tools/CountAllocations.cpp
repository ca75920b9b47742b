// Preloaded into acc-run (LD_PRELOAD): counts what is allocated between the
// marks that a rank sets around its steady state, by who asks. Our own code
// must ask for nothing, libraries for no more than 4 KiB at once (law 1 of the
// design).

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <dlfcn.h>
#include <new>
#include <unistd.h>

extern "C" {
void *__libc_malloc(size_t bytes);
void *__libc_calloc(size_t count, size_t bytes);
void *__libc_realloc(void *address, size_t bytes);
void *__libc_memalign(size_t alignment, size_t bytes);
void __libc_free(void *address);
}

namespace {

std::atomic<bool> counting{false};
std::atomic<uint64_t> ours{0}, theirs{0}, largest{0};

/// Counts one allocation by the code at `caller`.
void count(size_t bytes, void *caller) {
  if (!counting.load(std::memory_order_relaxed))
    return;
  Dl_info info;
  const char *object =
      dladdr(caller, &info) && info.dli_fname ? info.dli_fname : "";
  const char *slash = std::strrchr(object, '/');
  bool library = std::strstr(slash ? slash : object, ".so") != nullptr;
  (library ? theirs : ours).fetch_add(1);
  uint64_t seen = largest.load();
  while (bytes > seen && !largest.compare_exchange_weak(seen, bytes)) {
  }
}

} // namespace

#define CALLER __builtin_return_address(0)

extern "C" {

void *malloc(size_t bytes) {
  count(bytes, CALLER);
  return __libc_malloc(bytes);
}
void *calloc(size_t number, size_t bytes) {
  count(number * bytes, CALLER);
  return __libc_calloc(number, bytes);
}
void *realloc(void *address, size_t bytes) {
  count(bytes, CALLER);
  return __libc_realloc(address, bytes);
}
void *memalign(size_t alignment, size_t bytes) {
  count(bytes, CALLER);
  return __libc_memalign(alignment, bytes);
}
void *aligned_alloc(size_t alignment, size_t bytes) {
  count(bytes, CALLER);
  return __libc_memalign(alignment, bytes);
}
int posix_memalign(void **address, size_t alignment, size_t bytes) {
  count(bytes, CALLER);
  *address = __libc_memalign(alignment, bytes);
  return *address ? 0 : 12;
}

void accelMarkSteadyState(int begins) {
  counting = begins != 0;
  if (begins)
    return;
  char line[160];
  int length = std::snprintf(
      line, sizeof line,
      "allocations after load: %llu of ours, %llu of libraries, largest %llu\n",
      (unsigned long long)ours, (unsigned long long)theirs,
      (unsigned long long)largest);
  if (write(2, line, static_cast<size_t>(length)) < 0)
    return;
}

} // extern "C"

// operator new is counted here, so that its caller is seen and not libstdc++.
void *operator new(size_t bytes) {
  count(bytes, CALLER);
  return __libc_malloc(bytes);
}
void *operator new[](size_t bytes) {
  count(bytes, CALLER);
  return __libc_malloc(bytes);
}
void *operator new(size_t bytes, std::align_val_t alignment) {
  count(bytes, CALLER);
  return __libc_memalign(static_cast<size_t>(alignment), bytes);
}
void operator delete(void *address) noexcept { __libc_free(address); }
void operator delete[](void *address) noexcept { __libc_free(address); }
void operator delete(void *address, size_t) noexcept { __libc_free(address); }
void operator delete[](void *address, size_t) noexcept { __libc_free(address); }
void operator delete(void *address, std::align_val_t) noexcept {
  __libc_free(address);
}
