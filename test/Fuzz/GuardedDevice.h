// A device and its communication that compute nothing: every view that a
// command is run on must lie in one of the arenas, which have exactly their
// size, so that a sanitizer sees whatever else is written past them.

#ifndef ACCEL_TEST_FUZZ_GUARDEDDEVICE_H
#define ACCEL_TEST_FUZZ_GUARDEDDEVICE_H

#include "Device/ThreadStreams.h"
#include "Format/Layout.h"
#include "Format/Views.h"
#include "Target.h"
#include "accel-rt/Comm.h"

#include <memory>
#include <vector>

namespace accel::fuzz {

/// The memory of one rank.
class Arenas {
public:
  rt::Address add(const rt::ArenaPlan &plan) {
    size_t bytes = static_cast<size_t>(plan.bytes);
    auto &arena = arenas.emplace_back(std::make_unique<char[]>(bytes), bytes);
    total += bytes;
    return {reinterpret_cast<uint64_t>(arena.first.get())};
  }
  bool hold(rt::Address address, int64_t bytes) const {
    auto *begin = reinterpret_cast<const char *>(address.value);
    for (const auto &[memory, size] : arenas)
      if (begin >= memory.get() && begin <= memory.get() + size &&
          static_cast<uint64_t>(bytes) <=
              static_cast<uint64_t>(memory.get() + size - begin))
        return true;
    return false;
  }
  uint64_t bytes() const { return total; }

private:
  std::vector<std::pair<std::unique_ptr<char[]>, size_t>> arenas;
  uint64_t total = 0;
};

class CheckTask : public rt::HostTask {
public:
  CheckTask(const rt::Command &command, const Arenas &arenas) : arenas(arenas) {
    rt::format::forEachView(command, [&](const rt::View &view) {
      spans.push_back(rt::spanBytes(view));
    });
  }
  rt::Status run(const rt::Address *addresses, int64_t) override {
    for (size_t i = 0; i < spans.size(); ++i)
      require(spans[i] >= 0 && arenas.hold(addresses[i], spans[i]),
              "a command's view lies in its arena");
    return rt::Status();
  }

private:
  const Arenas &arenas;
  std::vector<int64_t> spans;
};

class GuardedDevice : public rt::Device {
public:
  explicit GuardedDevice(Arenas &arenas) : arenas(arenas) {}
  const char *name() const override { return "guarded"; }
  rt::Status allocate(const rt::ArenaPlan &arena,
                      rt::Address &address) override {
    address = arenas.add(arena);
    return rt::Status();
  }
  uint64_t allocatedBytes() const override { return arenas.bytes(); }
  rt::Status prepare(const rt::Command &command,
                     std::unique_ptr<rt::Task> &task) override {
    task = std::make_unique<CheckTask>(command, arenas);
    return rt::Status();
  }
  rt::Status share(void *, uint64_t, rt::Address &) override {
    return rt::Status();
  }
  rt::Status upload(rt::Address target, const void *source,
                    const rt::Rows &rows) override {
    require(holds(target, rows), "what is uploaded lies in its arena");
    rt::uploadRows(find(target), source, rows);
    return rt::Status();
  }
  rt::Status download(void *target, rt::Address source,
                      const rt::Rows &rows) override {
    require(holds(source, rows), "what is downloaded lies in its arena");
    rt::downloadRows(target, find(source), rows);
    return rt::Status();
  }
  rt::Status fill(rt::Address target, int byte, const rt::Rows &rows) override {
    require(holds(target, rows), "what is filled lies in its arena");
    rt::fillRows(find(target), byte, rows);
    return rt::Status();
  }
  bool capturesHostTasks() const override { return true; }
  /// Streams of one thread each, as the CPU has them.
  rt::Status makeStreams(const rt::StreamPlan &plan, rt::StreamWatcher &watcher,
                         std::unique_ptr<rt::Streams> &streams) override {
    return rt::makeThreadStreams(plan, /*spin=*/50, watcher, streams);
  }
  bool isHostMemory(rt::Address) const override { return true; }

private:
  bool holds(rt::Address address, const rt::Rows &rows) const {
    return rows.count == 0 ||
           arenas.hold(address, (rows.count - 1) * rows.inArena +
                                    static_cast<int64_t>(rows.bytes));
  }

  Arenas &arenas;
};

class GuardedComm : public rt::Comm {
public:
  explicit GuardedComm(Arenas &arenas) : arenas(arenas) {}
  rt::Status allocate(const rt::ArenaPlan &arena,
                      rt::Address &address) override {
    address = arenas.add(arena);
    return rt::Status();
  }
  rt::Status prepare(const rt::Program &, const rt::Command &command,
                     rt::Work &work) override {
    work.kind = rt::Work::Kind::Host;
    work.task = std::make_unique<CheckTask>(command, arenas);
    return rt::Status();
  }

private:
  Arenas &arenas;
};

} // namespace accel::fuzz

#endif // ACCEL_TEST_FUZZ_GUARDEDDEVICE_H
