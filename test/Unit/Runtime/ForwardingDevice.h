// A device that is another one, for tests to change what they want of it.

#ifndef ACCEL_TEST_UNIT_RUNTIME_FORWARDINGDEVICE_H
#define ACCEL_TEST_UNIT_RUNTIME_FORWARDINGDEVICE_H

#include "accel-rt/Device.h"

namespace accel::rt::test {

class ForwardingDevice : public Device {
public:
  explicit ForwardingDevice(std::unique_ptr<Device> inner)
      : inner(std::move(inner)) {}

  const char *name() const override { return inner->name(); }
  Status allocate(const ArenaPlan &arena, Address &address) override {
    return inner->allocate(arena, address);
  }
  uint64_t allocatedBytes() const override { return inner->allocatedBytes(); }
  bool isHostMemory(Address address) const override {
    return inner->isHostMemory(address);
  }
  Status share(void *host, uint64_t bytes, Address &address) override {
    return inner->share(host, bytes, address);
  }
  Status upload(Address target, const void *source, const Rows &rows) override {
    return inner->upload(target, source, rows);
  }
  Status download(void *target, Address source, const Rows &rows) override {
    return inner->download(target, source, rows);
  }
  Status fill(Address target, int byte, const Rows &rows) override {
    return inner->fill(target, byte, rows);
  }
  Status prepare(const Command &command, std::unique_ptr<Task> &task) override {
    return inner->prepare(command, task);
  }
  bool capturesHostTasks() const override { return inner->capturesHostTasks(); }
  size_t mostCaptured() const override { return inner->mostCaptured(); }
  Status makeStreams(const StreamPlan &plan, StreamWatcher &watcher,
                     std::unique_ptr<Streams> &streams) override {
    return inner->makeStreams(plan, watcher, streams);
  }

protected:
  std::unique_ptr<Device> inner;
};

} // namespace accel::rt::test

#endif // ACCEL_TEST_UNIT_RUNTIME_FORWARDINGDEVICE_H
