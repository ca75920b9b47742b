// A device that does nothing that it is asked for: plans run without hardware,
// and tests see the addresses that the executor computed.

#include "Device/Null/NullDevice.h"

#include "Device/ThreadStreams.h"
#include "Format/Views.h"

#include <cstring>

namespace accel::rt {
namespace {

class NullTask : public HostTask {
public:
  NullTask(const Command &command, size_t views,
           std::vector<RecordedCommand> *log)
      : command(command), views(views), log(log) {}
  Status run(const Address *addresses, int64_t microBatch) override {
    if (log)
      log->push_back({&command, {addresses, addresses + views}, microBatch});
    return Status();
  }

private:
  const Command &command;
  size_t views;
  std::vector<RecordedCommand> *log;
};

/// Looks of a wait before it sleeps.
constexpr int kSpin = 50;

class NullDevice : public Device {
public:
  explicit NullDevice(std::vector<RecordedCommand> *log) : log(log) {}
  const char *name() const override { return "null"; }
  Status allocate(const ArenaPlan &arena, Address &address) override {
    // Addresses that no memory stands behind: a page is taken between arenas.
    address = {next};
    next += (static_cast<uint64_t>(arena.bytes) + (2 << 20)) & ~uint64_t(4095);
    allocated += static_cast<uint64_t>(arena.bytes);
    return Status();
  }
  uint64_t allocatedBytes() const override { return allocated; }
  Status prepare(const Command &command, std::unique_ptr<Task> &task) override {
    size_t views = 0;
    format::forEachView(command, [&](const View &) { ++views; });
    task = std::make_unique<NullTask>(command, views, log);
    return Status();
  }
  /// Its commands touch no memory: any address will do.
  Status share(void *host, uint64_t, Address &address) override {
    address = {reinterpret_cast<uint64_t>(host)};
    return Status();
  }
  Status upload(Address, const void *, const Rows &) override {
    return Status();
  }
  /// Zeros, as nothing was ever written.
  Status download(void *target, Address, const Rows &rows) override {
    for (int64_t i = 0; i < rows.count; ++i)
      std::memset(static_cast<char *>(target) + i * rows.onHost, 0, rows.bytes);
    return Status();
  }
  Status fill(Address, int, const Rows &) override { return Status(); }
  bool capturesHostTasks() const override { return true; }
  /// Streams order nothing's doing as they order a device's.
  Status makeStreams(const StreamPlan &plan, StreamWatcher &watcher,
                     std::unique_ptr<Streams> &streams) override {
    return makeThreadStreams(plan, kSpin, watcher, streams);
  }

private:
  std::vector<RecordedCommand> *log;
  uint64_t allocated = 0;
  uint64_t next = uint64_t(1) << 44;
};

} // namespace

std::unique_ptr<Device> null::makeDevice(std::vector<RecordedCommand> *log) {
  return std::make_unique<NullDevice>(log);
}

bool null::isOfProcess(const std::string &) { return false; }

Status null::checkMachine(const Executable &, const std::string &) {
  return Status();
}

Status null::makeDevice(const ExecutableFile &, ThreadPool &,
                        std::atomic<uint64_t> *,
                        std::unique_ptr<Device> &device) {
  device = makeDevice(nullptr);
  return Status();
}

} // namespace accel::rt
