// Copies and fills of strided views.

#include "Device/CPU/CpuDevice.h"

#include <cstring>

namespace accel::rt::cpu {
namespace {

/// Elements in a chunk of a copy: enough to be worth a thread's while.
constexpr int64_t kChunkElements = 1 << 16;

class CopyTask : public HostTask {
public:
  CopyTask(const CopyCommand &command, ThreadPool &pool)
      : layout(command.target.shape, command.target.strides,
               command.source.strides),
        bytes(dtypeBytes(command.target.dtype)), pool(pool) {}

  Status run(const Address *addresses, int64_t) override {
    int64_t elements = layout.elements();
    pool.parallelFor((elements + kChunkElements - 1) / kChunkElements,
                     [&](int64_t chunk, int) {
                       copyElements(
                           layout, bytes, at(addresses[1]), at(addresses[0]),
                           chunk * kChunkElements,
                           std::min((chunk + 1) * kChunkElements, elements));
                     });
    return Status();
  }

private:
  PairLayout layout;
  int64_t bytes;
  ThreadPool &pool;
};

class FillTask : public HostTask {
public:
  explicit FillTask(const FillCommand &command)
      : layout(command.target.shape, command.target.strides,
               std::vector<int64_t>(command.target.shape.size(), 0)),
        bytes(command.value.size()) {
    for (size_t i = 0; i < bytes; ++i) {
      value[i] = static_cast<unsigned char>(command.value[i]);
      isOneByte &= value[i] == value[0];
    }
  }

  Status run(const Address *addresses, int64_t) override {
    if (isOneByte) {
      layout.forRange(
          0, layout.elements(),
          [&](int64_t to, int64_t, int64_t stride, int64_t, int64_t count) {
            int64_t size = static_cast<int64_t>(bytes);
            fillRows(static_cast<char *>(at(addresses[0])) + to * size,
                     value[0], Rows::ofElements(size, count, stride, 1));
          });
      return Status();
    }
    copyElements(layout, static_cast<int64_t>(bytes), at(addresses[0]), value,
                 0, layout.elements());
    return Status();
  }

private:
  PairLayout layout;
  size_t bytes;
  alignas(8) unsigned char value[8] = {};
  bool isOneByte = true; ///< Again and again: as zeros are.
};
} // namespace

Status prepareCopy(const CopyCommand &command, ThreadPool &pool,
                   std::unique_ptr<Task> &task) {
  task = std::make_unique<CopyTask>(command, pool);
  return Status();
}

Status prepareFill(const FillCommand &command, std::unique_ptr<Task> &task) {
  task = std::make_unique<FillTask>(command);
  return Status();
}

} // namespace accel::rt::cpu
