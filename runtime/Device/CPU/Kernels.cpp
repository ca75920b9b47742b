// Generated kernels: loading their library, and running one over chunks of
// rows.

#include "Base/SystemError.h"
#include "Device/CPU/CpuDevice.h"
#include "Device/CPU/ProductForms.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <dlfcn.h>
#include <mutex>
#include <sys/mman.h>
#include <unistd.h>

namespace accel::rt::cpu {

KernelLibrary::~KernelLibrary() {
  if (handle)
    dlclose(handle);
  if (fd >= 0)
    close(fd);
}

Status KernelLibrary::load(const ExecutableFile &file, const char *name) {
  const Section *section = file.find(std::string(kCodePrefix) + name);
  if (!section)
    return Status();
  // A file in memory: nothing is left on disk, whatever happens.
  fd = memfd_create("accel-kernels", MFD_CLOEXEC);
  if (fd < 0 || ftruncate(fd, static_cast<off_t>(section->bytes)) != 0)
    return Status::error(std::string("cannot load the kernels: ") +
                         systemError(errno));
  void *bytes = mmap(nullptr, std::max<uint64_t>(section->bytes, 1),
                     PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  Status status;
  if (bytes == MAP_FAILED) {
    status = Status::error(std::string("cannot load the kernels: ") +
                           systemError(errno));
  } else {
    status = file.read(*section, bytes);
    munmap(bytes, std::max<uint64_t>(section->bytes, 1));
  }
  if (status.ok()) {
    std::string path = "/proc/self/fd/" + std::to_string(fd);
    errno = 0;
    handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    // Where memory runs out dlerror says that something cannot be opened.
    int error = errno;
    if (!handle)
      status =
          Status::error("cannot load the kernels: " +
                        (error == ENOMEM ? systemError(error) : dlerror()));
  }
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
/// The element of a view of integers at a row-major position; nothing if there
/// is none.
std::optional<int64_t> readInteger(const View &view, const void *address,
                                   int64_t position) {
  int64_t place = 0;
  for (size_t dim = view.shape.size(); dim-- > 0;) {
    if (view.shape[dim] == 0)
      return std::nullopt;
    place += position % view.shape[dim] * view.strides[dim];
    position /= view.shape[dim];
  }
  if (position != 0)
    return std::nullopt;
  const char *at =
      static_cast<const char *>(address) + place * dtypeBytes(view.dtype);
  auto as = [&](auto number) -> int64_t {
    std::memcpy(&number, at, sizeof(number));
    return static_cast<int64_t>(number);
  };
  switch (view.dtype) {
  case DType::I8:
    return as(int8_t());
  case DType::I16:
    return as(int16_t());
  case DType::I32:
    return as(int32_t());
  case DType::I64:
    return as(int64_t());
  case DType::UI8:
    return as(uint8_t());
  case DType::UI16:
    return as(uint16_t());
  case DType::UI32:
    return as(uint32_t());
  default:
    return std::nullopt;
  }
}

class KernelTask : public HostTask {
public:
  /// `scratch`: bytes of the command's for each thread.
  KernelTask(const KernelCommand &command, ThreadPool &pool,
             KernelFunction kernel, int64_t scratch)
      : command(command), pool(pool), kernel(kernel),
        count(command.inputs.size() + command.outputs.size()), scratch(scratch),
        limit(scratchThreads(command.scratch, scratch, pool.size())),
        arguments(static_cast<size_t>(pool.size())),
        refusals(static_cast<size_t>(pool.size())) {
    for (size_t thread = 0; thread < arguments.size(); ++thread) {
      arguments[thread].resize(count + (scratch > 0) + 1);
      arguments[thread].back() = &refusals[thread];
    }
  }
  int threads() const { return limit; }

  Status run(const Address *addresses, int64_t) override {
    int64_t chunks = (command.rows + command.grid - 1) / command.grid;
    // The first refused datum in row order, so that the message is the same in
    // every run.
    int64_t first = INT64_MAX;
    Refusal refusal{};
    std::mutex mutex;
    auto compute = [&](int64_t chunk, int thread) {
      int64_t begin = chunk * command.grid;
      int64_t end = std::min(begin + command.grid, command.rows);
      std::vector<void *> &own = arguments[static_cast<size_t>(thread)];
      std::transform(addresses, addresses + count, own.begin(), at);
      if (scratch > 0)
        own[count] = at(addresses[count] + thread * scratch);
      int64_t result = kernel(own.data(), begin, end);
      if (result == 0)
        return;
      std::lock_guard<std::mutex> lock(mutex);
      if (result < first) {
        first = result;
        refusal = refusals[static_cast<size_t>(thread)];
      }
    };
    pool.parallelFor(chunks, compute, limit);
    return first == INT64_MAX ? Status()
                              : explain(refusal, first - 1, addresses);
  }

private:
  Status explain(const Refusal &refusal, int64_t position,
                 const Address *addresses) const {
    std::string size = std::to_string(refusal.end);
    std::string message =
        std::string("expected ") + (refusal.isLabel ? "labels" : "indices") +
        " from " + std::to_string(refusal.least) + " to " +
        std::to_string(refusal.end - 1) + " for " +
        (refusal.isLabel ? size + " classes" : "a table of size " + size) +
        ", found " + std::to_string(refusal.value) + " at position " +
        std::to_string(position);
    // Several inputs may hold integers; the one meant has that number there.
    for (size_t i = 0; i < command.inputNames.size(); ++i)
      if (!command.inputNames[i].empty() &&
          readInteger(command.inputs[i], at(addresses[i]), position) ==
              refusal.value)
        return Status::error(message + " of input " +
                             inQuotes(command.inputNames[i]));
    return Status::error(message);
  }

  const KernelCommand &command;
  ThreadPool &pool;
  KernelFunction kernel;
  size_t count;
  int64_t scratch;
  int limit;
  /// Of each thread: the addresses, and behind them that of its refusal.
  std::vector<std::vector<void *>> arguments;
  std::vector<Refusal> refusals;
};

/// How many bytes of scratch a thread has. Errors: a form that the code of this
/// device is never compiled for.
Status getThreadScratch(const KernelCommand &command, int64_t &bytes) {
  bytes = 0;
  for (const auto &[name, value] : command.form) {
    if (name != kThreadScratch)
      return Status::error(std::string("expected nothing but ") +
                           inQuotes(kThreadScratch) +
                           " in the form of a kernel, found " + inQuotes(name));
    auto *number = std::get_if<int64_t>(&value);
    if (!number || *number <= 0 || *number % kScratchAlignment != 0)
      return Status::error(
          "expected a positive multiple of " +
          std::to_string(kScratchAlignment) + " as " +
          inQuotes(kThreadScratch) + " of a kernel, found " +
          (number ? std::to_string(*number) : std::string("no integer")));
    bytes = *number;
  }
  if (command.scratch && bytes == 0)
    return Status::error("expected scratch of a kernel only where its form "
                         "gives threads any");
  return Status();
}
} // namespace

Status prepareKernel(const KernelCommand &command, ThreadPool &pool,
                     const KernelLibrary &kernels,
                     std::unique_ptr<Task> &task) {
  KernelFunction kernel = nullptr;
  ACCEL_RT_RETURN_IF_ERROR(kernels.find(command.function, kernel));
  int64_t scratch = 0;
  ACCEL_RT_RETURN_IF_ERROR(getThreadScratch(command, scratch));
  auto made = std::make_unique<KernelTask>(command, pool, kernel, scratch);
  if (made->threads() < 1)
    return noScratch(scratch);
  task = std::move(made);
  return Status();
}

} // namespace accel::rt::cpu
