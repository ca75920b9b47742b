// Generated kernels: loading their library, and running one over chunks of
// rows.

#include "Device/CPU/CpuDevice.h"

#include <atomic>
#include <cerrno>
#include <cstring>
#include <dlfcn.h>
#include <sys/mman.h>
#include <unistd.h>

namespace accel::rt::cpu {

KernelLibrary::~KernelLibrary() {
  if (handle)
    dlclose(handle);
}

Status KernelLibrary::load(const ExecutableFile &file) {
  const Section *section = file.find(kKernelSection);
  if (!section)
    return Status();
  // A file in memory: nothing is left on disk, whatever happens.
  int fd = memfd_create("accel-kernels", MFD_CLOEXEC);
  if (fd < 0 || ftruncate(fd, static_cast<off_t>(section->bytes)) != 0)
    return Status::error(std::string("cannot load the kernels: ") +
                         std::strerror(errno));
  void *bytes = mmap(nullptr, std::max<uint64_t>(section->bytes, 1),
                     PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  Status status;
  if (bytes == MAP_FAILED) {
    status = Status::error(std::string("cannot load the kernels: ") +
                           std::strerror(errno));
  } else {
    status = file.read(*section, bytes);
    munmap(bytes, std::max<uint64_t>(section->bytes, 1));
  }
  if (status.ok()) {
    std::string path = "/proc/self/fd/" + std::to_string(fd);
    handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!handle)
      status =
          Status::error(std::string("cannot load the kernels: ") + dlerror());
  }
  close(fd);
  return status;
}

Status KernelLibrary::find(const std::string &name,
                           KernelFunction &kernel) const {
  kernel = handle
               ? reinterpret_cast<KernelFunction>(dlsym(handle, name.c_str()))
               : nullptr;
  if (!kernel)
    return Status::error("expected a kernel " + inQuotes(name) +
                         " in the file, found none");
  return Status();
}

namespace {
class KernelTask : public Task {
public:
  KernelTask(const KernelCommand &command, ThreadPool &pool,
             KernelFunction kernel)
      : command(command), pool(pool), kernel(kernel) {}

  Status run(void *const *addresses, int64_t) override {
    int64_t chunks = (command.rows + command.grid - 1) / command.grid;
    // The first refused datum in row order, so that the message is the same in
    // every run.
    std::atomic<int64_t> refused{INT64_MAX};
    pool.parallelFor(chunks, [&](int64_t chunk, int) {
      int64_t begin = chunk * command.grid;
      int64_t end = std::min(begin + command.grid, command.rows);
      int64_t result = kernel(addresses, begin, end);
      if (result == 0)
        return;
      int64_t seen = refused.load();
      while (result < seen && !refused.compare_exchange_weak(seen, result)) {
      }
    });
    if (int64_t result = refused.load(); result != INT64_MAX)
      return Status::error(
          "expected indices within their table and labels below the number of "
          "classes, found one outside at "
          "position " +
          std::to_string(result - 1));
    return Status();
  }

private:
  const KernelCommand &command;
  ThreadPool &pool;
  KernelFunction kernel;
};
} // namespace

Status prepareKernel(const KernelCommand &command, ThreadPool &pool,
                     const KernelLibrary &kernels,
                     std::unique_ptr<Task> &task) {
  KernelFunction kernel = nullptr;
  ACCEL_RT_RETURN_IF_ERROR(kernels.find(command.function, kernel));
  task = std::make_unique<KernelTask>(command, pool, kernel);
  return Status();
}

} // namespace accel::rt::cpu
