// The CPU behind a wall: its arenas have addresses at which the host finds
// nothing but the end of its process, as those of a device with memory of its
// own; but for those of `pinned` and `host`, which are the host's. Whatever
// reaches into an arena other than by Memory's copies dies there.

#ifndef ACCEL_TEST_UNIT_RUNTIME_WALLEDDEVICE_H
#define ACCEL_TEST_UNIT_RUNTIME_WALLEDDEVICE_H

#include "Device/CPU/CpuDevice.h"
#include "Device/Devices.h"
#include "Format/Views.h"
#include "ForwardingDevice.h"

#include <sys/mman.h>

namespace accel::rt::test {

class WalledDevice : public ForwardingDevice {
public:
  explicit WalledDevice(std::unique_ptr<Device> cpu)
      : ForwardingDevice(std::move(cpu)) {}
  ~WalledDevice() override {
    for (const Wall &wall : walls)
      munmap(reinterpret_cast<void *>(wall.start.value), wall.bytes);
  }

  const char *name() const override { return "walled"; }
  Status allocate(const ArenaPlan &arena, Address &address) override {
    if (arena.space == "pinned" || arena.space == "host")
      return inner->allocate(arena, address);
    Address real;
    ACCEL_RT_RETURN_IF_ERROR(inner->allocate(arena, real));
    return build(real, static_cast<uint64_t>(arena.bytes), address);
  }
  bool isHostMemory(Address address) const override {
    return behind(address).value == address.value;
  }
  Status share(void *host, uint64_t bytes, Address &address) override {
    Address real;
    ACCEL_RT_RETURN_IF_ERROR(inner->share(host, bytes, real));
    return build(real, bytes, address);
  }
  Status upload(Address target, const void *source, const Rows &rows) override {
    return inner->upload(behind(target), source, rows);
  }
  Status download(void *target, Address source, const Rows &rows) override {
    return inner->download(target, behind(source), rows);
  }
  Status fill(Address target, int byte, const Rows &rows) override {
    return inner->fill(behind(target), byte, rows);
  }

  Status prepare(const Command &command, std::unique_ptr<Task> &task) override {
    std::unique_ptr<Task> made;
    ACCEL_RT_RETURN_IF_ERROR(inner->prepare(command, made));
    size_t views = 0;
    format::forEachView(command, [&](const View &) { ++views; });
    task = std::make_unique<WalledTask>(*this, std::move(made), views);
    return Status();
  }
  bool capturesHostTasks() const override { return true; }

private:
  struct Wall {
    Address start, real;
    uint64_t bytes;
  };
  class WalledTask : public HostTask {
  public:
    WalledTask(WalledDevice &device, std::unique_ptr<Task> task, size_t views)
        : device(device), task(std::move(task)), real(views) {}
    Status run(const Address *views, int64_t microBatch) override {
      for (size_t i = 0; i < real.size(); ++i)
        real[i] = device.behind(views[i]);
      return static_cast<HostTask &>(*task).run(real.data(), microBatch);
    }

  private:
    WalledDevice &device;
    std::unique_ptr<Task> task;
    std::vector<Address> real;
  };

  /// As large as the arena, up to the end of a page that is not there either.
  Status build(Address real, uint64_t bytes, Address &address) {
    constexpr uint64_t alignment = 4 << 20;
    bytes += alignment + 4096;
    void *wall = mmap(nullptr, bytes, PROT_NONE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (wall == MAP_FAILED)
      return Status::error("no room for a wall");
    uint64_t start = reinterpret_cast<uint64_t>(wall);
    address = {(start + alignment - 1) / alignment * alignment};
    walls.push_back({{start}, real + -(address - Address{start}), bytes});
    return Status();
  }
  Address behind(Address address) const {
    for (const Wall &wall : walls)
      if (address.value >= wall.start.value &&
          address.value < wall.start.value + wall.bytes)
        return wall.real + (address - wall.start);
    return address; // of no arena: whoever uses it finds out
  }

  std::vector<Wall> walls;
};

/// Its row of the table of devices, in the place of the CPU's or of another
/// one.
inline DeviceKind makeWalledKind(const char *name) {
  return {
      name, /*executes=*/true, cpu::isOfProcess, cpu::checkMachine,
      [](const ExecutableFile &file, ThreadPool &pool,
         std::atomic<uint64_t> *populated, std::unique_ptr<Device> &device) {
        std::unique_ptr<Device> cpu;
        ACCEL_RT_RETURN_IF_ERROR(cpu::makeDevice(file, pool, populated, cpu));
        device = std::make_unique<WalledDevice>(std::move(cpu));
        return Status();
      }};
}
inline const DeviceKind &walledDevice() {
  static const DeviceKind kind = makeWalledKind("cpu");
  return kind;
}

} // namespace accel::rt::test

#endif // ACCEL_TEST_UNIT_RUNTIME_WALLEDDEVICE_H
